"""Routing tables of a set of subscriptions: all, without the covered ones, and merged (MBD)."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.events.columns import table_rows
from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.papers.contest import EVENT_SEEDS
from tamis.predicates.boxes import Box, box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.merging.mergers import MOST_SEARCHES, MergeOptions, Merger, find_mergers
from tamis.relations.tables import CoverTable
from tamis.semantics import Semantics
from tamis.workloads import Workload

SEMANTICS = "sql"

Table = CoverTable[Any]  # keys are the numbers of subscriptions, and mergers


class Reduced(NamedTuple):
    """The entries of a routing table."""

    entries: list[tuple[Any, Expression]]  # keys: numbers of subscriptions, or mergers
    hidden: list[list[int]]  # for each entry that is a merger, the roots that it stands for
    seconds: float

    @property
    def size(self) -> int:
        return len(self.entries)

    @property
    def expressions(self) -> list[Expression]:
        return [expression for _, expression in self.entries]


class SubscriptionSet:
    """The subscriptions of a workload, their publications, and what covering leaves of them.

    The first n of `size` subscriptions are not what the workload would make if it were asked for n:
    it makes them in blocks, and the last block depends on the number.
    """

    def __init__(self, source: Workload, size: int, seed: int) -> None:
        self.source = source
        self.size = size
        self.seed = seed
        self.semantics = Semantics(SEMANTICS, source.schema)
        parse = ShapeCache(source.schema).parse
        texts = source.subscriptions(size, seed)["filter"].to_pylist()
        self.expressions: list[Expression] = [parse(text) for text in texts]
        self.table: Table = CoverTable(self.semantics)
        self._boxes: dict[int, Box] = {}  # of roots

    def cover(self, size: int) -> float:
        """Insert more subscriptions into the table, up to `size`; returns the seconds."""
        start = time.process_time()
        for number in range(len(self.table), size):
            self.table.insert(number, self.expressions[number])
        return time.process_time() - start

    def covering(self) -> Reduced:
        """The subscriptions that no other covers."""
        return Reduced([(key, self.table.expression(key)) for key in self.table.roots], [], 0.0)

    def never(self) -> int:
        """How many subscriptions can never match: they are not roots, and no root covers them."""
        table = self.table
        return sum(
            not table.is_root(number) and table.cover_of(number) is None
            for number in range(len(table))
        )

    def merged(self, plan: MergeOptions) -> Reduced:
        """The roots after merging (Fig. 10); afterwards the table is as it was before."""
        table, before = self.table, self.table.roots
        start = time.process_time()
        mergers = self._merge(plan)
        seconds = time.process_time() - start
        roots = set(before)
        entries = self.covering().entries
        hidden = [[n for n in table.covered_by(key) if n in roots]
                  for key, _ in entries if isinstance(key, Merger)]  # fmt: skip
        # Covered ones first: removing them restores no other.
        for merger in sorted(mergers, key=table.is_root):
            table.remove(merger)
        if table.roots != before:
            raise AssertionError(
                f"without its {len(mergers):,} mergers the table has {len(table.roots):,} roots, "
                f"before it had {len(before):,}"
            )
        return Reduced(entries, hidden, seconds)

    def _merge(self, plan: MergeOptions) -> list[Merger[int]]:
        """Insert mergers, and mergers of these, until none covers more than one entry."""
        table = self.table
        mergers: list[Merger[int]] = []
        for _ in range(MOST_SEARCHES):
            roots = {key: self._box(key) for key in table.roots}
            gained = 0
            for merger in find_mergers(roots, self.semantics, plan):
                if len(table.insert(merger, merger.expression).covers) < 2:
                    table.remove(merger)
                else:
                    mergers.append(merger)
                    gained += 1
            if not gained:
                break
        return mergers

    def _box(self, key: Any) -> Box | Expression:
        """The box of an entry, made once: a table is merged many times."""
        if isinstance(key, Merger):
            return key.expression
        found = self._boxes.get(key)
        if found is None:
            space = EventSpace.of(self.semantics)
            made = box_of(form_of(self.table.expression(key), self.semantics), space)
            if made is None:
                raise TypeError(f"{self.table.expression(key)} is not a box")
            found = self._boxes[key] = made
        return found

    def events(self, count: int, density: float = 1.0) -> pa.Table:
        """Publications; each attribute is present with probability `density`."""
        return self.source.events(count, self.seed + EVENT_SEEDS, density)

    def rows(self, events: pa.Table) -> list[Row]:
        """Publications as engines take them."""
        found = table_rows(events, self.source.schema, refuse_unknown=True)
        return [self.semantics.prepare(row) for row in found]


def attribute_names(order: Sequence[int], source: Workload) -> tuple[str, ...]:
    """The names of attributes from the top of a diagram to its bottom, by their ranks."""
    names = [attribute.name for attribute in source.schema.attributes]
    return tuple(sorted(names, key=lambda name: order[names.index(name)]))
