"""What runs in the Python workers of executors when subscriptions are in shards."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.bad_events import faults_of
from tamis.engines.sliced.filter_reader import FilterReader
from tamis.engines.sliced.leaves import Leaves
from tamis.errors import TamisError
from tamis.language.shape_cache import ShapeCache
from tamis.matcher import Matcher
from tamis.plan import asked_attributes
from tamis.semantics import Semantics
from tamis.spark.batch.event_frames import Layout
from tamis.spark.batch.worker import (
    EVENTS,
    Part,
    faults_before,
    gathered,
    matched,
    parts_of,
    refuse,
    without,
)
from tamis.spark.compile.compilation import (
    FILTERS_AT_ONCE,
    Meaning,
    outcome,
    read_chunks,
)
from tamis.spark.compile.last_rows import hold
from tamis.spark.shards.plan import Array, Placing, Plan, Routing, Slots

# What `Assigning` says: filters, and reports as the outcome of compiling has them.
ASSIGNED = "shard int, kind string, number bigint, text string, id {id_type}"
ID_TYPES = {"bigint": pa.int64(), "string": pa.string()}
RULES, EVENT, ALONE = 0, 1, 2  # kinds of rows in a slot; ALONE is an event that meets no shard


# --- compiling


@dataclass(frozen=True)
class Assigning:
    """The function of `mapInArrow` that says in which shards subscriptions lie."""

    meaning: Meaning
    duplicates: str
    plan: Plan
    id_type: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = hold(batches, self.meaning, self.duplicates, _Reading(self.meaning, self.plan).use)
        for kind, text, number in held.reports:
            yield self._said(kind, text, number)
        yield from self._filters(held.filters)

    def _filters(self, held: dict[Any, tuple[str, tuple[int, ...]]]) -> Iterator[pa.RecordBatch]:
        found = (
            (shard, text, subscription)
            for subscription, (text, shards) in held.items()
            for shard in shards
        )
        while some := list(islice(found, FILTERS_AT_ONCE // 4)):
            places, texts, ids = map(list, zip(*some, strict=True))
            yield self._rows(places, ["filter"] * len(ids), [0] * len(ids), texts, ids)

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

    def _said(self, kind: str, text: str, number: int = 0) -> pa.RecordBatch:
        return self._rows([self.plan.total], [kind], [number], [text], [None])


class _Reading:
    """Reads filters as a matcher would, and finds their shards."""

    def __init__(self, meaning: Meaning, plan: Plan) -> None:
        self._shapes = ShapeCache(meaning.schema)
        self._reader = FilterReader(Semantics(meaning.semantics, meaning.schema, meaning.defaults))
        self._placing = Placing(plan, meaning.schema)

    def use(self, _row: int, subscription: Any, text: str) -> tuple[str, tuple[int, ...]]:
        """The filter and its shards."""
        leaves: Leaves = self._reader.leaves(self._shapes.parse(text))
        return text, self._placing.shards(subscription, leaves)


@dataclass(frozen=True)
class Building:
    """The function of `mapInArrow` that compiles shards, one after the other."""

    meaning: Meaning

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (shard,), parts in groupby(runs(batches, 1), key=lambda run: run[0]):
            matcher = self.meaning.matcher()
            for table in gathered((batch for _, batch in parts), FILTERS_AT_ONCE):
                kinds = table["kind"].to_pylist()
                if kinds[0] == "filter":
                    ids, texts = table["id"].to_pylist(), table["text"].to_pylist()
                    matcher.subscribe_many(zip(ids, texts, strict=True))
                    continue
                numbers, texts = table["number"].to_pylist(), table["text"].to_pylist()
                for said in zip(kinds, numbers, texts, strict=True):
                    yield outcome(shard, *said)
            if len(matcher):
                yield from self._compiled(shard, matcher)

    def _compiled(self, shard: int, matcher: Matcher) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            path = Path(folder) / "shard.tamis"
            matcher.save(path)
            asked = asked_attributes(Matcher.load(path)._engine, self.meaning.schema)  # noqa: SLF001 - ours
            size = path.stat().st_size
            yield outcome(shard, "shard", len(matcher), json.dumps([size, sorted(asked)]))
            for number, data in enumerate(read_chunks(path)):
                yield outcome(shard, "rules", number, data=data)


# --- matching


@dataclass(frozen=True)
class Sending:
    """The function of `mapInArrow` that sends events to the slots of the shards that they meet."""

    meaning: Meaning
    layout: Layout
    on_bad: str
    plan: Plan
    alive: Sequence[bool]
    copies: Array
    output: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = (0 if context is None else context.partitionId()) << 33
        of = self.meaning
        semantics = Semantics(of.semantics, of.schema, of.defaults)
        routing, slots = Routing(self.plan, semantics, self.alive), Slots(self.copies)
        for part, table in parts_of(batches, self.layout):
            rows = usable(part, table, self.layout, semantics, self.on_bad)
            events = part.events if len(rows) == table.num_rows else part.events.take(rows)
            numbers = partition + part.first + rows
            places, shards = routing.pairs(events)
            found = [(places, slots.of(shards, numbers[places]), EVENT)]
            if self.output != "pairs":
                alone = np.flatnonzero(np.bincount(places, minlength=len(rows)) == 0)
                found.append((alone, slots.anywhere(numbers[alone]), ALONE))
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
        names = ["slot", "kind", "number", *taken.column_names]
        found: list[pa.RecordBatch] = pa.Table.from_arrays(whole, names=names).to_batches(EVENTS)
        return found


def usable(part: Part, table: pa.Table, layout: Layout, semantics: Semantics, on_bad: str) -> Array:
    """The rows of the events that can be matched."""
    faults = faults_before(table, layout)
    refuse(faults, part, on_bad)
    rows = np.delete(np.arange(table.num_rows), list(faults))
    left = without(part, faults) if faults else part
    more = faults_of(left.events, semantics)
    refuse(more, left, on_bad)
    return np.delete(rows, list(more))


@dataclass(frozen=True)
class Meeting:
    """The function of `mapInArrow` that matches: in each slot first comes a shard, then events."""

    layout: Layout
    output: str
    id_type: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        path, there = None, -1
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            for (slot, kind), some in groupby(runs(batches, 2), key=lambda run: run[0]):
                found = (batch for _, batch in some)
                if kind == RULES:
                    if path is not None:
                        path.unlink()
                    path, there = Path(folder) / f"{slot}.tamis", slot
                    _write(found, path)
                elif kind == EVENT:
                    if path is None or there != slot:
                        raise TamisError(f"slot {slot} got events without the rules of its shard")
                    # One thread: Spark starts as many workers as there are cores for them.
                    yield from self._matched(Matcher.load(path, options={"threads": 1}), found)
                else:
                    for part in self._parts(found):
                        yield self._empty(part)

    def _parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
        """With the number of an event behind what is kept of it."""
        kept = (*(f"k{n}" for n in range(len(self.layout.kept))), "number")
        layout = Layout(self.layout.names, kept, has_corrupt=False)
        names = ["id", *self.layout.names, *kept]

        def turned() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                _, _, number, _, *others = batch.columns
                yield pa.RecordBatch.from_arrays([*others, number], names=names)

        for part, _ in parts_of(turned(), layout):
            yield part

    def _matched(
        self, matcher: Matcher, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for part in self._parts(batches):
            yield from matched(matcher, part, self.output)

    def _empty(self, part: Part) -> pa.RecordBatch:
        size = len(part.ids)
        if self.output == "lists":
            none = pa.array([], ID_TYPES[self.id_type])
            found = pa.ListArray.from_arrays(pa.array(np.zeros(size + 1, np.int32)), none)
        else:
            found = pa.array(np.zeros(size, np.int64))
        columns = [part.ids, found, *part.kept.columns]
        names = ["event_id", "found", *part.kept.column_names]
        return pa.Table.from_arrays(columns, names=names).combine_chunks().to_batches()[0]


def _write(batches: Iterable[pa.RecordBatch], path: Path) -> None:
    with path.open("wb") as file:
        for batch in batches:
            for data in batch.column(3):
                file.write(data.as_buffer())


def runs(
    batches: Iterable[pa.RecordBatch], columns: int
) -> Iterator[tuple[tuple[int, ...], pa.RecordBatch]]:
    """Rows behind each other that are equal in the first columns, and what they are equal in."""
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = np.stack([np.asarray(batch.column(n)) for n in range(columns)])
        changes = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
        bounds = [0, *changes.tolist(), batch.num_rows]
        for start, end in pairwise(bounds):
            key = tuple(keys[:, start].tolist())
            yield key, batch.slice(start, end - start)
