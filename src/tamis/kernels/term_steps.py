"""Computed values as programs: a list of steps, each one operation for a block of events.

A *register* holds a value for each event of a block, as a whole number or as the bits of a double:
``wholes[register, lane]`` and ``doubles[register, lane]`` are the same memory. Truth is 0 or 1.
``known[register, lane]`` says whether the value is there; where it is not, the register holds
anything. A step is (operation, target, x, y, z), the last three of which are registers as far as
the operation has operands. Its target is none of them, so that they can be read many at a time.

A decimal is all its digits as a whole number, of at most 63 bits; who writes a program knows the
scales. If a decimal is longer, it and all that is computed from it are TOO_LONG: their values are
computed by others.

All terms of a segment are one program, so what they have in common is computed once, and a block's
registers stay in the cache. One event is a block of one lane.

A program may also test the elements of an array, for `exists` and `forall`: then a lane is an
element, and its owner is the event whose array has it.
"""

from typing import Any

import numpy as np

from tamis.kernels.bits import smaller
from tamis.kernels.jit import Number, inner, jit

Array = np.ndarray[Any, Any]

LANES = 512  # events of a block
MOST_OPERANDS = 3

# What `known` says of a value.
MISSING, THERE, TOO_LONG = 0, 1, 3

# An input or a constant, both numbered by x; and an output, numbered by y.
LOAD, CONSTANT, STORE = 0, 1, 2
# Of one operand; null where it is.
WHOLE_NEGATIVE, WHOLE_ABS, WHOLE_TO_INT32, WHOLE_TO_DOUBLE = 3, 4, 5, 6
DOUBLE_NEGATIVE, DOUBLE_ABS, DOUBLE_SQRT, DOUBLE_ROUND = 7, 8, 9, 10
DOUBLE_FLOOR, DOUBLE_CEIL, DOUBLE_KEY, SAME, NOT, DECIMAL_KEY = 11, 12, 13, 14, 15, 16
# Of two; null where one of them is, and where one divides by zero.
WHOLE_ADD, WHOLE_SUBTRACT, WHOLE_MULTIPLY, WHOLE_DIVIDE, WHOLE_REMAINDER = 17, 18, 19, 20, 21
DOUBLE_ADD, DOUBLE_SUBTRACT, DOUBLE_MULTIPLY, DOUBLE_DIVIDE, DOUBLE_REMAINDER = 22, 23, 24, 25, 26
EQUAL, UNEQUAL, BELOW, AT_MOST = 27, 28, 29, 30
TIME_ADD, TIME_SUBTRACT = 31, 32
DECIMAL_ADD, DECIMAL_SUBTRACT, DECIMAL_MULTIPLY, DECIMAL_TO_DOUBLE = 33, 34, 35, 36
# These decide by themselves when they are null.
IS_NULL, IS_TRUE, IS_FALSE, AND, OR, FIRST_PRESENT = 37, 38, 39, 40, 41, 42
WHOLE_GREATEST, WHOLE_LEAST, DOUBLE_GREATEST, DOUBLE_LEAST, CHOICE = 43, 44, 45, 46, 47
_FIRST_OF_TWO, _FIRST_OF_ITS_OWN = WHOLE_ADD, IS_NULL

