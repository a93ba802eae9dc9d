"""What runs in the Python workers of executors: Arrow batches in, matches out.

The compiled subscriptions are a file that Spark brings to each executor once. All workers of an
executor map the same file, so its pages are in memory once. A worker keeps what it has opened for
the tasks that follow.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import EventError
from tamis.faults import faults_of
from tamis.matcher import Matcher
from tamis.spark.frames import Layout

EVENTS = 1 << 15  # that are matched at once
PAIRS = 1 << 18  # rows of a batch that goes back to Spark
OPENED = 2  # files that a worker keeps open

_opened: "OrderedDict[str, Matcher]" = OrderedDict()


def open_rules(name: str) -> Matcher:
    """The matcher of a file that the session has published under a name."""
    found = _opened.get(name)
    if found is None:
        from pyspark import SparkFiles

        # One thread: Spark starts as many workers as there are cores for them.
        found = _opened[name] = Matcher.load(SparkFiles.get(name), options={"threads": 1})
        while len(_opened) > OPENED:
            _opened.popitem(last=False)
    _opened.move_to_end(name)
    return found


@dataclass(frozen=True)
class Part:
    """Some events: their ids, their attributes, and what is kept of them."""

    ids: pa.ChunkedArray
    events: pa.Table
    kept: pa.Table
    first: int  # the number of the first one in its partition

    def some(self, rows: pa.Array) -> "Part":
        """Some of them."""
        return Part(self.ids.take(rows), self.events.take(rows), self.kept.take(rows), self.first)


def parts_of(batches: Iterable[pa.RecordBatch], layout: Layout) -> Iterator[tuple[Part, pa.Table]]:
    """The events of a partition, many at once, and the columns as they came."""
    first = 0
    for table in gathered(batches):
        names, kept = layout.names, layout.kept
        end = 1 + len(names)
        columns = table.columns
        yield Part(
            columns[0], _table(columns[1:end], names, table.num_rows),
            _table(columns[end : end + len(kept)], kept, table.num_rows), first,
        ), table  # fmt: skip
        first += table.num_rows


def _table(columns: list[Any], names: tuple[str, ...], size: int) -> pa.Table:
    if columns:
        return pa.Table.from_arrays(columns, names=list(names))
    # A table without columns has no rows either; nobody asks for this one.
    return pa.table({"": pa.nulls(size)})


def gathered(batches: Iterable[pa.RecordBatch], most: int = EVENTS) -> Iterator[pa.Table]:
    """Tables of about `most` rows: what is done once for each of them is done less often."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if rows and rows + batch.num_rows > most:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
        waiting.append(batch)
        rows += batch.num_rows
    if rows:
        yield pa.Table.from_batches(waiting)


def faults_before(table: pa.Table, layout: Layout) -> dict[int, str]:
    """Rows without an id, and those that could not be read."""
    found: dict[int, str] = {}
    if layout.has_corrupt and table.columns[-1].null_count < table.num_rows:
        texts = table.columns[-1]
        for row in np.flatnonzero(np.asarray(texts.is_valid())).tolist():
            text = texts[row].as_py()
            shown = text if len(text) <= 200 else text[:200] + "..."
            found[row] = f"the row cannot be read: {shown}"
    if table.columns[0].null_count:
        for row in np.flatnonzero(np.asarray(table.columns[0].is_null())).tolist():
            found.setdefault(row, "the event has no id")
    return found


def without(part: Part, faults: Iterable[int]) -> Part:
    """The rows that are not at fault."""
    rows = np.setdiff1d(np.arange(part.events.num_rows), np.array(list(faults), np.int64))
    return part.some(pa.array(rows))


@dataclass(frozen=True)
class Matching:
    """The function of `mapInArrow` that matches."""

    rules: Callable[[], Matcher]  # what gives the matcher, in the worker
    layout: Layout
    output: str
    on_bad: str  # keep or fail

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher: Matcher | None = None
        for part, table in parts_of(batches, self.layout):
            matcher = matcher or self.rules()
            faults = faults_before(table, self.layout)
            if faults:
                self._refuse(faults, part)
                part = without(part, faults)  # noqa: PLW2901 - what is left of it
            yield from self._matched(matcher, part)

    def _matched(self, matcher: Matcher, part: Part) -> Iterator[pa.RecordBatch]:
        try:
            tables = matched(matcher, part, self.output)
            first = next(tables, None)
        except EventError:
            faults = faults_of(part.events, matcher.meaning)
            if not faults:
                raise
            self._refuse(faults, part)
            tables = matched(matcher, without(part, faults), self.output)
            first = next(tables, None)
        if first is not None:
            yield from first
        for batches in tables:
            yield from batches

    def _refuse(self, faults: dict[int, str], part: Part) -> None:
        if self.on_bad == "fail":
            row, reason = min(faults.items())
            raise EventError(f"event {part.ids[row].as_py()!r}: {reason}")


def matched(matcher: Matcher, part: Part, output: str) -> Iterator[list[pa.RecordBatch]]:
    """The matches of some events, as batches for Spark."""
    if not part.events.num_rows:
        return
    ids = part.ids.combine_chunks()
    kept = part.kept.combine_chunks()
    for table in matcher.match_batches(part.events, output):
        events = table["event"]
        columns = {"event_id": ids.take(events)}
        if output == "pairs":
            columns["subscription"] = _decoded(table["subscription"])
        elif output == "lists":
            columns["subscriptions"] = _lists(table["subscriptions"])
        else:
            columns["count"] = table["count"]
        if part.kept.column_names != [""]:
            columns |= {name: kept[name].take(events) for name in kept.column_names}
        yield pa.table(columns).to_batches(max_chunksize=PAIRS)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = column.type.value_type
    return column.cast(pa.string() if pa.types.is_large_string(values) else values)


def _lists(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = []
    for chunk in column.chunks:
        plain = _decoded(pa.chunked_array([chunk.values])).combine_chunks()
        offsets = pc.cast(chunk.offsets, pa.int32())
        chunks.append(pa.ListArray.from_arrays(offsets, plain))
    return pa.chunked_array(chunks, chunks[0].type if chunks else None)


@dataclass(frozen=True)
class Published:
    """Finds the compiled subscriptions in a worker."""

    name: str

    def __call__(self) -> Matcher:
        return open_rules(self.name)
