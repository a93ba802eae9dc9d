"""Subscriptions in shards, on the driver: what is in them, and how events are matched."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tamis.dead_letters import DeadLetter
from tamis.errors import EventError, OptionError, TamisError, counted
from tamis.matcher_settings import MatcherSettings
from tamis.semantics import Semantics
from tamis.spark.compile.sent_code import send_code
from tamis.spark.compile.sent_rules import Changes
from tamis.spark.compile.task_reports import (
    RowCounts,
    RulesReport,
    read_file_reports,
    read_reports,
)
from tamis.spark.session.cluster import cores, partitioned_by
from tamis.spark.shards.budget import Sharding
from tamis.spark.shards.compilation import compiled_shards, planned
from tamis.spark.shards.copies import ShardCopies, copies_for
from tamis.spark.shards.placement import EventRouting, PlacedChanges, placed_changes
from tamis.spark.shards.plan import ShardPlan
from tamis.spark.shards.worker import RULES, MatchShardsTask, SendEventsTask, ShardChanges
from tamis.spark.tables.event_chunks import chunks_of
from tamis.spark.tables.event_table import EventTable
from tamis.spark.tables.match_schema import FOUND, spark_schema
from tamis.spark.tables.subscription_table import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOOK = 20_000  # events that show which shards are met often
EVENTS_PER_TASK = 5_000  # that are worth a task
EVENT_COST = 50  # what an event takes anyway, counted in filters that it is compared with
TASKS_PER_CORE = 3  # so that all cores finish at about the same time


class ShardedRules:
    """Subscriptions in shards, which Spark keeps; events are sent to the shards that they meet.

    `frame` has the compiled shards and the reports of the tasks that compiled them.
    """

    def __init__(
        self, frame: "DataFrame", plan: ShardPlan, settings: MatcherSettings, id_type: str,
        changes: PlacedChanges | None = None,
    ) -> None:  # fmt: skip
        self.frame = frame
        self.plan = plan
        self._settings = settings
        self._id_type = id_type
        self._changes = changes or PlacedChanges()
        self._last_copies: ShardCopies | None = None  # of the last matches

    @classmethod
    def compiled(
        cls, subscriptions: SubscriptionTable, settings: MatcherSettings, duplicates: str,
        sharding: Sharding,
    ) -> "ShardedRules":  # fmt: skip
        """The shards of a table, compiled when they are first needed and kept by the executors."""
        from pyspark import StorageLevel

        plan = planned(subscriptions, settings, sharding)
        frame = compiled_shards(subscriptions, settings, duplicates, plan)
        return cls(frame.persist(StorageLevel.DISK_ONLY), plan, settings, subscriptions.id_type)

    def changed(self, changes: Changes) -> "ShardedRules":
        """The same shards, in which workers make a few changes before they match."""
        placed = placed_changes(changes, self.plan, self._settings)
        made = ShardedRules(self.frame, self.plan, self._settings, self._id_type, placed)
        made.report = self.report  # a job of Spark, done once
        return made

    # --- what was compiled

    @cached_property
    def report(self) -> pa.Table:
        """What the tasks that compiled say."""
        said = self.frame.where("kind <> 'rules'").select("task", "kind", "number", "text")
        return said.toArrow()

    @cached_property
    def _outcome(self) -> tuple[RowCounts, list[DeadLetter]]:
        try:
            return read_reports(self.report)
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
        return read_file_reports(self.report)

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that filters test."""
        return frozenset(name for shard in self.shards.values() for name in shard.attributes)

    def release(self) -> None:
        """Let the executors forget the compiled shards."""
        self.frame.unpersist()

    # --- matching

    @cached_property
    def _semantics(self) -> Semantics:
        return self._settings.meaning()

    @cached_property
    def _cores(self) -> int:
        return cores(self.frame.sparkSession)

    @cached_property
    def _alive(self) -> list[bool]:
        """By shard, whether it has a subscription, or gets one by a change."""
        added = self._changes.added
        return [shard in self.shards or shard in added for shard in range(self.plan.total)]

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
        id_type = self._id_type
        # Kept columns have numbers for names meanwhile: one of them may be called "number".
        kept = [(f"k{n}", of) for n, (_, of) in enumerate(events.kept_fields())]
        schema = spark_schema(events, output, id_type, kept).add("number", LongType())
        send_code(events.frame.sparkSession)
        changes = None
        if self._changes.ids:
            changes = ShardChanges(self._settings, self._changes, copies.starts)
        matches = ready.mapInArrow(MatchShardsTask(layout, output, id_type, changes), schema)
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
            both = f.flatten(f.collect_list(name)).cast(f"array<{self._id_type}>")
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
            share * (EVENT_COST + load.depth * filters) if lives else 0.0
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
