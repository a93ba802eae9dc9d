"""`compact` and `CompactJob`: a smaller table of subscriptions, on the driver.

Each task reads some filters and finds their canonical forms; a shuffle brings those of one form
together, and one of them goes on. Which filter covers which is found in tasks, too. Filters are
divided by the attribute of which most of them require one value: a filter that covers one of these
requires the same value, or is *wide* and does not require one. So wide filters are compared with
each other first, and those that are left are sent to all tasks.
"""

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tamis.compaction import MERGED, NO_CLOCK, Report
from tamis.dead_letters import BAD_ROW_TREATMENTS, DeadLetter, listing
from tamis.errors import OptionError, SubscriptionError, choose
from tamis.file_tables.input_files import CORRUPT
from tamis.matcher_settings import MatcherSettings
from tamis.schema import Schema, as_schema
from tamis.spark.batch.job import MatchJob
from tamis.spark.compaction.filter_forms import most_pinned
from tamis.spark.compaction.restoration import joining, originals_of, restored
from tamis.spark.compaction.worker import (
    COVERED,
    FORMS,
    KEPT,
    MERGER,
    NEVER,
    REDUCED,
    STRIDE,
    FormsTask,
    MergerIds,
    ReduceTask,
)
from tamis.spark.compaction.worker import MERGED as PART
from tamis.spark.compile.task_reports import RowCounts, read_reports
from tamis.spark.dead_letters.job import bad_filters
from tamis.spark.session.cluster import partitioned_by
from tamis.spark.session.given_session import prepare
from tamis.spark.tables.event_table import unusable_columns
from tamis.spark.tables.subscription_table import DUPLICATES, MOST_TASKS, SubscriptionTable
from tamis.types import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE = 2_000  # filters that show by which attribute to divide
COMPARED = 5_000  # filters per task, about
WIDE = 100_000  # wide filters that one task compares; more are divided among several tasks
SENT = 5_000  # wide filters that are sent to all tasks; of more, those that test the least

logger = logging.getLogger("tamis")


def compact(
    subscriptions: "DataFrame", schema_or_events: Any, *, semantics: str = "sql",
    defaults: Mapping[str, Any] | None = None, cover: bool = True, merge: bool = True,
    **settings: Any,
) -> "CompactJob":  # fmt: skip
    """Remove duplicate and covered subscriptions, and merge perfectly.

    `subscriptions` has the columns ``id`` and ``filter``. The attributes are those of a schema, or
    the columns of a DataFrame of events. `semantics` and `defaults` are those of `tamis.Matcher`;
    without `merge` every filter that is left is one of the originals, and without `cover` only
    duplicates are removed. `settings` are those of `CompactJob`.
    """
    return CompactJob(
        subscriptions, schema_or_events, semantics=semantics, defaults=defaults, cover=cover,
        merge=merge, **settings,
    )  # fmt: skip


