"""How many events, matches and bad events there were, counted on the driver by Spark."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tamis.matcher import Matcher
from tamis.spark.batch.worker import BAD, MatchTask
from tamis.spark.parquet.job import write_matches
from tamis.spark.parquet.worker import plain_matches
from tamis.spark.tables.event_table import EventTable, column_at
from tamis.spark.tables.match_schema import matches_per_row, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


class MatchCounts(NamedTuple):
    """The numbers of a job."""

    events: int
    matches: int  # pairs; the sum of the counts, or of the lengths of the lists
    bad: int  # events
    newest: float | None = None  # the time of the newest event, in seconds of the epoch


class CountedMatches(NamedTuple):
    """Matches that are counted while they are written."""

    frame: "DataFrame"
    counts: Callable[[], MatchCounts]  # to be called after the frame was written


def counted_matches(
    events: EventTable, attributes: set[str], rules: Callable[[], Matcher], output: str,
    on_bad: str, id_type: str, event_time: str | None = None,
) -> CountedMatches:  # fmt: skip
    """The matches of events with rules that every executor has, counted in the same pass."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen, found = Observation(), Observation()
    observed = events.frame.observe(
        seen, f.count(f.lit(1)).alias("events"), newest_of(event_time).alias("newest")
    )
    projected = events.like(observed).project(attributes)
    task = MatchTask(rules, events.layout(attributes), output, on_bad, tag=id_type)
    tagged = projected.mapInArrow(task, spark_schema(events, output, id_type).add(BAD, "boolean"))
    number = f.sum(f.when(~f.col(BAD), matches_per_row(output)))
    counted = tagged.observe(found, number.alias("matches"), f.count_if(BAD).alias("bad"))

    def read() -> MatchCounts:
        moment = seen.get["newest"]
        return MatchCounts(
            seen.get["events"], found.get["matches"] or 0, found.get["bad"] or 0,
            None if moment is None else moment / 1e6,
        )  # fmt: skip

    return CountedMatches(counted.where(~f.col(BAD)).drop(BAD), read)


def written_matches(
    events: EventTable, attributes: set[str], task: MatchTask, schema: "StructType", place: str,
    name: str, event_time: str | None = None,
) -> MatchCounts:  # fmt: skip
    """Let workers match, count, and write the matches to the folder `name` of a place.

    `schema` is that of the matches; its first column names the ids of events.
    """
    from pyspark.sql import Observation

    seen, observed = Observation(), events
    if event_time is not None:
        times = newest_of(event_time).alias("newest")
        observed = events.like(events.frame.observe(seen, times))
    projected = observed.project(attributes)
    written = write_matches(projected, task.matches, task.output, schema, place, name)
    moment = None if event_time is None else seen.get["newest"]
    newest = None if moment is None else moment / 1e6
    return MatchCounts(written.events, written.matches, written.bad, newest)


def newest_of(event_time: str | None) -> "Column":
    """The time of the newest event, in microseconds; null if no column has times."""
    from pyspark.sql import functions as f

    if event_time is None:
        return f.max(f.lit(None).cast("bigint"))
    return f.max(f.unix_micros(column_at((event_time,)).cast("timestamp")))


def counted_afterwards(
    matches: "DataFrame", output: str, events: EventTable, bad: "DataFrame",
    event_time: str | None = None,
) -> CountedMatches:  # fmt: skip
    """Matches in shards: events and bad events are counted in further passes."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    found = Observation()
    observed = matches.observe(found, f.sum(matches_per_row(output)).alias("matches"))

    def read() -> MatchCounts:
        return _counts(events, found.get["matches"] or 0, bad, event_time)

    return CountedMatches(observed, read)


def written_afterwards(
    matches: "DataFrame", output: str, events: EventTable, bad: "DataFrame", place: str, name: str,
    event_time: str | None = None,
) -> MatchCounts:  # fmt: skip
    """Let workers write matches in shards; events are counted as by `counted_afterwards`."""
    written = write_matches(matches, plain_matches, output, matches.schema, place, name)
    return _counts(events, written.matches, bad, event_time)


def _counts(
    events: EventTable, matches: int, bad: "DataFrame", event_time: str | None
) -> MatchCounts:
    from pyspark.sql import functions as f

    number, newest = events.frame.agg(f.count(f.lit(1)), newest_of(event_time)).collect()[0]
    return MatchCounts(number, matches, bad.count(), None if newest is None else newest / 1e6)
