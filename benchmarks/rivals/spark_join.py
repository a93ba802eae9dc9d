"""Spark SQL: the same joins on one local core."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rivals.duckdb_join import joined
from rivals.plans import Plan, plain_plan, tuned_plan
from tamis.spark import spark_session
from tamis.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Array = np.ndarray[Any, Any]

SETTINGS = {
    "spark.driver.memory": "8g",
    "spark.driver.maxResultSize": "0",
    # One core has nothing to gain from more parts of the data, nor from plans that change.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class SparkJoin:
    """As one writes it first."""

    plan_of = staticmethod(plain_plan)

    def __init__(self, source: Workload) -> None:
        self._source = source
        self._plan: Plan | None = None
        self._subscriptions: DataFrame | None = None
        self._spark = spark_session("field", "local[1]", SETTINGS)

    def read(self, subscriptions: pa.Table) -> None:
        self._plan = self.plan_of(self._source, subscriptions["filter"])

    def build(self) -> None:
        """In memory, in the columns of Spark's cache."""
        held = self._spark.createDataFrame(self._made.subscriptions).cache()
        held.count()
        held.createOrReplaceTempView("s")
        self._subscriptions = held

    def count(self, events: pa.Table) -> Array:
        found = self._ask("e.event, count(*) AS number", events, " GROUP BY e.event")
        counts = np.zeros(events.num_rows, np.int64)
        counts[np.asarray(found["event"])] = np.asarray(found["number"])
        return counts

    def pairs(self, events: pa.Table) -> pa.Table:
        return self._ask("e.event, s.id AS subscription", events)

    def bytes(self) -> int | None:
        """Not known: they are in another process, with Spark itself."""
        return None

    def close(self) -> None:
        if self._subscriptions is not None:
            self._subscriptions.unpersist(blocking=True)

    @property
    def _made(self) -> Plan:
        if self._plan is None:
            raise AssertionError("read comes before build")
        return self._plan

    def _ask(self, columns: str, events: pa.Table, behind: str = "") -> pa.Table:
        self._spark.createDataFrame(self._made.events(events)).createOrReplaceTempView("e")
        # The events are the small side: they go to the subscriptions, which stay where they are.
        question = f"SELECT /*+ BROADCAST(e) */ {columns} FROM {joined(self._made)}{behind}"  # noqa: S608 - our own
        return self._spark.sql(question).toArrow()


class TunedSparkJoin(SparkJoin):
    """With keys and masks for the workload."""

    plan_of = staticmethod(tuned_plan)
