"""Subscriptions that are too many for one executor: compiled in shards, which events are sent to.

Compiling: each task reads some filters, all of an id in the same task, and says in which shards
they lie. A shuffle brings those of a shard together; they are compiled, and the compiled shards
stay on the disks of the executors, as rows of bytes. The driver sees only numbers.

Matching: a shard takes the same way as its events, a shuffle. Rows are sorted such that the bytes
of a shard come first and become a matcher, then come its events. A shard that many events meet is
given to several tasks, each with some of the events; such a copy is a *slot*.
"""

import json
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.engines.sliced.filter_reader import FilterReader
from tamis.engines.sliced.leaves import Leaves
from tamis.errors import (
    EventError,
    ExpressionError,
    OptionError,
    SubscriptionError,
    TamisError,
    counted,
)
from tamis.language.shape_cache import ShapeCache
from tamis.semantics import Semantics
from tamis.spark.batch.event_frames import Events
from tamis.spark.batch.worker import parts_of
from tamis.spark.compile.compilation import (
    OUTCOME,
    Counts,
    Meaning,
    Subscriptions,
    read_report,
    tasks_for,
)
from tamis.spark.dead_letters.letters import Letter, texts_of
from tamis.spark.shards.plan import Plan, Routing, Slots, copies_for, plan_shards
from tamis.spark.shards.worker import ASSIGNED, RULES, Assigning, Building, Meeting, Sending

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE = 10_000  # filters that the plan is made from
MOST_SHARDS, FEWEST = 4096, 64  # however small the budget: so many shards, of so many filters
LOOK = 20_000  # events that say which shards are met often
EVENTS_PER_TASK = 5_000  # that are worth a task
EVENT = 50  # filters that could be compared with an event in the time that it takes anyway
TASKS_PER_CORE = 3  # such that they end at about the same time
ROOM = 1.25  # shards are not equally large
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def as_bytes(budget: int | str) -> int:
    """A number of bytes: ``1000000``, ``"512m"``, ``"2g"``."""
    if isinstance(budget, str):
        text = budget.strip().lower()
        text = text[:-1] if text[-2:-1] in {"k", "m", "g", "t"} and text.endswith("b") else text
        number, unit = text.rstrip("bkmgt"), text.lstrip("0123456789 ")
        found = int(number) * _UNITS[unit] if number.strip().isdigit() and unit in _UNITS else 0
    else:
        found = budget if type(budget) is int else 0
    if found <= 0:
        raise OptionError(
            f"budget is a number of bytes like 1000000, '512m' or '2g', not {budget!r}"
        )
    return found


class Shard(NamedTuple):
    """What is known of a compiled shard."""

    subscriptions: int
    bytes: int
    asked: tuple[str, ...]  # the attributes that its filters ask for


