"""The join of events and subscriptions in SQL, for DuckDB and for Spark."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from rivals.plans import Plan, Test, plain_plan
from tamis.workloads import Workload

Array = np.ndarray[Any, Any]


class SqlJoin(ABC):
    """A contestant that joins a table of events, `e`, with one of subscriptions, `s`."""

    plan_of = staticmethod(plain_plan)

    def __init__(self, source: Workload) -> None:
        self._source = source
        self._plan: Plan | None = None

    def read(self, subscriptions: pa.Table) -> None:
        self._plan = self.plan_of(self._source, subscriptions["filter"])

    def count(self, events: pa.Table) -> Array:
        found = self._ask("e.event, count(*) AS number", events, " GROUP BY e.event")
        counts = np.zeros(events.num_rows, np.int64)
        counts[np.asarray(found["event"])] = np.asarray(found["number"])
        return counts

    def pairs(self, events: pa.Table) -> pa.Table:
        return self._ask("e.event, s.id AS subscription", events)

    @property
    def _made(self) -> Plan:
        if self._plan is None:
            raise AssertionError("read comes before build")
        return self._plan

    @abstractmethod
    def _ask(self, columns: str, events: pa.Table, grouping: str = "") -> pa.Table:
        """What SELECT gives for some columns of the join."""


def joined(plan: Plan) -> str:
    """The text after FROM."""
    same = [f"e.{key} = s.{key}" for key in plan.keys]
    return "e JOIN s ON " + " AND ".join([*same, *map(_condition, plan.tests)])


def _condition(test: Test) -> str:
    if test.op == "&":
        return f"(e.{test.event} & s.{test.subscription}) = 0"
    return f"e.{test.event} {test.op} s.{test.subscription}"
