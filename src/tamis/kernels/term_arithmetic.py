"""Arithmetic and comparisons of registers (`term_steps`): whole numbers, doubles, times, decimals.

Each function computes target[lane] for all lanes of a block. It changes known[lane] where the
result is null, as that of a division by zero, or TOO_LONG.
"""

from typing import Any

import numpy as np

from tamis.kernels.jit import Number, inner
from tamis.kernels.term_operations import (
    BELOW,
    DECIMAL_ADD,
    DECIMAL_SUBTRACT,
    DECIMAL_TO_DOUBLE,
    DOUBLE_ABS,
    DOUBLE_ADD,
    DOUBLE_CEIL,
    DOUBLE_DIVIDE,
    DOUBLE_FLOOR,
    DOUBLE_KEY,
    DOUBLE_MULTIPLY,
    DOUBLE_NEGATIVE,
    DOUBLE_SQRT,
    DOUBLE_SUBTRACT,
    EQUAL,
    MISSING,
    NOT,
    SAME,
    TIME_ADD,
    TOO_LONG,
    UNEQUAL,
    WHOLE_ABS,
    WHOLE_ADD,
    WHOLE_MULTIPLY,
    WHOLE_NEGATIVE,
    WHOLE_REMAINDER,
    WHOLE_SUBTRACT,
    WHOLE_TO_INT32,
)

Array = np.ndarray[Any, Any]

_MOST = np.int64(2**63 - 1)
_LEAST = np.int64(-(2**63))
_INFINITE = np.int64(0x7FF << 52)  # the bits of infinity: those of a NaN are above, but for signs
_BEYOND = 2.0**63
_SURELY_SHORT = 2.0**62  # a product that is less, as doubles have it, fits
_LAST_EXACT = 2**53  # up to here, each whole number is a double
# Keys of decimals, see `tamis.predicates.keys`: of longer numbers, the first 17 digits count.
_KEY_END, _PER_LENGTH = 10**17, 9 * 10**16
_SIGN = np.int64(63)


@inner
def copy(x: Array, lanes: Number, target: Array) -> None:
    for e in range(lanes):
        target[e] = x[e]


@inner
def of_whole(operation: Number, x: Array, lanes: Number, target: Array, real: Array) -> None:
    """Compute from one whole number; 64 bits wrap around by themselves."""
    if operation == WHOLE_NEGATIVE:
        for e in range(lanes):
            target[e] = -x[e]
    elif operation == WHOLE_ABS:
        for e in range(lanes):
            target[e] = -x[e] if x[e] < 0 else x[e]
    elif operation == WHOLE_TO_INT32:
        for e in range(lanes):
            target[e] = np.int64(np.int32(x[e] & 0xFFFFFFFF))
    else:
        for e in range(lanes):
            real[e] = np.float64(x[e])


@inner
def of_double(operation: Number, x: Array, lanes: Number, target: Array) -> None:
    """Compute a double from one double."""
    if operation == DOUBLE_NEGATIVE:
        for e in range(lanes):
            target[e] = -x[e]
    elif operation == DOUBLE_ABS:
        for e in range(lanes):
            target[e] = np.abs(x[e])
    elif operation == DOUBLE_SQRT:
        for e in range(lanes):
            target[e] = np.sqrt(x[e])
    else:  # half up, away from zero; what is after the point is exact, and -0.0 becomes 0.0
        for e in range(lanes):
            size = np.abs(x[e])
            whole = np.floor(size)
            whole = whole + 1.0 if size - whole >= 0.5 else whole
            target[e] = (-whole if x[e] < 0 else whole) + 0.0


@inner
def to_whole(
    operation: Number, x: Array, bits: Array, lanes: Number, real: Array, target: Array
) -> None:
    """Compute a key, a whole number or a truth value from one value."""
    if operation == DOUBLE_KEY:  # see `tamis.predicates.keys`
        for e in range(lanes):
            real[e] = x[e] + 0.0
        for e in range(lanes):
            value = target[e]
            key = value ^ ((value >> _SIGN) & _MOST)
            target[e] = _MOST if (value & _MOST) > _INFINITE else key
    elif operation == SAME:
        copy(bits, lanes, target)
    elif operation == NOT:
        for e in range(lanes):
            target[e] = bits[e] ^ 1
    elif operation == DOUBLE_FLOOR:
        for e in range(lanes):
            target[e] = _within(np.floor(x[e]))
    elif operation == DOUBLE_CEIL:
        for e in range(lanes):
            target[e] = _within(np.ceil(x[e]))
    else:
        for e in range(lanes):
            target[e] = _long_decimal_key(bits[e])


@inner
def _within(value: Number) -> Number:
    """A double without digits after the point as the nearest whole number; 0 for NaN."""
    if value != value:  # noqa: PLR0124 - only NaN is not equal to itself
        return np.int64(0)
    if value >= _BEYOND:
        return _MOST
    if value < -_BEYOND:
        return _LEAST
    return np.int64(value)


