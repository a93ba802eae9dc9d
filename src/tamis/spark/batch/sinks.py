"""Matches and dead letters into files, and what is counted on the way."""

import json
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import FileError
from tamis.matcher import Matcher
from tamis.spark.batch.event_frames import Events
from tamis.spark.batch.worker import BAD, Matching
from tamis.spark.dead_letters.letters import SCHEMA, Letter
from tamis.spark.files.folders import Folder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

MATCHES, DEAD_LETTERS = "matches", "dead_letters"
ASIDE = "_aside"  # for what is not complete
OWNER = "_tamis.json"  # says which checkpoint writes to a folder


class Counted(NamedTuple):
    """What a job has seen."""

    events: int
    matches: int  # of pairs; the sum of counts, or of the lengths of lists
    bad: int
    newest: float | None = None  # the time of the newest event, in seconds of the epoch


class Matched(NamedTuple):
    """Matches that are counted while they are written."""

    frame: "DataFrame"
    counted: Callable[[], Counted]  # after the frame was written


def counting(
    events: Events, asked: set[str], rules: Callable[[], Matcher], output: str, on_bad: str,
    ids: str, event_time: str | None = None,
) -> Matched:  # fmt: skip
    """The matches of events, with the numbers of events, matches and bad events."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen, found = Observation(), Observation()
    newest = f.lit(None).cast("bigint")
    if event_time is not None:
        moment = f.col("`" + event_time.replace("`", "``") + "`").cast("timestamp")
        newest = f.max(f.unix_micros(moment))
    observed = events.frame.observe(seen, f.count(f.lit(1)).alias("events"), newest.alias("newest"))
    projected = events.of(observed).project(asked)
    task = Matching(rules, events.layout(asked), output, on_bad, tag=ids)
    schema = output_schema(events, output, ids).add(BAD, "boolean")
    tagged = projected.mapInArrow(task, schema)
    number = f.sum(f.when(~f.col(BAD), number_of(output)))
    counted = tagged.observe(found, number.alias("matches"), f.count_if(BAD).alias("bad"))

    def read() -> Counted:
        moment = seen.get["newest"]
        return Counted(
            seen.get["events"], found.get["matches"] or 0, found.get["bad"] or 0,
            None if moment is None else moment / 1e6,
        )  # fmt: skip

    return Matched(finished(counted.where(~f.col(BAD)).drop(BAD), output), read)


def counting_later(matches: "DataFrame", output: str, events: Events, bad: "DataFrame") -> Matched:
    """Matches in shards, whose events were looked at before: the others are passes of their own."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    found = Observation()
    observed = matches.observe(found, f.sum(number_of(output)).alias("matches"))

    def read() -> Counted:
        return Counted(events.frame.count(), found.get["matches"] or 0, bad.count())

    return Matched(observed, read)


def number_of(output: str) -> "Column":
    """How many matches a row of matches stands for."""
    from pyspark.sql import functions as f

    if output == "pairs":
        return f.lit(1)
    return f.col("count") if output == "counts" else f.size("subscriptions")


def output_schema(events: Events, output: str, ids: str) -> "StructType":
    """The columns of matches, for Spark; `ids` is the type of the ids of subscriptions."""
    from pyspark.sql.types import ArrayType, LongType, StringType, StructType

    kind = StringType() if ids == "string" else LongType()
    schema = StructType().add("event_id", events.id_type)
    if output == "pairs":
        schema.add("subscription", kind)
    elif output == "lists":
        schema.add("subscriptions", ArrayType(kind))
    else:
        schema.add("count", LongType())
    for name, of in events.kept_fields():
        schema.add(name, of)
    return schema


def finished(matches: "DataFrame", output: str) -> "DataFrame":
    """Lists in ascending order, however the subscriptions were compiled."""
    if output != "lists":
        return matches
    from pyspark.sql import functions as f

    return matches.withColumn("subscriptions", f.array_sort("subscriptions"))


class Written(NamedTuple):
    """A micro-batch that is written, but not seen yet."""

    aside: Path | None  # None if Spark has written it to its place
    target: Path | None

    def reveal(self) -> None:
        """Put it in its place, at once, and remove what attempts before have left."""
        if self.aside is None or self.target is None:
            return
        if self.target.exists():
            shutil.rmtree(self.target)
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.aside.rename(self.target)
        for left in self.aside.parent.glob(f"{self.aside.stem}.*"):
            shutil.rmtree(left, ignore_errors=True)


@dataclass(frozen=True)
class FileSink:
    """A folder with a folder of files for each micro-batch: ``matches/batch=17``.

    On a local file system a micro-batch appears as a whole, when all of it is written. Elsewhere
    Spark writes to the place itself, and its mark ``_SUCCESS`` says that a micro-batch is whole.
    """

    out: str
    format: str = "parquet"

    def check(self, owner: str | None, *, is_begun: bool) -> None:
        """Refuse a folder in which matches would be missing, or mixed with others.

        `owner` is the name of the checkpoint, None if it is new; `is_begun`, whether it has seen
        events.
        """
        folder = Folder(self.out)
        if folder.is_file(""):
            raise FileError(f"{self.out} exists and is no folder")
        if folder.exists(OWNER):
            if owner is None or json.loads(folder.read(OWNER)).get("checkpoint") != owner:
                raise FileError(
                    f"{self.out} has the matches of another checkpoint; name another folder, or "
                    "the checkpoint that belongs to it"
                )
        elif folder.exists("") and folder.entries():
            raise FileError(f"{self.out} exists and is not empty; name another folder")
        elif is_begun:
            raise FileError(
                f"events were matched before with this checkpoint, but {self.out} has no matches "
                "of them; name the folder that has, or remove the checkpoint to begin anew"
            )

    def claim(self, owner: str) -> None:
        """Note whose folder it is: the batches of another checkpoint have the same numbers."""
        folder = Folder(self.out)
        folder.make("")
        folder.write(OWNER, json.dumps({"checkpoint": owner}).encode())

    def has(self, batch: int) -> bool:
        """Whether a micro-batch is there as a whole."""
        folder = Folder(f"{self.out}/{MATCHES}")
        return folder.is_local and folder.exists(f"batch={batch}")

    def write(self, frame: "DataFrame", kind: str, batch: int) -> "Written":
        """Write a micro-batch aside; `Written.reveal` puts it in its place.

        Aside is another place for each attempt: executors of one that died may still be writing.
        """
        folder = Folder(f"{self.out}/{kind}")
        if not folder.is_local:
            self._save(frame, kind, f"{self.out}/{kind}/batch={batch}")
            return Written(None, None)
        aside = folder.local.parent / ASIDE / f"{kind}-{batch}.{uuid.uuid4().hex}"
        self._save(frame, kind, f"file:{aside}")  # Hadoop takes the rest as it is, unescaped
        return Written(aside, folder.local / f"batch={batch}")

    def _save(self, frame: "DataFrame", kind: str, path: str) -> None:
        # Letters are for people, and lists cannot be written as CSV.
        chosen = "json" if kind == DEAD_LETTERS else self.format
        frame.write.format(chosen).mode("overwrite").save(path)


def letters_frame(spark: Any, letters: tuple[Letter, ...]) -> "DataFrame":
    """Letters that the driver knows."""
    frame: DataFrame = spark.createDataFrame([tuple(letter) for letter in letters], SCHEMA)
    return frame
