"""Conditions of boxes, ready to be compared: one object for each set of values.

Most conditions are one interval of values, and whether one implies another is then two comparisons
of cuts. The others are compared by their value sets, and tests that have none by `entailment`.
"""

from typing import Any
from weakref import WeakValueDictionary

from tamis.bounded_caches import remembered
from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.boxes import AttributeCondition, Box
from tamis.predicates.event_space import EventSpace
from tamis.predicates.value_orders import Cut, order_of
from tamis.predicates.value_sets import MISSING, ValueSet, all_values, compared, condition_of
from tamis.relations.entailment.decision import Answer, entails, satisfiable
from tamis.schema import Attribute


class Constraint:
    """A condition that can be true of some event and false of another. Compared by identity."""

    __slots__ = (
        "__weakref__", "_attribute", "_node", "bit", "high", "is_interval", "low", "members",
        "position", "values",
    )  # fmt: skip

    def __init__(
        self, position: int, node: Node | None, values: ValueSet | None, attribute: Attribute
    ) -> None:
        """Without a `node` it is made of the `values` when it is first asked for."""
        self.position = position
        self.bit = 1 << position
        self._node = node
        self._attribute = attribute
        self.values = values
        # `is_interval`: the values are one interval, from `low` to `high`, and none is missing.
        self.is_interval = values is not None and len(values.intervals) == 1 and not values.missing
        self.low: Any = None
        self.high: Any = None
        # The cuts before all values, if these are single and the missing one is not among them.
        self.members: tuple[Cut, ...] | None = None
        if values is None or values.missing:
            return
        if self.is_interval:
            ((self.low, self.high),) = values.intervals
        order = order_of(attribute)
        if all(high == order.following(low) for low, high in values.intervals):
            self.members = tuple(low for low, _ in values.intervals)

    @property
    def node(self) -> Node:
        """The condition; equal for equal sets of values."""
        if self._node is None:
            assert self.values is not None  # noqa: S101 - it has the one or the other
            self._node = condition_of(self.values, self._attribute)
        return self._node

    def __repr__(self) -> str:
        return f"Constraint({self.position}, {self.node})"


Constraints = tuple[Constraint, ...]  # of one box, in the order of the schema


class ConstraintPool:
    """The constraints of one event space that are in use."""

    def __init__(self, space: EventSpace) -> None:
        self.space = space
        # By the set of values or, of conditions without one, by the node.
        self._constraints: WeakValueDictionary[tuple[int, Node | ValueSet], Constraint] = (
            WeakValueDictionary()
        )
        # Answers about conditions without a value set, which take long.
        self._entails = remembered()(self._decide)
        self._constant = remembered()(self._decide_constant)

    def constraints(self, box: Box) -> Constraints | None:
        """The constraints of a box that are not always true; None if the box is never true."""
        if box.is_empty:
            return None
        found = []
        for condition in box.conditions:
            constraint = self._constraints.get(_key(condition)) or self._made(condition)
            if constraint is False:
                return None
            if constraint is not True:
                found.append(constraint)
        return tuple(found)

    def constraints_of_values(self, values: dict[int, ValueSet]) -> Constraints | None:
        """The same of a box that has the values of attributes, none of which may be missing."""
        found = []
        for position in sorted(values):
            attribute, some = self.space.schema.attributes[position], values[position]
            if not some.intervals:
                return None
            if not self.space.may_miss(position) and (
                some.intervals == all_values(order_of(attribute)).intervals
            ):
                continue
            constraint = self._constraints.get((position, some))
            if constraint is None:
                constraint = self._constraints[position, some] = Constraint(
                    position, None, some, attribute
                )
            found.append(constraint)
        return tuple(found)

    def point(self, position: int, value: Any) -> Constraint:
        """A constraint that is true of one value, or of the missing one; it is not shared."""
        attribute = self.space.schema.attributes[position]
        values = MISSING if value is None else compared("=", value, order_of(attribute))
        return Constraint(position, None, values, attribute)

    def implies(self, strong: Constraint, weak: Constraint) -> bool:
        """Whether every event that makes one true makes another of its attribute true."""
        if strong is weak:
            return True
        if strong.is_interval and weak.is_interval:
            return bool(weak.low <= strong.low and strong.high <= weak.high)
        if strong.values is not None and weak.values is not None:
            return strong.values.issubset(weak.values)
        return self._entails(strong.node, weak.node)

    def _made(self, condition: AttributeCondition) -> Constraint | bool:
        """A new constraint, or whether the condition is always true or never."""
        position, node, values = condition
        if values is None:
            constant = self._constant(node)
            if constant is not None:
                return constant
        constraint = Constraint(position, node, values, self.space.schema.attributes[position])
        self._constraints[_key(condition)] = constraint
        return constraint

    def _decide(self, strong: Node, weak: Node) -> bool:
        return entails(strong, weak, self.space) is Answer.YES

    def _decide_constant(self, node: Node) -> bool | None:
        """Whether a condition is never true (False), always (True), or neither for all we know."""
        if satisfiable(node, self.space) is Answer.NO:
            return False
        return True if entails(ast.TRUE, node, self.space) is Answer.YES else None


def _key(condition: AttributeCondition) -> tuple[int, Node | ValueSet]:
    position, node, values = condition
    return position, node if values is None else values
