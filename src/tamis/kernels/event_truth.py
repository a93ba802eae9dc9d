"""What is true of one event: the classes of its values, and single predicates.

See `value_classes` for classes and references, `predicate_rows` for how predicates are numbered.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.comparisons import EQUAL, first_at_least
from tamis.kernels.jit import Number, inner, jit
from tamis.kernels.predicate_rows import NO_ROW, SETS, PredicateNumbering
from tamis.kernels.records import record
from tamis.kernels.value_classes import (
    ABSENT,
    MISSING,
    REF_KINDS,
    TRUTHS,
    holds_class,
    string_class,
)

Array = np.ndarray[Any, Any]


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


@jit
def row_classes(
    keys: Array, present: Array, texts: Array, ends: Array, used: Array, starts: Array,
    cut_keys: Array, cut_at: Array, cut_offsets: Array, cut_data: Array, classes: Array,
) -> None:  # fmt: skip
    """Write classes[attribute] of one event.

    present[attribute] is 0 for a missing value, 1 for one in keys[attribute], and 2 for a string:
    the strings are in texts[*] one after another, up to their ends[*]. The cuts of attribute a are
    at cut_at[0, a] to cut_at[1, a] in cut_keys, or, for strings, in cut_offsets into cut_data.
    """
    for a in range(classes.size):
        classes[a] = MISSING
    text = begin = 0
    for a in used:
        if present[a] == 1:
            cuts = cut_keys[cut_at[0, a] : cut_at[1, a]]
            place = first_at_least(cuts, 0, cuts.size, keys[a])
            same = place < cuts.size and cuts[place] == keys[a]
            classes[a] = 2 * (starts[a] + 1 + place) + same
        elif present[a] == 2:
            offsets = cut_offsets[cut_at[0, a] : cut_at[1, a]]
            classes[a] = string_class(texts[begin : ends[text]], offsets, cut_data, starts[a] + 1)
            begin = ends[text]
            text += 1


@jit
def touched_references(
    classes: Array, numbering: PredicateNumbering, listed: Array, touched: Array
) -> Number:
    """Write the equalities and IN sets that one event satisfies to touched[*]; returns how many.

    `listed` is set for every set that has one of its values: to row 1 for IN, to row 0 for NOT IN.
    """
    base = numbering.starts[numbering.masks.size]
    count = 0
    for a in range(numbering.masks.size):
        if classes[a] == MISSING or not classes[a] & 1:
            continue
        cut = np.int64(classes[a] >> 1)
        if numbering.masks[a] & (1 << EQUAL):
            touched[count] = cut * REF_KINDS + EQUAL
            count += 1
        if numbering.masks[a] & SETS:
            size = numbering.set_cuts.size
            place = first_at_least(numbering.set_cuts, 0, size, cut)
            if place < size and numbering.set_cuts[place] == cut:
                for k in range(numbering.set_at[place], numbering.set_at[place + 1]):
                    number = numbering.set_numbers[k]
                    positive = number < numbering.absent_from[0]
                    listed[number] = positive
                    touched[count] = (base + number) * REF_KINDS
                    count += positive
    return count


@jit
def touched_elements(
    classes: Array, numbering: PredicateNumbering, listed: Array, touched: Array, count: Number
) -> Number:
    """As `touched_references`, for the elements of an array: adds to touched[*], from count on."""
    base = numbering.starts[numbering.masks.size]
    size = numbering.set_cuts.size
    for element in range(classes.size):
        if not classes[element] & 1:
            continue
        cut = np.int64(classes[element] >> 1)
        place = first_at_least(numbering.set_cuts, 0, size, cut)
        if place < size and numbering.set_cuts[place] == cut:
            for k in range(numbering.set_at[place], numbering.set_at[place + 1]):
                number = numbering.set_numbers[k]
                if listed[number] == NO_ROW:  # another element may have touched it
                    positive = number < numbering.absent_from[0]
                    listed[number] = positive
                    touched[count] = (base + number) * REF_KINDS
                    count += positive
    return count


@jit
def fill_truth_table(
    named: Array, numbering: PredicateNumbering, owners: NumberOwners, event: EventTruth,
    table: Array,
) -> None:  # fmt: skip
    """Write to table[place] whether named[place], ascending, is true of event 0."""
    classes, starts = event.classes[0], numbering.starts
    place: Number = np.int64(0)
    for a in range(numbering.masks.size):
        end = first_at_least(named, place, named.size, starts[a + 1] * REF_KINDS)
        if place < end:
            _fill_of_class(named[place:end], np.int64(classes[a]), table[place:end])
        place = end
    for listed in range(place, named.size):
        table[listed] = is_true(
            named[listed], 0, classes, starts, numbering.absent_from, event.rows, event.listed,
            owners.attributes, owners.shift,
        )  # fmt: skip


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
    for a in range(absent_from.size - 1):
        if absent_from[a] <= number - base < absent_from[a + 1]:
            return bool(classes[a] != MISSING)
    return False
