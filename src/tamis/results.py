"""Matches as Arrow tables."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.id_columns import IdColumn
from tamis.memory import RESULTS

Array = np.ndarray[Any, Any]

MANY = 1 << 16  # matches from which memory is used again, and the compiler is worth loading

Piece = tuple[Array, Array]  # how many matches each event has, and the handles of all matches


def pieces_of(lists: Iterable[Array]) -> Iterator[Piece]:
    """One piece per event, for events that were matched one by one."""
    for found in lists:
        yield np.array([len(found)], np.int64), found


Numbers = Sequence[int] | Array  # of events


def table_of(pieces: Iterable[Piece], numbers: Numbers, output: str, ids: IdColumn) -> pa.Table:
    """The table of matches for the outputs ``"pairs"`` and ``"lists"``."""
    counts: list[Array] = [np.empty(0, np.int64)]
    found: list[pa.Array] = [ids.none()]
    for piece in pieces:
        count, matched = ids.of_piece(*piece)
        counts.append(count)
        found.append(matched)
    total = np.concatenate(counts)
    if output == "pairs":
        events = _repeated(_array(numbers), total)
        return pa.table({"event": events, "subscription": pa.chunked_array(found)})
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(total)])
    lists = pa.LargeListArray.from_arrays(pa.array(ends), pa.concat_arrays(found))
    return pa.table({"event": pa.array(_array(numbers)), "subscriptions": lists})


def _repeated(numbers: Array, counts: Array) -> pa.Array:
    """Each number as often as its count says."""
    total = int(counts.sum())
    if total >= MANY:
        from tamis.kernels.match_bits import write_numbers

        found = RESULTS.take(total, np.int64)
        write_numbers(numbers, counts, found)
        return pa.array(found)
    some = counts > 0
    if not some.any():
        return pa.array([], pa.int64())
    ends = pa.array(np.cumsum(counts[some]))
    runs = pa.RunEndEncodedArray.from_arrays(ends, pa.array(numbers[some]))
    return pc.run_end_decode(runs)


def _array(numbers: Numbers) -> Array:
    if isinstance(numbers, range):  # numpy would ask for one after the other
        return np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64)
    return np.asarray(numbers, np.int64)


def table_of_counts(counts: Array, numbers: Numbers) -> pa.Table:
    """The table of matches for the output ``"counts"``."""
    return pa.table({"event": pa.array(_array(numbers)), "count": pa.array(counts)})
