"""Boxes: filters that test each attribute by itself, as a conjunction of one condition each.

Most filters are boxes, and everything about boxes is decided attribute by attribute, because the
values of attributes are independent of each other: one box covers another iff each of its
conditions is implied by the other's condition on the same attribute. The predicates of the
MBD paper are conditions; ``price >= 5 AND price <= 10`` is one condition, too, and so is ``price <
5 OR price > 10``.
"""

from typing import Any, NamedTuple

from tamis.bounded_caches import remembered
from tamis.language import ast
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.classification import Comparison, classify
from tamis.predicates.event_space import EventSpace
from tamis.predicates.implication import attribute_of
from tamis.predicates.value_orders import order_of
from tamis.predicates.value_sets import (
    NOTHING,
    ValueSet,
    all_values,
    condition_of,
    value_set,
    with_missing,
)
from tamis.schema import Attribute, Schema


class AttributeCondition(NamedTuple):
    """What a box says about one attribute."""

    position: int  # of the attribute in the schema
    node: Node  # equal for equal value sets
    values: ValueSet | None  # None if the values cannot be listed, such as those of LIKE


class Box(NamedTuple):
    """Conditions on different attributes, in the order of the schema; all must be true.

    A condition is false of some value at least. A box without conditions is always true.
    """

    conditions: tuple[AttributeCondition, ...]

    @property
    def is_empty(self) -> bool:
        """Whether it is known that no event can make the box true."""
        return self == EMPTY

    @property
    def positions(self) -> tuple[int, ...]:
        """The attributes that it tests, by their positions in the schema."""
        return tuple(condition.position for condition in self.conditions)

    @property
    def form(self) -> Node:
        """The box as a normal form."""
        nodes = tuple(condition.node for condition in self.conditions)
        if not nodes:
            return ast.TRUE
        return nodes[0] if len(nodes) == 1 else ast.And(nodes)


EMPTY = Box((AttributeCondition(-1, ast.FALSE, NOTHING),))


@remembered(32_000_000)
def box_of(form: Node, space: EventSpace, *, computed: bool = False) -> Box | None:
    """The box of a normal form, `EMPTY` if it is never true; None for any other formula.

    With `computed`, a condition may also test what is computed from its attribute alone, such as
    ``length(s) > 3``.
    """
    if isinstance(form, ast.Literal):
        return Box(()) if form == ast.TRUE else EMPTY
    find = _only_attribute if computed else single_attribute
    by_position: dict[int, list[Node]] = {}
    for item in form.items if isinstance(form, ast.And) else (form,):
        path = find(item)
        if path is None:
            return None
        by_position.setdefault(space.schema.positions[path], []).append(item)
    conditions = []
    for position in sorted(by_position):
        items = by_position[position]
        node = items[0] if len(items) == 1 else ast.And(tuple(items))
        condition = condition_on(position, node, space)
        if condition.node == ast.FALSE:
            return EMPTY
        if condition.node != ast.TRUE:
            conditions.append(condition)
    return Box(tuple(conditions))


def condition_on(position: int, node: Node, space: EventSpace) -> AttributeCondition:
    """The condition of a node on one attribute; its node is TRUE or FALSE if it always is."""
    attribute = space.schema.attributes[position]
    return AttributeCondition(
        position, *_canonical(node, attribute, may_miss=space.may_miss(position))
    )


@remembered(32_000_000)
def _canonical(node: Node, attribute: Attribute, *, may_miss: bool) -> tuple[Node, ValueSet | None]:
    order = order_of(attribute)
    values = value_set(node, order)
    if values is None:
        return node, None
    if not may_miss:
        everything = all_values(order)
        has_all = values.intervals == everything.intervals
        values = with_missing(everything) if has_all else ValueSet(values.intervals)
    return condition_of(values, attribute), values


def single_attribute(condition: Node) -> Path | None:
    """The attribute of a condition whose predicates all test it as it is; None for any other."""
    if not isinstance(condition, ast.And | ast.Or):
        return attribute_of(condition)
    paths = {single_attribute(item) for item in condition.items}
    return paths.pop() if len(paths) == 1 else None


@remembered()
def _only_attribute(condition: Node) -> Path | None:
    """The only attribute in a condition, computed with or not; None if there are others."""
    paths = ast.attributes(condition)
    return next(iter(paths)) if len(paths) == 1 else None


def pinned_values(form: Node, schema: Schema) -> dict[int, Any]:
    """The values that attributes must equal for a normal form to be true, by position."""
    found = {}
    for item in form.items if isinstance(form, ast.And) else (form,):
        match classify(item):
            case Comparison(ast.Attribute(path, _), "=", value):
                found[schema.positions[path]] = value
    return found
