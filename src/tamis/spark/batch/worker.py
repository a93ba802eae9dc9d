"""What runs in the Python workers of executors: Arrow batches in, matches out.

The compiled subscriptions are a file that Spark brings to each executor once. All workers of an
executor map the same file, so its pages are in memory once. A worker keeps what it has opened for
the tasks that follow.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.bad_events import faults_of
from tamis.errors import EventError
from tamis.matcher import Matcher
from tamis.spark.batch.event_frames import Layout
from tamis.spark.dead_letters.letters import shown

EVENTS = 1 << 16  # that are matched at once
PAIRS = 1 << 18  # rows of a batch that goes back to Spark
BYTES = 1 << 26  # of such a batch, about: what is kept of an event is there once for each match
BAD = "tamis_bad"  # the column of a tag
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
    """Tables of at most `most` rows: what is done once for each of them is done less often."""
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


def faults_before(table: pa.Table, layout: Layout) -> dict[int, str]:
    """Rows without an id, and those that could not be read."""
    found: dict[int, str] = {}
    if layout.has_corrupt and table.columns[-1].null_count < table.num_rows:
        texts = table.columns[-1]
        for row in np.flatnonzero(np.asarray(texts.is_valid())).tolist():
            text = shown(texts[row])
            short = text if len(text) <= 200 else text[:200] + "..."
            found[row] = f"the row cannot be read: {short}"
    if table.columns[0].null_count:
        for row in np.flatnonzero(np.asarray(table.columns[0].is_null())).tolist():
            found.setdefault(row, "the event has no id")
    return found


def without(part: Part, faults: Iterable[int]) -> Part:
    """The rows that are not at fault."""
    rows = np.setdiff1d(np.arange(part.events.num_rows), np.array(list(faults), np.int64))
    return part.some(pa.array(rows))


def refuse(faults: dict[int, str], part: Part, on_bad: str) -> None:
    """Fail for the first of some bad events, if bad ones are to fail."""
    if faults and on_bad == "fail":
        row, reason = min(faults.items())
        found = shown(part.ids[row])
        raise EventError(f"{'an event' if found is None else f'event {found!r}'}: {reason}")


@dataclass(frozen=True)
class Matching:
    """The function of `mapInArrow` that matches.

    With `tag`, the type of the ids of subscriptions, there is a last column BAD. It is true of one
    row for each event that could not be used, in which all else is null: so whoever runs the job
    can count them. Otherwise these events are left out.
    """

    rules: Callable[[], Matcher]  # what gives the matcher, in the worker
    layout: Layout
    output: str
    on_bad: str  # keep or fail
    tag: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher: Matcher | None = None
        for part, table in parts_of(batches, self.layout):
            matcher = matcher or self.rules()
            good, bad = part, 0
            faults = faults_before(table, self.layout)
            if faults:
                refuse(faults, part, self.on_bad)
                good, bad = without(part, faults), len(faults)
            try:
                found = matched(matcher, good, self.output)
                first = next(found, None)
            except EventError:
                faults = faults_of(good.events, matcher.meaning)
                if not faults:
                    raise
                refuse(faults, good, self.on_bad)
                found = matched(matcher, without(good, faults), self.output)
                first, bad = next(found, None), bad + len(faults)
            for batch in chain(() if first is None else (first,), found):
                yield batch if self.tag is None else _tagged(batch, is_bad=False)
            if bad and self.tag is not None:
                yield _tagged(nothing(part, self.output, self.tag, bad), is_bad=True)


def _tagged(batch: pa.RecordBatch, *, is_bad: bool) -> pa.RecordBatch:
    return batch.append_column(BAD, pa.array(np.full(batch.num_rows, is_bad)))


def nothing(part: Part, output: str, ids: str, rows: int) -> pa.RecordBatch:
    """Rows of matches in which all is null."""
    kind = pa.string() if ids == "string" else pa.int64()
    found = {
        "pairs": ("subscription", kind),
        "lists": ("subscriptions", pa.list_(kind)),
        "counts": ("count", pa.int64()),
    }[output]
    fields = [("event_id", part.ids.type), found]
    if part.kept.column_names != [""]:
        fields += [(field.name, field.type) for field in part.kept.schema]
    return pa.record_batch({name: pa.nulls(rows, of) for name, of in fields})


def matched(matcher: Matcher, part: Part, output: str) -> Iterator[pa.RecordBatch]:
    """The matches of some events, as batches for Spark."""
    if not part.events.num_rows:
        return
    ids = part.ids.combine_chunks()
    kept = part.kept.combine_chunks()
    size = (ids.nbytes + kept.nbytes) // len(ids) + 1
    for table in matcher.match_batches(part.events, output):
        listed = _list_size(table["subscriptions"]) if output == "lists" else 0
        step = max(1, min(PAIRS, BYTES // (size + listed)))
        for start in range(0, table.num_rows, step):
            yield from _finished(table.slice(start, step), ids, kept, output).to_batches()


def _finished(matches: pa.Table, ids: pa.Array, kept: pa.Table, output: str) -> pa.Table:
    """Matches with the ids of events in the place of their numbers, and with what is kept."""
    events = matches["event"]
    columns = {"event_id": ids.take(events)}
    if output == "pairs":
        columns["subscription"] = _decoded(matches["subscription"])
    elif output == "lists":
        columns["subscriptions"] = _lists(matches["subscriptions"])
    else:
        columns["count"] = matches["count"]
    if kept.column_names != [""]:
        columns |= {name: kept[name].take(events) for name in kept.column_names}
    return pa.table(columns)


def _list_size(column: pa.ChunkedArray) -> int:
    """Bytes of a list of ids, about."""
    flat = column.combine_chunks().flatten()
    ids = flat.dictionary
    return len(flat) * int(ids.nbytes) // (max(1, len(ids)) * max(1, len(column)))


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = column.type.value_type
    return column.cast(pa.string() if pa.types.is_large_string(values) else values)


def _lists(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = []
    for chunk in column.chunks:
        plain = _decoded(pa.chunked_array([chunk.flatten()])).combine_chunks()
        offsets = pc.cast(pc.subtract(chunk.offsets, chunk.offsets[0]), pa.int32())
        chunks.append(pa.ListArray.from_arrays(offsets, plain))
    return pa.chunked_array(chunks, chunks[0].type if chunks else None)


@dataclass(frozen=True)
class Published:
    """Finds the compiled subscriptions in a worker."""

    name: str

    def __call__(self) -> Matcher:
        return open_rules(self.name)
