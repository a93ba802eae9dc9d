"""Which comparisons with constants are true of an event (COUNT, sections 3.1 and 3.2).

COUNT is short for Ashayer, Leung and Jacobsen, "Predicate matching and subscription matching in
publish/subscribe systems" (DEBS 2002). Its ordered lists and its table for finite domains (Fig. 1)
are here as arrays.

Values and constants are 64-bit keys in the order of their type. Comparisons belong to segments:
segment 6 * a + o has those of attribute a with operator o, in the order ``= <> < <= > >=``.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.bits import smaller
from tamis.kernels.jit import Number, inner, jit
from tamis.kernels.records import record

Array = np.ndarray[Any, Any]

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
EQUAL, UNEQUAL, BELOW, AT_MOST, ABOVE, AT_LEAST = range(6)


@record
class ListArrays(NamedTuple):
    """Ordered lists of constants, one per segment, and new constants that are not in order yet."""

    starts: Array  # int64[segment + 1]: where its list starts
    keys: Array  # int64[*]: the constants, ascending within a segment
    ids: Array  # int32[*]: their predicates, -1 for one that was removed
    young_segments: Array  # int64[*]: the segments of the new constants
    young_keys: Array  # int64[*]
    young_ids: Array  # int32[*]
    young: int  # how many new constants there are


@record
class TableArrays(NamedTuple):
    """The tables [operator][value] of attributes with a finite domain (COUNT, Fig. 1)."""

    starts: Array  # int64[attribute]: where its table starts, -1 for none
    lows: Array  # int64[attribute]: the smallest value
    sizes: Array  # int64[attribute]: how many values
    ids: Array  # int32[*]: the predicates, -1 for none


@inner
def holds(op: int, value: int, constant: int) -> bool:
    """Whether `value op constant` is true."""
    if op == EQUAL:
        return value == constant
    if op == UNEQUAL:
        return value != constant
    if op == BELOW:
        return value < constant
    if op == AT_MOST:
        return value <= constant
    if op == ABOVE:
        return value > constant
    return value >= constant


@jit
def satisfied_predicates(
    keys: Array, present: Array, lists: ListArrays, tables: TableArrays, found: Array
) -> int:
    """Write the predicates that an event satisfies to found[*]; returns how many.

    keys[attribute] is valid where present[attribute] is 1. One place after the last predicate may
    be overwritten.
    """
    count = 0
    for a in range(keys.size):
        if present[a]:
            if tables.starts[a] >= 0:
                count = _in_table(a, keys[a], tables, found, count)
            for op in range(6):
                segment = 6 * a + op
                if lists.starts[segment] < lists.starts[segment + 1]:
                    count = _in_list(op, segment, keys[a], lists, found, count)
    for k in range(lists.young):
        a = lists.young_segments[k] // 6
        found[count] = lists.young_ids[k]
        if present[a] and lists.young_ids[k] >= 0:
            count += holds(lists.young_segments[k] % 6, keys[a], lists.young_keys[k])
    return count


@inner
def _in_list(op: int, segment: int, key: int, lists: ListArrays, found: Array, count: int) -> int:
    start, end = lists.starts[segment], lists.starts[segment + 1]
    left = first_at_least(lists.keys, start, end, key)
    right = left + (left < end and lists.keys[left] == key)
    if op == EQUAL:
        return _copy(lists.ids, left, right, found, count)
    if op == UNEQUAL:
        count = _copy(lists.ids, start, left, found, count)
        return _copy(lists.ids, right, end, found, count)
    if op == BELOW:
        return _copy(lists.ids, right, end, found, count)
    if op == AT_MOST:
        return _copy(lists.ids, left, end, found, count)
    if op == ABOVE:
        return _copy(lists.ids, start, left, found, count)
    return _copy(lists.ids, start, right, found, count)


@inner
def first_at_least(keys: Array, start: int, end: int, key: Number) -> int:
    """The first place in keys[start:end] whose key is at least `key`, or `end`."""
    while start < end:
        middle = (start + end) // 2
        if keys[middle] < key:
            start = middle + 1
        else:
            end = middle
    return start


@inner
def next_at_least(keys: Array, start: int, key: Number) -> int:
    """As `first_at_least` up to the end of the keys, fast where the place is near `start`."""
    step = 1
    while start + step <= keys.size and keys[start + step - 1] < key:
        start += step
        step *= 2
    return first_at_least(keys, start, smaller(start + step, keys.size), key)


@inner
def _in_table(a: int, key: int, tables: TableArrays, found: Array, count: int) -> int:
    size = tables.sizes[a]
    row = tables.starts[a]
    here = key - tables.lows[a]
    count = _copy(tables.ids, row + here, row + here + 1, found, count)  # =
    row += size
    count = _copy(tables.ids, row, row + here, found, count)  # <>: the constants below, and above
    count = _copy(tables.ids, row + here + 1, row + size, found, count)
    row += size
    count = _copy(tables.ids, row + here + 1, row + size, found, count)  # <
    row += size
    count = _copy(tables.ids, row + here, row + size, found, count)  # <=
    row += size
    count = _copy(tables.ids, row, row + here, found, count)  # >
    row += size
    return _copy(tables.ids, row, row + here + 1, found, count)  # >=


@inner
def _copy(ids: Array, start: int, end: int, found: Array, count: int) -> int:
    """Copy the ids that are not -1."""
    for k in range(start, end):
        found[count] = ids[k]
        count += ids[k] >= 0
    return count


@jit
def merge_lists(lists: ListArrays, order: Array, starts: Array, keys: Array, ids: Array) -> None:
    """Merge the ordered lists and the new constants into new ordered lists.

    `order` sorts the new constants by segment and key. starts[segment + 1], keys[*] and ids[*] are
    written; keys and ids are as long as the predicates that were not removed.
    """
    place, young = 0, 0
    for segment in range(starts.size - 1):
        starts[segment] = place
        old, end = lists.starts[segment], lists.starts[segment + 1]
        while True:
            if old < end and lists.ids[old] < 0:
                old += 1
                continue
            is_young = young < order.size and lists.young_segments[order[young]] == segment
            if is_young and (old == end or lists.young_keys[order[young]] < lists.keys[old]):
                keys[place] = lists.young_keys[order[young]]
                ids[place] = lists.young_ids[order[young]]
                young += 1
            elif old < end:
                keys[place], ids[place] = lists.keys[old], lists.ids[old]
                old += 1
            else:
                break
            place += 1
    starts[starts.size - 1] = place
