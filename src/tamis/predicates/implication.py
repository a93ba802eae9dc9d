"""What the truth of one predicate says about another of the same attribute.

Three facts about canonical predicates u and v (BDD paper, section 6), each for every event that has
the attribute:

* u implies v: ``n = 10`` and ``n > 8``
* u excludes v: ``n < 5`` and ``n > 8``; at most one is true
* u and v exhaust the values: ``n < 10`` and ``n > 8``; at least one is true

An event without the attribute makes both false, except for ``IS NULL``: there the first two facts
still hold, the third does not. A fact that is not found may hold nevertheless (regular expressions
are not compared with each other); one that is found always holds.
"""

import functools
from typing import NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.regions import (
    Region,
    complement,
    intersection,
    kind_of,
    points,
    region,
    test_of,
    tester,
    whole,
)
from tamis.schema import Domain


class Facts(NamedTuple):
    """What holds between two predicates u and v."""

    implies: bool = False
    implied: bool = False  # v implies u
    excludes: bool = False
    exhausts: bool = False

    @property
    def complements(self) -> bool:
        """Exactly one of the two is true."""
        return self.excludes and self.exhausts

    def mirrored(self) -> "Facts":
        """The facts between v and u."""
        return Facts(self.implied, self.implies, self.excludes, self.exhausts)


NOTHING = Facts()


def implies(u: Node, v: Node, domain: Domain | None = None) -> bool:
    """Whether every event that makes u true makes v true."""
    return facts(u, v, domain).implies


def excludes(u: Node, v: Node, domain: Domain | None = None) -> bool:
    """Whether no event makes both true."""
    return facts(u, v, domain).excludes


def complements(u: Node, v: Node, domain: Domain | None = None) -> bool:
    """Whether every event that has the attribute makes exactly one of the two true."""
    return facts(u, v, domain).complements


def attribute_of(predicate: Node) -> Path | None:
    """The attribute of a predicate that has only one."""
    bare = predicate.operand if isinstance(predicate, ast.Not) else predicate
    match bare:
        case ast.Compare(_, ast.Attribute(path, _), ast.Literal()):
            return path
        case ast.In(ast.Attribute(path, _), _) | ast.IsNull(ast.Attribute(path, _)):
            return path
        case _:
            tested = test_of(predicate)
            return tested.path if tested else None


@functools.lru_cache(maxsize=200_000)
def facts(u: Node, v: Node, domain: Domain | None = None) -> Facts:
    """All that is known between two canonical predicates; `domain` is that of their attribute."""
    if u == v:
        return Facts(implies=True, implied=True)
    path = attribute_of(u)
    if path is None or path != attribute_of(v):
        return NOTHING
    if _is_presence(v):
        return _with_presence(u, v)
    if _is_presence(u):
        return _with_presence(v, u).mirrored()
    first, second = region(u, domain), region(v, domain)
    if first is not None and second is not None:
        everything = intersection(whole(kind_of(u), domain), complement(first))
        return Facts(
            implies=intersection(first, second) == first,
            implied=intersection(first, second) == second,
            excludes=not intersection(first, second),
            exhausts=intersection(everything, second) == everything,
        )
    if first is not None:
        return _region_and_test(first, v)
    if second is not None:
        return _region_and_test(second, u).mirrored()
    return _tests(u, v)


def _is_presence(predicate: Node) -> bool:
    bare = predicate.operand if isinstance(predicate, ast.Not) else predicate
    return isinstance(bare, ast.IsNull)


def _with_presence(u: Node, presence: Node) -> Facts:
    """u with ``IS NULL`` or ``IS NOT NULL``."""
    asks_for_null = isinstance(presence, ast.IsNull)
    if _is_presence(u):  # the other of the two
        return Facts(excludes=True, exhausts=True)
    if asks_for_null:
        return Facts(excludes=True)
    return Facts(implies=True, exhausts=True)


def _region_and_test(stretches: Region, test: Node) -> Facts:
    """A predicate that is true of some strings, or of all but some, with a test of strings."""
    values = points(stretches)
    if values is not None:
        answers = [tester(test)(value) for value in values]
        return Facts(implies=all(answers), excludes=not any(answers))
    exceptions = points(complement(stretches))
    if exceptions is None:
        return NOTHING
    answers = [tester(test)(value) for value in exceptions]
    return Facts(implied=not any(answers), exhausts=all(answers))


def _tests(u: Node, v: Node) -> Facts:
    """Two tests of strings."""
    bare_u = u.operand if isinstance(u, ast.Not) else u
    bare_v = v.operand if isinstance(v, ast.Not) else v
    if bare_u == bare_v:
        return Facts(excludes=True, exhausts=True)
    found = _positive_tests(bare_u, bare_v)
    if isinstance(u, ast.Not):
        # not u implies v iff u and v exhaust; not u excludes v iff v implies u
        found = Facts(found.exhausts, found.excludes, found.implied, found.implies)
    if isinstance(v, ast.Not):
        found = Facts(found.excludes, found.exhausts, found.implies, found.implied)
    return found


def _positive_tests(u: Node, v: Node) -> Facts:
    match u, v:
        case ast.Call(one, (ast.Attribute(), ast.Literal(a, _)), _), ast.Call(
            other, (ast.Attribute(), ast.Literal(b, _)), _
        ):
            first, second = str(a), str(b)
            forward = _longer(one, first, other, second)
            backward = _longer(other, second, one, first)
            return Facts(
                implies=forward,
                implied=backward,
                excludes=one == other and one != "contains" and not forward and not backward,
            )
        case _:
            return NOTHING


def _longer(one: str, text: str, other: str, part: str) -> bool:
    """Whether a test for a text implies a test for a part of it."""
    match other:
        case "contains":
            return part in text
        case "startswith":
            return one == other and text.startswith(part)
        case _:
            return one == other and text.endswith(part)
