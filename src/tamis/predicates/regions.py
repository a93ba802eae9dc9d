"""The values for which a predicate of one attribute is true, where they can be written down.

A region is a sorted tuple of disjoint stretches between two *cuts*. A cut lies between values:
before or after one of them, or at an end of the order. Whole numbers and truth values have no
values between neighbours, so "after 4" and "before 5" are one cut; the other types are taken to be
dense, which may miss a fact but never invents one. NaN is above every number, as in Spark.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.names import path_text
from tamis.schema import Domain, Enumeration, IntRange, Schema
from tamis.types import BOOL, INT, INT64_MAX, INT64_MIN, STRING, TIMESTAMP, Type

Cut = tuple[Any, ...]
Region = tuple[tuple[Cut, Cut], ...]

BOTTOM: Cut = (0,)
TOP: Cut = (2,)
BEFORE, AFTER = 0, 1

MOST_SUBSTRINGS = 60  # characters of a text whose substrings are listed


@functools.lru_cache(maxsize=100_000)
def region(predicate: Node, domain: Domain | None = None) -> Region | None:
    """The region of a canonical predicate of one bare attribute, None if it has no such form."""
    found: Region | None
    match predicate:
        case ast.Compare(op, ast.Attribute(_, kind), ast.Literal(constant, same)) if kind == same:
            found = _comparison(op, constant, kind)
        case ast.In(ast.Attribute(_, kind), items):
            found = _points((i.value for i in items if isinstance(i, ast.Literal)), kind)
        case ast.Not(ast.In() as inner):
            inside = region(inner)
            found = None if inside is None else complement(inside)
        case ast.Call("contains", (ast.Literal(text, _), ast.Attribute(_, kind)), _):
            found = _substrings(str(text), kind)
        case ast.IsNull() | ast.Not(ast.IsNull()):
            return None
        case _ if isinstance(domain, Enumeration) and test_of(predicate):
            holds = tester(predicate)
            found = _points(filter(holds, domain.values), STRING)
        case _:
            return None
    if found is None:
        return None
    return intersection(found, whole(kind_of(predicate), domain))


def test_of(predicate: Node) -> ast.Attribute | None:
    """The attribute of a test of one string, or of its negation, that is never unknown of it."""
    bare = predicate.operand if isinstance(predicate, ast.Not) else predicate
    match bare:
        case ast.Like(ast.Attribute() as tested) | ast.RLike(ast.Attribute() as tested):
            return tested
        case ast.Call(
            "contains" | "startswith" | "endswith",
            (ast.Attribute() as tested, ast.Literal()) | (ast.Literal(), ast.Attribute() as tested),
            _,
        ):
            return tested
        case _:
            return None


@functools.lru_cache(maxsize=10_000)
def tester(predicate: Node) -> Callable[[Any], bool]:
    """A function that tells whether a predicate of one attribute is true of a value."""
    (path,) = ast.attributes(predicate)
    schema = Schema({path_text(path): str(kind_of(predicate))})
    holds = compile_tree(predicate, schema)
    return lambda value: holds((value,)) is True


def whole(kind: Type, domain: Domain | None = None) -> Region:
    """All values of a type, or of a domain."""
    match domain:
        case IntRange(low, high):
            return (((1, low, BEFORE), (1, high + 1, BEFORE)),)
        case Enumeration(values):
            return _points(values, kind)
    if kind in {INT, TIMESTAMP}:
        return (((1, INT64_MIN, BEFORE), (1, INT64_MAX + 1, BEFORE)),)
    if kind == BOOL:
        return (((1, 0, BEFORE), (1, 2, BEFORE)),)
    return ((BOTTOM, TOP),)


def kind_of(predicate: Node) -> Type:
    """The type of the attribute of a predicate of one attribute."""
    return next(part.type for part in ast.walk(predicate) if isinstance(part, ast.Attribute))


def _around(value: Any, kind: Type) -> tuple[Cut, Cut]:
    """The cuts before and after a value."""
    if kind in {INT, TIMESTAMP, BOOL}:
        return (1, int(value), BEFORE), (1, int(value) + 1, BEFORE)
    return (1, value, BEFORE), (1, value, AFTER)


def _comparison(op: str, constant: Any, kind: Type) -> Region:
    before, after = _around(constant, kind)
    match op:
        case "=":
            return ((before, after),)
        case "<>":
            return ((BOTTOM, before), (after, TOP))
        case "<":
            return ((BOTTOM, before),)
        case "<=":
            return ((BOTTOM, after),)
        case ">":
            return ((after, TOP),)
        case _:
            return ((before, TOP),)


def _points(values: Iterable[Any], kind: Type) -> Region:
    found: list[tuple[Cut, Cut]] = []
    for value in sorted(set(values)):
        low, high = _around(value, kind)
        if found and found[-1][1] == low:
            found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return tuple(found)


def _substrings(text: str, kind: Type) -> Region | None:
    if kind != STRING or len(text) > MOST_SUBSTRINGS:
        return None
    ends = range(len(text) + 1)
    return _points({text[i:j] for i in ends for j in ends[i:]}, kind)


def complement(stretches: Region) -> Region:
    """What lies outside a region."""
    edges = [BOTTOM, *(cut for stretch in stretches for cut in stretch), TOP]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low, high) for low, high in pairs if low != high)


def intersection(a: Region, b: Region) -> Region:
    """What lies in both of two regions."""
    found: list[tuple[Cut, Cut]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low < high:
            found.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def points(stretches: Region) -> list[Any] | None:
    """The values of a region of a dense type, None if it has stretches of more than a point."""
    if any(low[1:2] != high[1:2] or low == BOTTOM for low, high in stretches):
        return None
    return [low[1] for low, _ in stretches]
