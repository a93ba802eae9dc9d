"""Filters that ask each attribute by itself: conjunctions of one condition an attribute.

Most filters are boxes, and everything about boxes is decided attribute by attribute: one covers
another iff each of its conditions covers the other's of the same attribute. The paper's predicates
are conditions; ``price >= 5 AND price <= 10`` is one condition, too, and so is ``price < 5 OR price
> 10``.
"""

import functools
from typing import NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.regions import whole
from tamis.relations.event_space import World
from tamis.relations.extents import Extent, condition_of, extent, single_attribute
from tamis.schema import Attribute


class Condition(NamedTuple):
    """What is asked of one attribute."""

    position: int  # of the attribute in the schema
    node: Node  # canonical: equal extents, where they can be written down, are equal nodes


class Box(NamedTuple):
    """Conditions of different attributes, in the order of the schema; all must be true.

    Each can be true of some value and false of another; a box without conditions is always true.
    """

    conditions: tuple[Condition, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The attributes that it asks."""
        return tuple(condition.position for condition in self.conditions)

    @property
    def form(self) -> Node:
        """The box as a normal form."""
        nodes = tuple(condition.node for condition in self.conditions)
        if not nodes:
            return ast.TRUE
        return nodes[0] if len(nodes) == 1 else ast.And(nodes)


NEVER = None, True
NO_BOX = None, False


def box_of(form: Node, world: World) -> tuple[Box | None, bool]:
    """The box of a normal form, and whether the form is known never to be true.

    Without a box and not known never to be true, it is a general formula.
    """
    if form == ast.TRUE:
        return Box(()), False
    if form == ast.FALSE:
        return NEVER
    by_position: dict[int, list[Node]] = {}
    for item in form.items if isinstance(form, ast.And) else (form,):
        path = single_attribute(item)
        if path is None:
            return NO_BOX
        by_position.setdefault(world.schema.positions[path], []).append(item)
    conditions = []
    for position in sorted(by_position):
        items = by_position[position]
        node = items[0] if len(items) == 1 else ast.And(tuple(items))
        attribute = world.schema.attributes[position]
        canonical = _canonical(node, attribute, may_miss=world.may_miss(position))
        if canonical == ast.FALSE:
            return NEVER
        if canonical != ast.TRUE:
            conditions.append(Condition(position, canonical))
    return Box(tuple(conditions)), False


@functools.lru_cache(maxsize=100_000)
def _canonical(node: Node, attribute: Attribute, *, may_miss: bool) -> Node:
    found = extent(node, attribute)
    if found is None:
        return node
    if not may_miss:
        if found.values == whole(attribute.type, attribute.domain):
            return ast.TRUE
        found = Extent(found.values)
    return condition_of(found, attribute)