# What functions and operators are called in a program: the operation, and how many operands it has.
OPERATIONS: dict[str, tuple[int, int]] = {
    "whole negative": (WHOLE_NEGATIVE, 1), "whole abs": (WHOLE_ABS, 1),
    "whole to int32": (WHOLE_TO_INT32, 1), "whole to double": (WHOLE_TO_DOUBLE, 1),
    "double negative": (DOUBLE_NEGATIVE, 1), "double abs": (DOUBLE_ABS, 1),
    "double sqrt": (DOUBLE_SQRT, 1), "double round": (DOUBLE_ROUND, 1),
    "double floor": (DOUBLE_FLOOR, 1), "double ceil": (DOUBLE_CEIL, 1),
    "double key": (DOUBLE_KEY, 1), "decimal key": (DECIMAL_KEY, 1),
    "same": (SAME, 1), "not": (NOT, 1),
    "whole +": (WHOLE_ADD, 2), "whole -": (WHOLE_SUBTRACT, 2), "whole *": (WHOLE_MULTIPLY, 2),
    "whole DIV": (WHOLE_DIVIDE, 2), "whole %": (WHOLE_REMAINDER, 2),
    "double +": (DOUBLE_ADD, 2), "double -": (DOUBLE_SUBTRACT, 2),
    "double *": (DOUBLE_MULTIPLY, 2), "double /": (DOUBLE_DIVIDE, 2),
    "double %": (DOUBLE_REMAINDER, 2),
    "decimal +": (DECIMAL_ADD, 2), "decimal -": (DECIMAL_SUBTRACT, 2),
    "decimal *": (DECIMAL_MULTIPLY, 2), "decimal to double": (DECIMAL_TO_DOUBLE, 2),
    "time +": (TIME_ADD, 2), "time -": (TIME_SUBTRACT, 2),
    "=": (EQUAL, 2), "<>": (UNEQUAL, 2), "<": (BELOW, 2), "<=": (AT_MOST, 2),
    "is null": (IS_NULL, 1), "is true": (IS_TRUE, 1), "is false": (IS_FALSE, 1),
    "and": (AND, 2), "or": (OR, 2), "first present": (FIRST_PRESENT, 2),
    "whole greatest": (WHOLE_GREATEST, 2), "whole least": (WHOLE_LEAST, 2),
    "double greatest": (DOUBLE_GREATEST, 2), "double least": (DOUBLE_LEAST, 2),
    "choice": (CHOICE, 3),
}  # fmt: skip

_MOST = np.int64(2**63 - 1)
_LEAST = np.int64(-(2**63))
_INFINITE = np.int64(0x7FF << 52)  # the bits of infinity: those of a NaN are above, but for signs
_BEYOND = 2.0**63
_SURELY_SHORT = 2.0**62  # a product that is less, as doubles have it, fits
_LAST_EXACT = 2**53  # up to here, each whole number is a double
# Keys of decimals, see `tamis.predicates.keys`: of longer numbers, the first 17 digits count.
_KEY_END, _PER_LENGTH = 10**17, 9 * 10**16
_SIGN = np.int64(63)


