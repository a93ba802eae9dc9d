"""Comparisons of one attribute with a finite domain, by a table (COUNT, section 3.2).

``table[operator][value]`` holds the id of the predicate, or -1. Adding, removing and finding a
predicate take one step. A value satisfies a stretch of each row of the table; it is as long as the
domain, not as the list of predicates, which is why the table pays only when they are many.

The normal form may step one value over the edge (``x < 1`` is ``x <= 0``); such constants are kept
in ordered lists beside the table.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tamis.predicates.ordered import OPERATORS, Ids, OrderedIndex
from tamis.schema import Enumeration, IntRange

LARGEST_DOMAIN = 1_000_000  # values; 24 bytes each

_ROW = {op: row for row, op in enumerate(OPERATORS)}


class TableIndex:
    """The comparisons of one attribute of a finite domain."""

    def __init__(self, domain: IntRange | Enumeration) -> None:
        if isinstance(domain, IntRange):
            self._places: dict[str, int] | None = None
            self._low = domain.low
            size = domain.high - domain.low + 1
        else:
            # Strings are ordered by code point, whatever the order of the schema.
            self._places = {value: place for place, value in enumerate(sorted(domain.values))}
            self._low = 0
            size = len(domain.values)
        self._size = size
        self._table: Ids = np.full((len(OPERATORS), size), -1, np.int32)
        self._outside = OrderedIndex()

    @staticmethod
    def fits(domain: IntRange | Enumeration) -> bool:
        """Whether a table for the domain is small enough."""
        if isinstance(domain, IntRange):
            return domain.high - domain.low < LARGEST_DOMAIN
        return True

    def add(self, op: str, constant: Any, predicate: int) -> None:
        place = self._place(constant)
        if place is None:
            self._outside.add(op, constant, predicate)
        else:
            self._table[_ROW[op], place] = predicate

    def remove(self, op: str, constant: Any) -> None:
        place = self._place(constant)
        if place is None:
            self._outside.remove(op, constant)
        else:
            self._table[_ROW[op], place] = -1

    def satisfied(self, value: Any) -> Iterator[Ids]:
        """The ids of the comparisons that are true of a value."""
        yield from self._outside.satisfied(value)
        place = self._place(value)
        if place is None:  # pragma: no cover - events are checked against the domain
            raise AssertionError(value)
        table = self._table
        for stretch in (
            table[_ROW["="], place : place + 1],
            table[_ROW["<>"], :place],
            table[_ROW["<>"], place + 1 :],
            table[_ROW["<"], place + 1 :],
            table[_ROW["<="], place:],
            table[_ROW[">"], :place],
            table[_ROW[">="], : place + 1],
        ):
            yield stretch[stretch >= 0]

    def _place(self, value: Any) -> int | None:
        if self._places is not None:
            return self._places.get(value)
        place = int(value) - self._low
        return place if 0 <= place < self._size else None
