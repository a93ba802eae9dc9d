"""Matching the events of a task with compiled subscriptions, in the workers."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import EventError
from tamis.events.bad_events import faults_of
from tamis.matcher import Matcher
from tamis.spark.tables.event_chunks import (
    EventChunk,
    EventLayout,
    chunks_of,
    refuse,
    unreadable_rows,
)
from tamis.spark.tables.match_batches import empty_rows, match_tables, spark_batches

BAD = "tamis_bad"  # the column of a tag


class MatchedChunk(NamedTuple):
    """Some events, how many of them could not be used, and the matches of the others."""

    chunk: EventChunk
    bad: int
    tables: Iterator[pa.Table]

    @property
    def events(self) -> int:
        """How many events there are."""
        return int(self.chunk.events.num_rows)


@dataclass(frozen=True)
class MatchTask:
    """The function of `mapInArrow` that matches.

    With `tag`, the type of the ids of subscriptions, there is one more column, BAD. It is true in
    one row for each event that could not be used, in which everything else is null, so that the
    driver can count them. Without `tag` these events are left out.
    """

    rules: Callable[[], Matcher]  # opens the matcher in the worker: `SentRules`
    layout: EventLayout
    output: str
    on_bad: str  # keep or fail
    tag: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for found in self.matches(batches):
            for table in found.tables:
                for batch in spark_batches(table):
                    yield batch if self.tag is None else _tagged(batch, is_bad=False)
            if found.bad and self.tag is not None:
                none = empty_rows(found.chunk, self.output, self.tag, found.bad)
                yield _tagged(none, is_bad=True)

    def matches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[MatchedChunk]:
        """The matches of the events, chunk by chunk."""
        matcher: Matcher | None = None
        for chunk, table in chunks_of(batches, self.layout):
            matcher = matcher or self.rules()
            good, bad = chunk, 0
            faults = unreadable_rows(table, self.layout)
            if faults:
                refuse(faults, chunk, self.on_bad)
                good, bad = chunk.without(faults), len(faults)
            try:
                found = match_tables(matcher, good, self.output)
                first = next(found, None)
            except EventError:
                faults = faults_of(good.events, matcher.meaning)
                if not faults:
                    raise
                refuse(faults, good, self.on_bad)
                found = match_tables(matcher, good.without(faults), self.output)
                first, bad = next(found, None), bad + len(faults)
            yield MatchedChunk(chunk, bad, chain(() if first is None else (first,), found))


def _tagged(batch: pa.RecordBatch, *, is_bad: bool) -> pa.RecordBatch:
    return batch.append_column(BAD, pa.array(np.full(batch.num_rows, is_bad)))
