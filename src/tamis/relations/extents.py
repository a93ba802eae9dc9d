"""The values of one attribute for which a condition is true; the missing one may be among them.

A condition is a predicate of one attribute or AND and OR of such. Its extent, where it can be
written down, says all that there is to say about it: conditions of equal extent are equal, one
implies another iff its extent lies within the other's.
"""

import functools
from typing import Any, NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.implication import attribute_of
from tamis.predicates.regions import (
    BOTTOM,
    TOP,
    Region,
    complement,
    intersection,
    region,
    whole,
)
from tamis.schema import Attribute
from tamis.types import BOOL, INT, TIMESTAMP

_WHOLE = {INT, TIMESTAMP}


class Extent(NamedTuple):
    """A set of values, and of the missing one."""

    values: Region
    missing: bool = False

    def __bool__(self) -> bool:
        return bool(self.values) or self.missing

    def within(self, other: "Extent") -> bool:
        """Whether every value of it is one of another."""
        if self.missing and not other.missing:
            return False
        return intersection(self.values, other.values) == self.values

    def common(self, other: "Extent") -> "Extent":
        """The values of both."""
        return Extent(intersection(self.values, other.values), self.missing and other.missing)

    def joined(self, other: "Extent") -> "Extent":
        """The values of either."""
        return Extent(union(self.values, other.values), self.missing or other.missing)


def union(a: Region, b: Region) -> Region:
    """What lies in one of two regions."""
    found: list[tuple[Any, Any]] = []
    for low, high in sorted((*a, *b)):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


@functools.lru_cache(maxsize=100_000)
def extent(condition: Node, attribute: Attribute) -> Extent | None:
    """The extent of a condition of an attribute, None if it has none that can be written down."""
    match condition:
        case ast.And(items) | ast.Or(items):
            found: Extent | None = None
            for item in items:
                part = extent(item, attribute)
                if part is None:
                    return None
                if found is None:
                    found = part
                else:
                    is_and = isinstance(condition, ast.And)
                    found = found.common(part) if is_and else found.joined(part)
            return found
        case ast.IsNull(ast.Attribute()):
            return Extent((), missing=True)
        case ast.Not(ast.IsNull(ast.Attribute())):
            return Extent(whole(attribute.type, attribute.domain))
        case _:
            values = region(condition, attribute.domain)
            return None if values is None else Extent(values)


def single_attribute(condition: Node) -> Path | None:
    """The attribute of a condition that has only one, None for any other formula."""
    if not isinstance(condition, ast.And | ast.Or):
        return attribute_of(condition)
    paths = {single_attribute(item) for item in condition.items}
    return paths.pop() if len(paths) == 1 else None


@functools.lru_cache(maxsize=100_000)
def condition_of(found: Extent, attribute: Attribute) -> Node:
    """A condition of an extent, in the words of the language; canonical, so equal for equal ones.

    FALSE and TRUE stand for the extents of no value and of all with the missing one.
    """
    subject = ast.Attribute(attribute.path, attribute.type)
    everything = whole(attribute.type, attribute.domain)
    parts: list[Node] = []
    if found.values == everything:
        if found.missing:
            return ast.TRUE
        return ast.Not(ast.IsNull(subject))
    if found.values:
        parts.append(_of_values(found.values, everything, subject))
    if found.missing:
        parts.append(ast.IsNull(subject))
    if not parts:
        return ast.FALSE
    return parts[0] if len(parts) == 1 else ast.Or(tuple(parts))


def _of_values(values: Region, everything: Region, subject: ast.Attribute) -> Node:
    outside = intersection(complement(values), everything)
    missing_points = [_point(low, high, subject) for low, high in outside]
    if len(values) > 1 and all(point is not None for point in missing_points):
        return _members([p for p in missing_points if p is not None], subject, negated=True)
    points: list[ast.Literal] = []
    parts: list[Node] = []
    for low, high in values:
        point = _point(low, high, subject)
        if point is None:
            parts.append(_stretch(low, high, everything, subject))
        else:
            points.append(point)
    if points:
        parts.append(_members(points, subject, negated=False))
    return parts[0] if len(parts) == 1 else ast.Or(tuple(parts))


def _point(low: Any, high: Any, subject: ast.Attribute) -> ast.Literal | None:
    """The only value of a stretch, None if it has more."""
    if low == BOTTOM or high == TOP:
        return None
    kind = subject.type
    if kind in _WHOLE or kind == BOOL:
        return _literal(low[1], subject) if high[1] == low[1] + 1 else None
    return _literal(low[1], subject) if high[1] == low[1] else None


def _literal(value: Any, subject: ast.Attribute) -> ast.Literal:
    return ast.Literal(bool(value) if subject.type == BOOL else value, subject.type)


def _members(points: list[ast.Literal], subject: ast.Attribute, *, negated: bool) -> Node:
    if len(points) == 1:
        return ast.Compare("<>" if negated else "=", subject, points[0])
    inside = ast.In(subject, tuple(points))
    return ast.Not(inside) if negated else inside


def _stretch(low: Any, high: Any, everything: Region, subject: ast.Attribute) -> Node:
    parts: list[Node] = []
    if low > everything[0][0]:
        parts.append(_above(low, subject))
    if high < everything[-1][1]:
        parts.append(_below(high, subject))
    return parts[0] if len(parts) == 1 else ast.And(tuple(parts))


def _above(low: Any, subject: ast.Attribute) -> Node:
    """What lies above a cut; whole numbers are compared with >= only."""
    return ast.Compare(">" if low[2] else ">=", subject, _literal(low[1], subject))


def _below(high: Any, subject: ast.Attribute) -> Node:
    if subject.type in _WHOLE or subject.type == BOOL:
        return ast.Compare("<=", subject, _literal(high[1] - 1, subject))
    return ast.Compare("<=" if high[2] else "<", subject, _literal(high[1], subject))
