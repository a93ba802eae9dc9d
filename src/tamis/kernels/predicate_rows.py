"""Predicate rows: which events of a block satisfy each predicate, one bit per event.

A block has up to 512 events, and a row has one bit for each of them. Predicates that the same
events of the block satisfy share a row. If the values of an attribute fall into m distinct classes
(see `value_classes`), these rows are enough for all predicates on it:

* m + 1 rows "among the p smallest classes", for p = 0, ..., m
* m + 1 rows "present and not among the p smallest"
* m rows "of this class", and m rows "present and not of this class"
* the rows "present" and "missing"

Cuts between the same two classes have the same rows: the cuts, in their order, form *runs* with the
same rows. So the number of rows and runs depends on the events of the block, however many constants
the filters have. A set or test that some event satisfies has its own row and run.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.bits import larger, smaller
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
from tamis.kernels.records import record
from tamis.kernels.simd_rows import WORDS, empty_row, load_row, or_rows, store_row, xor_rows
from tamis.kernels.value_classes import ABSENT, MISSING, PRESENT, REF_KINDS

Array = np.ndarray[Any, Any]

EVENTS = 64 * WORDS
EMPTY = 0  # the row without any event
NO_ROW = -1
END = 2**31 - 1  # above all numbers
SETS = 1 << REF_KINDS  # in a mask of kinds: filters test the attribute by sets
_BELOW, _ABOVE = 1 << BELOW | 1 << AT_MOST, 1 << ABOVE | 1 << AT_LEAST
_EQUAL = 1 << EQUAL | 1 << UNEQUAL | SETS
DIGIT = 8  # bits of a class by which one pass sorts


@record
class PredicateNumbering(NamedTuple):
    """How the predicates of a segment are numbered, whatever the events are.

    Sets and tests are numbered after all cuts: IN first, then tests, then NOT IN by attribute.
    """

    starts: Array  # int64[attribute + 1]: its first number; the last is where sets and tests start
    masks: Array  # int64[attribute]: the kinds of predicates that test it, and SETS
    set_cuts: Array  # int32[*]: the members of sets, ascending
    set_at: Array  # int64[* + 1]: where the sets of a member start in set_numbers
    set_numbers: Array  # int32[*]: the sets, counted from the first set on
    absent_from: Array  # int64[attribute + 1]: its first NOT IN; the last is after all of them


@record
class BlockRows(NamedTuple):
    """The predicate rows of one block, and the way from a reference to its row."""

    rows: Array  # uint64[row, word]
    run_starts: Array  # int32[run]: its first number; END after the last
    run_rows: Array  # int32[run, kind]: the row of each kind of reference
    coarse: Array  # int32[number >> shift]: the run of the first of these numbers
    shift: int
    there: Array  # int32[attribute]: the row "present"
    listed: Array  # int32[set or test]: its row, NO_ROW if no event needs one
    touched: Array  # int32[*, 2]: equalities, sets and tests that some event satisfies, and rows
    sizes: Array  # int64[4]: how many rows, runs, touched ones, and sets or tests with a row
    names: Array  # int32[*]: the sets and tests with a row


ROWS, RUNS, TOUCHED, NAMED = 0, 1, 2, 3  # places of `BlockRows.sizes`


@jit
def make_rows(
    classes: Array, start: int, end: int, used: Array, numbering: PredicateNumbering,
    block: BlockRows, order: Array, spare: Array, digits: Array,
) -> None:  # fmt: skip
    """Make the rows of comparisons and sets for the events from start to end.

    classes[attribute, event]; used[*] are the attributes that predicates test, ascending;
    order[event], spare[event] and digits[2**DIGIT + 1] are scratch.
    """
    start_block(block)
    for a in used:
        attribute_rows(a, classes[a, start:end], numbering, block, order, spare, digits)


@inner
def start_block(block: BlockRows) -> None:
    """Forget the rows of the block before."""
    for k in range(block.sizes[NAMED]):
        block.listed[block.names[k]] = NO_ROW
    store_row(block.rows, EMPTY, empty_row())
    for k in range(block.sizes.size):
        block.sizes[k] = 0
    block.sizes[ROWS] = EMPTY + 1


@inner
def attribute_rows(
    a: int,
    classes: Array,
    numbering: PredicateNumbering,
    block: BlockRows,
    order: Array,
    spare: Array,
    digits: Array,
) -> None:
    """Make the rows and runs of attribute a, by classes[event] of this block."""
    rows, first = block.rows, block.sizes[ROWS]
    mask = numbering.masks[a]
    there, gone, own, none = first, first + 1, first + 2, np.int64(EMPTY)
    _presence(classes, rows, there, gone)
    block.there[a] = there
    count, distinct = _sort(classes, order, spare, digits)
    low = own + 1
    high = low + (distinct + 1 if mask & _BELOW else 0)
    equal = high + (distinct + 1 if mask & _ABOVE else 0)
    unequal = equal + (distinct if mask & _EQUAL else 0)
    free = unequal + (distinct if mask & (1 << UNEQUAL) else 0)
    below, above, present = empty_row(), load_row(rows, there), load_row(rows, there)
    if mask & _BELOW:
        store_row(rows, low, below)
    if mask & _ABOVE:
        store_row(rows, high, above)
    starts, run_rows = block.run_starts, block.run_rows
    run = block.sizes[RUNS]
    run = _run(starts, run_rows, run, numbering.starts[a], low, high, none, there, there, gone)
    k = rank = 0
    while k < count:
        value = classes[order[k]]
        row = equal + rank if mask & _EQUAL else own
        store_row(rows, row, empty_row())
        while k < count and classes[order[k]] == value:
            e = order[k]
            rows[row, e >> 6] |= np.uint64(1) << np.uint64(e & 63)
            k += 1
        mine = load_row(rows, row)
        below, above = or_rows(below, mine), xor_rows(above, mine)
        if mask & _BELOW:
            store_row(rows, low + rank + 1, below)
        if mask & _ABOVE:
            store_row(rows, high + rank + 1, above)
        other = there
        if mask & (1 << UNEQUAL):
            other = unequal + rank
            store_row(rows, other, xor_rows(present, mine))
        cut = value >> 1
        if value & 1:
            here = row if mask & _EQUAL else none
            run = _run(starts, run_rows, run, cut, low + rank, high + rank, here, other, there,
                       gone)  # fmt: skip
            run_rows[run - 1, AT_MOST] = low + rank + 1
            run_rows[run - 1, ABOVE] = high + rank + 1
            cut += 1
            if mask & (1 << EQUAL):
                _touch((cut - 1) * REF_KINDS + EQUAL, row, block)
            if mask & SETS:
                free = _member(cut - 1, row, there, numbering, block, free)
        rank += 1
        run = _run(starts, run_rows, run, cut, low + rank, high + rank, none, there, there, gone)
    block.sizes[ROWS], block.sizes[RUNS] = free, run


@inner
def _presence(classes: Array, rows: Array, there: int, gone: int) -> None:
    """Write the rows "present" and "missing" of an attribute."""
    for w in range(WORDS):
        present = missing = np.uint64(0)
        for e in range(64 * w, smaller(64 * w + 64, classes.size)):
            bit = np.uint64(1) << np.uint64(e & 63)
            if classes[e] == MISSING:
                missing |= bit
            else:
                present |= bit
        rows[there, w], rows[gone, w] = present, missing


@inner
def _run(
    starts: Array, run_rows: Array, run: int, start: int, low: int, high: int, equal: Number,
    unequal: int, there: int, gone: int,
) -> int:  # fmt: skip
    """Begin a run, replacing one that begins at the same number; returns the number of runs."""
    if run > 0 and starts[run - 1] == start:
        run -= 1
    starts[run] = start
    row = run_rows[run]
    row[EQUAL], row[UNEQUAL] = equal, unequal
    row[BELOW], row[AT_MOST], row[ABOVE], row[AT_LEAST] = low, low, high, high
    row[PRESENT], row[ABSENT] = there, gone
    return run + 1


@inner
def _member(
    cut: int, row: int, there: int, numbering: PredicateNumbering, block: BlockRows, free: int
) -> int:
    """Put the events of a row into, or for NOT IN out of, the rows of the sets that have a cut.

    Returns the next free row.
    """
    rows, listed = block.rows, block.listed
    place = first_at_least(numbering.set_cuts, 0, numbering.set_cuts.size, cut)
    if place == numbering.set_cuts.size or numbering.set_cuts[place] != cut:
        return free
    for k in range(numbering.set_at[place], numbering.set_at[place + 1]):
        number = numbering.set_numbers[k]
        negative = number >= numbering.absent_from[0]
        if listed[number] == NO_ROW:
            store_row(rows, free, load_row(rows, there) if negative else empty_row())
            _name(number, free, block)
            free += 1
        mine = listed[number]
        store_row(rows, mine, xor_rows(load_row(rows, mine), load_row(rows, row)))
    return free


@inner
def _touch(ref: int, row: Number, block: BlockRows) -> None:
    """Note that some event satisfies a predicate, with its row."""
    place = block.sizes[TOUCHED]
    block.touched[place, 0], block.touched[place, 1] = ref, row
    block.sizes[TOUCHED] += 1


@inner
def _name(number: int, row: int, block: BlockRows) -> None:
    """Give a set or test a row."""
    block.listed[number] = row
    block.names[block.sizes[NAMED]] = number
    block.sizes[NAMED] += 1


@jit
def rows_of_tests(codes: Array, starts: Array, numbers: Array, block: BlockRows) -> None:
    """Make the rows of tests.

    codes[event] numbers the event's value; numbers[starts[code]:starts[code + 1]] are the tests
    that a value satisfies.
    """
    rows, listed = block.rows, block.listed
    free = block.sizes[ROWS]
    for e in range(codes.size):
        for k in range(starts[codes[e]], starts[codes[e] + 1]):
            number = numbers[k]
            if listed[number] == NO_ROW:
                store_row(rows, free, empty_row())
                _name(number, free, block)
                free += 1
            rows[listed[number], e >> 6] |= np.uint64(1) << np.uint64(e & 63)
    block.sizes[ROWS] = free


@jit
def rows_of_failed_sets(
    codes: Array, starts: Array, numbers: Array, a: int, block: BlockRows
) -> None:
    """Make the rows of sets of NOT IN of attribute a, of which events may have several members.

    As `rows_of_tests`, but numbers[starts[code]:starts[code + 1]] are the sets that an event fails.
    """
    rows, listed = block.rows, block.listed
    free = block.sizes[ROWS]
    for e in range(codes.size):
        for k in range(starts[codes[e]], starts[codes[e] + 1]):
            number = numbers[k]
            if listed[number] == NO_ROW:
                store_row(rows, free, load_row(rows, np.int64(block.there[a])))
                _name(number, free, block)
                free += 1
            rows[listed[number], e >> 6] &= ~(np.uint64(1) << np.uint64(e & 63))
    block.sizes[ROWS] = free


@jit
def rows_of_failed_tests(
    codes: Array, starts: Array, numbers: Array, tests: Array, block: BlockRows
) -> None:
    """Make the rows of some tests that most events pass.

    As `rows_of_tests`, but numbers[starts[code]:starts[code + 1]] are those of tests[*] that an
    event fails. An event with the last code fails all of them.
    """
    if not tests.size:
        return
    rows, listed = block.rows, block.listed
    first = free = block.sizes[ROWS]
    store_row(rows, first, empty_row())
    for e in range(codes.size):
        passes = np.uint64(codes[e] < starts.size - 2)
        rows[first, e >> 6] |= passes << np.uint64(e & 63)
    for number in tests:
        store_row(rows, free, load_row(rows, first))
        _name(number, free, block)
        free += 1
    for e in range(codes.size):
        for k in range(starts[codes[e]], starts[codes[e] + 1]):
            rows[listed[numbers[k]], e >> 6] &= ~(np.uint64(1) << np.uint64(e & 63))
    block.sizes[ROWS] = free


def finish_block(numbering: PredicateNumbering, block: BlockRows) -> None:
    """Make the runs of sets and tests, and the table from numbers to runs."""
    block.names[: block.sizes[NAMED]].sort()
    _finish_block(numbering, block)


@jit
def _finish_block(numbering: PredicateNumbering, block: BlockRows) -> None:
    """`finish_block` for names in ascending order."""
    starts, run_rows = block.run_starts, block.run_rows
    attributes = numbering.masks.size
    base = numbering.starts[attributes]
    names = block.names[: block.sizes[NAMED]]
    for number in names:
        _touch((base + number) * REF_KINDS, np.int64(block.listed[number]), block)
    run, k = block.sizes[RUNS], 0
    for a in range(-1, attributes):
        first = np.int64(0) if a < 0 else numbering.absent_from[a]
        after = numbering.absent_from[a + 1]
        usual = np.int64(EMPTY if a < 0 else block.there[a])
        if first < after:
            run = _listed_run(starts, run_rows, run, base + first, usual)
        while k < names.size and names[k] < after:
            mine = np.int64(block.listed[names[k]])
            run = _listed_run(starts, run_rows, run, base + names[k], mine)
            if names[k] + 1 < after:
                run = _listed_run(starts, run_rows, run, base + names[k] + 1, usual)
            k += 1
    block.sizes[RUNS] = run
    starts[run] = END
    if block.coarse.size:
        _fill_coarse(starts, run, block.shift, block.coarse)


@inner
def _listed_run(starts: Array, run_rows: Array, run: int, start: int, row: Number) -> int:
    """Begin a run in which all kinds have the same row."""
    if run > 0 and starts[run - 1] == start:
        run -= 1
    starts[run] = start
    for kind in range(REF_KINDS):
        run_rows[run, kind] = row
    return run + 1


@inner
def _fill_coarse(starts: Array, runs: int, shift: int, coarse: Array) -> None:
    """Write the run of every 2**shift-th number to coarse[*]."""
    run = 0
    for place in range(coarse.size):
        while run + 1 < runs and starts[run + 1] <= place << shift:
            run += 1
        coarse[place] = run


@inner
def _sort(classes: Array, order: Array, spare: Array, digits: Array) -> tuple[int, int]:
    """Sort the events that have a value by class; returns how many they and their classes are.

    A radix sort, the lowest digit first: each pass keeps the order of the one before.
    """
    count, low, high = 0, END, -1
    for e in range(classes.size):
        if classes[e] != MISSING:
            order[count] = e
            count += 1
            low, high = smaller(low, classes[e]), larger(high, classes[e])
    shift = 0
    while count and (high - low) >> shift:
        for digit in range(digits.size):
            digits[digit] = 0
        for k in range(count):
            digits[1 + (((classes[order[k]] - low) >> shift) & ((1 << DIGIT) - 1))] += 1
        for digit in range(1 << DIGIT):
            digits[digit + 1] += digits[digit]
        for k in range(count):
            digit = ((classes[order[k]] - low) >> shift) & ((1 << DIGIT) - 1)
            spare[digits[digit]] = order[k]
            digits[digit] += 1
        for k in range(count):
            order[k] = spare[k]
        shift += DIGIT
    distinct = 0
    for k in range(count):
        distinct += k == 0 or classes[order[k]] != classes[order[k - 1]]
    return count, distinct
