"""How a stream goes: events and matches per second, the version, and how far behind it is."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tamis.errors import counted
from tamis.spark.stream.versions import log_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


class BatchMetrics(NamedTuple):
    """The numbers of one micro-batch."""

    batch: int
    version: int  # of the subscriptions
    subscriptions: int
    events: int
    matches: int
    bad: int  # events that could not be used
    bad_subscriptions: int  # changes that could not be used
    seconds: float
    events_per_second: float
    matches_per_second: float
    behind: int | None  # events that the query has not read yet, if the source knows how many
    lag: float | None  # seconds from the newest event of the batch until its matches were written

    def __str__(self) -> str:
        text = (
            f"batch {self.batch}: {counted(self.events, 'event')}, "
            f"{counted(self.matches, 'match', 'matches')} in {self.seconds:.1f} s "
            f"({self.events_per_second:,.0f} events/s, "
            f"{self.matches_per_second:,.0f} matches/s), version {self.version}"
        )
        text += "" if self.subscriptions else ", no subscriptions"
        text += f", {counted(self.bad, 'bad event')}" if self.bad else ""
        bad = self.bad_subscriptions
        text += f", {counted(bad, 'bad subscription')}" if bad else ""
        text += f", {self.behind:,} behind" if self.behind else ""
        return text + (f", lag {self.lag:.1f} s" if self.lag is not None else "")


class StreamMetrics(StreamingQueryListener):
    """Calls `report` with the metrics of each micro-batch of the query with a checkpoint.

    >>> spark.streams.addListener(StreamMetrics(checkpoint, print))  # doctest: +SKIP
    """

    def __init__(
        self, checkpoint: str | Path, report: Callable[[BatchMetrics], object] | None = None
    ) -> None:
        self._log = log_of(checkpoint)
        self._report = report
        self.batches: list[BatchMetrics] = []
        self._noting = threading.Lock()  # Spark calls us from another thread

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to say yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Report a micro-batch that is done."""
        sources = [json.loads(source.json) for source in event.progress.sources]
        self._note(event.progress.batchId, sources)

    def catch_up(self, query: "StreamingQuery") -> None:
        """Report what Spark has not reported yet of a query that has ended; listeners hear late."""
        for progress in query.recentProgress:
            self._note(progress["batchId"], [dict(source) for source in progress["sources"]])

    def _note(self, batch: int, sources: list[dict[str, Any]]) -> None:
        with self._noting:
            facts = self._log.committed(batch)
            if facts is None or any(one.batch == batch for one in self.batches):
                return  # of another query, reported before, or a trigger without events
            found = metrics_of(facts, sources)
            self.batches.append(found)
            if self._report is not None:
                self._report(found)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to say: no events have come."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to add: the query itself has the error."""


def metrics_of(facts: dict[str, Any], sources: list[dict[str, Any]]) -> BatchMetrics:
    """The metrics of a micro-batch, from its commit and from the progress of its sources."""
    seconds = max(float(facts["seconds"]), 1e-6)
    newest = facts.get("newest")
    behind = [found for source in sources if (found := behind_of(source)) is not None]
    return BatchMetrics(
        facts["batch"], facts["version"], facts["subscriptions"], facts["events"],
        facts["matches"], facts["bad"], facts["bad_subscriptions"], seconds,
        facts["events"] / seconds, facts["matches"] / seconds, sum(behind) if behind else None,
        None if newest is None else max(0.0, facts["at"] - newest),
    )  # fmt: skip


def behind_of(source: dict[str, Any]) -> int | None:
    """How many events of a source are not read yet, None if its offsets do not count events."""
    latest, end = _numbers(source.get("latestOffset")), _numbers(source.get("endOffset"))
    if latest is None or end is None or latest.keys() != end.keys() or not latest:
        return None
    return max(0, sum(latest.values()) - sum(end.values()))


def _numbers(offset: Any) -> dict[str, int] | None:
    """The counters of an offset: ``{"row": 7}``, or Kafka's ``{"topic": {"0": 7}}``."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    if not isinstance(offset, dict):
        return None
    found: dict[str, int] = {}
    for name, value in offset.items():
        if type(value) is int:
            found[name] = value
        elif isinstance(value, dict) and all(type(one) is int for one in value.values()):
            found |= {f"{name}/{part}": one for part, one in value.items()}
        else:
            return None
    return found
