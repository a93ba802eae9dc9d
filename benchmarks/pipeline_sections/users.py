"""tamis, and what a Spark user would write to find the matches.

Each contestant is made for a workload and its subscriptions, and turns a cached frame of events
into a frame of pairs. What happens before events come (filters into columns, columns into a frame,
keys and masks of events for the joins) is not counted, except for tamis, which is given texts.

* *tamis*: `MatchJob`, pairs.
* *join*: one column per predicate, and all conditions in ON; alerts are joined by their symbol.
* *join-tuned*: with keys and bit masks that were chosen for this workload, as in `rivals.plans`.
* *union*: ``events.filter(expr(filter))`` for each subscription, and the union of all of them.
* *cross*: every event with every id, and one CASE that has the filter of each id.
* *case*: a column with an array of ``CASE WHEN filter THEN id END``, exploded.
* *udf*: a Python function that evaluates all parsed subscriptions for an event, exploded.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pipeline_sections import workload_files
from pipeline_sections.spark_process import Session
from pipeline_sections.timing import fitting, rounds, run, seconds_of
from rivals.base import LeftOut
from rivals.columns import OPERATORS, read_alerts, read_atoms
from rivals.plans import Plan, plain_plan, tuned_plan
from rivals.sql_join import joined
from tamis.workloads import Workload, workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW = 64  # events that all of them are verified on
OPERATIONS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip

Test = tuple[int, Callable[[Any, Any], bool], Any]  # place of the attribute, operation, constant
Matches = Callable[["DataFrame"], "DataFrame"]


class User(NamedTuple):
    """One way to find matches."""

    events: Callable[[pa.Table], pa.Table]  # in the columns that it begins with
    matches: Matches  # pairs (event_id, subscription) of a frame of such events


Maker = Callable[["SparkSession", Workload, pa.Table], User]


def _same(table: pa.Table) -> pa.Table:
    return table


def tamis_job(spark: "SparkSession", _source: Workload, subscriptions: pa.Table) -> User:
    from tamis.spark import MatchJob
    from tamis.spark.tables.event_table import EventTable

    texts = spark.createDataFrame(subscriptions)
    jobs: list[MatchJob] = []

    def matches(events: "DataFrame") -> "DataFrame":
        if not jobs:
            jobs.append(MatchJob(events, texts))
        return jobs[0].matches_of(EventTable(events, "id", None, ()))

    return User(_same, matches)


def join(
    plan_of: Callable[[Workload, pa.ChunkedArray], Plan],
    spark: "SparkSession", source: Workload, subscriptions: pa.Table,
) -> User:  # fmt: skip
    plan = plan_of(source, subscriptions["filter"])
    held = spark.createDataFrame(plan.subscriptions).cache()
    held.count()

    def matches(events: "DataFrame") -> "DataFrame":
        held.createOrReplaceTempView("s")
        events.createOrReplaceTempView("e")
        # Events are the many: subscriptions go to where they are.
        columns = "/*+ BROADCAST(s) */ e.event AS event_id, s.id AS subscription"
        return spark.sql(f"SELECT {columns} FROM {joined(plan)}")  # noqa: S608 - our own

    return User(lambda table: plan.events(table.drop_columns("id")), matches)


def union(_spark: "SparkSession", _source: Workload, subscriptions: pa.Table) -> User:
    def matches(events: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as f

        event = f.col("id").alias("event_id")
        frames = [
            events.filter(f.expr(text)).select(event, f.lit(id_).alias("subscription"))
            for id_, text in _pairs(subscriptions)
        ]
        while len(frames) > 1:  # a balanced tree: in a long line Spark's stack overflows
            pairs = zip(frames[::2], frames[1::2], strict=False)
            odd = [frames[-1]] if len(frames) % 2 else []
            frames = [one.union(other) for one, other in pairs] + odd
        return frames[0]

    return User(_same, matches)


def cross(spark: "SparkSession", _source: Workload, subscriptions: pa.Table) -> User:
    def matches(events: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as f

        ids = spark.createDataFrame(subscriptions.select(["id"])).withColumnRenamed(
            "id", "subscription"
        )
        cases = " ".join(f"WHEN {id_} THEN {text}" for id_, text in _pairs(subscriptions))
        both = events.crossJoin(f.broadcast(ids)).filter(f.expr(f"CASE subscription {cases} END"))
        return both.select(f.col("id").alias("event_id"), "subscription")

    return User(_same, matches)


def case(_spark: "SparkSession", _source: Workload, subscriptions: pa.Table) -> User:
    def matches(events: "DataFrame") -> "DataFrame":
        # One text: to build as many columns from Python takes longer still.
        cases = ", ".join(f"CASE WHEN {text} THEN {id_} END" for id_, text in _pairs(subscriptions))
        found = events.selectExpr("id AS event_id", f"array_compact(array({cases})) AS found")
        return found.selectExpr("event_id", "explode(found) AS subscription")

    return User(_same, matches)


def loop(spark: "SparkSession", source: Workload, subscriptions: pa.Table) -> User:
    held = spark.sparkContext.broadcast(parsed(source, subscriptions))

    def found(*values: Any) -> list[int]:
        matching = []
        for id_, tests in held.value:
            for place, holds, constant in tests:
                if not holds(values[place], constant):
                    break
            else:
                matching.append(id_)
        return matching

    def matches(events: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as f

        call = f.udf(found, "array<bigint>")
        all_ = f.explode(call(*source.schema)).alias("subscription")
        return events.select(f.col("id").alias("event_id"), all_)

    return User(_same, matches)


USERS: dict[str, Maker] = {
    "tamis": tamis_job,
    "join": partial(join, plain_plan),
    "join-tuned": partial(join, tuned_plan),
    "union": union,
    "cross": cross,
    "case": case,
    "udf": loop,
}


def _pairs(subscriptions: pa.Table) -> list[tuple[int, str]]:
    return list(zip(*(subscriptions[name].to_pylist() for name in ("id", "filter")), strict=True))


def parsed(source: Workload, subscriptions: pa.Table) -> list[tuple[int, list[Test]]]:
    """Subscriptions as lists of comparisons."""
    if source.name == "bdd":
        raise LeftOut("a list of comparisons is a conjunction; these filters are formulas")
    tests: list[list[Test]]
    if source.name == "stock":
        alerts = read_alerts(subscriptions["filter"])
        numbers = (alerts.low, alerts.high, alerts.least)
        tests = [
            [(0, operator.eq, symbol), (1, operator.ge, low), (1, operator.le, high),
             (2, operator.ge, least)]
            for symbol, low, high, least in zip(
                alerts.symbol.to_pylist(), *(column.tolist() for column in numbers), strict=True
            )
        ]  # fmt: skip
    else:
        atoms = read_atoms(subscriptions["filter"])
        tests = [[] for _ in range(subscriptions.num_rows)]
        columns = (atoms.filter, atoms.attribute, atoms.operator, atoms.constant)
        for filter_, place, operation, constant in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            tests[filter_].append((place, OPERATIONS[OPERATORS[operation]], constant))
    return list(zip(subscriptions["id"].to_pylist(), tests, strict=True))


# --- measuring, in the process of a session


def held_events(spark: "SparkSession", user: User, spec: str, count: int) -> "DataFrame":
    """Events in Spark's cache, the same number for each core."""
    table = user.events(workload_files.events(spec, count))
    made = spark.createDataFrame(table).repartition(spark.sparkContext.defaultParallelism).cache()
    made.count()
    return made