@jit
def run_terms(
    steps: Array, inputs: Array, there: Array, constants: Array, given: Array, wholes: Array,
    doubles: Array, known: Array, owners: Array, decisive: Array, keys: Array, present: Array,
) -> None:  # fmt: skip
    """Write keys[output, event] and present[output, event]; a missing value has the key 0.

    inputs[input, lane] has whole numbers or the bits of doubles, there[input, lane] whether they
    are given, or TOO_LONG, as present[output, event] may be; constants[*] and given[*] are the same
    for all lanes. A lane is an event, unless there are owners[lane]: then it is an element, and
    keys and present are what they are without any, which `_quantify` changes.
    """
    width = wholes.shape[1]
    for start in range(0, inputs.shape[1], width):
        end = smaller(start + width, inputs.shape[1])
        lanes = end - start
        for k in range(steps.shape[0]):
            operation, t, x = steps[k, 0], steps[k, 1], steps[k, 2]
            if operation == LOAD:
                _load(inputs[x, start:end], there[x, start:end], wholes[t], known[t])
            elif operation == CONSTANT:
                _fill(constants[x], given[x], lanes, wholes[t], known[t])
            elif operation == STORE:
                y = steps[k, 3]
                _write(wholes[x], known[x], start, end, owners, decisive, y, keys, present)
            elif operation < _FIRST_OF_TWO:
                _copy(known[x], lanes, known[t])
                if operation < DOUBLE_NEGATIVE:
                    _of_whole(operation, wholes[x], lanes, wholes[t], doubles[t])
                elif operation < DOUBLE_FLOOR:
                    _of_double(operation, doubles[x], lanes, doubles[t])
                else:
                    _to_whole(operation, doubles[x], wholes[x], lanes, doubles[t], wholes[t])
            elif operation < _FIRST_OF_ITS_OWN:
                y = steps[k, 3]
                _both(known[x], known[y], lanes, known[t])
                if operation < DOUBLE_ADD:
                    _of_wholes(operation, wholes[x], wholes[y], lanes, wholes[t], known[t])
                elif operation < EQUAL:
                    _of_doubles(operation, doubles[x], doubles[y], lanes, doubles[t], known[t])
                elif operation < TIME_ADD:
                    _comparison(operation, wholes[x], wholes[y], lanes, wholes[t])
                else:
                    _of_times_and_decimals(operation, wholes[x], wholes[y], doubles[y], lanes,
                                           wholes[t], doubles[t], known[t])  # fmt: skip
            elif operation < AND:
                _presence(operation, wholes[x], known[x], lanes, wholes[t], known[t])
            elif operation < FIRST_PRESENT:
                y = steps[k, 3]
                _logic(operation == OR, wholes[x], wholes[y], known[x], known[y], lanes, wholes[t],
                       known[t])  # fmt: skip
            elif operation < CHOICE:
                y = steps[k, 3]
                _better(operation, wholes[x], wholes[y], doubles[x], doubles[y], known[x],
                        known[y], lanes, wholes[t], known[t])  # fmt: skip
            else:
                y, z = steps[k, 3], steps[k, 4]
                _choice(wholes[x], known[x], wholes[y], known[y], wholes[z], known[z], lanes,
                        wholes[t], known[t])  # fmt: skip


@inner
def _load(values: Array, there: Array, target: Array, known: Array) -> None:
    for e in range(values.size):
        target[e] = values[e]
    for e in range(values.size):
        known[e] = there[e]


@inner
def _fill(value: Number, given: Number, lanes: Number, target: Array, known: Array) -> None:
    for e in range(lanes):
        target[e] = value
    for e in range(lanes):
        known[e] = given


@inner
def _write(
    values: Array, known: Array, start: Number, end: Number, owners: Array, decisive: Array,
    output: Number, keys: Array, present: Array,
) -> None:  # fmt: skip
    if owners.size:
        _quantify(values, known, owners[start:end], decisive[output], keys[output], present[output])
    else:
        _store(values, known, keys[output, start:end], present[output, start:end])


@inner
def _store(values: Array, known: Array, keys: Array, present: Array) -> None:
    for e in range(keys.size):
        present[e] = known[e]
    for e in range(keys.size):
        keys[e] = values[e] if known[e] else 0


@inner
def _quantify(
    values: Array, known: Array, owners: Array, decisive: Number, keys: Array, present: Array
) -> None:
    """Let each element decide for its event, or leave it open; no decimals are compared here."""
    for e in range(owners.size):
        event = owners[e]
        if known[e] == MISSING:
            if keys[event] != decisive or present[event] == 0:
                keys[event] = 0
                present[event] = 0
        elif values[e] == decisive:
            keys[event] = decisive
            present[event] = 1


@inner
def _copy(x: Array, lanes: Number, target: Array) -> None:
    for e in range(lanes):
        target[e] = x[e]


@inner
def _both(x: Array, y: Array, lanes: Number, target: Array) -> None:
    """What is known of a value that two others make: MISSING if one is, else the larger one."""
    for e in range(lanes):
        there = x[e] & y[e] & THERE
        target[e] = there | ((x[e] | y[e]) & (there << 1))