class Sharding:
    """Subscriptions in shards; they are planned and compiled when first asked for."""

    def __init__(
        self, subscriptions: Subscriptions, meaning: Meaning, duplicates: str, budget: int,
        shards: int | None,
    ) -> None:  # fmt: skip
        self._subscriptions = subscriptions
        self._meaning = meaning
        self._duplicates = duplicates
        self._budget = budget
        self._wish = shards
        self._spark: SparkSession = subscriptions.frame.sparkSession
        self._slots: Slots | None = None  # of the last matches

    # --- compiling

    @cached_property
    def plan(self) -> Plan:
        """Made from a sample of the filters."""
        return plan_shards(self._sample(), self._meaning.schema, self._wish or self._needed())

    def _needed(self) -> int:
        """How many shards make those that an executor works on at once fit into the budget."""
        room = self._budget / at_once(self._spark, self._cores)
        size = self._subscriptions.size
        most = max(2, min(MOST_SHARDS, size.rows // FEWEST))
        return min(most, max(2, -int(-ROOM * size.compiled // room)))

    def _sample(self) -> list[Leaves]:
        from pyspark.sql import functions as f

        frame = self._subscriptions.frame.select(f.col("filter")).where("filter is not null")
        rows = self._subscriptions.size.rows
        if rows > SAMPLE:
            frame = frame.sample(fraction=min(1.0, 1.2 * SAMPLE / rows), seed=0)
        shapes, reader = ShapeCache(self._meaning.schema), FilterReader(self._semantics)
        found = []
        for text in texts_of(frame.limit(SAMPLE).toArrow()["filter"]):
            try:
                found.append(reader.leaves(shapes.parse(text)))
            except (ExpressionError, SubscriptionError):
                continue  # a letter will tell
        return found

    @cached_property
    def frame(self) -> "DataFrame":
        """The compiled shards, and what the tasks say of the rows; kept by the executors."""
        from pyspark import StorageLevel

        plan, meaning, id_type = self.plan, self._meaning, self._subscriptions.id_type
        assigned = self._subscriptions.spread(tasks_for(self._subscriptions.size)).mapInArrow(
            Assigning(meaning, self._duplicates, plan, id_type), ASSIGNED.format(id_type=id_type)
        )
        # The shard behind the last holds the reports of the tasks.
        together = placed(assigned, plan.total + 1, "shard").sortWithinPartitions("shard")
        return together.mapInArrow(Building(meaning), OUTCOME).persist(StorageLevel.DISK_ONLY)

    @cached_property
    def _report(self) -> pa.Table:
        said = self.frame.where("kind <> 'rules'").select("task", "kind", "number", "text")
        return said.toArrow()

    @cached_property
    def _outcome(self) -> tuple[Counts, list[Letter]]:
        try:
            return read_report(self._report)
        except TamisError:
            self.release()
            raise

    @property
    def counts(self) -> Counts:
        """What became of the rows."""
        return self._outcome[0]

    @property
    def letters(self) -> list[Letter]:
        """The first rows that cannot be used."""
        return self._outcome[1]

    @cached_property
    def shards(self) -> dict[int, Shard]:
        """Those that hold a subscription."""
        columns = (self._report[name].to_pylist() for name in ("task", "kind", "number", "text"))
        found = {}
        for shard, kind, number, text in zip(*columns, strict=True):
            if kind == "shard":
                size, asked = json.loads(text)
                found[shard] = Shard(number, size, tuple(asked))
        return dict(sorted(found.items()))

    @property
    def asked(self) -> set[str]:
        """The attributes that filters ask for."""
        return {name for shard in self.shards.values() for name in shard.asked}

    def release(self) -> None:
        """Let the executors forget the compiled shards."""
        if "frame" in self.__dict__:
            self.frame.unpersist()

    # --- matching

    @cached_property
    def _semantics(self) -> Semantics:
        of = self._meaning
        return Semantics(of.semantics, of.schema, of.defaults)

    @cached_property
    def _cores(self) -> int:
        return cores(self._spark)

    @cached_property
    def _alive(self) -> list[bool]:
        return [shard in self.shards for shard in range(self.plan.total)]

    def matches(
        self, events: Events, asked: Iterable[str], output: str, on_bad: str
    ) -> "DataFrame":
        """(event_id, found, k0, k1, ...), a row for each match or event."""
        if events.frame.isStreaming:
            raise OptionError(
                "the subscriptions are in shards, which a stream of events cannot be sent to; "
                "match its micro-batches, as match_stream does, or allow a larger budget"
            )
        from pyspark.sql import functions as f
        from pyspark.sql.types import IntegerType, LongType, StructField, StructType

        names = set(asked)
        projected, layout = events.project(names), events.layout(names)
        slots = self._slots = Slots(self._copies(events, names))
        send = Sending(self._meaning, layout, on_bad, self.plan, self._alive, slots.copies, output)
        own = [field for field in projected.schema.fields if field.name != "corrupt"]
        sent = projected.mapInArrow(
            send,
            StructType(
                [
                    StructField("slot", IntegerType()), StructField("kind", IntegerType()),
                    StructField("number", LongType()), *own,
                ]
            ),
        )  # fmt: skip
        first, last = (
            f.element_at(f.lit(numbers.tolist()), f.col("task") + 1).cast("int")
            for numbers in (slots.starts, slots.starts + slots.copies - 1)
        )
        tasks = TASKS_PER_CORE * self._cores
        rules = self.frame.where("kind = 'rules'").coalesce(tasks).select(
            f.explode(f.sequence(first, last)).alias("slot"),
            f.lit(RULES).alias("kind"), "number", "data",
        )  # fmt: skip
        both = rules.unionByName(sent, allowMissingColumns=True)
        ready = placed(both, slots.total, "slot").sortWithinPartitions("slot", "kind", "number")
        id_type = self._subscriptions.id_type
        meet = Meeting(layout, output, id_type)
        matches = ready.mapInArrow(meet, meeting_schema(events, output, id_type))
        return self._together(matches, output)

    def _together(self, matches: "DataFrame", output: str) -> "DataFrame":
        """One row for each event, whatever number of shards it met."""
        if output == "pairs" or self._most_met() <= 1:
            return matches.drop("number")
        from pyspark.sql import functions as f

        if output == "lists":
            # A type that may hold nulls, as that of whatever else comes from Python.
            both = f.flatten(f.collect_list("found")).cast(f"array<{self._subscriptions.id_type}>")
            found = f.when(f.count("found") > 0, both)
        else:
            found = f.sum("found")
        others = [name for name in matches.columns if name not in {"found", "number"}]
        firsts = [f.first(name).alias(name) for name in others]
        grouped = matches.groupBy("number").agg(found.alias("found"), *firsts)
        return grouped.select("event_id", "found", *others[1:])

    def _most_met(self) -> int:
        """How many shards an event may meet."""
        alive, plan = self._alive, self.plan
        most = sum(alive[: plan.general])
        for group in plan.groups:
            shared = alive[group.first : group.first + group.shared]
            own = [sum(alive[shard] for shard in shards) for shards in group.heavy.values()]
            most += max([int(any(shared)), *own])
        return most

    def _copies(self, events: Events, asked: set[str]) -> list[int]:
        """How many tasks the events of each shard get."""
        tasks, plan = TASKS_PER_CORE * self._cores, self.plan
        shares = [load.share for load in plan.loads]
        size, counts = self._look(events, asked)
        if size < LOOK:  # these are all
            tasks = min(tasks, 1 + size // EVENTS_PER_TASK)
            shares = counts
        else:  # the first ones may not be like the others
            shares = [max(a, b / size) for a, b in zip(shares, counts, strict=True)]
        filters = self.counts.good
        work = [
            share * (EVENT + load.depth * filters) if lives else 0.0
            for share, load, lives in zip(shares, plan.loads, self._alive, strict=True)
        ]
        return copies_for(work, self._alive, tasks)

    def _look(self, events: Events, asked: set[str]) -> tuple[int, list[float]]:
        """The first events: their number, and how many of them meet each shard."""
        schema = self._meaning.schema
        keys = {schema.attributes[group.attribute].name for group in self.plan.groups}
        names = keys & asked
        layout = events.layout(names)
        table = events.project(names).limit(LOOK).toArrow()
        met = np.zeros(self.plan.total)
        routing = Routing(self.plan, self._semantics, self._alive)
        for part, _ in parts_of(table.to_batches(), layout):
            try:
                _, shards = routing.pairs(part.events)
            except EventError:
                continue  # about a bad one; whoever matches tells
            met += np.bincount(shards, minlength=len(met))
        return table.num_rows, met.tolist()

    def explained(self) -> list[str]:
        """For people."""
        sizes = [shard.bytes for shard in self.shards.values()]
        held = sum(shard.subscriptions for shard in self.shards.values())
        kinds = self.plan.described(self._meaning.schema, self._alive)
        lines = [
            f"{counted(len(sizes), 'shard')}: {kinds}",
            f"an event meets about {self.plan.met:.0%} of all subscriptions",
            f"compiled: {sum(sizes):,} bytes, the largest shard {max(sizes):,}",
            f"in shards: {held:,} subscriptions, those with several values in several shards",
        ]
        if self._slots is not None:
            most = int(self._slots.copies.max())
            lines.append(
                f"matched in {counted(self._slots.total, 'task')}, a shard in up to {most} of them"
            )
        return lines


def meeting_schema(events: Events, output: str, id_type: str) -> str:
    """What a task says of events: with their numbers, by which they are put together."""
    found = {"pairs": id_type, "lists": f"array<{id_type}>", "counts": "bigint"}[output]
    kept = [f"k{n} {of.simpleString()}" for n, (_, of) in enumerate(events.kept_fields())]
    first = [f"event_id {events.id_type.simpleString()}", f"found {found}"]
    return ", ".join([*first, *kept, "number bigint"])


def placed(frame: "DataFrame", partitions: int, column: str) -> "DataFrame":
    """Rows with the same number in one partition; if Spark can do it, with nothing else."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(partitions, column)
    return frame.repartition(partitions, column)


def cores(spark: "SparkSession") -> int:
    """How many tasks run at once; asked in a way that Spark Connect knows, too."""
    from pyspark.sql import functions as f

    numbers = spark.range(4096).select(f.spark_partition_id().alias("n"))
    return int(numbers.agg(f.max("n")).collect()[0][0]) + 1


def at_once(spark: "SparkSession", most: int) -> int:
    """How many tasks run at once in one executor."""
    master = spark.conf.get("spark.master", "") or ""
    if master == "local" or master.startswith("local["):
        return most
    return max(1, int(spark.conf.get("spark.executor.cores", "1") or 1))
