"""DuckDB: a table of subscriptions in columns, joined with a table of events."""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from rivals.plans import Plan, Test, plain_plan, tuned_plan
from tamis.workloads import Workload

Array = np.ndarray[Any, Any]


class DuckdbJoin:
    """As one writes it first."""

    plan_of = staticmethod(plain_plan)

    def __init__(self, source: Workload) -> None:
        self._source = source
        self._database = duckdb.connect(":memory:", config={"threads": 1})
        self._plan: Plan | None = None

    def read(self, subscriptions: pa.Table) -> None:
        self._plan = self.plan_of(self._source, subscriptions["filter"])

    def build(self) -> None:
        # DuckDB 2.0 keeps the plan of a text with the Python variable it found; a name does better.
        self._database.register("incoming", self._made.subscriptions)
        self._database.execute("CREATE TABLE s AS SELECT * FROM incoming")
        self._database.unregister("incoming")

    def count(self, events: pa.Table) -> Array:
        found = self._ask("e.event, count(*) AS number", events, " GROUP BY e.event")
        counts = np.zeros(events.num_rows, np.int64)
        counts[np.asarray(found["event"])] = np.asarray(found["number"])
        return counts

    def pairs(self, events: pa.Table) -> pa.Table:
        return self._ask("e.event, s.id AS subscription", events)

    def bytes(self) -> int | None:
        """The memory in use by the database: columns, with little compression."""
        rows = self._database.sql("SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()")
        return int(rows.fetchall()[0][0])

    def close(self) -> None:
        self._database.close()

    @property
    def _made(self) -> Plan:
        if self._plan is None:
            raise AssertionError("read comes before build")
        return self._plan

    def _ask(self, columns: str, events: pa.Table, behind: str = "") -> pa.Table:
        self._database.register("e", self._made.events(events))
        try:
            question = f"SELECT {columns} FROM {joined(self._made)}{behind}"  # noqa: S608 - our own
            return self._database.sql(question).to_arrow_table()
        finally:
            self._database.unregister("e")


class TunedDuckdbJoin(DuckdbJoin):
    """With keys and masks for the workload."""

    plan_of = staticmethod(tuned_plan)


def joined(plan: Plan) -> str:
    """The text after FROM, for DuckDB and for Spark."""
    same = [f"e.{key} = s.{key}" for key in plan.keys]
    return "e JOIN s ON " + " AND ".join([*same, *map(_condition, plan.tests)])


def _condition(test: Test) -> str:
    if test.op == "&":
        return f"(e.{test.event} & s.{test.subscription}) = 0"
    return f"e.{test.event} {test.op} s.{test.subscription}"
