"""What is true of one event: the classes of its values, and single predicates.

See `value_classes` for classes and references, `predicate_rows` for how predicates are numbered.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.comparisons import EQUAL, first_at_least
from tamis.kernels.jit import Number, inner
from tamis.kernels.predicate_rows import NO_ROW, SETS, PredicateNumbering
from tamis.kernels.records import record
from tamis.kernels.value_classes import (
    ABSENT,
    MISSING,
    REF_KINDS,
    TRUTHS,
    holds_class,
    key_class,
    string_class,
)

Array = np.ndarray[Any, Any]

_ALL_BUT_SIGN = 2**63 - 1
_INFINITY = 0x7FF << 52  # its bits; those of NaN are greater


@record
class NumberOwners(NamedTuple):
    """The attribute of each number; the numbers of one start at a multiple of 2**shift."""

    attributes: Array  # int32[number >> shift]
    shift: Number


@record
class EventTruth(NamedTuple):
    """What is true of single events; if there is a table, of one event."""

    classes: Array  # int32[event, attribute]
    table: Array  # uint8[named reference]; empty where there are too many references
    rows: Array  # uint64[row, word]: the rows of sets and tests
    listed: Array  # int32[set or test]: its row, NO_ROW if IN or a test is false, or NOT IN is true


@record
class FlatCuts(NamedTuple):
    """The cuts of all attributes, one after the other: those of a from at[0, a] to at[1, a].

    Keys are in `keys`. Strings are in `data`, and at[:, a] is a range of `offsets`, one more than
    there are strings.
    """

    at: Array  # int64[2, attribute], in keys or in offsets
    keys: Array  # int64[*]
    offsets: Array  # int64[*]
    data: Array  # uint8[*]


# The kinds of values that an event may have of an attribute.
NO_VALUE, KEY, DOUBLE, TEXT, ARRAY = 0, 1, 2, 3, 4


@record
class EventValues(NamedTuple):
    """The values of one event, as Python hands them over.

    Texts follow one another in UTF-8, those of elements after all others. The number of a text is
    the place where it ends, that of a double its bits, and that of any other value its key.
    """

    kinds: Array  # uint8[attribute]
    numbers: Array  # int64[attribute]
    elements: Array  # int64[*, 2]: attribute (~attribute for a text) and number of each element
    texts: Array  # uint8[*]


@record
class TouchedPredicates(NamedTuple):
    """The predicates that are found by the values of one event."""

    refs: Array  # int32[*]: equalities, sets and tests that are true of it, by reference
    names: Array  # int32[*]: the sets and tests that have a row in `EventTruth.listed`
    sizes: Array  # int64[2]: how many refs, and how many names


@inner
def _double_key(bits: Number) -> Number:
    """The key of a double, by its bits; see `predicates.keys`."""
    if bits & _ALL_BUT_SIGN > _INFINITY:
        return _ALL_BUT_SIGN
    if bits < 0:
        return (bits ^ _ALL_BUT_SIGN) if bits & _ALL_BUT_SIGN else np.int64(0)
    return bits


@inner
def read_classes(
    values: EventValues, used: Array, cuts: FlatCuts, starts: Array, classes: Array
) -> Number:
    """Write classes[attribute] of one event; returns where the texts of elements begin."""
    for a in range(classes.size):
        classes[a] = MISSING
    begin = np.int64(0)
    for a in used:
        kind, number, first = values.kinds[a], values.numbers[a], starts[a] + 1
        start, end = cuts.at[0, a], cuts.at[1, a]
        if kind == TEXT:
            text = values.texts[begin:number]
            classes[a] = string_class(text, cuts.offsets[start:end], cuts.data, first)
            begin = number
        elif kind == ARRAY:  # it equals no cut; its elements are members of sets
            classes[a] = 2 * first
        elif kind != NO_VALUE:
            key = _double_key(number) if kind == DOUBLE else number
            classes[a] = key_class(key, cuts.keys[start:end], first)
    return begin


@inner
def touch_values(
    classes: Array, numbering: PredicateNumbering, listed: Array, touched: TouchedPredicates
) -> None:
    """Note the equalities and sets that the values of one event touch; forgets all noted before.

    `listed` is set for every set that has one of its values: to row 1 for IN, to row 0 for NOT IN.
    """
    touched.sizes[0] = touched.sizes[1] = 0
    for a in range(numbering.masks.size):
        if classes[a] == MISSING or not classes[a] & 1:
            continue
        cut = np.int64(classes[a] >> 1)
        if numbering.masks[a] & (1 << EQUAL):
            touched.refs[touched.sizes[0]] = cut * REF_KINDS + EQUAL
            touched.sizes[0] += 1
        if numbering.masks[a] & SETS:
            _touch_sets(cut, numbering, listed, touched)


@inner
def touch_elements(
    values: EventValues, count: Number, begin: Number, cuts: FlatCuts,
    numbering: PredicateNumbering, listed: Array, touched: TouchedPredicates,
) -> None:  # fmt: skip
    """As `touch_values`, for `count` elements of arrays; their texts start at `begin`."""
    for k in range(count):
        a, number = values.elements[k, 0], values.elements[k, 1]
        is_text = a < 0
        a = ~a if is_text else a
        start, end, first = cuts.at[0, a], cuts.at[1, a], numbering.starts[a] + 1
        if is_text:
            text = values.texts[begin:number]
            value = string_class(text, cuts.offsets[start:end], cuts.data, first)
            begin = number
        else:
            value = key_class(number, cuts.keys[start:end], first)
        if value & 1:
            _touch_sets(np.int64(value >> 1), numbering, listed, touched)


@inner
def _touch_sets(
    cut: Number, numbering: PredicateNumbering, listed: Array, touched: TouchedPredicates
) -> None:
    """Note the sets of which a cut is a member."""
    base = numbering.starts[numbering.masks.size]
    size = numbering.set_cuts.size
    place = first_at_least(numbering.set_cuts, 0, size, cut)
    if place < size and numbering.set_cuts[place] == cut:
        for k in range(numbering.set_at[place], numbering.set_at[place + 1]):
            number = np.int64(numbering.set_numbers[k])
            if listed[number] == NO_ROW:  # another element may have touched it
                positive = number < numbering.absent_from[0]
                _name(number, np.int32(positive), listed, touched)
                touched.refs[touched.sizes[0]] = (base + number) * REF_KINDS
                touched.sizes[0] += positive


@inner
def touch_tests(
    passed: Array, numbering: PredicateNumbering, listed: Array, touched: TouchedPredicates
) -> None:
    """Note the tests that one event passes."""
    base = numbering.starts[numbering.masks.size]
    for number in passed:
        _name(number, np.int32(1), listed, touched)
        touched.refs[touched.sizes[0]] = (base + number) * REF_KINDS
        touched.sizes[0] += 1


@inner
def _name(number: Number, row: Number, listed: Array, touched: TouchedPredicates) -> None:
    """Note which row a set or test has."""
    listed[number] = row
    touched.names[touched.sizes[1]] = number
    touched.sizes[1] += 1


@inner
def forget_touched(listed: Array, touched: TouchedPredicates) -> None:
    """Reset `listed`: no set or test has a row."""
    for k in range(touched.sizes[1]):
        listed[touched.names[k]] = NO_ROW


@inner
def fill_truth_table(
    named: Array, numbering: PredicateNumbering, event: EventTruth, table: Array
) -> None:
    """Write to table[place] whether named[place], ascending, is true of event 0."""
    classes, starts = event.classes[0], numbering.starts
    place: Number = np.int64(0)
    for a in range(numbering.masks.size):
        end = first_at_least(named, place, named.size, starts[a + 1] * REF_KINDS)
        if place < end:
            _fill_of_class(named[place:end], np.int64(classes[a]), table[place:end])
        place = end
    base = starts[numbering.masks.size]
    for a in range(-1, numbering.masks.size):  # IN sets and tests, then NOT IN of each attribute
        end = first_at_least(
            named, place, named.size, (base + numbering.absent_from[a + 1]) * REF_KINDS
        )
        usual = np.uint8(a >= 0 and classes[a] != MISSING)
        for k in range(place, end):
            row = np.int64(event.listed[named[k] // REF_KINDS - base])
            table[k] = usual if row == NO_ROW else np.uint8(event.rows[row, 0] & np.uint64(1))
        place = end


@inner
def _fill_of_class(named: Array, value: Number, table: Array) -> None:
    """Write to table[place] whether named[place] is true of a class, without a branch."""
    if value == MISSING:
        for place in range(named.size):
            table[place] = named[place] % REF_KINDS == ABSENT
        return
    for place in range(named.size):
        number, kind = np.int64(named[place] // REF_KINDS), np.int64(named[place] % REF_KINDS)
        here = 2 * number + 1
        table[place] = (TRUTHS >> (4 * kind + (value >= here) + (value > here))) & 1


@inner
def is_true(
    ref: Number, e: Number, classes: Array, starts: Array, absent_from: Array, rows: Array,
    listed: Array, attribute_of: Array, shift: Number,
) -> bool:  # fmt: skip
    """Whether a reference is true of event e."""
    number = ref // REF_KINDS
    base = starts[starts.size - 1]
    if number < base:
        return holds_class(ref % REF_KINDS, classes[attribute_of[number >> shift]], number)
    row = listed[number - base]
    if row != NO_ROW:
        return bool((rows[row, e >> 6] >> np.uint64(e & 63)) & np.uint64(1))
    listed_number, last = number - base, absent_from.size - 1
    if not absent_from[0] <= listed_number < absent_from[last]:
        return False
    a = first_at_least(absent_from, 0, last, listed_number + 1) - 1  # whose NOT IN it is
    return bool(classes[a] != MISSING)
