"""All filters in one shared decision diagram.

This is Campailla et al., "Efficient filtering in publish-subscribe systems using binary decision
diagrams" (ICSE 2001; BDD for short), sections 6 and 7. Every distinct predicate is a variable,
every filter a node of one diagram. An event assigns truth to the variables; one pass over all nodes
(``EvalBDD``; ``MVEvalBDD`` in strict semantics) evaluates every filter. Filters are restricted by
what is always true between their predicates.
"""

import random
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tamis.diagrams.attribute_orders import FIRST_REORDER
from tamis.diagrams.diagram import FALSE, Array, FunctionTooLarge
from tamis.diagrams.restriction import (
    always_present,
    dependency_facts,
    single_clauses,
    whole_function,
)
from tamis.engines.diagram_engine import FILTER_NODES, DiagramEngine, DiagramFilter, DiagramOptions
from tamis.errors import CapacityError, choose
from tamis.events.event_reader import Row
from tamis.kernels.bdd_evaluation import eval_bdd, mv_eval_bdd, true_slots, undefined_variables
from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.comparison_index import Ids
from tamis.semantics import Semantics

ORDERS = ("attribute", "frequency", "random")
RESTRICTIONS = ("query", "iterative", "none")

FACT_NODES = 20_000  # of all facts of a filter together; if there are more, they are used singly
MOST_GARBAGE = 100_000  # nodes beyond twice those that were in use at the last collection


@dataclass(frozen=True)
class BddOptions(DiagramOptions):
    """Settings of the engine bdd."""

    ORDERED: ClassVar[str] = "attribute"

    order: str = "attribute"  # of variables: by attribute, by frequency, random
    restriction: str = "query"  # by all facts of a filter at once, one by one, or not at all

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("order", self.order, ORDERS)
        choose("restriction", self.restriction, RESTRICTIONS)


