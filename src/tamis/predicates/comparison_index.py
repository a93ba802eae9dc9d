"""Comparisons with constants, for all attributes of a schema in one index.

There are two forms, after COUNT: ordered lists (section 3.1), one per attribute and operator, in
which a value satisfies a stretch that is found by bisection; and tables ``[operator][value]``
(section 3.2) where the domain is small, with one step for adding, removing and finding. Either way
one look-up gives all predicates that follow from each other.

New constants wait unsorted until there are enough of them to be worth a merge. So neither a million
additions nor single ones between events cost a pass over the lists each.
"""

from typing import Any

import numpy as np

from tamis.kernels.comparisons import (
    OPERATORS,
    ListArrays,
    TableArrays,
    merge_lists,
    satisfied_predicates,
)
from tamis.predicates.keys import Keys
from tamis.schema import Domain, Enumeration, IntRange, Schema

Array = np.ndarray[Any, Any]
Ids = np.ndarray[Any, np.dtype[np.int32]]

LARGEST_TABLE = 4_096  # values of a domain; a table has 24 bytes per value
MOST_YOUNG = 32  # unsorted entries; or the square root of the sorted ones, if that is more

_NUMBER = {op: number for number, op in enumerate(OPERATORS)}


class Comparisons:
    """The comparisons of all attributes that have keys."""

    def __init__(self, schema: Schema, keys: Keys) -> None:
        self._keys = keys
        self._lists = OrderedLists(6 * len(schema))
        self._tables = FiniteTables([a.domain for a in schema.attributes])
        self.size = 0

    def add(self, position: int, op: str, constant: Any, predicate: int) -> None:
        """Add a comparison of an attribute."""
        key = self._key(position, constant)
        if not self._tables.put(position, _NUMBER[op], key, predicate):
            self._lists.add(6 * position + _NUMBER[op], key, predicate)
        self.size += 1

    def remove(self, position: int, op: str, constant: Any) -> None:
        """Remove a comparison."""
        key = self._key(position, constant)
        if not self._tables.put(position, _NUMBER[op], key, -1):
            self._lists.remove(6 * position + _NUMBER[op], key)
        self.size -= 1

    def satisfied(self, keys: Array, present: Array) -> Ids:
        """The predicates that are true of an event, given by `Keys.row`."""
        found = np.empty(self.size + 1, np.int32)
        lists = self._lists.ready()
        return found[: satisfied_predicates(keys, present, lists, self._tables.arrays, found)]

    def _key(self, position: int, constant: Any) -> int:
        key = self._keys.key(position, constant)
        if key is None:  # pragma: no cover - the index adds only constants with a key
            raise AssertionError(constant)
        return key


class OrderedLists:
    """One sorted list of keys per segment, each key with the id of its predicate."""

    def __init__(self, segments: int) -> None:
        self._lists = ListArrays(
            starts=np.zeros(segments + 1, np.int64),
            keys=np.empty(0, np.int64),
            ids=np.empty(0, np.int32),
            young_segments=np.empty(MOST_YOUNG, np.int64),
            young_keys=np.empty(MOST_YOUNG, np.int64),
            young_ids=np.empty(MOST_YOUNG, np.int32),
            young=0,
        )
        self._places: dict[tuple[int, int], int] = {}  # segment and key -> place among the young
        self._removed = 0  # of the sorted entries

    def add(self, segment: int, key: int, predicate: int) -> None:
        if self._lists.young == len(self._lists.young_ids) > 2 * len(self._places):
            self._merge()  # most of the young ones are gone again
        young = self._lists.young
        if young == len(self._lists.young_ids):
            self._lists = self._lists._replace(
                young_segments=np.resize(self._lists.young_segments, 2 * young),
                young_keys=np.resize(self._lists.young_keys, 2 * young),
                young_ids=np.resize(self._lists.young_ids, 2 * young),
            )
        lists = self._lists
        lists.young_segments[young], lists.young_keys[young] = segment, key
        lists.young_ids[young] = predicate
        self._places[segment, key] = young
        self._lists = lists._replace(young=young + 1)

    def remove(self, segment: int, key: int) -> None:
        place = self._places.pop((segment, key), None)
        lists = self._lists
        if place is not None:
            lists.young_ids[place] = -1
            return
        start, end = lists.starts[segment], lists.starts[segment + 1]
        lists.ids[start + np.searchsorted(lists.keys[start:end], key)] = -1
        self._removed += 1

    def ready(self) -> ListArrays:
        """The lists; merged first if too many entries are young or gone."""
        lists = self._lists
        size = len(lists.ids)
        if self._removed > size // 2 or lists.young > max(MOST_YOUNG, int(size**0.5)):
            self._merge()
        return self._lists

    def _merge(self) -> None:
        lists, young = self._lists, self._lists.young
        order = np.lexsort((lists.young_keys[:young], lists.young_segments[:young]))
        order = order[lists.young_ids[order] >= 0]
        left = len(lists.ids) - self._removed + len(order)
        starts = np.empty_like(lists.starts)
        keys, ids = np.empty(left, np.int64), np.empty(left, np.int32)
        merge_lists(lists, order, starts, keys, ids)
        self._lists = lists._replace(starts=starts, keys=keys, ids=ids, young=0)
        self._places.clear()
        self._removed = 0


class FiniteTables:
    """Tables of the attributes whose domain is small; each is made when it is first needed."""

    def __init__(self, domains: list[Domain | None]) -> None:
        count = len(domains)
        self.arrays = TableArrays(
            starts=np.full(count, -1, np.int64),
            lows=np.zeros(count, np.int64),
            sizes=np.zeros(count, np.int64),
            ids=np.empty(0, np.int32),
        )
        for position, domain in enumerate(domains):
            match domain:
                case IntRange(low, high) if high - low < LARGEST_TABLE:
                    self.arrays.lows[position], self.arrays.sizes[position] = low, high - low + 1
                case Enumeration(values):
                    self.arrays.sizes[position] = len(values)

    def put(self, position: int, op: int, key: int, predicate: int) -> bool:
        """Write an entry, -1 to remove it; False if the attribute or constant has no place."""
        size = int(self.arrays.sizes[position])
        place = key - int(self.arrays.lows[position])
        if not 0 <= place < size:
            return False
        if self.arrays.starts[position] < 0:
            self.arrays.starts[position] = len(self.arrays.ids)
            more = np.full(len(OPERATORS) * size, -1, np.int32)
            self.arrays = self.arrays._replace(ids=np.concatenate([self.arrays.ids, more]))
        self.arrays.ids[int(self.arrays.starts[position]) + op * size + place] = predicate
        return True
