"""Subscriptions in shards, on the driver: planned, compiled, and matched with events."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.dead_letters import DeadLetter
from tamis.engines.required_values import RequiredValues
from tamis.errors import (
    EventError,
    ExpressionError,
    OptionError,
    SubscriptionError,
    TamisError,
    counted,
)
from tamis.language.shape_cache import ShapeCache
from tamis.matcher_settings import MatcherSettings
from tamis.semantics import Semantics
from tamis.spark.compile.task_reports import (
    REPORT,
    RowCounts,
    RulesReport,
    read_file_reports,
    read_reports,
)
from tamis.spark.session.cluster import cores, cores_of_executor, partitioned_by
from tamis.spark.shards.copies import ShardCopies, copies_for
from tamis.spark.shards.placement import EventRouting
from tamis.spark.shards.plan import MOST_VALUES, ShardPlan, plan_shards
from tamis.spark.shards.worker import (
    PLACED,
    RULES,
    BuildShardsTask,
    MatchShardsTask,
    PlaceFiltersTask,
    SendEventsTask,
)
from tamis.spark.tables.event_chunks import chunks_of
from tamis.spark.tables.event_table import EventTable
from tamis.spark.tables.match_schema import FOUND, spark_schema
from tamis.spark.tables.subscription_table import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE = 10_000  # filters that the plan is made from
MOST_SHARDS = 4096  # however small the budget
FEWEST_FILTERS = 64  # of a shard, on average
LOOK = 20_000  # events that show which shards are met often
EVENTS_PER_TASK = 5_000  # that are worth a task
EVENT = 50  # filters that could be compared with an event in the time that it takes anyway
TASKS_PER_CORE = 3  # so that all cores finish at about the same time
MARGIN = 1.25  # shards are not equally large


class ShardedRules:
    """Subscriptions in shards; they are planned and compiled when they are first needed."""

    def __init__(
        self, subscriptions: SubscriptionTable, settings: MatcherSettings, duplicates: str,
        budget: int, shards: int | None,
    ) -> None:  # fmt: skip
        self._subscriptions = subscriptions
        self._settings = settings
        self._duplicates = duplicates
        self._budget = budget
        self._wish = shards
        self._spark: SparkSession = subscriptions.frame.sparkSession
        self._last_copies: ShardCopies | None = None  # of the last matches

    # --- compiling

    @cached_property
    def plan(self) -> ShardPlan:
        """The plan, made from a sample of the filters."""
        return plan_shards(self._sample(), self._settings.schema, self._wish or self._needed())

    def _needed(self) -> int:
        """How many shards, so that those that an executor works on at once fit into the budget."""
        room = self._budget / cores_of_executor(self._spark, self._cores)
        size = self._subscriptions.size
        most = max(2, min(MOST_SHARDS, size.rows // FEWEST_FILTERS))
        return min(most, max(2, -int(-MARGIN * size.compiled // room)))

    def _sample(self) -> list[dict[int, tuple[Any, ...]]]:
        """The values that some filters require."""
        shapes, required = ShapeCache(self._settings.schema), RequiredValues(self._semantics)
        found = []
        for text in self._subscriptions.sample(SAMPLE):
            try:
                found.append(required.of(shapes.parse(text), MOST_VALUES))
            except (ExpressionError, SubscriptionError):
                continue  # a dead letter will say why
        return found

    @cached_property
    def frame(self) -> "DataFrame":
        """The compiled shards and the reports of the tasks, kept by the executors."""
        from pyspark import StorageLevel

        plan, settings, id_type = self.plan, self._settings, self._subscriptions.id_type
        placed = self._subscriptions.spread().mapInArrow(
            PlaceFiltersTask(settings, self._duplicates, plan, id_type),
            PLACED.format(id_type=id_type),
        )
        # One more shard, after the last one, has the reports of the tasks.
        together = partitioned_by(placed, plan.total + 1, "shard").sortWithinPartitions("shard")
        built = together.mapInArrow(BuildShardsTask(settings), REPORT)
        return built.persist(StorageLevel.DISK_ONLY)

    @cached_property
    def _report(self) -> pa.Table:
        said = self.frame.where("kind <> 'rules'").select("task", "kind", "number", "text")
        return said.toArrow()

    @cached_property
    def _outcome(self) -> tuple[RowCounts, list[DeadLetter]]:
        try:
            return read_reports(self._report)
        except TamisError:
            self.release()
            raise

    @property
    def counts(self) -> RowCounts:
        """How many rows were good, bad or replaced."""
        return self._outcome[0]

    @property
    def letters(self) -> list[DeadLetter]:
        """Letters about the first bad rows."""
        return self._outcome[1]

    @cached_property
    def shards(self) -> dict[int, RulesReport]:
        """The shards that have a subscription."""
        return read_file_reports(self._report)

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that filters test."""
        return frozenset(name for shard in self.shards.values() for name in shard.attributes)

    def release(self) -> None:
        """Let the executors forget the compiled shards."""
        if "frame" in self.__dict__:
            self.frame.unpersist()

    # --- matching

    @cached_property
    def _semantics(self) -> Semantics:
        return self._settings.meaning()

    @cached_property
    def _cores(self) -> int:
        return cores(self._spark)

    @cached_property
    def _alive(self) -> list[bool]:
        """By shard, whether it has a subscription."""
        return [shard in self.shards for shard in range(self.plan.total)]

    def matches(
        self, events: EventTable, attributes: Iterable[str], output: str, on_bad: str
    ) -> "DataFrame":
        """The matches of events; `attributes` are those that workers read."""
        if events.frame.isStreaming:
            raise OptionError(
                "the subscriptions are in shards, to which a stream of events cannot be sent; "
                "match its micro-batches, as match_stream does, or allow a larger budget"
            )
        from pyspark.sql import functions as f
        from pyspark.sql.types import IntegerType, LongType, StructField, StructType

        names = set(attributes)
        projected, layout = events.project(names), events.layout(names)
        copies = self._last_copies = ShardCopies(self._copies(events, names))
        send = SendEventsTask(
            self._settings, layout, on_bad, self.plan, self._alive, copies.copies, output
        )
        own = [field for field in projected.schema.fields if field.name != "corrupt"]
        sent = projected.mapInArrow(
            send,
            StructType(
                [
                    StructField("copy", IntegerType()), StructField("kind", IntegerType()),
                    StructField("number", LongType()), *own,
                ]
            ),
        )  # fmt: skip
        first, last = (
            f.element_at(f.lit(numbers.tolist()), f.col("task") + 1).cast("int")
            for numbers in (copies.starts, copies.starts + copies.copies - 1)
        )
        tasks = TASKS_PER_CORE * self._cores
        rules = self.frame.where("kind = 'rules'").coalesce(tasks).select(
            f.explode(f.sequence(first, last)).alias("copy"),
            f.lit(RULES).alias("kind"), "number", "data",
        )  # fmt: skip
        both = rules.unionByName(sent, allowMissingColumns=True)
        ready = partitioned_by(both, copies.total, "copy")
        ready = ready.sortWithinPartitions("copy", "kind", "number")
        id_type = self._subscriptions.id_type
        # Kept columns have numbers for names meanwhile: one of them may be called "number".
        kept = [(f"k{n}", of) for n, (_, of) in enumerate(events.kept_fields())]
        schema = spark_schema(events, output, id_type, kept).add("number", LongType())
        matches = ready.mapInArrow(MatchShardsTask(layout, output, id_type), schema)
        together = self._together(matches, output)
        names_back = {f"k{n}": name for n, name in enumerate(events.keep)}
        return together.select(
            *(f.col(name).alias(names_back.get(name, name)) for name in together.columns)
        )

    def _together(self, matches: "DataFrame", output: str) -> "DataFrame":
        """One row for each event, however many shards it met."""
        if output == "pairs" or self._most_met() <= 1:
            return matches.drop("number")
        from pyspark.sql import functions as f

        name = FOUND[output]
        if output == "lists":
            # The cast allows nulls in the lists, as in those of other matches.
            both = f.flatten(f.collect_list(name)).cast(f"array<{self._subscriptions.id_type}>")
            found = f.when(f.count(name) > 0, both)
        else:
            found = f.sum(name)
        others = [other for other in matches.columns if other not in {name, "number"}]
        firsts = [f.first(other).alias(other) for other in others]
        grouped = matches.groupBy("number").agg(found.alias(name), *firsts)
        return grouped.select("event_id", name, *others[1:])

    def _most_met(self) -> int:
        """How many shards an event meets at most."""
        alive, plan = self._alive, self.plan
        most = sum(alive[: plan.general])
        for group in plan.groups:
            shared = alive[group.first : group.first + group.shared]
            own = [sum(alive[shard] for shard in shards) for shards in group.heavy.values()]
            most += max([int(any(shared)), *own])
        return most

    def _copies(self, events: EventTable, attributes: set[str]) -> list[int]:
        """How many tasks share the events of each shard."""
        tasks, plan = TASKS_PER_CORE * self._cores, self.plan
        shares = [load.share for load in plan.loads]
        size, counts = self._look(events, attributes)
        if size < LOOK:  # these are all events
            tasks = min(tasks, 1 + size // EVENTS_PER_TASK)
            shares = counts
        else:  # the first events may not be like the others
            shares = [max(a, b / size) for a, b in zip(shares, counts, strict=True)]
        filters = self.counts.good
        work = [
            share * (EVENT + load.depth * filters) if lives else 0.0
            for share, load, lives in zip(shares, plan.loads, self._alive, strict=True)
        ]
        return copies_for(work, self._alive, tasks)

    def _look(self, events: EventTable, attributes: set[str]) -> tuple[int, list[float]]:
        """How many of the first events there are, and how many of them meet each shard."""
        schema = self._settings.schema
        keys = {schema.attributes[group.attribute].name for group in self.plan.groups}
        names = keys & attributes
        layout = events.layout(names)
        table = events.project(names).limit(LOOK).toArrow()
        met = np.zeros(self.plan.total)
        routing = EventRouting(self.plan, self._semantics, self._alive)
        for chunk, _ in chunks_of(table.to_batches(), layout):
            try:
                _, shards = routing.pairs(chunk.events)
            except EventError:
                continue  # about a bad event, which the job itself will report
            met += np.bincount(shards, minlength=len(met))
        return table.num_rows, met.tolist()

    def explanation(self) -> list[str]:
        """Lines about the shards, for `MatchJob.explain`."""
        sizes = [shard.bytes for shard in self.shards.values()]
        held = sum(shard.subscriptions for shard in self.shards.values())
        kinds = self.plan.described(self._settings.schema, self._alive)
        lines = [
            f"{counted(len(sizes), 'shard')}: {kinds}",
            f"an event meets about {self.plan.met:.0%} of all subscriptions",
            f"compiled: {sum(sizes):,} bytes, the largest shard {max(sizes):,}",
            f"in shards: {held:,} subscriptions, counting those in several shards more than once",
        ]
        if self._last_copies is not None:
            most, tasks = int(self._last_copies.copies.max()), self._last_copies.total
            lines.append(f"matched in {counted(tasks, 'task')}, a shard in up to {most} of them")
        return lines
