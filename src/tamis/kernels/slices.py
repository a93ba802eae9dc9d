"""Truth rows of a block of events: a bit an event, a row for each way to tell the events apart.

A block has up to 512 events, a row 8 words. Row 0 is empty. An attribute with keys, of which the
block has m distinct ones, has these rows from its base:

* m + 1 rows "among the p smallest values", p = 0, ..., m
* m + 1 rows "present and not among the p smallest"
* m rows "is the value", m rows "present and not the value"
* the row "present"

So there are as many rows as the block asks for, however many constants the predicates have: each
comparison is one of these rows.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.comparisons import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    EQUAL,
    UNEQUAL,
    Lists,
    first_at_least,
)
from tamis.kernels.jit import jit

Array = np.ndarray[Any, Any]

WORDS = 8
EVENTS = 64 * WORDS
EMPTY = 0
MOST_ROWS = 4 * EVENTS + 3  # of one attribute


class Axes(NamedTuple):
    """Where the rows of each attribute are, for one block."""

    bases: Array  # int64[attribute]: its first row
    sizes: Array  # int64[attribute]: its distinct values
    values: Array  # int64[attribute, *]: these, ascending


class Touched(NamedTuple):
    """The predicates that some event of the block makes true, but for ordered comparisons."""

    ids: Array  # int32[*]
    size: Array  # int64[1]


@jit
def comparison_rows(keys: Array, present: Array, used: Array, axes: Axes, rows: Array) -> int:
    """Make the rows of the attributes in used[*]; the next free row.

    keys[attribute, event] and present[attribute, event] of one block.
    """
    base = EMPTY + 1
    order = np.empty(keys.shape[1], np.int64)
    for a in used:
        count, distinct = _sort(keys[a], present[a], order, axes.values[a])
        axes.bases[a], axes.sizes[a] = base, distinct
        _fill(keys[a], order[:count], axes.values[a, :distinct], base, rows)
        base += 4 * distinct + 3
    return base


@jit
def equal_rows(used: Array, lists: Lists, axes: Axes, row_of: Array, touched: Touched) -> None:
    """Set row_of for the equalities with values of the block."""
    for a in used:
        start, end = lists.starts[6 * a + EQUAL], lists.starts[6 * a + EQUAL + 1]
        distinct = axes.sizes[a]
        row = axes.bases[a] + 2 * distinct + 2
        for r in range(distinct if start < end else 0):
            value = axes.values[a, r]
            place = first_at_least(lists.keys, start, end, value)
            if place < end and lists.keys[place] == value and lists.ids[place] >= 0:
                row_of[lists.ids[place]] = row + r
                touched.ids[touched.size[0]] = lists.ids[place]
                touched.size[0] += 1


@jit
def equal_predicates(keys: Array, present: Array, lists: Lists, used: Array) -> Array:
    """The equalities that are true of one event: keys[attribute], present[attribute]."""
    found = np.empty(used.size, np.int32)
    count = 0
    for a in used:
        start, end = lists.starts[6 * a + EQUAL], lists.starts[6 * a + EQUAL + 1]
        if present[a]:
            place = first_at_least(lists.keys, start, end, keys[a])
            if place < end and lists.keys[place] == keys[a] and lists.ids[place] >= 0:
                found[count] = lists.ids[place]
                count += 1
    return found[:count]


@jit
def ordered_rows(used: Array, lists: Lists, axes: Axes, row_of: Array) -> None:
    """Set row_of for all comparisons but equalities."""
    for a in used:
        for op in range(UNEQUAL, AT_LEAST + 1):
            start, end = lists.starts[6 * a + op], lists.starts[6 * a + op + 1]
            distinct = axes.sizes[a]
            r = 0  # how many values are below the constant
            for k in range(start, end):
                constant = lists.keys[k]
                while r < distinct and axes.values[a, r] < constant:
                    r += 1
                if lists.ids[k] >= 0:
                    same = r < distinct and axes.values[a, r] == constant
                    row_of[lists.ids[k]] = _row(op, r, same, distinct, axes.bases[a])


@jit
def find_row(segment: int, constant: int, axes: Axes) -> int:
    """The row of one comparison."""
    a, op = segment // 6, segment % 6
    distinct = axes.sizes[a]
    r = first_at_least(axes.values[a], 0, distinct, constant)
    same = r < distinct and axes.values[a, r] == constant
    return _row(op, r, same, distinct, axes.bases[a])


@jit
def _row(op: int, r: int, same: bool, distinct: int, base: int) -> int:
    """The row of a comparison with a constant that r values are below."""
    above = base + distinct + 1
    if op == BELOW:
        return base + r
    if op == AT_MOST:
        return base + r + same
    if op == ABOVE:
        return above + r + same
    if op == AT_LEAST:
        return above + r
    if op == UNEQUAL:
        return above + distinct + 1 + distinct + (r if same else distinct)
    return above + distinct + 1 + r if same else EMPTY


@jit
def _sort(keys: Array, present: Array, order: Array, values: Array) -> tuple[int, int]:
    """The present events in the order of their keys, and the distinct keys; how many of each."""
    count = 0
    for e in range(keys.size):
        if present[e]:
            values[count] = keys[e]
            order[count] = e
            count += 1
    ranked = np.argsort(values[:count], kind="mergesort")
    events = order[:count].copy()
    distinct = 0
    for k in range(count):
        order[k] = events[ranked[k]]
    for k in range(count):
        key = keys[order[k]]
        if distinct == 0 or values[distinct - 1] != key:
            values[distinct] = key
            distinct += 1
    return count, distinct


@jit
def _fill(keys: Array, order: Array, values: Array, base: int, rows: Array) -> None:
    distinct = values.size
    below, above = base, base + distinct + 1
    equal = above + distinct + 1
    unequal = equal + distinct
    there = unequal + distinct
    for w in range(WORDS):
        rows[there, w] = rows[below, w] = 0
    for e in order:
        rows[there, e >> 6] |= np.uint64(1) << np.uint64(e & 63)
    for w in range(WORDS):
        rows[above, w] = rows[there, w]
    k = 0
    for r in range(distinct):
        for w in range(WORDS):
            rows[equal + r, w] = 0
        while k < order.size and keys[order[k]] == values[r]:
            e = order[k]
            rows[equal + r, e >> 6] |= np.uint64(1) << np.uint64(e & 63)
            k += 1
        for w in range(WORDS):
            mine = rows[equal + r, w]
            rows[below + r + 1, w] = rows[below + r, w] | mine
            rows[above + r + 1, w] = rows[above + r, w] & ~mine
            rows[unequal + r, w] = rows[there, w] & ~mine


@jit
def listed_rows(
    codes: Array, classes: tuple[Array, Array], rows: Array, row_of: Array, free: int,
    touched: Touched,
) -> int:  # fmt: skip
    """Set the bits of predicates that are listed by value; the next free row.

    codes[event] is the class of the event's value. The classes are starts and ids:
    ids[starts[code]:starts[code + 1]] are the true predicates of a class. A predicate gets a row
    when it is first met; row_of must be EMPTY for the others. The caller sees to it that there are
    rows enough.
    """
    starts, ids = classes
    for e in range(codes.size):
        for k in range(starts[codes[e]], starts[codes[e] + 1]):
            if row_of[ids[k]] == EMPTY:
                for w in range(WORDS):
                    rows[free, w] = 0
                row_of[ids[k]] = free
                touched.ids[touched.size[0]] = ids[k]
                touched.size[0] += 1
                free += 1
            rows[row_of[ids[k]], e >> 6] |= np.uint64(1) << np.uint64(e & 63)
    return free
