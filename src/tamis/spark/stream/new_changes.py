"""Changes that no version has yet, on the driver: counted, and read or compiled by the workers."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tamis.dead_letters import DeadLetter
from tamis.matcher_settings import MatcherSettings
from tamis.spark.compile.job import join_files
from tamis.spark.compile.task_reports import REPORT, read_counts, read_texts, write_files
from tamis.spark.stream.changelogs import ChangelogNews, type_of_ids
from tamis.spark.stream.stream_schema import StreamSchema
from tamis.spark.stream.worker import (
    READ,
    CompileChangesTask,
    NamedColumnsTask,
    ReadChangesTask,
)
from tamis.spark.tables.arrow_batches import texts_of
from tamis.spark.tables.subscription_table import CompileSize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW = 5000  # changes that each worker makes on its own; more of them are compiled


class CompiledChanges(NamedTuple):
    """Changes that workers have compiled."""

    path: Path | None  # of the file with those that add a subscription, None if none does
    removed: tuple[Any, ...]  # ids that were removed at any time
    letters: tuple[DeadLetter, ...]  # about bad changes; the first ones
    bad: int  # changes


@dataclass(frozen=True)
class NewChanges:
    """Changes that no version has yet: id, filter, op, place."""

    frame: "DataFrame | None"
    few: pa.Table | None  # all of them in their order, unless they are many
    ids: str | None  # the type of their ids

    @classmethod
    def read(cls, news: ChangelogNews, ids: str | None) -> "NewChanges":
        """New changes with ids of a type; with that of their own if it is not known yet."""
        if news.changes is None:
            return cls(None, pa.table({"id": [], "filter": [], "op": []}), ids)
        ids = ids or type_of_ids(news)
        columns = (news.changes["id"].try_cast(ids).alias("id"), "filter", "op", "place")
        frame = news.changes.select(*columns)
        few = frame.orderBy("place").limit(FEW + 1).toArrow()
        return cls(frame, few if few.num_rows <= FEW else None, ids)

    def names(self, now: StreamSchema) -> set[str]:
        """The names of columns of the events that their filters test."""
        if self.few is not None:
            return now.named(texts_of(self.few["filter"]))
        if not now.columns or self.frame is None:
            return set()
        found = self.frame.select("filter").mapInArrow(NamedColumnsTask(now), "name string")
        return {row["name"] for row in found.distinct().collect()}

    def compiled(self, settings: MatcherSettings, folder: Path) -> CompiledChanges:
        """The changes, compiled by the executors into a file of a folder."""
        if self.frame is None:
            return CompiledChanges(None, (), (), 0)
        found = self._rows().mapInArrow(CompileChangesTask(settings), REPORT).toArrow()
        counts, letters = read_counts(found)
        removed = [one for text in read_texts(found, "removed") for one in json.loads(text)]
        parts = write_files(found, folder)
        del found
        path = join_files(parts, folder, settings) if parts else None
        return CompiledChanges(path, tuple(removed), tuple(letters), counts.bad)

    def texts(self, spark: "SparkSession", settings: MatcherSettings) -> "TextChanges":
        """What the changes come to, read by the executors; the frame is kept by them."""
        from pyspark import StorageLevel
        from pyspark.sql import functions as f

        if self.frame is None:
            none = spark.createDataFrame([], f"id {self.ids or 'string'}, filter string")
            return TextChanges(none, (), 0, none)
        task = ReadChangesTask(settings, self.ids or "string")
        found = self._rows().mapInArrow(task, READ.format(id_type=task.id_type))
        found = found.persist(StorageLevel.DISK_ONLY)
        said = found.where("kind = 'counts' or kind = 'letter'").drop("id").toArrow()
        counts, letters = read_counts(said)
        rows = found.where("kind = 'change'").select("id", f.col("text").alias("filter"))
        return TextChanges(rows, tuple(letters), counts.bad, found)

    @cached_property
    def size(self) -> CompileSize:
        """How much there is to compile; Spark counts it once."""
        from pyspark.sql import functions as f

        if self.few is not None:
            return CompileSize(self.few.num_rows, self.few.nbytes)
        assert self.frame is not None  # noqa: S101 - they are many
        row = self.frame.agg(f.count(f.lit(1)), f.sum(f.octet_length("filter"))).collect()[0]
        return CompileSize(row[0], row[1] or 0)

    def _rows(self) -> "DataFrame":
        """(id, filter, row, op): all changes of an id in one partition, in their order."""
        from pyspark.sql import functions as f

        assert self.frame is not None  # noqa: S101 - whoever asks has looked
        spread = self.frame.repartition(self.size.tasks, "id").sortWithinPartitions("place")
        return spread.select("id", "filter", f.col("place.row").alias("row"), "op")


class TextChanges(NamedTuple):
    """What changes come to: the new filter of each id, null if it is removed."""

    rows: "DataFrame"
    letters: tuple[DeadLetter, ...]  # about bad changes; the first ones
    bad: int  # changes
    kept: "DataFrame"  # to be forgotten by the executors

    def release(self) -> None:
        """Let the executors forget the rows."""
        self.kept.unpersist()
