"""Matching by a tree of tests.

It is that of Aguilera et al., "Matching events in a content-based subscription system" (PODC 1999;
TREE for short).
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from tamis.engines.base import Options
from tamis.engines.conjunction_engine import ConjunctionEngine
from tamis.engines.tree.distinct_conjunctions import ConjunctionStore
from tamis.engines.tree.elements import DistinctElements
from tamis.engines.tree.equality_tree import EqualityTree
from tamis.engines.tree.event_state import EventState
from tamis.engines.tree.factoring import Factoring
from tamis.engines.tree.growing_tree import GrowingTree
from tamis.engines.tree.options import TreeOptions
from tamis.engines.tree.outline import Outline, Outliner
from tamis.errors import CapacityError
from tamis.events.event_reader import Row
from tamis.kernels.growing_tree import NONE
from tamis.kernels.tree_conjunctions import GENERAL, HOME, YOUNG, only_equalities
from tamis.predicates.comparison_index import Ids
from tamis.semantics import Semantics


class TreeEngine(ConjunctionEngine):
    """A general tree (appendix A), and one for conjunctions of equalities (appendix B)."""

    name = "tree"
    options_class: ClassVar[type[Options]] = TreeOptions

    def __init__(self, semantics: Semantics, options: TreeOptions) -> None:
        super().__init__(semantics, options)
        attributes = len(semantics.schema)
        self._limit = options.max_nodes
        self._equalities_apart = options.equality_tree
        self._elements = DistinctElements(self.predicates)
        self._groups = ConjunctionStore(self._elements)
        self.general = GrowingTree(
            self._elements, self._groups, implied_edges=options.implied_edges
        )
        factoring = Factoring(options, semantics.schema, self._elements)
        self.equality = EqualityTree(options, factoring, self._elements, self._groups, attributes)
        self._event = EventState(self.predicates, self._elements)
        self._expected = 0  # nodes of the general tree that the last event visited

    # --- hooks

    def insert(self, slot: int, predicates: Ids) -> None:
        sequence = self._elements.sequence(predicates)
        if sequence is None:  # never true, so it is in no tree
            return
        group = self._groups.find(sequence)
        if group == NONE:
            equalities = self._equalities_apart and only_equalities(sequence, self._elements.rows)
            group = self._groups.add(sequence, YOUNG if equalities else GENERAL)
            try:
                if equalities:
                    self.equality.plant(group, sequence, self.general.nodes)
                else:
                    self.general.plant(group, sequence, self._limit - self.equality.nodes)
            except CapacityError:
                self._groups.drop(group)
                self._elements.collect()
                raise
        elif self._groups.is_empty(group):
            self.equality.revive(group)
        self._groups.join(slot, group)

    def delete(self, slot: int, predicates: Ids) -> None:  # noqa: ARG002 - the slot knows its group
        if not self._groups.holds(slot):
            return
        group = self._groups.leave(slot)
        if group == NONE:
            return
        if self._groups.rows[group, HOME] == GENERAL:
            self.general.uproot(group)
            self._groups.drop(group)
        else:
            self.equality.uproot(group)
        self._elements.collect()

    def complete(self, satisfied: Ids) -> Ids:
        self._event.read_satisfied(satisfied)
        return self.search()

    def complete_rows(self, rows: Sequence[Row]) -> Iterator[Ids]:
        """Search by the values of each row; few tests need the index of predicates."""
        for row in rows:
            self.read(row)
            yield self.search()

    def read(self, row: Row) -> None:
        """Take the values of an event, for a search."""
        self._event.read(row)

    def search(self) -> Ids:
        """The slots of the event that was read last; the algorithm match alone (TREE, Fig. 4)."""
        event = self._event
        event.make_room(self._groups.slots)
        self.equality.search(event)
        if self.general.nodes:
            decided = event.decide(self._expected)
            before = event.visited
            event.run(lambda arrays: self.general.search(arrays, decided=decided))
            self._expected = event.visited - before
        return event.take()

    # --- for measurements

    @property
    def visited(self) -> int:
        """How many nodes all searches have visited since `reset_visited`; see `theorem_bound`."""
        return self._event.visited

    def reset_visited(self) -> None:
        """Count visited nodes from 0 again."""
        self._event.reset_visited()

    def settle(self) -> None:
        """Annotate all conjunctions now, so that it does not happen during a measurement."""
        self.equality.settle()

    def outline(self) -> dict[str, Outline]:
        """The trees as the paper draws them: general, young (or only) and annotated."""
        outliner = Outliner(self._semantics.schema, self._elements, self._groups)
        static = self.equality.static
        return {
            "general": outliner.growing(self.general),
            "equality": outliner.growing(self.equality.growing),
            "annotated": {} if static is None else outliner.static(static),
        }

    def statistics(self) -> dict[str, int]:
        sizes = self.equality.statistics()
        sizes["nodes"] += self.general.nodes
        sizes["edges"] += self.general.edges
        return super().statistics() | {"leaves": len(self._groups)} | sizes
