"""Events of a stream with subscriptions that change: what `match_stream` does.

Spark calls us once for each micro-batch. The version of the subscriptions is pinned to the number
of the micro-batch before anything is matched (see `versions`), and its output is one folder that
appears as a whole (see `sinks`). So a micro-batch that is done again, after whatever happened,
gives the same matches in the same place.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import OptionError, choose, did_you_mean
from tamis.matcher import OUTPUTS
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics
from tamis.spark.batch.event_frames import Events
from tamis.spark.batch.sinks import (
    DEAD_LETTERS,
    MATCHES,
    Counted,
    FileSink,
    counting,
    letters_frame,
)
from tamis.spark.compile.compilation import Meaning
from tamis.spark.dead_letters.checks import bad_events
from tamis.spark.files.folders import Folder
from tamis.spark.session.failures import spark_errors
from tamis.spark.stream.changelogs import changelog_of
from tamis.spark.stream.pinned_versions import LiveRules, Pinned
from tamis.spark.stream.versions import Versions

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
    effective from the next micro-batch on, and a micro-batch that is done again has the
    subscriptions that it had.

    `out` is a folder: ``matches/batch=N`` has the matches of a micro-batch, and
    ``dead_letters/batch=N`` the rows that could not be used, if there were any. Files are complete,
    and every match is there once, whenever and however often the query died and was started again
    with the same `checkpoint`. `out` may also be a function that is called with the matches of a
    micro-batch and its number; what it does must bear being done again.

    `trigger` is None to go on as fast as possible, ``"available now"`` to stop when all that is
    there was matched, or an interval such as ``"10 seconds"``. How much a micro-batch takes at most
    is a setting of the source (``maxFilesPerTrigger``, ``maxOffsetsPerTrigger``, ...).
    `event_time` names a column of times by which `StreamMetrics` says how old events are when they
    are matched. The other settings are those of `MatchJob`.
    """
    choose("output", output, OUTPUTS)
    choose("treatment of bad rows", on_bad, ON_BAD)
    if not getattr(events, "isStreaming", False):
        raise OptionError("events must be a streaming DataFrame; match takes one that is at rest")
    given = None if schema is None else as_schema(schema)
    found = Events(events, event_id, given, keep)
    if event_time is not None and event_time not in events.columns:
        raise OptionError(
            f"event_time: the events have no column {event_time!r}; "
            f"{did_you_mean(event_time, events.columns)}"
        )
    Semantics(semantics, found.schema, defaults)  # refuses bad ones now
    meaning = Meaning(found.schema, semantics, defaults, found.skipped, profile)
    ours = f"{str(checkpoint).rstrip('/')}/tamis"
    log = changelog_of(subscriptions, version)
    sink = out if callable(out) else FileSink(_absolute(out), format)
    if isinstance(sink, FileSink):
        sink.check(Versions(ours).owner(), is_begun=has_begun(checkpoint))
        sink.claim(Versions(ours).open())
    else:
        Versions(ours).open()
    rules = LiveRules(meaning, log, ours)
    settings = Settings(event_id, output, tuple(keep), on_bad, event_time)
    writer = events.writeStream.foreachBatch(BatchOf(rules, sink, settings).run)
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
class Settings:
    """What to do with each micro-batch."""

    event_id: str
    output: str
    keep: tuple[str, ...]
    on_bad: str
    event_time: str | None


@dataclass(frozen=True)
class BatchOf:
    """What is done with each micro-batch."""

    rules: LiveRules
    sink: "FileSink | Sink"
    settings: Settings

    def run(self, frame: "DataFrame", batch: int) -> None:
        """Match one, and write it down.

        Spark looks through the text of an error by a regular expression that overflows its stack
        if the text is long, so what is raised here is short.
        """
        with spark_errors():
            self._run(frame, batch)

    def _run(self, frame: "DataFrame", batch: int) -> None:
        begin = time.time()
        versions = Versions(self.rules.checkpoint)
        pinned = self.rules.pin(frame.sparkSession, batch)
        if isinstance(self.sink, FileSink) and self.sink.has(batch):
            return  # all of it was written before the query died
        counted = self._write(frame, batch, pinned)
        versions.commit(
            batch,
            {
                **counted._asdict(), "batch": batch, "version": pinned.version,
                "bad_subscriptions": pinned.bad, "seconds": time.time() - begin, "at": time.time(),
            },
        )  # fmt: skip

    def _write(self, frame: "DataFrame", batch: int, pinned: Pinned) -> Counted:
        of = self.settings
        schema = self.rules.meaning.schema
        events = Events(frame, of.event_id, schema, of.keep)
        matched = counting(
            events, pinned.asked, pinned.rules, of.output, of.on_bad, pinned.ids, of.event_time
        )
        if not isinstance(self.sink, FileSink):
            self.sink(matched.frame, batch)
            return matched.counted()
        written = self.sink.write(matched.frame, MATCHES, batch)
        counted = matched.counted()
        if counted.bad or pinned.letters:
            letters = letters_frame(frame.sparkSession, pinned.letters)
            letters = letters.unionByName(bad_events(events, self.rules.meaning, pinned.asked))
            self.sink.write(letters, DEAD_LETTERS, batch).reveal()
        written.reveal()  # the last step: where there are matches, all is there
        return counted


def _absolute(out: str | Path) -> str:
    return str(out) if "://" in str(out) else str(Path(out).absolute())
