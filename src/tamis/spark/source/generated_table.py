"""The table of ``format("tamis")``, as its options describe it, and any range of its rows.

A row is determined by its number. Rows are made in blocks (`tamis.workloads.BLOCK`) whose random
numbers come from the seed and the number of the block, so that every process makes the same rows,
however the ranges are cut. Nothing here needs Spark.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tamis.errors import OptionError, choose
from tamis.types import INT64_MAX
from tamis.workloads import BLOCK, NAMES, Workload, read_workload, workload

OPTIONS = (
    "workload", "config", "table", "rows", "seed", "density", "partitions", "rate",
    "maxRowsPerBatch",
)  # fmt: skip
TABLES = ("events", "subscriptions")
ID = "id"  # the column of the row number

DEFAULT_ROWS_PER_BATCH = 1_000_000
MOST_PARTITIONS = 100_000
# Without the option partitions: how many rows are worth a task, and how many tasks are enough.
ROWS_PER_PARTITION = 100_000
PARTITIONS = 64

_HERE = "format('tamis')"

Default = TypeVar("Default")


@dataclass(frozen=True)
class GeneratedTable:
    """A table to generate; `rows`, `partitions` and `rate` are None if they are not given."""

    workload: Workload
    table: str = "events"
    rows: int | None = None
    seed: int = 1
    density: float = 1.0
    partitions: int | None = None
    rate: float | None = None
    rows_per_batch: int = DEFAULT_ROWS_PER_BATCH

    @property
    def columns(self) -> dict[str, str]:
        """The names of the columns and their types, in order."""
        if self.table == "subscriptions":
            return {ID: "int", "filter": "string"}
        attributes = self.workload.schema.attributes
        names = (column.name for column in self.workload.kind.columns)
        kinds = (attribute.type.kind.value for attribute in attributes)
        return {ID: "int"} | dict(zip(names, kinds, strict=True))

    def total(self, purpose: str) -> int:
        """`rows`, or an error that says what needs it."""
        if self.rows is None:
            raise OptionError(f"{_HERE}: {purpose} needs the option rows, a whole number from 0 on")
        return self.rows

    def ranges(self, start: int, end: int) -> list[tuple[int, int]]:
        """The rows from `start` to before `end`, cut into equal ranges for tasks."""
        rows = end - start
        wanted = self.partitions or min(PARTITIONS, math.ceil(rows / ROWS_PER_PARTITION))
        count = min(wanted, rows)
        bounds = [start + rows * k // count for k in range(count)] + [end]
        return list(pairwise(bounds))

    def batches(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows from `start` to before `end`."""
        while start < end:
            block, skipped = divmod(start, BLOCK)
            rows = min(end - start, BLOCK - skipped)
            yield from self._block(block).slice(skipped, rows).to_batches()
            start += rows

    def _block(self, block: int) -> pa.Table:
        if self.table == "subscriptions":
            count = self.total("the table subscriptions")
            return self.workload.subscription_block(block, count, self.seed)
        events = self.workload.event_block(block, self.seed, self.density)
        first = block * BLOCK
        return events.add_column(0, ID, pa.array(np.arange(first, first + BLOCK)))


def read_options(options: Mapping[str, str]) -> GeneratedTable:
    """The table that options of a reader describe, or an `OptionError` about a bad one."""
    known = {name.casefold(): name for name in OPTIONS}
    for name in options:
        if name.casefold() not in known:
            choose(f"option of {_HERE}", name, OPTIONS)
    texts = {known[name.casefold()]: text for name, text in options.items()}
    table = GeneratedTable(
        workload=_workload(texts),
        table=choose(f"table of {_HERE}", texts.get("table", "events"), TABLES),
        rows=_whole(texts, "rows", 0, None),
        seed=_whole(texts, "seed", 0, 1),
        density=_number(texts, "density", 1.0, "a number from 0 to 1", lambda x: 0 <= x <= 1),
        partitions=_whole(texts, "partitions", 1, None, MOST_PARTITIONS),
        rate=_number(texts, "rate", None, "rows per second, above 0", lambda x: 0 < x < math.inf),
        rows_per_batch=_whole(texts, "maxRowsPerBatch", 1, DEFAULT_ROWS_PER_BATCH),
    )
    _check(table)
    return table


def _workload(texts: Mapping[str, str]) -> Workload:
    if ("workload" in texts) == ("config" in texts):
        raise OptionError(
            f"{_HERE} needs exactly one of the options workload ({', '.join(NAMES)}) "
            "and config, the path of a file that describes one"
        )
    if "config" in texts:
        return read_workload(texts["config"])
    return workload(texts["workload"])


def _check(table: GeneratedTable) -> None:
    """Refuse options that are bad only together."""
    made = table.workload
    if table.table == "subscriptions":
        made.parameters(table.total("the table subscriptions"))  # fewer than it can make
        return
    taken = [column.name for column in made.kind.columns if column.name.casefold() == ID]
    if taken:
        raise OptionError(
            f"{_HERE}: the workload {made.name} has an attribute {taken[0]!r}, which is the column "
            "of the row number; give the attribute another name"
        )


def _whole(
    texts: Mapping[str, str], name: str, low: int, default: Default, high: int = INT64_MAX
) -> int | Default:
    if name not in texts:
        return default
    try:
        value = int(texts[name])
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        upwards = "on" if high == INT64_MAX else f"to {high:,}"
        raise _bad(texts, name, f"a whole number from {low} {upwards}")
    return value


def _number(
    texts: Mapping[str, str],
    name: str,
    default: Default,
    expected: str,
    accepts: Callable[[float], bool],
) -> float | Default:
    if name not in texts:
        return default
    try:
        value = float(texts[name])
    except ValueError:
        value = math.nan
    if not accepts(value):
        raise _bad(texts, name, expected)
    return value


def _bad(texts: Mapping[str, str], name: str, expected: str) -> OptionError:
    shown = repr(texts[name])[:60]
    return OptionError(f"{_HERE}: the option {name} must be {expected}, not {shown}")