class BddEngine(DiagramEngine):
    """One diagram for all filters."""

    name = "bdd"
    options_class: ClassVar[type[BddOptions]] = BddOptions

    def __init__(self, semantics: Semantics, options: BddOptions) -> None:
        super().__init__(semantics, options)
        self.order = options.order
        self.restriction = options.restriction
        self._present = always_present(semantics)
        self._chance = random.Random(options.seed)  # noqa: S311 - an order, not a secret
        self._variables_made = 0
        self._roots: Array = np.zeros(64, np.int32)  # slot -> node
        self._removed = 0  # filters since the last collection
        self._reorder_at = FIRST_REORDER
        self._value: Array = np.zeros(0, np.uint8)
        self._truth: Array = np.zeros(0, np.uint8)
        self._attributes_of: tuple[Array, Array, Array] | None = None  # for MVEvalBDD

    # --- hooks of engines with diagrams

    def level(self, predicate: Node) -> int:
        self._attributes_of = None
        self._variables_made += 1
        positions = self._semantics.schema.positions
        match self.order:
            case "attribute":
                ranks = [self.rank[positions[path]] for path in ast.attributes(predicate)]
                group = min(ranks, default=0)  # of none, if it only tests the time
            case "random":
                group = self._chance.getrandbits(21)
            case _:
                group = 0  # in the order in which they come, until `reorder`
        return (group << 40) + self._variables_made

    def insert(self, slot: int, prepared: DiagramFilter) -> None:
        if slot >= len(self._roots):
            self._roots = np.concatenate([self._roots, np.zeros_like(self._roots)])
        self._roots[slot] = self.with_room(lambda: self.root(prepared))
        if self.diagram.nodes > 2 * self.diagram.live + MOST_GARBAGE:
            self.collect()
        if self.order == "frequency" and len(self.filters) >= self._reorder_at:
            self._reorder_at *= 2
            self.reorder({**self.filters, slot: prepared})

    def delete(self, slot: int) -> None:
        self._roots[slot] = FALSE
        self._removed += 1
        if len(self.filters) == 1 or self._removed > len(self.filters) + 100:  # the last, or many
            self.collect()

    def true_slots(self, satisfied: Ids, row: Row) -> Ids:
        self._keep_house()
        truth, diagram = self._truth, self.diagram
        truth[:] = 0
        truth[satisfied] = 1
        if self._semantics.name == "strict":
            variables, starts, attributes = self._attributes()
            missing = np.array([value is None for value in row], np.uint8)
            undefined_variables(variables, starts, attributes, missing, truth)
            mv_eval_bdd(truth, diagram.variable_ranges, diagram.store, self._value)
        else:
            eval_bdd(truth, diagram.variable_ranges, diagram.store, self._value)
        found = np.empty(self.slots.size + 1, np.int32)
        return found[: true_slots(self._value, self._roots[: self.slots.size], found)]

    # --- functions

    def root(self, prepared: DiagramFilter) -> int:
        """The node of a filter, restricted."""
        if self.restriction == "none":
            return self.diagram.build(self.program(prepared), FILTER_NODES)
        variables = [(p, self.variable(p)) for p in prepared.predicates]
        facts = dependency_facts(variables, self._semantics.schema, self._present)
        try:
            root = self.diagram.build(self.program(prepared), FILTER_NODES)
        except FunctionTooLarge:
            if not facts:
                raise
            care = self.diagram.build(whole_function(facts), FILTER_NODES)
            return self.diagram.build(self.program(prepared), FILTER_NODES, care)
        if not facts:
            return root
        if self.restriction == "query":
            try:
                return self.diagram.restrict_by(root, whole_function(facts), FACT_NODES)
            except CapacityError:  # the facts together are too large, not the filter
                pass
        try:
            return self.diagram.restrict_by(root, single_clauses(facts), FILTER_NODES)
        except CapacityError:
            return root

    def collect(self) -> None:
        self.diagram.collect(self._roots)
        self._removed = 0

    def reorder(self, filters: dict[int, DiagramFilter]) -> None:
        """Put the variables of frequent predicates on top and build all filters again.

        Keeps the order as it is if the filters do not fit in the new one.
        """
        before = self.diagram, self.variable_of
        self.variable_of = self.variable_of.copy()
        ids = self.predicates.ids.values()
        self.diagram = self.new_diagram()
        for place, predicate in enumerate(sorted(ids, key=self.predicates.uses, reverse=True)):
            self.variable_of[predicate] = self.diagram.new_variable(place - 2**41)
        self._attributes_of = None
        roots = np.zeros_like(self._roots)
        try:
            for slot, prepared in filters.items():
                roots[slot] = self.root(prepared)
        except CapacityError:
            self.diagram, self.variable_of = before
            self._attributes_of = None
            return
        self._roots = roots

    def _keep_house(self) -> None:
        """Collect if many nodes may be unused, and make room for values."""
        diagram = self.diagram
        if self._removed > len(self.filters) // 4 or diagram.nodes > diagram.live + (
            diagram.live // 4 + 1000
        ):
            self.collect()
        if len(self._value) < diagram.nodes + 2:
            self._value = np.zeros(2 * (diagram.nodes + 2), np.uint8)
        if len(self._truth) < diagram.variables:
            self._truth = np.zeros(2 * diagram.variables, np.uint8)

    def _attributes(self) -> tuple[Array, Array, Array]:
        """Which attributes each variable tests: variables[*], starts[*], attributes[*]."""
        if self._attributes_of is None:
            positions = self._semantics.schema.positions
            variables, starts, attributes = [], [0], []
            for predicate, variable in self.variables():
                variables.append(variable)
                attributes += [positions[path] for path in ast.attributes(predicate)]
                starts.append(len(attributes))
            arrays = [np.array(some, np.int64) for some in (variables, starts, attributes)]
            self._attributes_of = arrays[0], arrays[1], arrays[2]
        return self._attributes_of

    @property
    def roots(self) -> Array:
        """The node of each filter, by its slot."""
        return self._roots[: self.slots.size]

    def statistics(self) -> dict[str, Any]:
        self.collect()  # so that only nodes count that filters need
        return super().statistics()
