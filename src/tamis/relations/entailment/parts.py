"""Forms that ask each attribute by itself: one condition an attribute, all of which must be true.

Attributes are independent of each other, so such forms are compared attribute by attribute.
"""

import functools
from typing import NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.relations.entailment.spans import Span, span
from tamis.relations.event_space import World


class Part(NamedTuple):
    """What a form asks of one attribute; `span` is None where its values cannot be listed."""

    position: int
    condition: Node
    span: Span | None


Parts = tuple[Part, ...]


@functools.lru_cache(maxsize=50_000)
def parts(form: Node, world: World) -> Parts | None:
    """The parts of a form, None if some condition asks several attributes at once."""
    conditions: dict[int, list[Node]] = {}
    for item in form.items if isinstance(form, ast.And) else (form,):
        path = _only_path(item)
        if path is None:
            return None
        conditions.setdefault(world.schema.positions[path], []).append(item)
    found = []
    for position, items in conditions.items():
        condition = items[0] if len(items) == 1 else ast.And(tuple(items))
        attribute = world.schema.attributes[position]
        listed = span(condition, attribute, world.may_miss(position))
        found.append(Part(position, condition, listed))
    return tuple(found)


@functools.lru_cache(maxsize=50_000)
def _only_path(condition: Node) -> tuple[str, ...] | None:
    """The one attribute of a condition, None if there are none or several."""
    only: tuple[str, ...] | None = None
    for node in ast.walk(condition):
        if isinstance(node, ast.Attribute):
            if only is not None and only != node.path:
                return None
            only = node.path
    return only
