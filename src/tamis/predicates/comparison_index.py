"""Comparisons with constants, for all attributes of a schema in one index.

There are two forms, after COUNT: ordered lists (section 3.1), one per attribute and operator, in
which a value satisfies a stretch that is found by bisection; and tables ``[operator][value]``
(section 3.2) where the domain is small, with one step for adding, removing and finding. Either way
one look-up gives all predicates that follow from each other. Which form an attribute has is decided
by the size of its domain, unless one of them is asked for.

New constants wait unsorted until there are enough of them to be worth a merge. So neither a million
additions nor single ones between events cost a pass over the lists each.
"""

from typing import Any

import numpy as np

from tamis.errors import choose
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

FORMS = ("auto", "lists", "tables")
LARGEST_TABLE = 4_096  # values of a domain; a table has 24 bytes per value
LARGEST_FORCED_TABLE = 1 << 24  # if tables are asked for
MOST_YOUNG = 32  # unsorted entries; or the square root of the sorted ones, if that is more

_NUMBER = {op: number for number, op in enumerate(OPERATORS)}


class ComparisonIndex:
    """The comparisons of all attributes that have keys.

    `form` is ``"auto"`` (tables for domains of up to `LARGEST_TABLE` values), ``"lists"`` or
    ``"tables"`` (for domains of up to `LARGEST_FORCED_TABLE` values).
    """

    def __init__(self, schema: Schema, keys: Keys, form: str = "auto") -> None:
        choose("form of comparisons", form, FORMS)
        largest = {"auto": LARGEST_TABLE, "lists": 0, "tables": LARGEST_FORCED_TABLE}[form]
        self._keys = keys
        self._lists = OrderedLists(6 * len(schema))
        self._tables = FiniteTables([a.domain for a in schema.attributes], largest)
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

    @property
    def bytes(self) -> int:
        """The bytes of the lists, once they are merged, and of the tables."""
        self._lists.ready()
        return self._lists.bytes + self._tables.bytes

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

    @property
    def bytes(self) -> int:
        lists = self._lists
        young = lists.young * (
            lists.young_segments.itemsize + lists.young_keys.itemsize + lists.young_ids.itemsize
        )
        return lists.starts.nbytes + lists.keys.nbytes + lists.ids.nbytes + young

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
    """Tables of attributes with a domain of up to `largest` values; made when first needed."""

    def __init__(self, domains: list[Domain | None], largest: int) -> None:
        count = len(domains)
        self.arrays = TableArrays(
            starts=np.full(count, -1, np.int64),
            lows=np.zeros(count, np.int64),
            sizes=np.zeros(count, np.int64),
            ids=np.empty(0, np.int32),
        )
        self._used = 0  # of the ids
        for position, domain in enumerate(domains):
            match domain:
                case IntRange(low, high) if high - low < largest:
                    self.arrays.lows[position], self.arrays.sizes[position] = low, high - low + 1
                case Enumeration(values) if largest:  # its values are listed anyway
                    self.arrays.sizes[position] = len(values)

    def put(self, position: int, op: int, key: int, predicate: int) -> bool:
        """Write an entry, -1 to remove it; False if the attribute or constant has no place."""
        size = int(self.arrays.sizes[position])
        place = key - int(self.arrays.lows[position])
        if not 0 <= place < size:
            return False
        if self.arrays.starts[position] < 0:
            self._make_table(position, len(OPERATORS) * size)
        self.arrays.ids[int(self.arrays.starts[position]) + op * size + place] = predicate
        return True

    def _make_table(self, position: int, entries: int) -> None:
        ids, used = self.arrays.ids, self._used
        if used + entries > len(ids):
            # The part that is not used yet is not written, so it takes no memory either.
            larger = np.empty(max(used + entries, 2 * len(ids)), np.int32)
            larger[:used] = ids[:used]
            self.arrays = self.arrays._replace(ids=larger)
        self.arrays.ids[used : used + entries] = -1
        self.arrays.starts[position] = used
        self._used = used + entries

    @property
    def bytes(self) -> int:
        arrays = self.arrays
        heads = arrays.starts.nbytes + arrays.lows.nbytes + arrays.sizes.nbytes
        return heads + self._used * arrays.ids.itemsize
