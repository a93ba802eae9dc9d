"""Placing filters, building shards, sending events and matching them, in the workers."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.container import fingerprint_of, trust
from tamis.errors import TamisError
from tamis.events.bad_events import faults_of
from tamis.language.shape_cache import ShapeCache
from tamis.matcher import Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.semantics import Semantics
from tamis.spark.compile.last_rows import FilterStore, read_last_rows
from tamis.spark.compile.sent_code import take_code
from tamis.spark.compile.task_reports import file_rows, report_row
from tamis.spark.compile.worker import ONE_THREAD
from tamis.spark.shards.copies import ShardCopies
from tamis.spark.shards.hashes import Array
from tamis.spark.shards.placement import EventRouting, FilterPlacement, PlacedChanges
from tamis.spark.shards.plan import ShardPlan
from tamis.spark.tables.arrow_batches import FILTERS_AT_ONCE, gathered, runs, task_number
from tamis.spark.tables.event_chunks import (
    EVENTS,
    EventChunk,
    EventLayout,
    chunks_of,
    refuse,
    unreadable_rows,
)
from tamis.spark.tables.match_batches import match_chunk
from tamis.spark.tables.match_schema import FOUND, ID_TYPES

# What `PlaceFiltersTask` returns: filters with their shards, and rows of its report.
PLACED = "shard int, kind string, number bigint, text string, id {id_type}"
RULES, EVENT, ALONE = 0, 1, 2  # kinds of rows for a copy; ALONE is an event that meets no shard


# --- compiling


@dataclass(frozen=True)
class PlaceFiltersTask:
    """The function of `mapInArrow` that says in which shards subscriptions are."""

    settings: MatcherSettings
    duplicates: str
    plan: ShardPlan
    id_type: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shapes = ShapeCache(self.settings.schema)
        placement = FilterPlacement(self.plan, self.settings.meaning())

        def read(_row: int, subscription: Any, text: str) -> tuple[str, tuple[int, ...]]:
            return text, placement.shards(subscription, shapes.parse(text))

        store = FilterStore(self.settings, read)
        report = read_last_rows(batches, self.duplicates, store)
        for kind, text, number in report.rows():
            yield self._rows([self.plan.total], [kind], [number], [text], [None])
        if not report.repeated:
            yield from self._filters(store.filters)

    def _filters(self, filters: dict[Any, tuple[str, tuple[int, ...]]]) -> Iterator[pa.RecordBatch]:
        found = (
            (shard, text, subscription)
            for subscription, (text, shards) in filters.items()
            for shard in shards
        )
        while some := list(islice(found, FILTERS_AT_ONCE // 4)):
            shards, texts, ids = map(list, zip(*some, strict=True))
            yield self._rows(shards, ["filter"] * len(ids), [0] * len(ids), texts, ids)

    def _rows(
        self, shards: list[int], kinds: list[str], numbers: list[int], texts: list[str],
        ids: list[Any],
    ) -> pa.RecordBatch:  # fmt: skip
        return pa.record_batch(
            {
                "shard": pa.array(shards, pa.int32()), "kind": kinds,
                "number": pa.array(numbers, pa.int64()), "text": texts,
                "id": pa.array(ids, ID_TYPES[self.id_type]),
            }
        )  # fmt: skip


@dataclass(frozen=True)
class BuildShardsTask:
    """The function of `mapInArrow` that compiles shards, one after the other."""

    settings: MatcherSettings

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            for (shard,), parts in groupby(runs(batches, 1), key=lambda run: run[0]):
                matcher = self.settings.matcher(ONE_THREAD)
                for table in gathered((batch for _, batch in parts), FILTERS_AT_ONCE):
                    kinds, texts = table["kind"].to_pylist(), table["text"].to_pylist()
                    if kinds[0] == "filter":
                        matcher.subscribe_many(zip(table["id"].to_pylist(), texts, strict=True))
                        continue
                    for said in zip(kinds, table["number"].to_pylist(), texts, strict=True):
                        yield report_row(shard, *said)
                yield from file_rows(shard, matcher, Path(folder))


# --- matching


@dataclass(frozen=True)
class SendEventsTask:
    """The function of `mapInArrow` that sends events to copies of the shards that they meet."""

    settings: MatcherSettings
    layout: EventLayout
    on_bad: str
    plan: ShardPlan
    alive: Sequence[bool]
    copies: Array
    output: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = task_number() << 33
        meaning = self.settings.meaning()
        routing, copies = EventRouting(self.plan, meaning, self.alive), ShardCopies(self.copies)
        for chunk, table in chunks_of(batches, self.layout):
            rows = usable(chunk, table, self.layout, meaning, self.on_bad)
            events = chunk.events if len(rows) == table.num_rows else chunk.events.take(rows)
            numbers = partition + chunk.first + rows
            places, shards = routing.pairs(events)
            found = [(places, copies.of_events(shards, numbers[places]), EVENT)]
            if self.output != "pairs":
                alone = np.flatnonzero(np.bincount(places, minlength=len(rows)) == 0)
                found.append((alone, copies.anywhere(numbers[alone]), ALONE))
            for some, homes, kind in found:
                if len(some):
                    yield from self._sent(table, rows[some], homes, kind, numbers[some])

    def _sent(
        self, table: pa.Table, rows: Array, homes: Array, kind: int, numbers: Array
    ) -> list[pa.RecordBatch]:
        columns = table.columns[:-1] if self.layout.has_corrupt else table.columns
        own = pa.Table.from_arrays(columns, names=[str(n) for n in range(len(columns))])
        taken = own.combine_chunks().take(rows)
        first = [homes, np.full(len(rows), kind, np.int32), numbers.astype(np.int64)]
        whole = [*map(pa.array, first), *taken.columns]
        names = ["copy", "kind", "number", *taken.column_names]
        found: list[pa.RecordBatch] = pa.Table.from_arrays(whole, names=names).to_batches(EVENTS)
        return found


def usable(
    chunk: EventChunk, table: pa.Table, layout: EventLayout, meaning: Semantics, on_bad: str
) -> Array:
    """The rows of the events that can be matched."""
    faults = unreadable_rows(table, layout)
    refuse(faults, chunk, on_bad)
    rows = np.delete(np.arange(table.num_rows), list(faults))
    left = chunk.without(faults) if faults else chunk
    more = faults_of(left.events, meaning)
    refuse(more, left, on_bad)
    return np.delete(rows, list(more))


@dataclass(frozen=True)
class ShardChanges:
    """Changes that were made since shards were compiled, for the matchers of their copies."""

    settings: MatcherSettings
    changes: PlacedChanges
    starts: Array  # of the copies of each shard

    def make(self, matcher: Matcher | None, copy: int) -> Matcher:
        """The matcher of a copy with the changes of its shard; None is one without rules."""
        made = self.settings.matcher(ONE_THREAD) if matcher is None else matcher
        for subscription in self.changes.ids:
            if subscription in made:
                made.unsubscribe(subscription)
        shard = int(np.searchsorted(self.starts, copy, side="right")) - 1
        made.subscribe_many(self.changes.added.get(shard, ()))
        return made


@dataclass(frozen=True)
class MatchShardsTask:
    """The function of `mapInArrow` that matches: of each copy the rules come first, then events."""

    layout: EventLayout
    output: str
    id_type: str
    changes: ShardChanges | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        path, there = None, -1
        take_code()
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            for (copy, kind), some in groupby(runs(batches, 2), key=lambda run: run[0]):
                found = (batch for _, batch in some)
                if kind == RULES:
                    if path is not None:
                        path.unlink()
                    path, there = Path(folder) / f"{copy}.tamis", copy
                    _write(found, path)
                elif kind == EVENT:
                    matcher = self._opened(path if there == copy else None, copy)
                    for chunk in self._chunks(found):
                        yield from match_chunk(matcher, chunk, self.output)
                else:
                    for chunk in self._chunks(found):
                        yield self._unmatched(chunk)

    def _opened(self, path: Path | None, copy: int) -> Matcher:
        if path is not None:
            trust(fingerprint_of(path))  # another task of this job wrote it
        matcher = None if path is None else Matcher.load(path, options=ONE_THREAD)
        if self.changes is not None:
            return self.changes.make(matcher, copy)
        if matcher is None:
            raise TamisError(f"copy {copy} got events without the rules of its shard")
        return matcher

    def _chunks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[EventChunk]:
        """The events, with their numbers after the columns to keep."""
        kept = (*(f"k{n}" for n in range(len(self.layout.kept))), "number")
        layout = self.layout._replace(kept=kept, has_corrupt=False)
        names = ["id", *self.layout.names, *kept]

        def turned() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                _, _, number, _, *others = batch.columns
                yield pa.RecordBatch.from_arrays([*others, number], names=names)

        for chunk, _ in chunks_of(turned(), layout):
            yield chunk

    def _unmatched(self, chunk: EventChunk) -> pa.RecordBatch:
        """Rows with an empty list or a count of 0."""
        size = len(chunk.ids)
        if self.output == "lists":
            none = pa.array([], ID_TYPES[self.id_type])
            found = pa.ListArray.from_arrays(pa.array(np.zeros(size + 1, np.int32)), none)
        else:
            found = pa.array(np.zeros(size, np.int64))
        columns = [chunk.ids, found, *chunk.kept.columns]
        names = ["event_id", FOUND[self.output], *chunk.kept.column_names]
        return pa.Table.from_arrays(columns, names=names).combine_chunks().to_batches()[0]


def _write(batches: Iterable[pa.RecordBatch], path: Path) -> None:
    with path.open("wb") as file:
        for batch in batches:
            for data in batch.column(3):
                file.write(data.as_buffer())
