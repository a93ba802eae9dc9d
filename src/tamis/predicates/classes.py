"""Predicates that are listed by value: sets, patterns, strings, presence, and what has no order.

For every distinct value of a batch the true predicates are found once, and remembered.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.events import Row
from tamis.predicates.batches import Batch, Column, row_of_batch
from tamis.predicates.index import PredicateIndex
from tamis.predicates.keys import key_values
from tamis.schema import Schema

Array = np.ndarray[Any, Any]
Listed = tuple[Array, Array, Array]  # codes[event], starts[code + 1], ids

MOST_REMEMBERED = 200_000  # values of an attribute


class Classes:
    """The true predicates of values, by attribute."""

    def __init__(self, predicates: PredicateIndex, schema: Schema) -> None:
        self._predicates = predicates
        self._schema = schema
        self._known: dict[int, dict[Any, Array]] = {}
        self._version = -1

    def of(self, batch: Batch, rows: Sequence[Row] | None) -> list[Listed]:
        """The classes of each attribute with listed predicates, and of what has several."""
        if self._version != self._predicates.version:
            self._known.clear()
            self._version = self._predicates.version
        found = [self._attribute(n, batch.columns[n]) for n in self._predicates.listed]
        if self._predicates.has_others:
            found.append(self._others(batch, rows))
        return found

    def _attribute(self, position: int, column: Column) -> Listed:
        known = self._known.setdefault(position, {})
        if len(known) > MOST_REMEMBERED:
            known.clear()
        if column.distinct is not None:
            values = column.distinct.to_pylist()
            codes = np.where(column.present, column.keys, len(values))
        else:
            keys, codes = np.unique(column.keys, return_inverse=True)
            values = key_values(self._schema.attributes[position], keys)
            codes = np.where(column.present, codes, len(values))
        lists = []
        for value in [*values, None]:
            key = "nan" if value != value else value  # noqa: PLR0124 - nan is equal to nothing
            ids = known.get(key)
            if ids is None:
                ids = known[key] = self._predicates.listed_ids(position, value)
            lists.append(ids)
        return _listed(codes, lists)

    def _others(self, batch: Batch, rows: Sequence[Row] | None) -> Listed:
        lists = []
        for event in range(batch.size):
            row = rows[event] if rows is not None else row_of_batch(batch, event, self._schema)
            lists.append(self._predicates.other_ids(row))
        return _listed(np.arange(batch.size), lists)


def _listed(codes: Array, lists: list[Array]) -> Listed:
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(ids) for ids in lists], out=starts[1:])
    return codes, starts, np.concatenate(lists) if lists else np.empty(0, np.int32)
