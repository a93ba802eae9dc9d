"""The ids of subscriptions as a column, to be looked up by their handles."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.memory import RESULTS

Array = np.ndarray[Any, Any]

# Rows are looked up in an array over the handles while it has at most this many places per row.
SPREAD = 8
FEW = 16  # handles, as of a single event: less work for Python than for numpy


class Places:
    """The row of each handle in a column that has one row per handle.

    Handles are distinct and in any order. Without gaps between them no look-up is needed; with few
    gaps, looking up in an array over all handles is many times as fast as searching.
    """

    def __init__(self, first: int, size: int) -> None:
        """The places of `size` handles from `first` on, in ascending order."""
        self.size = size
        self._first = np.int64(first)  # not an int: the handles of an engine may have 32 bits
        self._handles: Array | None = None
        self._table: Array | None = None  # rows by handle, -1 for none, with a -1 at both ends
        self._ordered: tuple[Array, Array] | None = None  # handles in ascending order, their rows

    @classmethod
    def of(cls, handles: Array) -> "Places":
        """The places of any handles."""
        if len(handles) == 0:
            return cls(0, 0)
        first, spread = int(handles.min()), int(handles.max()) - int(handles.min()) + 1
        places = cls(first, len(handles))
        if spread == len(handles) and bool((handles[1:] > handles[:-1]).all()):
            return places
        places._handles = handles
        if spread <= SPREAD * len(handles):
            places._table = np.full(spread + 2, -1, np.int32)
            places._table[handles - (first - 1)] = np.arange(len(handles), dtype=np.int32)
        else:
            order = np.argsort(handles)
            places._ordered = handles[order], order
        return places

    def handles(self, rows: Array) -> Array:
        """The handle of each row."""
        return rows + self._first if self._handles is None else self._handles[rows]

    def rows(self, handles: Array) -> tuple[Array, Array | None]:
        """The row of each handle, and which handles have one; None if all have."""
        if self._ordered is not None:
            ordered, rows_of = self._ordered
            places = np.minimum(np.searchsorted(ordered, handles), self.size - 1)
            known = ordered[places] == handles
            return rows_of[places], None if known.all() else known
        if self._table is not None:
            places = _shifted(handles, self._first - 1)
            rows = RESULTS.take(len(places), np.int32)
            self._table.take(places, mode="clip", out=rows)
            return rows, None if rows.min(initial=0) >= 0 else rows >= 0
        rows = _shifted(handles, self._first) if self._first else handles
        if len(rows) <= FEW and all(0 <= row < self.size for row in rows.tolist()):
            return rows, None
        if rows.max(initial=-1) < self.size and rows.min(initial=0) >= 0:
            return rows, None
        return rows, (rows >= 0) & (rows < self.size)


def _shifted(handles: Array, by: np.int64) -> Array:
    if len(handles) <= FEW:
        return handles - by
    return np.subtract(handles, by, out=RESULTS.take(len(handles), np.int64))


class IdColumn:
    """The ids of subscriptions, to be looked up by their handles.

    It is made of a column of ids and the places of their handles in it, or of a mapping of handles
    to ids. A handle without an id is left out: its subscription was removed during the match.
    """

    def __init__(
        self, ids: Mapping[int, str | int] | pa.Array, places: Places | None = None
    ) -> None:
        if isinstance(ids, Mapping):
            places = Places.of(np.fromiter(ids, np.int64, len(ids)))
            is_whole = bool(ids) and type(next(iter(ids.values()))) is int
            ids = pa.array(ids.values(), pa.int64() if is_whole else pa.string())
        self._ids = ids
        self._places = Places(0, len(ids)) if places is None else places

    def take(self, handles: Array) -> pa.Array:
        """The ids of handles, as codes of a dictionary, so that no id is copied."""
        rows, known = self._places.rows(handles)
        return self._at(rows if known is None else rows[known])

    def of_piece(self, counts: Array, handles: Array) -> tuple[Array, pa.Array]:
        """How many matches each event of a piece has, and the ids of all of them."""
        rows, known = self._places.rows(handles)
        if known is not None:
            events = np.repeat(np.arange(len(counts)), counts)
            counts, rows = np.bincount(events[known], minlength=len(counts)), rows[known]
        return counts, self._at(rows)

    def none(self) -> pa.Array:
        """An empty column of ids, of the right type."""
        return self._at(np.empty(0, np.int32))

    def _at(self, rows: Array) -> pa.Array:
        codes = pa.array(rows.astype(np.int32, copy=False))
        return pa.DictionaryArray.from_arrays(codes, self._ids, safe=False)
