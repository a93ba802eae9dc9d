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

from tamis.errors import OptionError, choose, did_you_mean
from tamis.matcher import OUTPUTS
from tamis.matcher_settings import MatcherSettings
from tamis.schema import Schema, as_schema
from tamis.spark.batch.match_counts import MatchCounts, counted_matches
from tamis.spark.dead_letters.job import bad_events, letters_frame
from tamis.spark.files.atomic_folders import DEAD_LETTERS, MATCHES
from tamis.spark.files.folders import Folder
from tamis.spark.session.failures import spark_errors
from tamis.spark.stream.changelogs import changelog_of
from tamis.spark.stream.file_sink import FileSink
from tamis.spark.stream.pinned_versions import PinnedVersion, StreamSubscriptions
from tamis.spark.stream.versions import Versions
from tamis.spark.tables.event_table import EventTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

ON_BAD = ("keep", "fail")
AVAILABLE_NOW = "available now"

Sink = Callable[["DataFrame", int], object]


def match_stream(  # noqa: PLR0913 - all but three by name
    events: "DataFrame", subscriptions: Any, out: "str | Path | Sink", *, checkpoint: str | Path,
    event_id: str = "id", semantics: str = "sql", output: str = "pairs",
    keep: Sequence[str] = (), schema: Schema | Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None, on_bad: str = "keep", profile: Any = None,
    trigger: str | None = None, format: str = "parquet",  # noqa: A002 - Spark's name
    version: str = "version", event_time: str | None = None, name: str | None = None,
) -> "StreamingQuery":  # fmt: skip
    """Match a stream of events with subscriptions that change meanwhile; the running query.

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
    are matched. The other settings are those of `MatchJob`.
    """
    choose("output", output, OUTPUTS)
    choose("treatment of bad rows", on_bad, ON_BAD)
    if not getattr(events, "isStreaming", False):
        raise OptionError(
            "events must be a streaming DataFrame; match takes one that does not stream"
        )
    given = None if schema is None else as_schema(schema)
    found = EventTable(events, event_id, given, keep)
    if event_time is not None and event_time not in events.columns:
        raise OptionError(
            f"event_time: the events have no column {event_time!r}; "
            f"{did_you_mean(event_time, events.columns)}"
        )
    settings = MatcherSettings(found.schema, semantics, defaults, found.skipped, profile)
    ours = f"{str(checkpoint).rstrip('/')}/tamis"
    log = changelog_of(subscriptions, version)
    sink = out if callable(out) else FileSink(_absolute(out), format)
    if isinstance(sink, FileSink):
        sink.check(Versions(ours).owner(), is_begun=has_begun(checkpoint))
        sink.claim(Versions(ours).open())
    else:
        Versions(ours).open()
    versioned = StreamSubscriptions(settings, log, ours)
    options = BatchOptions(event_id, output, tuple(keep), on_bad, event_time)
    writer = events.writeStream.foreachBatch(MicroBatchJob(versioned, sink, options).run)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    if trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()


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
        counts = self._write(frame, batch, pinned)
        versions.commit(
            batch,
            {
                **counts._asdict(), "batch": batch, "version": pinned.version,
                "bad_subscriptions": pinned.bad, "seconds": time.time() - begin, "at": time.time(),
            },
        )  # fmt: skip

    def _write(self, frame: "DataFrame", batch: int, pinned: PinnedVersion) -> MatchCounts:
        of, settings = self.options, self.subscriptions.settings
        events = EventTable(frame, of.event_id, settings.schema, of.keep)
        matches = counted_matches(
            events, pinned.attributes, pinned.rules, of.output, of.on_bad, pinned.id_type,
            of.event_time,
        )  # fmt: skip
        if not isinstance(self.sink, FileSink):
            self.sink(matches.frame, batch)
            return matches.counts()
        written = self.sink.write(matches.frame, MATCHES, batch)
        counts = matches.counts()
        if counts.bad or pinned.letters:
            letters = letters_frame(frame.sparkSession, pinned.letters)
            letters = letters.unionByName(bad_events(events, settings, pinned.attributes))
            self.sink.write(letters, DEAD_LETTERS, batch).reveal()
        written.reveal()  # the last step: a folder of matches means that all is there
        return counts


def _absolute(out: str | Path) -> str:
    return str(out) if "://" in str(out) else str(Path(out).absolute())
