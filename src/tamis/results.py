"""Matches as Arrow tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]


class IdColumn:
    """The ids of subscriptions, to be looked up by their handles."""

    def __init__(self, ids: Mapping[int, str | int]) -> None:
        self._handles: Array = np.fromiter(ids, np.int64, len(ids))  # ascending
        is_whole = bool(ids) and type(next(iter(ids.values()))) is int
        self._ids = pa.array(ids.values(), pa.int64() if is_whole else pa.string())
        self._is_dense = len(ids) == 0 or int(self._handles[-1]) == len(ids) - 1

    def take(self, handles: Array) -> pa.Array:
        """The ids of handles; strings as codes of a dictionary, so that none is copied."""
        codes = handles if self._is_dense else np.searchsorted(self._handles, handles)
        if self._ids.type == pa.int64():
            return self._ids.take(pa.array(codes))
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), self._ids)


def matches_of(lists: Iterable[Array], numbers: Sequence[int]) -> "Matches":
    """The matches of events that were matched one by one."""
    found = list(lists)
    counts = np.array([len(one) for one in found], np.int64)
    handles = np.concatenate(found) if found else np.empty(0, np.int64)
    return Matches(counts, handles, numbers)


class Matches(NamedTuple):
    """How many subscriptions each event matches, and which."""

    counts: Array  # int64[event]
    handles: Array  # int64[*]: those of all events, one behind the other
    numbers: Sequence[int]  # of the events

    def table(self, output: str, ids: IdColumn) -> pa.Table:
        """A table of pairs, lists or counts."""
        events = pa.array(self.numbers, pa.int64())
        if output == "counts":
            return pa.table({"event": events, "count": pa.array(self.counts)})
        found = ids.take(self.handles)
        if output == "lists":
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])
            lists = pa.LargeListArray.from_arrays(pa.array(ends), found)
            return pa.table({"event": events, "subscriptions": lists})
        repeated = np.repeat(np.asarray(self.numbers, np.int64), self.counts)
        return pa.table({"event": pa.array(repeated), "subscription": found})
