"""A set of subscriptions, its publications, and its table after covering."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.events.columns import table_rows
from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.relations.tables import CoverTable
from tamis.semantics import Semantics
from tamis.workloads import Workload, read_workload, workload

SUBSCRIPTION_SEED, EVENT_SEED = 1, 2
SEMANTICS = "sql"

Table = CoverTable[Any]  # keys are the numbers of subscriptions, and mergers


class SubscriptionSet:
    """The subscriptions of a workload, by its name or the path of its file."""

    def __init__(self, name: str, size: int) -> None:
        self.source: Workload = read_workload(name) if Path(name).suffix else workload(name)
        self.name = self.source.name
        self.size = size
        self.semantics = Semantics(SEMANTICS, self.source.schema)
        parse = ShapeCache(self.source.schema).parse
        texts = self.source.subscriptions(size, SUBSCRIPTION_SEED)["filter"].to_pylist()
        self.expressions: list[Expression] = [parse(text) for text in texts]
        self._table: Table | None = None

    def covered(self, size: int | None = None) -> Table:
        """The table of the first `size` subscriptions, by default of all; kept for larger sizes."""
        wanted = self.size if size is None else size
        if self._table is None or len(self._table) > wanted:
            self._table = CoverTable(self.semantics)
        for number in range(len(self._table), wanted):
            self._table.insert(number, self.expressions[number])
        return self._table

    def events(self, count: int, density: float = 1.0) -> pa.Table:
        """Publications; each attribute is present with probability `density`."""
        return self.source.events(count, EVENT_SEED, density)

    def rows(self, events: pa.Table) -> list[Row]:
        """Publications as engines take them."""
        found = table_rows(events, self.source.schema, refuse_unknown=True)
        return [self.semantics.prepare(row) for row in found]


def never(table: Table, numbers: Sequence[int]) -> int:
    """How many subscriptions can never match: they are not roots, and no root covers them."""
    return sum(not table.is_root(n) and table.cover_of(n) is None for n in numbers)
