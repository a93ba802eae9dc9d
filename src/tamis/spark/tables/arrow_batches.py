"""The record batches of a task, in the workers: gathered, cut into runs, turned into lists."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

FILTERS_AT_ONCE = 50_000  # read together: if one of them is bad, all of them are read again


def task_number() -> int:
    """The number of the partition that this task works on; 0 outside Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def gathered(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    """Tables of at most `most` rows, as large as possible: work per table is then done rarely."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        for start in range(0, batch.num_rows, most):  # a session may be set to larger batches
            part = batch.slice(start, most)
            if rows + part.num_rows > most:
                yield pa.Table.from_batches(waiting)
                waiting, rows = [], 0
            waiting.append(part)
            rows += part.num_rows
    if rows:
        yield pa.Table.from_batches(waiting)


def runs(
    batches: Iterable[pa.RecordBatch], columns: int
) -> Iterator[tuple[tuple[int, ...], pa.RecordBatch]]:
    """Consecutive rows with the same values in the first columns, and these values."""
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = np.stack([np.asarray(batch.column(n)) for n in range(columns)])
        changes = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
        bounds = [0, *changes.tolist(), batch.num_rows]
        for start, end in pairwise(bounds):
            key = tuple(keys[:, start].tolist())
            yield key, batch.slice(start, end - start)


def subscription_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[list[Any], ...]]:
    """Ids, filters, positions and any further columns as lists, many rows at once."""
    for table in gathered(batches, FILTERS_AT_ONCE):
        yield tuple(texts_of(column) for column in table.columns)


def texts_of(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; bytes that are not UTF-8 become surrogates, which parsers refuse."""
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        return [
            None if text is None else text.decode(errors="surrogateescape")
            for text in column.cast(pa.binary()).to_pylist()
        ]
    return values