@inner
def of_wholes(
    operation: Number, x: Array, y: Array, lanes: Number, target: Array, known: Array
) -> None:
    """Compute from two whole numbers."""
    if operation == WHOLE_ADD:
        for e in range(lanes):
            target[e] = x[e] + y[e]
    elif operation == WHOLE_SUBTRACT:
        for e in range(lanes):
            target[e] = x[e] - y[e]
    elif operation == WHOLE_MULTIPLY:
        for e in range(lanes):
            target[e] = x[e] * y[e]
    else:
        for e in range(lanes):
            # The smallest number divided by -1 is itself, as it wraps around; processors refuse it.
            divisor = np.int64(1) if y[e] == 0 or y[e] == -1 else y[e]
            quotient = x[e] // divisor  # rounded down, where it should be cut
            if quotient * divisor != x[e] and (x[e] < 0) != (divisor < 0):
                quotient += 1
            if operation == WHOLE_REMAINDER:
                target[e] = x[e] - quotient * divisor
            else:
                target[e] = -x[e] if y[e] == -1 else quotient
            known[e] = known[e] if (y[e] != 0) | (known[e] == TOO_LONG) else MISSING


@inner
def of_doubles(
    operation: Number, x: Array, y: Array, lanes: Number, target: Array, known: Array
) -> None:
    """Compute from two doubles."""
    if operation == DOUBLE_ADD:
        for e in range(lanes):
            target[e] = x[e] + y[e]
    elif operation == DOUBLE_SUBTRACT:
        for e in range(lanes):
            target[e] = x[e] - y[e]
    elif operation == DOUBLE_MULTIPLY:
        for e in range(lanes):
            target[e] = x[e] * y[e]
    else:
        if operation == DOUBLE_DIVIDE:
            for e in range(lanes):
                target[e] = x[e] / y[e]
        else:
            for e in range(lanes):
                target[e] = np.fmod(x[e], y[e])
        for e in range(lanes):
            known[e] = known[e] if (y[e] != 0) | (known[e] == TOO_LONG) else MISSING


@inner
def comparison(operation: Number, x: Array, y: Array, lanes: Number, target: Array) -> None:
    """Compare two whole numbers; doubles are compared by their keys."""
    if operation == EQUAL:
        for e in range(lanes):
            target[e] = x[e] == y[e]
    elif operation == UNEQUAL:
        for e in range(lanes):
            target[e] = x[e] != y[e]
    elif operation == BELOW:
        for e in range(lanes):
            target[e] = x[e] < y[e]
    else:
        for e in range(lanes):
            target[e] = x[e] <= y[e]


@inner
def of_times_and_decimals(
    operation: Number, x: Array, y: Array, real: Array, lanes: Number, target: Array, to: Array,
    known: Array,
) -> None:  # fmt: skip
    if operation < DECIMAL_ADD:
        _of_times(operation == TIME_ADD, x, y, lanes, target)
    elif operation < DECIMAL_TO_DOUBLE:
        _of_decimals(operation, x, y, lanes, target, known)
    else:
        _to_double(x, real, lanes, to, known)


@inner
def _of_times(is_sum: Number, x: Array, y: Array, lanes: Number, target: Array) -> None:
    """Add or subtract moments and durations, cut off at the ends of 64 bits."""
    if is_sum:
        for e in range(lanes):
            found = x[e] + y[e]
            end = _LEAST if x[e] < 0 else _MOST
            target[e] = end if ((x[e] ^ found) & (y[e] ^ found)) < 0 else found
    else:
        for e in range(lanes):
            found = x[e] - y[e]
            end = _LEAST if x[e] < 0 else _MOST
            target[e] = end if ((x[e] ^ y[e]) & (x[e] ^ found)) < 0 else found


@inner
def _of_decimals(
    operation: Number, x: Array, y: Array, lanes: Number, target: Array, known: Array
) -> None:
    """Compute from two decimals, which have one scale if they are added or subtracted.

    The lowest number of 64 bits is TOO_LONG, because its negative does not fit.
    """
    if operation == DECIMAL_ADD:
        for e in range(lanes):
            target[e] = x[e] + y[e]
        for e in range(lanes):
            is_beyond = ((x[e] ^ target[e]) & (y[e] ^ target[e])) < 0
            beyond = is_beyond | (target[e] == _LEAST)
            known[e] |= (known[e] & beyond) << 1
    elif operation == DECIMAL_SUBTRACT:
        for e in range(lanes):
            target[e] = x[e] - y[e]
        for e in range(lanes):
            is_beyond = ((x[e] ^ y[e]) & (x[e] ^ target[e])) < 0
            beyond = is_beyond | (target[e] == _LEAST)
            known[e] |= (known[e] & beyond) << 1
    else:
        for e in range(lanes):
            target[e] = x[e] * y[e]
        for e in range(lanes):
            beyond = np.abs(np.float64(x[e]) * np.float64(y[e])) >= _SURELY_SHORT
            known[e] |= (known[e] & beyond) << 1


@inner
def _to_double(x: Array, unit: Array, lanes: Number, target: Array, known: Array) -> None:
    """Divide decimals by their unit, a power of ten that is a double; rounded once."""
    for e in range(lanes):
        target[e] = np.float64(x[e]) / unit[e]
    for e in range(lanes):
        beyond = (x[e] > _LAST_EXACT) | (x[e] < -_LAST_EXACT)
        known[e] |= (known[e] & beyond) << 1


@inner
def _long_decimal_key(number: Number) -> Number:
    """The key of a decimal whose type has more than 18 digits; see `predicates.keys`."""
    size = -number if number < 0 else number
    if size < _KEY_END:
        return 2 * number
    beyond, by = (1, 10) if size < 10 * _KEY_END else (2, 100)
    first = size // by
    key = 2 * (first + _PER_LENGTH * beyond) + (first * by != size)
    return -key if number < 0 else key
