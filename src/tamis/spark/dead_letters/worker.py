"""Finding bad rows, in the workers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tamis.dead_letters import DeadLetter, filter_letter, short_text, valid
from tamis.errors import BulkError
from tamis.events.bad_events import faults_of, python_value
from tamis.matcher import Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.spark.tables.arrow_batches import subscription_rows
from tamis.spark.tables.event_chunks import EventLayout, chunks_of, unreadable_rows

_ARROW = pa.schema(
    [
        ("source", pa.string()), ("row", pa.int64()), ("id", pa.string()), ("reason", pa.string()),
        ("line", pa.int32()), ("column", pa.int32()), ("value", pa.string()),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class FilterCheckTask:
    """The function of `mapInArrow` that finds bad subscriptions."""

    settings: MatcherSettings

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for ids, filters, rows in subscription_rows(batches):
            matcher = self.settings.matcher()
            yield batch_of(subscribe_good(matcher, ids, filters, rows, self.settings.skipped))


@dataclass(frozen=True)
class EventCheckTask:
    """The function of `mapInArrow` that finds bad events; it gets their numbers as kept columns."""

    settings: MatcherSettings
    layout: EventLayout

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        meaning = self.settings.meaning()
        for chunk, table in chunks_of(batches, self.layout):
            bad = unreadable_rows(table, self.layout)
            left = chunk.without(bad) if bad else chunk
            rows = [row for row in range(chunk.events.num_rows) if row not in bad]
            more = faults_of(left.events, meaning)
            bad |= {rows[row]: reason for row, reason in more.items()}
            letters = []
            for row, reason in sorted(bad.items()):
                found = python_value(chunk.ids[row])
                value = {name: python_value(chunk.events[name][row]) for name in self.layout.names}
                number = chunk.kept["row"][row].as_py()
                named = None if found is None else valid(str(found))
                letters.append(DeadLetter("events", number, named, reason, value=short_text(value)))
            yield batch_of(letters)


def batch_of(letters: list[DeadLetter]) -> pa.RecordBatch:
    """Letters for Spark."""
    return pa.RecordBatch.from_pylist([letter._asdict() for letter in letters], _ARROW)


def subscribe_good(
    matcher: Matcher, ids: list[Any], filters: list[Any], rows: list[int],
    skipped: Mapping[str, str] | None,
) -> list[DeadLetter]:  # fmt: skip
    """Add all good subscriptions to a matcher; returns letters about the others."""
    letters: list[DeadLetter] = []
    pairs = list(zip(ids, filters, strict=True))
    positions = rows
    while pairs:
        try:
            matcher.subscribe_many(pairs)
            break
        except BulkError as error:
            bad = {place: problem for place, _, problem in error.failures}
            letters += [
                explained(filter_letter(positions[place], *pairs[place], problem), skipped)
                for place, problem in bad.items()
            ]
            positions = [row for place, row in enumerate(positions) if place not in bad]
            pairs = [pair for place, pair in enumerate(pairs) if place not in bad]
    return letters


def explained(letter: DeadLetter, skipped: Mapping[str, str] | None) -> DeadLetter:
    """The letter, with a better reason if its unknown attribute is a column of an unusable type."""
    if letter.reason.startswith("unknown attribute") and skipped:
        path = letter.reason.split("'")[1] + "."
        name = next((name for name in skipped if path.startswith(name + ".")), None)
        if name is not None:
            reason = f"column {name} has the type {skipped[name]}, which no filter can use"
            where = letter.reason[letter.reason.index(" (line") :]
            return letter._replace(reason=reason + where)
    return letter
