"""What engines that hold filters as decision diagrams have in common.

A filter in normal form has no negation above its predicates, so it is enough to know which
predicates are true of an event; those of a missing attribute are not. A diagram over the predicates
thus answers for every semantics. In strict semantics the event must also have all attributes of the
text (`Semantics.demanded`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tamis.diagrams.attribute_orders import profiled_order, ranks_of
from tamis.diagrams.diagram import (
    DO_AND,
    DO_FALSE,
    DO_OR,
    DO_TRUE,
    Array,
    Diagram,
    FunctionTooLarge,
)
from tamis.engines.base import Options
from tamis.engines.resources import as_profile
from tamis.engines.slots import Slots
from tamis.errors import CapacityError, OptionError
from tamis.events.event_reader import Row
from tamis.kernels.bdd_evaluation import without_missing
from tamis.kernels.handles import Handles
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.language.normal_form import normalize
from tamis.predicates.comparison_index import Ids
from tamis.predicates.index import PredicateIndex
from tamis.profiles import Profile
from tamis.schema import Schema
from tamis.semantics import Semantics

MOST_NODES = 100_000_000  # 24 bytes each
FILTER_NODES = 200_000  # of the diagram of one filter


@dataclass(frozen=True)
class DiagramOptions(Options):
    """Settings of every engine with diagrams."""

    ORDERED: ClassVar[str] = ""  # the order of variables that uses a profile

    order: str = ""
    max_nodes: int = 20_000_000  # of all diagrams together
    seed: int = 1  # of a random order of variables
    profile: Any = None  # of events; orders the attributes

    def __post_init__(self) -> None:
        if not (type(self.max_nodes) is int and 1_000 <= self.max_nodes <= MOST_NODES):
            raise OptionError(f"max_nodes is a number from 1,000 to {MOST_NODES:,}")
        if type(self.seed) is not int:
            raise OptionError("seed is a whole number")
        if self.profile is not None:
            if self.order != self.ORDERED:
                raise OptionError(
                    f"profile is of use for order={self.ORDERED!r} only, not for {self.order!r}"
                )
            object.__setattr__(self, "profile", as_profile(self.profile))


class DiagramFilter(NamedTuple):
    """A filter as these engines hold it."""

    tree: Node  # the normal form
    predicates: tuple[Node, ...]  # those of the tree, each once
    attributes: tuple[int, ...]  # positions of the attributes that an event must have


class DiagramEngine(ABC):
    """The workflow of these engines; `insert`, `delete` and `true_slots` are the hooks."""

    name = "diagrams"
    options_class: ClassVar[type[DiagramOptions]] = DiagramOptions

    def __init__(self, semantics: Semantics, options: Any) -> None:
        self._semantics = semantics
        self.options = options
        self.rank = _ranks(semantics.schema, options.profile)  # of an attribute by position
        self.predicates = PredicateIndex(semantics.schema)
        self.diagram = self.new_diagram()
        self.slots = Slots()
        self.filters: dict[int, DiagramFilter] = {}  # slot -> the filter
        self._slot_of: dict[int, int] = {}  # handle -> slot
        self.variable_of: Array = np.zeros(64, np.int64)  # predicate -> variable
        words = -(-len(semantics.schema) // 64) if semantics.name == "strict" else 0
        self._needed: Array = np.zeros((64, words), np.uint64)  # slot -> attributes it must have

    # --- hooks

    @abstractmethod
    def level(self, predicate: Node) -> int:
        """The level of a new variable; smaller ones are on top."""

    @abstractmethod
    def insert(self, slot: int, prepared: DiagramFilter) -> None:
        """Hold a filter, all of whose predicates have variables, in a free slot."""

    @abstractmethod
    def delete(self, slot: int) -> None:
        """Drop the filter of a slot."""

    @abstractmethod
    def true_slots(self, satisfied: Ids, row: Row) -> Ids:
        """The slots whose diagram is true when these variables are and no others."""

    @abstractmethod
    def collect(self) -> None:
        """Drop the nodes that no filter needs."""

    def with_room(self, make: Callable[[], int]) -> int:
        """The node that a function makes, tried again after a collection if there is no room."""
        try:
            return make()
        except FunctionTooLarge:
            raise
        except CapacityError:
            if self.diagram.nodes <= self.diagram.live:
                raise
        self.collect()
        return make()

    # --- the contract of engines

    def prepare(self, expression: Expression) -> DiagramFilter:
        tree = normalize(expression.tree, self._semantics.logic)
        predicates = tuple(dict.fromkeys(_leaves(tree)))
        return DiagramFilter(tree, predicates, self._semantics.demanded(expression))

    def add(self, handle: int, prepared: DiagramFilter) -> None:
        slot = self.slots.take(handle)
        self._make_room(slot)
        for position in prepared.attributes:
            self._needed[slot, position // 64] |= np.uint64(1 << position % 64)
        for predicate in prepared.predicates:
            self._take(predicate)
        try:
            self.insert(slot, prepared)
        except CapacityError:
            self._let_go(slot, prepared)
            if not self.filters:
                self.collect()
            raise
        self.filters[slot] = prepared
        self._slot_of[handle] = slot

    def remove(self, handle: int) -> None:
        slot = self._slot_of.pop(handle)
        self._let_go(slot, self.filters[slot])
        self.delete(slot)
        del self.filters[slot]

    def match(self, row: Row) -> Handles:
        satisfied = self.variable_of[self.predicates.satisfied(row)]
        slots = self.true_slots(satisfied, row)
        if self._needed.shape[1]:
            missing = np.zeros(self._needed.shape[1], np.uint64)
            for position, value in enumerate(row):
                if value is None:
                    missing[position // 64] |= np.uint64(1 << position % 64)
            if missing.any():
                slots = without_missing(slots, self._needed, missing)
        return self.slots.handles_of(slots)

    def match_many(self, rows: Sequence[Row]) -> Iterator[Handles]:
        return map(self.match, rows)

    def statistics(self) -> dict[str, int]:
        return {
            "subscriptions": len(self._slot_of),
            "predicates": len(self.predicates),
            "nodes": self.diagram.nodes,
        }

    # --- predicates and variables

    def new_diagram(self) -> Diagram:
        """An empty diagram with the limit of the options."""
        return Diagram(self.options.max_nodes + 2)

    def variable(self, predicate: Node) -> int:
        """The variable of a predicate that is held."""
        return int(self.variable_of[self.predicates.ids[predicate]])

    def variables(self) -> Iterable[tuple[Node, int]]:
        """All predicates that are held, with their variables."""
        return ((node, int(self.variable_of[i])) for node, i in self.predicates.ids.items())

    def _take(self, predicate: Node) -> None:
        is_new = predicate not in self.predicates.ids
        number = self.predicates.intern(predicate)
        if is_new:
            if number >= len(self.variable_of):
                self.variable_of = np.concatenate(
                    [self.variable_of, np.zeros_like(self.variable_of)]
                )
            self.variable_of[number] = self.diagram.new_variable(self.level(predicate))

    def _let_go(self, slot: int, prepared: DiagramFilter) -> None:
        self._needed[slot] = 0
        for predicate in prepared.predicates:
            number = self.predicates.ids[predicate]
            self.predicates.release(number)
            if predicate not in self.predicates.ids:
                self.diagram.retire(int(self.variable_of[number]))
        self.slots.give_back(slot)

    def _make_room(self, slot: int) -> None:
        if slot >= len(self._needed):
            self._needed = np.concatenate([self._needed, np.zeros_like(self._needed)])

    def program(self, prepared: DiagramFilter) -> Array:
        """The postfix program of a filter over the variables of its predicates."""
        steps: list[int] = []
        self._write(prepared.tree, steps)
        return np.array(steps, np.int64)

    def _write(self, tree: Node, steps: list[int]) -> None:
        match tree:
            case ast.Literal(value, _):
                steps.append(DO_TRUE if value is True else DO_FALSE)
            case ast.And(items) | ast.Or(items):
                operator = DO_AND if isinstance(tree, ast.And) else DO_OR
                # From the bottom up, each predicate becomes a new top node in one step.
                plain = [self.variable(item) for item in items if not _is_chain(item)]
                plain.sort(key=self.diagram.level, reverse=True)
                chains = [item for item in items if _is_chain(item)]
                for number, variable in enumerate(plain):
                    steps += [variable, operator] if number else [variable]
                for number, chain in enumerate(chains, len(plain)):
                    self._write(chain, steps)
                    if number:
                        steps.append(operator)
            case _:
                steps.append(self.variable(tree))


def _ranks(schema: Schema, profile: Profile | None) -> list[int]:
    """The rank of each attribute, 0 on top: its position, or what a profile suggests."""
    if profile is None:
        return list(range(len(schema)))
    return ranks_of(profiled_order(profile, schema.positions))


def _is_chain(tree: Node) -> bool:
    return isinstance(tree, ast.And | ast.Or)


def _leaves(tree: Node) -> Iterator[Node]:
    if isinstance(tree, ast.And | ast.Or):
        for item in tree.items:
            yield from _leaves(item)
    elif not isinstance(tree, ast.Literal):
        yield tree
