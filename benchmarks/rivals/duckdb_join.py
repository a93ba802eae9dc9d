"""DuckDB: a table of subscriptions in columns, joined with a table of events."""

import duckdb
import pyarrow as pa

from rivals.plans import tuned_plan
from rivals.sql_join import SqlJoin, joined
from tamis.workloads import Workload


class DuckdbJoin(SqlJoin):
    """As one writes it first."""

    def __init__(self, source: Workload) -> None:
        super().__init__(source)
        self._database = duckdb.connect(":memory:", config={"threads": 1})

    def build(self) -> None:
        # DuckDB 2.0 keeps the plan of a text with the Python variable it found; a name does better.
        self._database.register("incoming", self._made.subscriptions)
        self._database.execute("CREATE TABLE s AS SELECT * FROM incoming")
        self._database.unregister("incoming")

    def bytes(self) -> int | None:
        """The memory in use by the database: columns, with little compression."""
        rows = self._database.sql("SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()")
        return int(rows.fetchall()[0][0])

    def close(self) -> None:
        self._database.close()

    def _ask(self, columns: str, events: pa.Table, grouping: str = "") -> pa.Table:
        self._database.register("e", self._made.events(events))
        try:
            question = f"SELECT {columns} FROM {joined(self._made)}{grouping}"  # noqa: S608 - our own
            return self._database.sql(question).to_arrow_table()
        finally:
            self._database.unregister("e")


class TunedDuckdbJoin(DuckdbJoin):
    """With keys and masks for the workload."""

    plan_of = staticmethod(tuned_plan)
