"""The dead letters of tables: what cannot be used is found again when somebody asks for it.

Matching only counts bad rows, or leaves them out. Finding them is a pass of its own, without any
matching: it is asked for when there are some.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.bad_events import faults_of
from tamis.semantics import Semantics
from tamis.spark.batch.event_frames import Events, Layout
from tamis.spark.batch.worker import faults_before, parts_of, without
from tamis.spark.compile.compilation import Meaning, Subscriptions, bulks, subscribe_good, tasks_for
from tamis.spark.dead_letters.letters import SCHEMA, Letter, cut, shown, valid

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ARROW = pa.schema(
    [
        ("source", pa.string()), ("row", pa.int64()), ("id", pa.string()), ("reason", pa.string()),
        ("line", pa.int32()), ("column", pa.int32()), ("value", pa.string()),
    ]
)  # fmt: skip


def bad_filters(subscriptions: Subscriptions, meaning: Meaning) -> "DataFrame":
    """Letters about subscriptions."""
    spread = subscriptions.spread(tasks_for(subscriptions.size))
    return spread.mapInArrow(FilterCheck(meaning), SCHEMA)


def bad_events(events: Events, meaning: Meaning, asked: Iterable[str]) -> "DataFrame":
    """Letters about events."""
    names = set(asked)
    check = EventCheck(meaning, events.layout(names)._replace(kept=("row",)))
    return events.numbered(names).mapInArrow(check, SCHEMA)


@dataclass(frozen=True)
class FilterCheck:
    """The function of `mapInArrow` that finds bad subscriptions."""

    meaning: Meaning

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for ids, filters, rows in bulks(batches):
            matcher = self.meaning.matcher()
            yield batch_of(subscribe_good(matcher, ids, filters, rows, self.meaning.skipped))


@dataclass(frozen=True)
class EventCheck:
    """The function of `mapInArrow` that finds bad events; what is kept of them is their number."""

    meaning: Meaning
    layout: Layout

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        semantics = Semantics(self.meaning.semantics, self.meaning.schema, self.meaning.defaults)
        for part, table in parts_of(batches, self.layout):
            faults = faults_before(table, self.layout)
            left = without(part, faults) if faults else part
            rows = [row for row in range(part.events.num_rows) if row not in faults]
            more = faults_of(left.events, semantics)
            faults |= {rows[row]: reason for row, reason in more.items()}
            letters = []
            for row, reason in sorted(faults.items()):
                found = shown(part.ids[row])
                value = {name: shown(part.events[name][row]) for name in self.layout.names}
                place = part.kept["row"][row].as_py()
                named = None if found is None else valid(str(found))
                letters.append(Letter("events", place, named, reason, value=cut(value)))
            yield batch_of(letters)


def batch_of(letters: list[Letter]) -> pa.RecordBatch:
    """Letters for Spark."""
    return pa.RecordBatch.from_pylist([letter._asdict() for letter in letters], _ARROW)
