"""polars: the same joins as lazy frames.

Without a key every pair is tested; events then come in portions, because all pairs of a batch would
not fit into memory. Of the two ways in which polars runs a frame each join takes the faster one.
"""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa

from rivals.plans import Plan, Test, plain_plan, tuned_plan
from tamis.workloads import Workload

Array = np.ndarray[Any, Any]


PAIRS = 8_000_000  # tested in one portion


class PolarsJoin:
    """As one writes it first."""

    plan_of = staticmethod(plain_plan)
    runs: Literal["in-memory", "streaming"] = "in-memory"

    def __init__(self, source: Workload) -> None:
        self._source = source
        self._plan: Plan | None = None
        self._subscriptions = pl.DataFrame()

    def read(self, subscriptions: pa.Table) -> None:
        self._plan = self.plan_of(self._source, subscriptions["filter"])

    def build(self) -> None:
        self._subscriptions = _frame(self._made.subscriptions).rechunk()

    def count(self, events: pa.Table) -> Array:
        if not self._made.keys:
            counts = [
                np.bincount(found["event"].to_numpy(), minlength=size)
                for _, size, found in self._portions(events, "event")
            ]
            return np.concatenate(counts)
        found = self._joined(events).group_by("event").len().collect(engine=self.runs)
        whole = np.zeros(events.num_rows, np.int64)
        whole[found["event"].to_numpy()] = found["len"].to_numpy()
        return whole

    def pairs(self, events: pa.Table) -> pa.Table:
        parts = [
            found.select(pl.col("event") + start, pl.col("id").alias("subscription"))
            for start, _, found in self._portions(events, "event", "id")
        ]
        return pl.concat(parts).to_arrow()

    def bytes(self) -> int | None:
        return int(self._subscriptions.estimated_size())

    def close(self) -> None:
        """Nothing to release."""

    @property
    def _made(self) -> Plan:
        if self._plan is None:
            raise AssertionError("read comes before build")
        return self._plan

    def _portions(self, events: pa.Table, *columns: str) -> Iterator[tuple[int, int, pl.DataFrame]]:
        """The first event of each portion, how many it has, and what was found."""
        most = max(1, PAIRS // max(self._subscriptions.height, 1))
        portion = events.num_rows if self._made.keys else most
        for start in range(0, events.num_rows, max(portion, 1)):
            some = events.slice(start, portion)
            found = self._joined(some).select(*columns).collect(engine=self.runs)
            yield start, some.num_rows, found

    def _joined(self, events: pa.Table) -> pl.LazyFrame:
        left, right = _frame(self._made.events(events)).lazy(), self._subscriptions.lazy()
        if self._made.keys:
            both = left.join(right, on=list(self._made.keys))
        else:
            both = left.join(right, how="cross")
        return both.filter(*map(_condition, self._made.tests))


class TunedPolarsJoin(PolarsJoin):
    """With keys and masks for the workload."""

    plan_of = staticmethod(tuned_plan)
    runs = "streaming"


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(frame)
    return frame


def _condition(test: Test) -> pl.Expr:
    left, right = pl.col(test.event), pl.col(test.subscription)
    match test.op:
        case "&":
            return (left & right) == 0
        case ">=":
            return left >= right
        case "<=":
            return left <= right
        case _:
            return left != right
