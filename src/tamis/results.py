"""Matches as Arrow tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

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
        codes = codes.astype(np.int32, copy=False)
        return pa.DictionaryArray.from_arrays(pa.array(codes), self._ids)

    def none(self) -> pa.Array:
        """No ids, of the right type."""
        return self.take(np.empty(0, np.int64))


Piece = tuple[Array, Array]  # counts[event], and the handles of its events one behind the other


def pieces_of(lists: Iterable[Array]) -> Iterator[Piece]:
    """Events that were matched one by one."""
    for found in lists:
        yield np.array([len(found)], np.int64), found


def table_of(
    pieces: Iterable[Piece], numbers: Sequence[int], output: str, ids: IdColumn
) -> pa.Table:
    """A table of pairs or lists."""
    counts: list[Array] = [np.empty(0, np.int64)]
    found: list[pa.Array] = [ids.none()]
    for count, handles in pieces:
        counts.append(count)
        found.append(ids.take(handles))
    total = np.concatenate(counts)
    if output == "pairs":
        repeated = np.repeat(np.asarray(numbers, np.int64), total)
        matched = pa.chunked_array(found)
        return pa.table({"event": pa.array(repeated), "subscription": matched})
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(total)])
    lists = pa.LargeListArray.from_arrays(pa.array(ends), pa.concat_arrays(found))
    return pa.table({"event": pa.array(numbers, pa.int64()), "subscriptions": lists})


def table_of_counts(counts: Array, numbers: Sequence[int]) -> pa.Table:
    """A table of counts."""
    return pa.table({"event": pa.array(numbers, pa.int64()), "count": pa.array(counts)})