class CompactJob:
    """The compaction of a table of subscriptions, which is done when it is first needed.

    * `subscriptions`: ``id``, ``filter``. A merger has an id that no original has.
    * `mapping`: ``subscription`` (of the compacted table), ``original``, and ``exact``: whether the
      original matches whenever the other one does. If not, it is covered or part of a merger, and
      ``filter`` is a filter that means the same as that of the original.
    * `never`: ``id``, ``filter``, ``reason``, for those that cannot match any event
    * `dead_letters`: the rows that cannot be used, like those of `MatchJob`
    * `report`: how many there are of each

    Of subscriptions with the same id the last row counts, or they are an error
    (``duplicates="error"``); `order` names the column that says which row is later. Rows that
    cannot be used are left out, or fail the job (``on_bad="fail"``). The results stay on the disks
    of the executors until `release`.
    """

    def __init__(  # noqa: PLR0913 - all but two by name
        self, subscriptions: "DataFrame", schema_or_events: Any, *, semantics: str = "sql",
        defaults: Mapping[str, Any] | None = None, cover: bool = True, merge: bool = True,
        duplicates: str = "last", order: str | None = None, on_bad: str = "keep",
    ) -> None:  # fmt: skip
        choose("treatment of bad rows", on_bad, BAD_ROW_TREATMENTS)
        choose("treatment of duplicates", duplicates, DUPLICATES)
        if not hasattr(subscriptions, "mapInArrow"):
            raise OptionError(
                f"subscriptions must be a Spark DataFrame, not {type(subscriptions).__name__}"
            )
        if subscriptions.isStreaming:
            raise OptionError("the subscriptions are a stream; compact takes a table")
        prepare(subscriptions.sparkSession)
        schema, skipped = _attributes(schema_or_events)
        # Events are matched again to restore matches, by which time now() would be another one.
        timeless = schema.without_clock(NO_CLOCK)
        self._settings = MatcherSettings(timeless, semantics, defaults, skipped)
        self._table = SubscriptionTable(subscriptions, order)
        self._cover = cover
        self._merge = cover and merge
        self._duplicates = duplicates
        self._on_bad = on_bad

    # --- results

    @property
    def subscriptions(self) -> "DataFrame":
        """The compacted table."""
        return self._reduced.where("filter IS NOT NULL").select("id", "filter")

    @property
    def mapping(self) -> "DataFrame":
        """Which subscription represents which original."""
        from pyspark.sql import functions as f

        exact = f.col("how") == KEPT
        stands = self._reduced.where(f.col("how").isin(KEPT, COVERED, PART)).select(
            "key", f.col("id").alias("subscription"), exact.alias("exact"),
            f.col("text").alias("filter"),
        )  # fmt: skip
        originals = self._filters.select("key", f.col("id").alias("original"))
        return originals.join(stands, "key").select("subscription", "original", "exact", "filter")

    @property
    def never(self) -> "DataFrame":
        """The subscriptions that cannot match any event, and why."""
        from pyspark.sql import functions as f

        read = self._formed.where(f.col("kind") == NEVER)
        compared = self._reduced.where(f.col("how") == NEVER).select("key", "text")
        joined = self._filters.drop("text").join(compared, "key")
        columns = f.col("id"), f.col("filter"), f.col("text").alias("reason")
        return read.select(*columns).unionByName(joined.select(*columns))

    @property
    def dead_letters(self) -> "DataFrame":
        """The rows that cannot be used: source, row, id, reason, line, column, value."""
        return bad_filters(self._table, self._settings)

    @cached_property
    def report(self) -> Report:
        """How many originals were kept, covered, merged and so on."""
        from pyspark.sql import functions as f

        rows = self._reduced.groupBy("how").agg(f.count(f.lit(1)), f.sum("copies")).collect()
        number = {how: count for how, count, _ in rows}
        copies = {how: total for how, _, total in rows}
        good = self.counts.good
        distinct = sum(number.get(how, 0) for how in (KEPT, COVERED, PART))
        used = sum(copies.get(how, 0) for how in (KEPT, COVERED, PART))
        return Report(
            originals=good, never=good - used, duplicates=used - distinct,
            covered=number.get(COVERED, 0), merged=number.get(PART, 0), kept=number.get(KEPT, 0),
            mergers=number.get(MERGER, 0),
        )  # fmt: skip

    @property
    def counts(self) -> RowCounts:
        """How many rows of the table were good, bad or replaced."""
        return self._outcome[0]

    @property
    def letters(self) -> list[DeadLetter]:
        """Letters about the first bad rows."""
        return self._outcome[1]

    @property
    def semantics(self) -> str:
        """The name of the semantics."""
        return self._settings.semantics

    def match(self, events: "DataFrame", event_id: str = "id", **settings: Any) -> "DataFrame":
        """The matches of events with the originals; each distinct filter is evaluated once.

        Covered filters are evaluated, too: a filter costs less than a second look at an event.
        `settings` are those of `MatchJob` except `output` and `keep`: the matches are pairs.
        """
        from pyspark.sql import functions as f

        self._outcome  # noqa: B018 - an error about all rows comes first
        distinct = self._distinct("TRUE").select("key", "first.id", "first.filter")
        job = MatchJob(
            events, distinct.select("id", "filter"), event_id, **self._job_settings(settings)
        )
        copies = self._filters.select("key", f.col("id").alias("original"))
        stands = distinct.select("key", f.col("id").alias("subscription")).join(copies, "key")
        return originals_of(job.matches, joining(self.counts.good)(stands.drop("key")))

    def restore(
        self, matches: "DataFrame", events: "DataFrame", event_id: str = "id", **settings: Any
    ) -> "DataFrame":
        """The matches of the originals, from those of the compacted table with the same events."""
        has_inexact = self.report.covered + self.report.merged > 0
        settings = self._job_settings(settings)
        whole = joining(self.counts.good)
        return restored(
            matches, events, self.mapping, event_id, settings, whole, has_inexact=has_inexact
        )

    def release(self) -> None:
        """Let the executors forget the results; they are computed again when they are needed."""
        for name in ("_formed", "_wide", "_narrow"):
            frame = self.__dict__.pop(name, None)
            if frame is not None:
                frame.unpersist()

    def _job_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        of = self._settings
        return {"semantics": of.semantics, "defaults": of.defaults, "schema": of.schema} | settings

    # --- reading

    @cached_property
    def _position(self) -> int | None:
        """The attribute by whose values filters are divided; found in a sample of them."""
        if not self._cover:
            return None
        return most_pinned(self._table.sample(SAMPLE), self._settings)

    @cached_property
    def _formed(self) -> "DataFrame":
        """Filters with their forms, and the reports of the tasks."""
        from pyspark import StorageLevel

        id_type = self._table.id_type
        task = FormsTask(self._settings, self._duplicates, self._position, id_type)
        formed = self._table.spread().mapInArrow(task, FORMS.format(id_type=id_type))
        return formed.persist(StorageLevel.DISK_ONLY)

    @cached_property
    def _outcome(self) -> tuple[RowCounts, list[DeadLetter]]:
        from pyspark.sql import functions as f

        said = self._formed.where(f.col("kind").isin("counts", "letter", "twice"))
        try:
            found = read_reports(
                said.select("kind", "text", f.col("row").alias("number")).toArrow()
            )
        except SubscriptionError:
            self.release()
            raise
        counts, letters = found
        if counts.bad:
            message = listing(letters, counts.bad)
            if self._on_bad == "fail":
                self.release()
                raise OptionError(f"subscriptions: {message}")
            logger.warning("subscriptions: %s", message)
        return found

    @property
    def _filters(self) -> "DataFrame":
        from pyspark.sql import functions as f

        return self._formed.where(f.col("kind") == "filter")

    # --- comparing

    @cached_property
    def _reduced(self) -> "DataFrame":
        """Which subscription represents each distinct filter, and the mergers."""
        self._outcome  # noqa: B018 - an error about all rows comes first
        return self._wide.unionByName(self._narrow)

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        """How many filters are wide, and which ids there are."""
        from pyspark.sql import functions as f

        is_filter = f.col("kind") == "filter"
        row = self._formed.agg(
            f.count_if(is_filter & f.col("pin").isNull()).alias("wide"),
            f.count_if(is_filter & f.col("pin").isNotNull()).alias("narrow"),
            f.min("id").alias("least"), f.max("id").alias("most"),
        ).collect()[0]  # fmt: skip
        return row.asDict()

    @cached_property
    def _merger_ids(self) -> MergerIds:
        """Ids that no original has."""
        if self._table.id_type == "string":
            return MergerIds(self._prefix())
        room = MOST_TASKS * STRIDE + 1
        least, most = self._numbers["least"], self._numbers["most"]
        if most is None or most < INT64_MAX - room:
            return MergerIds(None, (most or 0) + 1)
        if least > INT64_MIN + room:
            return MergerIds(None, least - 1, -1)
        raise OptionError(
            "mergers need ids above the largest or below the smallest one, where there is no room; "
            "make the ids strings, or pass merge=False"
        )

    def _prefix(self) -> str:
        from pyspark.sql import functions as f

        prefix = MERGED
        while self._filters.where(f.col("id").startswith(prefix)).limit(1).count():
            prefix += "-"
        return prefix

    def _distinct(self, condition: str) -> "DataFrame":
        """The first filter of each form, and how many filters have the form."""
        from pyspark.sql import functions as f

        first = f.min(f.struct("row", "id", "filter", "pin")).alias("first")
        grouped = self._filters.where(condition).groupBy("key")
        return grouped.agg(first, f.count(f.lit(1)).alias("copies"))

    def _compared(
        self, distinct: "DataFrame", tasks: int, task: Any, before: int,
        sent: tuple[tuple[Any, str], ...] = (),
    ) -> "DataFrame":  # fmt: skip
        from pyspark import StorageLevel

        id_type = self._table.id_type
        ids = self._merger_ids if self._merge else MergerIds("")
        work = ReduceTask(self._settings, self._cover, self._merge, id_type, ids, before, sent)
        rows = distinct.select(
            task.cast("int").alias("task"), "first.row", "first.id", "first.filter", "key", "copies"
        )
        together = partitioned_by(rows, tasks, "task").sortWithinPartitions("task", "row")
        reduced = together.mapInArrow(work, REDUCED.format(id_type=id_type))
        return reduced.persist(StorageLevel.DISK_ONLY)

    @property
    def _parts(self) -> int:
        wide: int = self._numbers["wide"]
        return min(MOST_TASKS // 2, max(1, -(-wide // WIDE)))

    @cached_property
    def _wide(self) -> "DataFrame":
        from pyspark.sql import functions as f

        part = f.pmod(f.xxhash64("key"), f.lit(self._parts))
        return self._compared(self._distinct("pin IS NULL"), self._parts, part, 0)

    @cached_property
    def _narrow(self) -> "DataFrame":
        from pyspark.sql import functions as f

        tasks = min(MOST_TASKS // 2, 1 + self._numbers["narrow"] // COMPARED)
        task = f.pmod(f.col("first.pin"), f.lit(tasks))
        sent: tuple[tuple[Any, str], ...] = ()
        if self._numbers["narrow"]:
            left = self._wide.where("filter IS NOT NULL").orderBy("asked", "filter", "id")
            first = left.limit(SENT).select("id", "filter").toArrow()
            sent = tuple(zip(first["id"].to_pylist(), first["filter"].to_pylist(), strict=True))
        distinct = self._distinct("pin IS NOT NULL")
        return self._compared(distinct, tasks, task, self._parts, sent)


def _attributes(source: Any) -> tuple[Schema, dict[str, str] | None]:
    """The attributes of a schema or of events, and the columns that no filter can use."""
    if not hasattr(source, "mapInArrow"):
        return as_schema(source), None
    columns = source.drop(CORRUPT).schema
    return Schema.from_spark(columns, unsupported="skip"), unusable_columns(columns)
