"""The events of a task in chunks, in the workers: ids, attributes and columns to keep.

Workers get columns by their positions: the id, then each top-level column that holds an attribute,
then the columns to keep, then the text of a row that could not be read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import EventError
from tamis.events.bad_events import python_value
from tamis.file_tables.unreadable_rows import UNKNOWN, RowFormat
from tamis.spark.tables.arrow_batches import gathered

EVENTS = 1 << 16  # per chunk
_NO_COLUMN = ""  # the name of the only column of a table that stands for one without columns


class EventLayout(NamedTuple):
    """Which columns workers get, between the id and the text of an unreadable row."""

    names: tuple[str, ...]  # of the top-level columns that hold attributes
    kept: tuple[str, ...]
    has_corrupt: bool
    rows: RowFormat | None = None  # how unreadable rows should have been read, if that is known
    moment: int = 0  # what now() means: microseconds since 1970


@dataclass(frozen=True)
class EventChunk:
    """Some events: their ids, their attributes, and the columns to keep."""

    ids: pa.ChunkedArray
    events: pa.Table
    kept: pa.Table
    first: int  # the number of the first event in its partition
    moment: int  # when they arrive, in microseconds since 1970

    @property
    def kept_names(self) -> list[str]:
        """The names of the columns to keep."""
        names: list[str] = self.kept.column_names
        return [] if names == [_NO_COLUMN] else names

    def some(self, rows: pa.Array) -> "EventChunk":
        """The events of some rows."""
        return EventChunk(
            self.ids.take(rows), self.events.take(rows), self.kept.take(rows), self.first,
            self.moment,
        )  # fmt: skip

    def without(self, bad: Iterable[int]) -> "EventChunk":
        """All events but those of some rows."""
        rows = np.setdiff1d(np.arange(self.events.num_rows), np.array(list(bad), np.int64))
        return self.some(pa.array(rows))


def chunks_of(
    batches: Iterable[pa.RecordBatch], layout: EventLayout
) -> Iterator[tuple[EventChunk, pa.Table]]:
    """The events of a partition in chunks, and for each chunk the columns as they came."""
    first = 0
    for table in gathered(batches, EVENTS):
        names, kept = layout.names, layout.kept
        end = 1 + len(names)
        columns = table.columns
        yield EventChunk(
            columns[0], _table(columns[1:end], names, table.num_rows),
            _table(columns[end : end + len(kept)], kept, table.num_rows), first, layout.moment,
        ), table  # fmt: skip
        first += table.num_rows


def _table(columns: list[Any], names: tuple[str, ...], size: int) -> pa.Table:
    if columns:
        return pa.Table.from_arrays(columns, names=list(names))
    # A table without columns would have no rows either.
    return pa.table({_NO_COLUMN: pa.nulls(size)})


def unreadable_rows(table: pa.Table, layout: EventLayout) -> dict[int, str]:
    """The rows without an id and those that Spark could not read, with the reasons."""
    found: dict[int, str] = {}
    if layout.has_corrupt and table.columns[-1].null_count < table.num_rows:
        rows = np.flatnonzero(np.asarray(table.columns[-1].is_valid())).tolist()
        texts = [python_value(table.columns[-1][row]) for row in rows]
        reasons = (layout.rows or UNKNOWN).reasons(texts)
        found |= dict(zip(rows, reasons, strict=True))
    if table.columns[0].null_count:
        for row in np.flatnonzero(np.asarray(table.columns[0].is_null())).tolist():
            found.setdefault(row, "the event has no id")
    return found


def refuse(bad: dict[int, str], chunk: EventChunk, on_bad: str) -> None:
    """Raise an error about the first bad event, if bad events are to fail the job."""
    if bad and on_bad == "fail":
        row, reason = min(bad.items())
        found = python_value(chunk.ids[row])
        raise EventError(f"{'an event' if found is None else f'event {found!r}'}: {reason}")