@inner
def _of_whole(operation: Number, x: Array, lanes: Number, target: Array, real: Array) -> None:
    """Of one whole number; 64 bits wrap by themselves."""
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
def _of_double(operation: Number, x: Array, lanes: Number, target: Array) -> None:
    """A double of one double."""
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
def _to_whole(
    operation: Number, x: Array, bits: Array, lanes: Number, real: Array, target: Array
) -> None:
    """A whole number of a double, or a truth value of another."""
    if operation == DOUBLE_KEY:  # see `tamis.predicates.keys`
        for e in range(lanes):
            real[e] = x[e] + 0.0
        for e in range(lanes):
            value = target[e]
            key = value ^ ((value >> _SIGN) & _MOST)
            target[e] = _MOST if (value & _MOST) > _INFINITE else key
    elif operation == SAME:
        _copy(bits, lanes, target)
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
def _of_wholes(
    operation: Number, x: Array, y: Array, lanes: Number, target: Array, known: Array
) -> None:
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
def _of_doubles(
    operation: Number, x: Array, y: Array, lanes: Number, target: Array, known: Array
) -> None:
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
def _comparison(operation: Number, x: Array, y: Array, lanes: Number, target: Array) -> None:
    """Whether two whole numbers are in an order; doubles are compared by their keys."""
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
def _of_times_and_decimals(
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
    """Moments and durations, cut off at the ends of 64 bits."""
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
    """Decimals; those of a sum have one scale. The lowest number of 64 bits has no negative."""
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
    """Decimals divided by their unit: a power of ten that is a double, so the quotient is exact."""
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


@inner
def _presence(
    operation: Number, x: Array, there: Array, lanes: Number, target: Array, known: Array
) -> None:
    if operation == IS_NULL:
        for e in range(lanes):
            target[e] = (there[e] & THERE) ^ 1
    else:
        wanted = np.int64(operation == IS_TRUE)
        for e in range(lanes):
            target[e] = there[e] & (x[e] == wanted)
    for e in range(lanes):
        known[e] = there[e] | THERE


@inner
def _logic(
    decisive: Number, x: Array, y: Array, one: Array, other: Array, lanes: Number, target: Array,
    known: Array,
) -> None:  # fmt: skip
    """AND and OR of Kleene: decided by one part that is false, or true; else null if one is."""
    wanted = np.int64(decisive)
    for e in range(lanes):
        decided = (one[e] & (x[e] == wanted)) | (other[e] & (y[e] == wanted))
        target[e] = np.int64(decided) ^ 1 ^ wanted
        known[e] = decided | (one[e] & other[e]) | _only_too_long(one[e] | other[e])


@inner
def _better(
    operation: Number, x: Array, y: Array, real: Array, other: Array, one: Array, two: Array,
    lanes: Number, target: Array, known: Array,
) -> None:  # fmt: skip
    """The first value that is there, or the greater or smaller of two; nulls are passed over."""
    for e in range(lanes):
        if operation == WHOLE_GREATEST:
            beyond = y[e] > x[e]
        elif operation == WHOLE_LEAST:
            beyond = y[e] < x[e]
        elif operation == DOUBLE_GREATEST:  # NaN is above all others
            beyond = other[e] > real[e] or (other[e] != other[e] and real[e] == real[e])
        elif operation == DOUBLE_LEAST:
            beyond = other[e] < real[e] or (real[e] != real[e] and other[e] == other[e])
        else:
            beyond = False
        taken = two[e] != 0 and (one[e] == 0 or beyond)
        target[e] = y[e] if taken else x[e]
        known[e] = one[e] | two[e]


@inner
def _choice(
    truth: Array, known: Array, y: Array, one: Array, z: Array, other: Array, lanes: Number,
    target: Array, there: Array,
) -> None:  # fmt: skip
    """The second value where the condition is true, else the third."""
    for e in range(lanes):
        taken = known[e] & (truth[e] != 0)
        target[e] = y[e] if taken else z[e]
        there[e] = (one[e] if taken else other[e]) | _only_too_long(known[e])


@inner
def _only_too_long(known: Number) -> Number:
    """TOO_LONG if a value is, else 0."""
    return (known & 2) | ((known & 2) >> 1)
