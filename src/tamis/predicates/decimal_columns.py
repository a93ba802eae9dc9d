"""Columns of decimals as numbers: all digits of each value as a whole number, and their keys.

The numbers of a column are 64-bit ones wherever they all fit, and else Python's, which have no
bounds. Arrow keeps a decimal as a whole number of 128 bits in two halves.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.predicates.keys import KEY_DIGITS, PER_LENGTH, unscaled_key
from tamis.types import SHORT_DECIMAL_DIGITS, Type

Array = np.ndarray[Any, Any]

_LIMB = np.uint64(10**9)  # a number is cut into pieces of nine digits
_LIMBS = 5  # enough for 128 bits
_LOW = np.uint64(2**32 - 1)
_HALF = np.uint64(32)
_POWERS = np.array([10**n for n in range(19)], np.uint64)


def column_numbers(column: pa.Array) -> Array:
    """The numbers of an Arrow column of decimals; 0 where it is null."""
    high, low = _halves(column)
    if ((low.view(np.int64) >> 63) == high).all():
        return low.view(np.int64)
    found: Array = (high.astype(object) << 64) + low.astype(object)
    return found


def column_keys(column: pa.Array, of: Type) -> Array:
    """The keys of an Arrow column of decimals; 0 where it is null."""
    high, low = _halves(column)
    if of.digits <= SHORT_DECIMAL_DIGITS:
        return low.view(np.int64)
    return _long_keys(high, low)


def number_keys(numbers: Array, of: Type) -> Array:
    """The keys of numbers of a decimal type."""
    if of.digits <= SHORT_DECIMAL_DIGITS:
        return numbers.astype(np.int64)
    if numbers.dtype == object:
        keys = [unscaled_key(number, of) for number in numbers.tolist()]
        return np.array(keys, np.int64)
    return _long_keys(numbers >> 63, numbers.view(np.uint64))


def _halves(column: pa.Array) -> tuple[Array, Array]:
    """The higher 64 bits of the values, with their sign, and the lower ones."""
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.uint64)
    start = 2 * column.offset
    both = np.frombuffer(buffer, np.uint64)[start : start + 2 * len(column)]
    low, high = both[::2].copy(), both[1::2].view(np.int64).copy()
    if column.null_count:
        missing = np.asarray(column.is_null())
        low[missing], high[missing] = 0, 0
    return high, low


def _long_keys(high: Array, low: Array) -> Array:
    """`unscaled_key` of long decimals, for many."""
    negative = high < 0
    low = np.where(negative, ~low + np.uint64(1), low)
    bits = high.view(np.uint64)
    bits = np.where(negative, ~bits + (low == 0), bits)
    limbs = _limbs(bits, low)
    rows = np.arange(len(low))
    top = _LIMBS - 1 - np.argmax(limbs[::-1] != 0, axis=0)  # the first piece that is not 0
    top = np.where((limbs != 0).any(axis=0), top, 0)
    first = limbs[top, rows]
    length = np.searchsorted(_POWERS[1:], first, side="right") + 1  # its digits
    padded = np.concatenate((np.zeros((2, len(low)), np.uint64), limbs))
    second, third = padded[top + 1, rows], padded[top, rows]
    after = second * _LIMB + third  # the 18 digits after the first piece
    cut = _POWERS[np.minimum(length + 1, 18)]
    digits = first * _POWERS[KEY_DIGITS - length] + after // cut
    lower = np.cumsum(limbs != 0, axis=0)
    below = np.where(top >= 3, lower[np.maximum(top - 3, 0), rows], 0)
    inexact = (after % cut != 0) | (below > 0)
    beyond = 9 * top + length - KEY_DIGITS
    long_ones = 2 * (digits.astype(np.int64) + PER_LENGTH * np.maximum(beyond, 0)) + inexact
    short_ones = 2 * (limbs[1] * _LIMB + limbs[0]).astype(np.int64)
    keys = np.where(beyond > 0, long_ones, short_ones)
    found: Array = np.where(negative, -keys, keys)
    return found


def _limbs(high: Array, low: Array) -> Array:
    """pieces[piece, number] of nine digits, the lowest ones first."""
    words = [high >> _HALF, high & _LOW, low >> _HALF, low & _LOW]
    found = np.empty((_LIMBS, len(low)), np.uint64)
    for place in range(_LIMBS):
        rest = np.zeros(len(low), np.uint64)
        for number, word in enumerate(words):
            joined = (rest << _HALF) | word
            words[number] = joined // _LIMB
            rest = joined - words[number] * _LIMB
        found[place] = rest
    return found