def digest(pairs: "DataFrame") -> tuple[int, str]:
    """How many pairs there are, and the sum of their hashes; the same for the same pairs."""
    row = pairs.selectExpr(
        "count(*)",
        "sum(CAST(xxhash64(CAST(event_id AS BIGINT), CAST(subscription AS BIGINT)) "
        "AS DECIMAL(20, 0)))",
    ).collect()[0]
    return row[0], str(row[1] or 0)


def warmed(session: Session) -> None:
    """Start the session and its Python workers, and load what tamis needs."""
    users = ("tamis", "udf")
    source, subscriptions = workload("stock"), workload_files.subscriptions("stock", 1000)
    for who in users:
        user = USERS[who](session.spark, source, subscriptions)
        run(user.matches(held_events(session.spark, user, "stock", 10_000)))
    session.spark.catalog.clearCache()


def contest(
    session: Session, spec: str, size: int, who: str, most: int, wanted: float
) -> dict[str, Any]:
    """One contestant: what it finds for the first few events, and the seconds of each round."""
    spark = session.spark
    source = workload(workload_files.parts(spec)[0])
    user = USERS[who](spark, source, workload_files.subscriptions(spec, size))
    few = min(FEW, most)
    timed = TimedUser(spark, user, spec)
    found: list[tuple[int, str]] = []
    first = seconds_of(lambda: found.append(digest(timed.pairs(few))))
    fixed = timed.seconds(few)
    result = {"few": few, "found": found[0], "first": first, "fixed": fixed}

    def call(count: int) -> float:
        seconds = timed.seconds(count)
        session.report(result | {"events": count, "times": [seconds]})
        return seconds

    session.report(result | {"events": few, "times": [fixed]})
    count, result["fixed"] = fitting(call, few, most, wanted)
    times = rounds(lambda: timed.seconds(count), 4 * wanted)
    spark.catalog.clearCache()
    return result | {"events": count, "times": times}


class TimedUser:
    """Calls of one contestant; the events of the last one stay in memory."""

    def __init__(self, spark: "SparkSession", user: User, spec: str) -> None:
        self._spark = spark
        self._user = user
        self._spec = spec
        self._held: DataFrame | None = None
        self._count = 0
        self._pairs: DataFrame | None = None

    def pairs(self, count: int) -> "DataFrame":
        """The matches of the first events."""
        if self._pairs is None or self._count != count:
            if self._held is not None:
                self._held.unpersist(blocking=True)
            self._held = held_events(self._spark, self._user, self._spec, count)
            self._count = count
            self._pairs = self._user.matches(self._held)
        return self._pairs

    def seconds(self, count: int) -> float:
        """Seconds to find them, without the time to make the events."""
        pairs = self.pairs(count)
        return seconds_of(lambda: run(pairs))
