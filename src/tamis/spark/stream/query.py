"""`match_stream`: a stream of events with subscriptions that change, on the driver.

Spark calls us once for each micro-batch. The version of the subscriptions is pinned to the number
of the micro-batch before anything is matched (see `versions`), and its output is one folder that
appears as a whole (see `file_sink`). So a micro-batch that is repeated, whatever happened, gives
the same matches in the same place.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.dead_letters import BAD_ROW_TREATMENTS, BadLimit
from tamis.errors import OptionError, TamisError, choose, did_you_mean
from tamis.matcher import OUTPUTS
from tamis.matcher_settings import MatcherSettings
from tamis.schema import Schema, as_schema
from tamis.spark.batch.match_counts import (
    CountedMatches,
    MatchCounts,
    counted_afterwards,
    counted_matches,
    written_afterwards,
    written_matches,
)
from tamis.spark.batch.worker import MatchTask
from tamis.spark.dead_letters.job import bad_events, first_letters, letters_frame
from tamis.spark.files.atomic_folders import DEAD_LETTERS, MATCHES
from tamis.spark.files.folders import Folder
from tamis.spark.session.failures import spark_errors
from tamis.spark.session.given_session import prepare
from tamis.spark.shards.budget import BUDGET, Sharding
from tamis.spark.shards.job import ShardedRules
from tamis.spark.stream.changelogs import changelog_of
from tamis.spark.stream.event_columns import StreamEvents
from tamis.spark.stream.file_sink import BatchFolder, FileSink
from tamis.spark.stream.pinned_versions import PinnedVersion, StreamSubscriptions
from tamis.spark.stream.query_start import start_query
from tamis.spark.stream.versions import Versions, log_of
from tamis.spark.tables.event_table import EventTable
from tamis.spark.tables.match_schema import spark_schema, with_sorted_lists

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

AVAILABLE_NOW = "available now"

Sink = Callable[["DataFrame", int], object]


def match_stream(  # noqa: PLR0913 - all but three by name
    events: "DataFrame", subscriptions: Any, out: "str | Path | Sink", *, checkpoint: str | Path,
    event_id: str = "id", semantics: str = "sql", output: str = "pairs",
    keep: Sequence[str] = (), schema: Schema | Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None, on_bad: str = "keep", profile: Any = None,
    trigger: str | None = None, format: str = "parquet",
    version: str = "version", event_time: str | None = None, name: str | None = None,
    budget: int | str = BUDGET, mode: str = "auto", shards: int | None = None,
    max_bad: BadLimit | str | int | None = None,
) -> "StreamingQuery":  # fmt: skip
    """Match a stream of events with subscriptions that change meanwhile; returns the running query.

    `events` is a streaming DataFrame. `subscriptions` is the folder of a changelog, to which files
    of changes are moved, ``table:NAME`` for a table of changes numbered by the column `version`, or
    a DataFrame of subscriptions that stay as they are. A change is a row of ``id``, ``filter`` and
    perhaps ``op`` (``upsert``, ``delete``; a row without both ``op`` and ``filter`` removes). It is
    effective from the next micro-batch on, and a micro-batch that is repeated has the same
    subscriptions as before.

    `out` is a folder: ``matches/batch=N`` has the matches of a micro-batch, and
    ``dead_letters/batch=N`` the rows that could not be used, if there were any. Files are complete,
    and every match is there once, whenever and however often the query died and was started again
    with the same `checkpoint`. `out` may also be a function that is called with the matches of a
    micro-batch and its number; it must be possible to call it again for the same micro-batch.

    `trigger` is None to go on as fast as possible, ``"available now"`` to stop when all events that
    are there are matched, or an interval such as ``"10 seconds"``. How many events a micro-batch
    takes at most is a setting of the source (``maxFilesPerTrigger``, ``maxOffsetsPerTrigger``).
    `event_time` names a column of times by which `StreamMetrics` says how old events are when they
    are matched. With `max_bad`, such as ``"1%"`` or 20, the query fails at a micro-batch more of
    whose events cannot be used, and nothing of it is written (a function `out` was called by then).
    In filters, ``now()`` is when a micro-batch was first begun, also if it is repeated.
    The other settings are those of `MatchJob`.
    """
    choose("output", output, OUTPUTS)
    limit = BadLimit.of(max_bad)
    choose("treatment of bad rows", on_bad, BAD_ROW_TREATMENTS)
    if not getattr(events, "isStreaming", False):
        raise OptionError(
            "events must be a streaming DataFrame; match takes one that does not stream"
        )
    prepare(events.sparkSession)
    if event_time is not None and event_time not in events.columns:
        raise OptionError(
            f"event_time: the events have no column {event_time!r}; "
            f"{did_you_mean(event_time, events.columns)}"
        )
    versions = log_of(checkpoint)
    sink = out if callable(out) else FileSink(_absolute(out), format)
    if isinstance(sink, FileSink):
        sink.check(versions.owner(), is_begun=has_begun(checkpoint))
    given = None if schema is None else as_schema(schema)
    found = StreamEvents(events, event_id, keep, given, defaults, versions)
    settings = MatcherSettings(
        found.schema.whole, semantics, defaults, found.table.skipped, profile
    )
    versioned = StreamSubscriptions(
        settings, found.schema, changelog_of(subscriptions, version), versions.root,
        Sharding.checked(mode, budget, shards),
        # An empty list of ids is written with a type, which all later ones have as well.
        first_ids="string" if output == "lists" else None,
    )  # fmt: skip
    owner = versions.open()
    if isinstance(sink, FileSink):
        sink.claim(owner)
    found.note(versions)
    options = BatchOptions(event_id, output, tuple(keep), on_bad, event_time, limit)
    writer = events.writeStream.foreachBatch(MicroBatchJob(versioned, sink, options).run)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    if trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return start_query(writer)


def has_begun(checkpoint: str | Path) -> bool:
    """Whether a query with the checkpoint has seen events."""
    folder = Folder(checkpoint)
    return folder.exists("commits") and bool(folder.names("commits"))


@dataclass(frozen=True)
class BatchOptions:
    """How events are read and matched."""

    event_id: str
    output: str
    keep: tuple[str, ...]
    on_bad: str
    event_time: str | None
    max_bad: BadLimit | None = None


@dataclass(frozen=True)
class MicroBatchJob:
    """The function that Spark calls with each micro-batch."""

    subscriptions: StreamSubscriptions
    sink: "FileSink | Sink"
    options: BatchOptions

    def run(self, frame: "DataFrame", batch: int) -> None:
        """Match a micro-batch, write its matches, and commit it.

        Spark searches the text of an error with a regular expression that overflows its stack if
        the text is long, so errors that are raised here are short.
        """
        with spark_errors():
            self._run(frame, batch)

    def _run(self, frame: "DataFrame", batch: int) -> None:
        begin = time.time()
        versions = Versions(self.subscriptions.checkpoint)
        pinned = self.subscriptions.pin(frame.sparkSession, batch)
        if isinstance(self.sink, FileSink) and self.sink.has(batch):
            return  # all of it was written before the query died
        in_shards = isinstance(pinned.rules, ShardedRules)
        kept = frame.persist() if in_shards else None  # shards read the events several times
        try:
            counts = self._write(frame, batch, pinned)
        finally:
            if kept is not None:
                kept.unpersist()
        versions.commit(
            batch,
            {
                **counts._asdict(), "batch": batch, "version": pinned.version,
                "subscriptions": pinned.subscriptions, "bad_subscriptions": pinned.bad,
                "seconds": time.time() - begin, "at": time.time(),
            },
        )  # fmt: skip

    def _write(self, frame: "DataFrame", batch: int, pinned: PinnedVersion) -> MatchCounts:
        of, settings = self.options, pinned.settings
        events = EventTable(frame, of.event_id, settings.schema, of.keep, pinned.moment)
        if not isinstance(self.sink, FileSink):
            matches = self._counted(events, pinned)
            self.sink(matches.frame, batch)
            counts = matches.counts()
            self._check_bad(counts, events, batch, pinned)
            return counts
        # The first subscription decides on the type of ids; before, no file must have another one.
        is_typed = pinned.id_type is not None or of.output == "counts"
        if is_typed and self.sink.is_written_by_workers:
            written = self.sink.folder(MATCHES, batch)
            counts = self._written(events, pinned, written)
        else:
            matches = self._counted(events, pinned)
            write = self.sink.write if is_typed else self.sink.write_nothing
            written = write(matches.frame, MATCHES, batch)
            counts = matches.counts()
        try:
            self._check_bad(counts, events, batch, pinned)
        except TamisError:
            written.discard()
            raise
        if counts.bad or pinned.letters:
            letters = letters_frame(frame.sparkSession, pinned.letters)
            letters = letters.unionByName(bad_events(events, settings, pinned.attributes))
            self.sink.write(letters, DEAD_LETTERS, batch).reveal()
        written.reveal()  # the last step: a folder of matches means that all is there
        return counts

    def _check_bad(
        self, counts: MatchCounts, events: EventTable, batch: int, pinned: PinnedVersion
    ) -> None:
        """Fail if more events than allowed cannot be used."""
        limit = self.options.max_bad
        if limit is not None and limit.is_exceeded(counts.bad, counts.events):
            bad = bad_events(events, pinned.settings, pinned.attributes)
            what = f"micro-batch {batch}, events"
            limit.check(what, counts.bad, counts.events, first_letters(bad, 1))  # see `run`

    def _written(
        self, events: EventTable, pinned: PinnedVersion, folder: BatchFolder
    ) -> MatchCounts:
        """Let workers write the matches to a folder."""
        of, attributes = self.options, pinned.attributes
        if isinstance(pinned.rules, ShardedRules):
            found, bad = self._sharded(events, pinned, pinned.rules)
            return written_afterwards(
                found, of.output, events, bad, folder.place, folder.name, of.event_time
            )
        task = MatchTask(pinned.rules, events.layout(attributes), of.output, of.on_bad)
        schema = spark_schema(events, of.output, pinned.id_type or "string")
        return written_matches(
            events, attributes, task, schema, folder.place, folder.name, of.event_time
        )

    def _counted(self, events: EventTable, pinned: PinnedVersion) -> CountedMatches:
        """The matches as a frame."""
        of = self.options
        if isinstance(pinned.rules, ShardedRules):
            found, bad = self._sharded(events, pinned, pinned.rules)
            return counted_afterwards(found, of.output, events, bad, of.event_time)
        return counted_matches(
            events, pinned.attributes, pinned.rules, of.output, of.on_bad,
            pinned.id_type or "string", of.event_time,
        )  # fmt: skip

    def _sharded(
        self, events: EventTable, pinned: PinnedVersion, rules: ShardedRules
    ) -> "tuple[DataFrame, DataFrame]":
        """The matches, and the events that cannot be used."""
        of = self.options
        found = rules.matches(events, pinned.attributes, of.output, of.on_bad)
        bad = bad_events(events, pinned.settings, pinned.attributes)
        return with_sorted_lists(found, of.output), bad


def _absolute(out: str | Path) -> str:
    return str(out) if "://" in str(out) else str(Path(out).absolute())
