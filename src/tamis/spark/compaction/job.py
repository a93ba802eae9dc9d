"""A table of subscriptions without what is not needed, found by the executors: `compact`.

Each task reads some filters and finds their canonical forms; a shuffle brings those of one form
together, and one of them goes on. Who covers whom is asked in tasks, too. Filters are divided by
the attribute of which most of them ask for one value: whoever covers a filter that asks for one
value asks for the same one, or is *wide* and does not ask for one. So wide filters are compared
with each other first, and what is left of them is sent to all tasks.
"""

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tamis.compaction import MERGED, Report
from tamis.errors import OptionError, SubscriptionError, choose
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics
from tamis.spark.batch.event_frames import CORRUPT, unusable
from tamis.spark.batch.job import MatchJob
from tamis.spark.compaction.restoration import joining, originals_of, restored
from tamis.spark.compaction.worker import (
    COVERED,
    FORMED,
    KEPT,
    MERGER,
    NEVER,
    REDUCED,
    STRIDE,
    Forming,
    Fresh,
    Reducing,
    most_pinned,
)
from tamis.spark.compaction.worker import MERGED as PART
from tamis.spark.compile.compilation import (
    DUPLICATES,
    MOST_TASKS,
    Counts,
    Meaning,
    Subscriptions,
    read_report,
    tasks_for,
)
from tamis.spark.dead_letters.checks import bad_filters
from tamis.spark.dead_letters.letters import Letter, listing, texts_of
from tamis.spark.shards.job import placed
from tamis.types import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE = 2_000  # filters that say by which attribute to divide
COMPARED = 5_000  # filters of a task, about
WIDE = 100_000  # wide filters that are compared with each other; more are divided into parts
SENT = 5_000  # wide filters that are sent to all tasks; of more, those that ask for the least

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
    """A table of subscriptions that is to be compacted; the work is done when first asked for.

    * `subscriptions`: ``id``, ``filter``. A merger has an id that no original has.
    * `mapping`: ``subscription`` (of the compacted table), ``original``, ``exact``: whether the
      original matches whenever the other does; and a ``filter`` of the same meaning as that of an
      original which does not: it is covered, or part of a merger
    * `never`: ``id``, ``filter``, ``reason``, for those that can match no event
    * `dead_letters`: the rows that cannot be used, as those of `MatchJob`
    * `report`: how many of each

    Of subscriptions with the same id the last row counts, or they are an error
    (``duplicates="error"``); `order` names the column that says which row is later. Rows that
    cannot be used are left out, or fail the job (``on_bad="fail"``). What was found is kept on the
    disks of the executors until `release`.
    """

    def __init__(  # noqa: PLR0913 - all but two by name
        self, subscriptions: "DataFrame", schema_or_events: Any, *, semantics: str = "sql",
        defaults: Mapping[str, Any] | None = None, cover: bool = True, merge: bool = True,
        duplicates: str = "last", order: str | None = None, on_bad: str = "keep",
    ) -> None:  # fmt: skip
        choose("treatment of bad rows", on_bad, ("keep", "fail"))
        choose("treatment of duplicates", duplicates, DUPLICATES)
        if not hasattr(subscriptions, "mapInArrow"):
            raise OptionError(
                f"subscriptions must be a Spark DataFrame, not {type(subscriptions).__name__}"
            )
        if subscriptions.isStreaming:
            raise OptionError("the subscriptions are a stream; compact takes a table")
        schema, skipped = _attributes(schema_or_events)
        Semantics(semantics, schema, defaults)  # refuses bad ones now
        self._meaning = Meaning(schema, semantics, defaults, skipped)
        self._table = Subscriptions(subscriptions, order)
        self._cover = cover
        self._merge = cover and merge
        self._duplicates = duplicates
        self._on_bad = on_bad

    # --- what comes out

    @property
    def subscriptions(self) -> "DataFrame":
        """The compacted table."""
        return self._reduced.where("filter IS NOT NULL").select("id", "filter")

    @property
    def mapping(self) -> "DataFrame":
        """Who stands for whom."""
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
        """The subscriptions that can match no event, and why."""
        from pyspark.sql import functions as f

        read = self._formed.where(f.col("kind") == NEVER)
        compared = self._reduced.where(f.col("how") == NEVER).select("key", "text")
        joined = self._filters.drop("text").join(compared, "key")
        columns = f.col("id"), f.col("filter"), f.col("text").alias("reason")
        return read.select(*columns).unionByName(joined.select(*columns))

    @property
    def dead_letters(self) -> "DataFrame":
        """The rows that cannot be used: source, row, id, reason, line, column, value."""
        return bad_filters(self._table, self._meaning)

    @cached_property
    def report(self) -> Report:
        """What became of the originals."""
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
    def counts(self) -> Counts:
        """What became of the rows of the table."""
        return self._outcome[0]

    @property
    def letters(self) -> list[Letter]:
        """The first rows that cannot be used."""
        return self._outcome[1]

    @property
    def semantics(self) -> str:
        """The name of the semantics."""
        return self._meaning.semantics

    def match(self, events: "DataFrame", event_id: str = "id", **settings: Any) -> "DataFrame":
        """The matches of events with the originals, found by asking each distinct filter once.

        Covered ones are asked, too: a filter costs less than a second look at an event. `settings`
        are those of `MatchJob` but for `output` and `keep`: the answer are pairs.
        """
        from pyspark.sql import functions as f

        self._outcome  # noqa: B018 - an error about all rows comes first
        distinct = self._distinct("TRUE").select("key", "first.id", "first.filter")
        job = MatchJob(
            events, distinct.select("id", "filter"), event_id, **self._settings(settings)
        )
        copies = self._filters.select("key", f.col("id").alias("original"))
        stands = distinct.select("key", f.col("id").alias("subscription")).join(copies, "key")
        return originals_of(job.matches, joining(self.counts.good)(stands.drop("key")))

    def restore(
        self, matches: "DataFrame", events: "DataFrame", event_id: str = "id", **settings: Any
    ) -> "DataFrame":
        """The matches of the originals, from those of the compacted table with the same events."""
        loose = self.report.covered + self.report.merged > 0
        settings = self._settings(settings)
        whole = joining(self.counts.good)
        return restored(matches, events, self.mapping, event_id, settings, whole, loose=loose)

    def release(self) -> None:
        """Let the executors forget what was found; it would be found again."""
        for name in ("_formed", "_wide", "_narrow"):
            frame = self.__dict__.pop(name, None)
            if frame is not None:
                frame.unpersist()

    def _settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        of = self._meaning
        return {"semantics": of.semantics, "defaults": of.defaults, "schema": of.schema} | settings

    # --- reading

    @cached_property
    def _position(self) -> int | None:
        """The attribute by whose values filters are divided; found in a sample of them."""
        from pyspark.sql import functions as f

        if not self._cover:
            return None
        frame = self._table.frame.select(f.col("filter")).where("filter is not null")
        rows = self._table.size.rows
        if rows > SAMPLE:
            frame = frame.sample(fraction=min(1.0, 1.2 * SAMPLE / rows), seed=0)
        texts = texts_of(frame.limit(SAMPLE).toArrow()["filter"])
        return most_pinned(texts, self._meaning)

    @cached_property
    def _formed(self) -> "DataFrame":
        """Filters with their forms, and what the tasks say of the rows."""
        from pyspark import StorageLevel

        id_type = self._table.id_type
        work = Forming(self._meaning, self._duplicates, self._position, id_type)
        spread = self._table.spread(tasks_for(self._table.size))
        formed = spread.mapInArrow(work, FORMED.format(id_type=id_type))
        return formed.persist(StorageLevel.DISK_ONLY)

    @cached_property
    def _outcome(self) -> tuple[Counts, list[Letter]]:
        from pyspark.sql import functions as f

        said = self._formed.where(f.col("kind").isin("counts", "letter", "twice"))
        try:
            found = read_report(said.select("kind", "text", f.col("row").alias("number")).toArrow())
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
        """Who stands for each distinct filter, and the mergers."""
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
    def _fresh(self) -> Fresh:
        """Ids for mergers."""
        if self._table.id_type == "string":
            return Fresh(self._prefix())
        room = MOST_TASKS * STRIDE + 1
        least, most = self._numbers["least"], self._numbers["most"]
        if most is None or most < INT64_MAX - room:
            return Fresh(None, (most or 0) + 1)
        if least > INT64_MIN + room:
            return Fresh(None, least - 1, -1)
        raise OptionError(
            "the ids leave no room for those of mergers, above the largest or below the smallest; "
            "make them strings, or pass merge=False"
        )

    def _prefix(self) -> str:
        from pyspark.sql import functions as f

        prefix = MERGED
        while self._filters.where(f.col("id").startswith(prefix)).limit(1).count():
            prefix += "-"
        return prefix

    def _distinct(self, condition: str) -> "DataFrame":
        """One filter of each form, the first, and how many have the form."""
        from pyspark.sql import functions as f

        first = f.min(f.struct("row", "id", "filter", "pin")).alias("first")
        grouped = self._filters.where(condition).groupBy("key")
        return grouped.agg(first, f.count(f.lit(1)).alias("copies"))

    def _compared(
        self, distinct: "DataFrame", tasks: int, task: Any, before: int,
        given: tuple[tuple[Any, str], ...] = (),
    ) -> "DataFrame":  # fmt: skip
        from pyspark import StorageLevel

        id_type = self._table.id_type
        fresh = self._fresh if self._merge else Fresh("")
        work = Reducing(self._meaning, self._cover, self._merge, id_type, fresh, before, given)
        rows = distinct.select(
            task.cast("int").alias("task"), "first.row", "first.id", "first.filter", "key", "copies"
        )
        together = placed(rows, tasks, "task").sortWithinPartitions("task", "row")
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
        given: tuple[tuple[Any, str], ...] = ()
        if self._numbers["narrow"]:
            left = self._wide.where("filter IS NOT NULL").orderBy("asked", "filter", "id")
            sent = left.limit(SENT).select("id", "filter").toArrow()
            given = tuple(zip(sent["id"].to_pylist(), sent["filter"].to_pylist(), strict=True))
        distinct = self._distinct("pin IS NOT NULL")
        return self._compared(distinct, tasks, task, self._parts, given)


def _attributes(source: Any) -> tuple[Schema, dict[str, str] | None]:
    """The attributes of a schema or of events, and the columns that no filter can use."""
    if not hasattr(source, "mapInArrow"):
        return as_schema(source), None
    columns = source.drop(CORRUPT).schema
    return Schema.from_spark(columns, unsupported="skip"), unusable(columns)
