"""``format("tamis")``: the papers' workloads as a data source of Spark, of any size.

`register` makes it known to a session. As a stream it has the same rows in the same order, at a
rate or as fast as they are read. An offset is a row number, so a query that is started again from
its checkpoint goes on exactly where it was, and a batch that is repeated has the same rows. The
options are in ``docs/sources.md``.

Spark imports this module in its planning processes and its workers; `tamis.spark` does not import
it, because it needs PySpark.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tamis.errors import OptionError
from tamis.spark.source.generated_table import GeneratedTable, read_options

_TYPES: dict[str, DataType] = {
    "int": LongType(),
    "double": DoubleType(),
    "string": StringType(),
    "bool": BooleanType(),
    "timestamp": TimestampType(),
}


def register(spark: SparkSession) -> None:
    """Make ``format("tamis")`` known to a session, classic or Connect."""
    spark.dataSource.register(TamisSource)


class TamisSource(DataSource):
    """The data source. Spark reads its `schema` in `load`, so bad options are refused there."""

    @classmethod
    def name(cls) -> str:
        return "tamis"

    def schema(self) -> StructType:
        return _spark_schema(read_options(self.options))

    def reader(self, schema: StructType) -> "TableReader":
        table = self._table(schema)
        table.total("a table that does not stream")
        return TableReader(table)

    def streamReader(self, schema: StructType) -> "StreamReader":  # noqa: N802 - Spark's name
        return StreamReader(self._table(schema))

    def _table(self, schema: StructType) -> GeneratedTable:
        table = read_options(self.options)
        own = _spark_schema(table)
        if schema != own:
            raise OptionError(
                "format('tamis') has its own schema, and cannot be given another one with "
                f"schema(...): {own.simpleString()}"
            )
        return table


@dataclass(frozen=True)
class RowRange(InputPartition):
    """The rows from `start` to before `end`, for one task."""

    start: int
    end: int


class TableReader(DataSourceReader):
    """All rows, once."""

    def __init__(self, table: GeneratedTable) -> None:
        self._table = table

    def partitions(self) -> list[RowRange]:
        rows = self._table.rows or 0
        ranges = self._table.ranges(0, rows) or [(0, 0)]  # Spark needs at least one
        return [RowRange(*ends) for ends in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._table, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Rows as they come due, from the first batch of this run of the query on.

    With a `rate` the clock says how many are due; without one, as many as a batch may have. With
    `Trigger.AvailableNow` all rows are there from the beginning. A query that falls behind catches
    up in batches of at most `maxRowsPerBatch` rows.
    """

    def __init__(self, table: GeneratedTable, clock: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._clock = clock
        self._began: tuple[float, int] | None = None  # when, and at which row
        self._rate = table.rate

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._table.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._table.total("the trigger availableNow")
        self._rate = None

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        row = start["row"]
        if self._began is None:
            self._began = (self._clock(), row)
        due = self._due()
        if due is None:  # no end and no rate: as many as one batch may have
            due = row + self._table.rows_per_batch
        if isinstance(limit, ReadMaxRows):
            due = min(due, row + limit.max_rows)
        return {"row": max(row, due)}  # `rows` may be smaller than in an earlier run

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802 - Spark's name
        """How far the query should be, which its progress shows beside how far it is."""
        due = self._due()
        return None if due is None else {"row": due}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[RowRange]:
        return [RowRange(*ends) for ends in self._table.ranges(start["row"], end["row"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._table, partition)

    def _due(self) -> int | None:
        """The number of rows that should be there by now; None for no bound."""
        rows = self._table.rows
        if self._rate is None or self._began is None:
            return rows
        when, row = self._began
        due = row + int(self._rate * (self._clock() - when))
        return due if rows is None else min(due, rows)


def _spark_schema(table: GeneratedTable) -> StructType:
    columns = table.columns.items()
    return StructType([StructField(name, _TYPES[kind]) for name, kind in columns])


def _read(table: GeneratedTable, partition: Any) -> Iterator[pa.RecordBatch]:
    return table.batches(partition.start, partition.end)
