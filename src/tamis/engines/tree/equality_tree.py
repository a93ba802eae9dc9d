"""Conjunctions of equalities: an annotated tree that keeps its shape, and a growing one beside it.

The annotations belong to a shape, so a new conjunction waits in the growing tree until there are
enough of them; then both trees become one annotated tree. A conjunction whose leaf exists already
joins it. A leaf without subscriptions stays until then, and so do the predicates on the way to it.
Without annotations and index attributes there is only the growing tree.
"""

import numpy as np

from tamis.engines.tree.arrays import Array
from tamis.engines.tree.distinct_conjunctions import ConjunctionStore
from tamis.engines.tree.elements import DistinctElements
from tamis.engines.tree.event_state import EventState
from tamis.engines.tree.factoring import Factoring
from tamis.engines.tree.growing_tree import GrowingTree
from tamis.engines.tree.options import TreeOptions
from tamis.engines.tree.static_tree import StaticTree
from tamis.kernels.tree_conjunctions import HOME, OLD, YOUNG
from tamis.kernels.tree_factoring import empty_groups, equality_members


class EqualityTree:
    """The equality tree (TREE, appendix B) with the optimisations of section 5."""

    def __init__(
        self, options: TreeOptions, factoring: Factoring, elements: DistinctElements,
        groups: ConjunctionStore, attributes: int,
    ) -> None:  # fmt: skip
        self._options = options
        self._factoring = factoring
        self._elements = elements
        self._groups = groups
        self._attributes = attributes
        levels = None if options.collapse else np.arange(attributes, dtype=np.int32)
        self.growing = GrowingTree(elements, groups, levels=levels)
        self.static: StaticTree | None = None
        self._young = 0  # groups in the growing tree
        self._empty = 0  # groups of the static tree that have no slots
        self._settles = options.successors != "none" or factoring.number > 0

    @property
    def nodes(self) -> int:
        return self.growing.nodes + (self.static.nodes if self.static else 0)

    def plant(self, group: int, sequence: Array, others: int) -> None:
        """Add a group; `CapacityError` if it does not fit beside the `others` nodes."""
        self._factoring.check(sequence)
        taken = others + (self.static.nodes if self.static else 0)
        self.growing.plant(group, sequence, self._options.max_nodes - taken)
        self._factoring.count(sequence, 1)
        self._young += 1

    def revive(self, group: int) -> None:
        """Note that a group without slots has one again."""
        if self._groups.rows[group, HOME] == OLD:
            self._empty -= 1

    def uproot(self, group: int) -> None:
        """Note that a group has no slots any more."""
        if self._groups.rows[group, HOME] == YOUNG:
            self._factoring.count(self._groups.sequence(group), -1)
            self.growing.uproot(group)
            self._groups.drop(group)
            self._young -= 1
            return
        self._empty += 1
        if self.static is not None and self._empty == self.static.size:
            self._drop_empty()
            self.static = None

    # --- matching

    def search(self, event: EventState) -> None:
        """Find the conjunctions of an event; build the tree again first if it is time."""
        if self._settles and self._is_time():
            self.settle()
        if self.static is not None:
            event.run(self.static.search)
        if self._young:
            event.run(self.growing.search)

    def _is_time(self) -> bool:
        old = 0 if self.static is None else self.static.size
        return (
            self._young > old // 8 + self._options.young
            or self._empty > old // 2 + self._options.young
        )

    def settle(self) -> None:
        """Build the annotated tree from all conjunctions."""
        if not self._settles:
            return
        members = equality_members(self._groups.arrays)
        static = None
        if len(members):
            factors = self._factoring.plan(self._groups, members)
            static = StaticTree(
                self._elements, self._groups, members, factors, self._options, self._attributes
            )
        self._drop_empty()
        self._groups.rows[members, HOME] = OLD
        self.growing = GrowingTree(self._elements, self._groups, levels=self.growing.levels)
        self.static, self._young = static, 0

    def _drop_empty(self) -> None:
        """Drop the groups of the static tree that have no slots; the tree is then invalid."""
        if self._empty:
            for group in empty_groups(self._groups.arrays).tolist():
                self._factoring.count(self._groups.sequence(group), -1)
                self._groups.drop(group)
            self._elements.collect()
        self._empty = 0

    def statistics(self) -> dict[str, int]:
        static = self.static
        return {
            "nodes": self.nodes,
            "edges": self.growing.edges + (static.edges if static else 0),
            "successors": static.successors if static else 0,
            "subtrees": static.subtrees if static else 0,
        }
