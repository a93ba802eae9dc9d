"""Spark SQL: the same joins on one local core."""

from typing import TYPE_CHECKING

import pyarrow as pa

from rivals.plans import tuned_plan
from rivals.sql_join import SqlJoin, joined
from tamis.spark import spark_session
from tamis.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTINGS = {
    "spark.driver.memory": "8g",
    "spark.driver.maxResultSize": "0",
    # One core has nothing to gain from more parts of the data, nor from plans that change.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class SparkJoin(SqlJoin):
    """As one writes it first."""

    def __init__(self, source: Workload) -> None:
        super().__init__(source)
        self._subscriptions: DataFrame | None = None
        self._spark = spark_session("field", "local[1]", SETTINGS)

    def build(self) -> None:
        """In memory, in the columns of Spark's cache."""
        held = self._spark.createDataFrame(self._made.subscriptions).cache()
        held.count()
        held.createOrReplaceTempView("s")
        self._subscriptions = held

    def bytes(self) -> int | None:
        """Not known: they are in another process, with Spark itself."""
        return None

    def close(self) -> None:
        if self._subscriptions is not None:
            self._subscriptions.unpersist(blocking=True)

    def _ask(self, columns: str, events: pa.Table, grouping: str = "") -> pa.Table:
        self._spark.createDataFrame(self._made.events(events)).createOrReplaceTempView("e")
        # The events are the small side: they go to the subscriptions, which stay where they are.
        question = f"SELECT /*+ BROADCAST(e) */ {columns} FROM {joined(self._made)}{grouping}"  # noqa: S608 - our own
        return self._spark.sql(question).toArrow()


class TunedSparkJoin(SparkJoin):
    """With keys and masks for the workload."""

    plan_of = staticmethod(tuned_plan)
