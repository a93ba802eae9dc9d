"""Routing tables after covering and merging."""

import time
from typing import Any, NamedTuple

from routing_sections.subscription_set import Table
from tamis.language.expression import Expression
from tamis.relations.merging.mergers import MergeOptions, Merger, find_mergers
from tamis.semantics import Semantics

MOST_ROUNDS = 8  # of merging what was merged before


class Reduced(NamedTuple):
    """The entries of a routing table."""

    entries: list[tuple[Any, Expression]]  # keys: numbers of subscriptions, or mergers
    hidden: list[list[int]]  # for each entry that is a merger, the roots that it stands for
    seconds: float

    @property
    def size(self) -> int:
        return len(self.entries)

    @property
    def mergers(self) -> int:
        return len(self.hidden)


def covering(table: Table) -> Reduced:
    """The subscriptions that no other covers."""
    return Reduced([(key, table.expression(key)) for key in table.roots], [], 0.0)


def merged(table: Table, semantics: Semantics, plan: MergeOptions) -> Reduced:
    """The roots of a table after merging (Fig. 10); afterwards the table is as it was before."""
    before = table.roots
    start = time.perf_counter()
    mergers = _merge(table, semantics, plan)
    seconds = time.perf_counter() - start
    roots = set(before)
    entries = covering(table).entries
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


def _merge(table: Table, semantics: Semantics, plan: MergeOptions) -> list[Merger[int]]:
    """Insert mergers, and mergers of these, until none covers more than one entry."""
    mergers: list[Merger[int]] = []
    for _ in range(MOST_ROUNDS):
        roots = {key: table.expression(key) for key in table.roots}
        gained = 0
        for merger in find_mergers(roots, semantics, plan):
            if len(table.insert(merger, merger.expression).covers) < 2:
                table.remove(merger)
            else:
                mergers.append(merger)
                gained += 1
        if not gained:
            break
    return mergers
