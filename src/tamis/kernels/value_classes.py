"""The classes of values: where they lie between the constants that filters compare them with.

The constants of an attribute, its *cuts*, are numbered in their order. The cuts of attribute a have
the numbers after starts[a]; starts[a] itself is not a cut. A value gets a *class*: 2 * c + 1 if it
equals cut c, else 2 * c for the first cut c above it. So a value compares with cut c as its class
compares with 2 * c + 1, and nothing else about it matters. A missing value has the class MISSING.

A *reference* to a predicate is its cut and its kind in one number of 31 bits. The predicates IS
NULL and IS NOT NULL use the number starts[a]. Sets and tests have numbers after all cuts, and no
kind: they are not compared, but listed for each value that satisfies them.
"""

from typing import Any

import numpy as np

from tamis.kernels.bits import smaller
from tamis.kernels.comparisons import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    EQUAL,
    UNEQUAL,
    first_at_least,
)
from tamis.kernels.jit import Number, inner, jit

Array = np.ndarray[Any, Any]

# The kinds of references: the six operators of `comparisons`, and these two.
PRESENT, ABSENT = 6, 7
REF_KINDS = 8
MISSING = -1
MOST_CUTS = 2**31 // REF_KINDS
# Four bits per kind: whether it is true of a class below, at and above the cut.
TRUTHS = (
    0b010 << 4 * EQUAL | 0b101 << 4 * UNEQUAL | 0b001 << 4 * BELOW | 0b011 << 4 * AT_MOST
    | 0b100 << 4 * ABOVE | 0b110 << 4 * AT_LEAST | 0b111 << 4 * PRESENT
)  # fmt: skip


@jit
def key_classes(keys: Array, present: Array, cuts: Array, first: int, classes: Array) -> None:
    """Write classes[event] of keys[event]; the first of the cuts has the number `first`."""
    for e in range(keys.size):
        classes[e] = key_class(keys[e], cuts, first) if present[e] else MISSING


@inner
def key_class(key: Number, cuts: Array, first: Number) -> Number:
    """The class of a key; the first of the cuts has the number `first`."""
    place = first_at_least(cuts, 0, cuts.size, key)
    return 2 * (first + place) + (place < cuts.size and cuts[place] == key)


@inner
def string_class(text: Array, offsets: Array, data: Array, first: int) -> int:
    """The class of a string in UTF-8; cut first + k is data[offsets[k]:offsets[k + 1]]."""
    low, high = 0, offsets.size - 1
    while low < high:
        middle = (low + high) // 2
        if _compare(text, data[offsets[middle] : offsets[middle + 1]]) > 0:
            low = middle + 1
        else:
            high = middle
    same = low < offsets.size - 1 and _compare(text, data[offsets[low] : offsets[low + 1]]) == 0
    return 2 * (first + low) + same


@jit
def string_classes(
    starts: Array, bytes_: Array, offsets: Array, data: Array, first: int, classes: Array
) -> None:
    """Write classes[text] of the strings bytes_[starts[text]:starts[text + 1]]."""
    for k in range(starts.size - 1):
        text = bytes_[starts[k] : starts[k + 1]]
        classes[k] = string_class(text, offsets, data, first)


@inner
def _compare(one: Array, other: Array) -> int:
    """Negative, 0 or positive, as the first comes before, equals or comes after the second."""
    for k in range(smaller(one.size, other.size)):
        if one[k] != other[k]:
            return 1 if one[k] > other[k] else -1
    return one.size - other.size


@inner
def holds_class(kind: int, value: int, cut: int) -> bool:
    """Whether a value of a class satisfies the predicate of a kind and a cut, not a set or test."""
    if value == MISSING:
        return kind == ABSENT
    here = 2 * cut + 1
    if kind == EQUAL:  # not by `comparisons.holds`, which would make this slower
        return value == here
    if kind == UNEQUAL:
        return value != here
    if kind == BELOW:
        return value < here
    if kind == AT_MOST:
        return value <= here
    if kind == ABOVE:
        return value > here
    if kind == AT_LEAST:
        return value >= here
    return kind == PRESENT
