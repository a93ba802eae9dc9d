"""Filters as a set of modified (multi-rooted) binary decision diagrams.

This is section 3 of Li et al., "A unified approach to routing, covering and merging in
publish/subscribe systems based on modified binary decision diagrams" (ICDCS 2005; MBD for short).
An MBD has several output nodes, one per filter, over the same children: filters that differ in the
predicate on top and share the rest. A new filter joins the MBD whose output nodes have the same
children as its own root, or starts a new one. Matching evaluates the children of every MBD once,
along one path, and then its output nodes.

The order of attributes depends on the filters seen so far, so that filters share much.
"""

import random
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from tamis.diagrams.attribute_orders import FIRST_REORDER, HISTORY, attribute_order, ranks_of
from tamis.diagrams.diagram import Array
from tamis.diagrams.mbds import MbdSet
from tamis.engines.diagram_engine import FILTER_NODES, DiagramEngine, DiagramFilter, DiagramOptions
from tamis.errors import CapacityError, choose
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.comparison_index import Ids
from tamis.semantics import Semantics

ORDERS = ("statistics", "schema", "random")
WITHIN = ("arrival", "random")


@dataclass(frozen=True)
class MbdOptions(DiagramOptions):
    """Settings of the engine mbd."""

    ORDERED: ClassVar[str] = "statistics"

    order: str = "statistics"  # of attributes: from the filters seen, as in the schema, random
    within: str = "arrival"  # of the predicates on one attribute: as they come, random

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("order", self.order, ORDERS)
        choose("within", self.within, WITHIN)


class MbdEngine(DiagramEngine):
    """A set of MBDs over one store of nodes."""

    name = "mbd"
    options_class: ClassVar[type[MbdOptions]] = MbdOptions

    def __init__(self, semantics: Semantics, options: MbdOptions) -> None:
        super().__init__(semantics, options)
        self.mbds = MbdSet()
        self._chance = random.Random(options.seed)  # noqa: S311 - an order, not a secret
        if options.order == "random":
            self._chance.shuffle(self.rank)
        self._variables_made = 0
        self._reorder_at = FIRST_REORDER
        self._removed = 0  # filters since the last collection
        self._truth: Array = np.zeros(0, np.uint8)

    # --- hooks of engines with diagrams

    def level(self, predicate: Node) -> int:
        self._variables_made += 1
        positions = self._semantics.schema.positions
        ranks = [self.rank[positions[path]] for path in ast.attributes(predicate)]
        group = min(ranks, default=0)  # of none, if it only tests the time
        place = self._chance.getrandbits(15) if self.options.within == "random" else 0
        return (group << 40) + (place << 25) + self._variables_made

    def insert(self, slot: int, prepared: DiagramFilter) -> None:
        self.mbds.insert(slot, self.with_room(lambda: self._root(prepared)), self.diagram)
        if self.options.order == "statistics" and len(self.filters) >= self._reorder_at:
            self._reorder_at *= 2
            self.reorder({**self.filters, slot: prepared})

    def delete(self, slot: int) -> None:
        self.mbds.remove(slot)
        self._removed += 1
        if len(self.filters) == 1 or self._removed > len(self.filters) + 100:  # the last, or many
            self.collect()

    def true_slots(self, satisfied: Ids, row: Row) -> Ids:  # noqa: ARG002 - truth is enough
        if len(self._truth) < self.diagram.variables:
            self._truth = np.zeros(2 * self.diagram.variables, np.uint8)
        self._truth[satisfied] = 1
        found = self.mbds.true_slots(self._truth, self.diagram)
        self._truth[satisfied] = 0
        return found

    def collect(self) -> None:
        self.mbds.collect(self.diagram)
        self._removed = 0

    # --- functions

    def _root(self, prepared: DiagramFilter) -> int:
        return self.diagram.build(self.program(prepared), FILTER_NODES)

    def reorder(self, filters: dict[int, DiagramFilter]) -> None:
        """Order the attributes by the filters seen and build all again, if the order changes.

        Keeps everything as it is if the filters do not fit in the new order.
        """
        history = (prepared.predicates for prepared in islice(filters.values(), HISTORY))
        order = attribute_order(history, self._semantics.schema.positions)
        rank = ranks_of(order)
        if rank == self.rank:
            return
        before = self.diagram, self.mbds, self.rank, self.variable_of
        self.diagram, self.mbds, self.rank = self.new_diagram(), MbdSet(), rank
        self.variable_of = self.variable_of.copy()
        try:
            for node, predicate in self.predicates.ids.items():
                self.variable_of[predicate] = self.diagram.new_variable(self.level(node))
            for slot, prepared in filters.items():
                self.mbds.insert(slot, self._root(prepared), self.diagram)
        except CapacityError:
            self.diagram, self.mbds, self.rank, self.variable_of = before

    def statistics(self) -> dict[str, int]:
        self.collect()
        return super().statistics() | {"groups": len(self.mbds)}
