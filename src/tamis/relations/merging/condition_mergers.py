"""Mergers of conditions on one attribute: of many perfectly, or of two imperfectly."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.classification import StringTest, classify, is_presence
from tamis.predicates.implication import facts
from tamis.predicates.value_orders import Cut
from tamis.predicates.value_sets import NOTHING, ValueSet
from tamis.relations.disjoint_sets import DisjointSets
from tamis.relations.merging.merge_rules import MergedAttribute, PerfectRule, RuleSet, listing
from tamis.schema import Enumeration
from tamis.types import BOOL, STRING

MOST_TESTS = 32  # conditions without a value set, compared pair by pair


class Joined(NamedTuple):
    """A condition that is true exactly when one of some conditions is."""

    node: Node
    members: tuple[int, ...]  # their places in the list of conditions


def join(nodes: Sequence[Node], attribute: MergedAttribute, rules: RuleSet) -> list[Joined]:
    """Perfect mergers of conditions, each of at least two; no condition is in two of them.

    The union of all is tried first, then those whose values touch, then lists of what is left.
    """
    sets = [(n, attribute.values(node)) for n, node in enumerate(nodes)]
    known = [_Union(values, (n,)) for n, values in sets if values is not None]
    tests = [n for n, values in sets if values is None]
    joined = [
        Joined(attribute.condition(union.values), tuple(sorted(union.members)))
        for union in _join_sets(known, attribute, rules)
    ]
    if not tests or not rules.takes_tests or len(nodes) > MOST_TESTS:
        return [each for each in joined if len(each.members) > 1]
    return _with_tests(joined, nodes, tests, attribute)


class _Union(NamedTuple):
    """The values of some conditions, and which these are."""

    values: ValueSet
    members: tuple[int, ...]


def _union(parts: Sequence[_Union]) -> _Union:
    values = NOTHING.union(*(part.values for part in parts))
    return _Union(values, tuple(n for part in parts for n in part.members))


def _join_sets(parts: list[_Union], attribute: MergedAttribute, rules: RuleSet) -> list[_Union]:
    if len(parts) < 2:
        return parts
    everything = _union(parts)
    if rules.can_write(everything.values, attribute):
        return [everything]
    found: list[_Union] = []
    for together in _touching(parts):
        union = _union(together)
        if len(together) == 1 or rules.can_write(union.values, attribute):
            found.append(union)
        else:
            found.extend(_neighbours(together, attribute, rules.can_write))
    if listing not in rules.perfect:
        return found
    finite: list[_Union] = []
    others: list[_Union] = []
    for part in found:
        (finite if listing(part.values, attribute) else others).append(part)
    return [*others, *_neighbours(finite, attribute, listing)] if len(finite) > 1 else found


def _touching(parts: list[_Union]) -> Iterator[list[_Union]]:
    """Sets whose values overlap or lie side by side, those of one interval after another."""
    intervals = sorted((*one, n) for n, part in enumerate(parts) for one in part.values.intervals)
    groups = DisjointSets()
    reached: tuple[Cut, int] | None = None
    for low, high, n in intervals:
        if reached is not None and low <= reached[0]:
            groups.join((reached[1], n))
        if reached is None or high > reached[0]:
            reached = high, n
    together: dict[int, list[_Union]] = {}
    for n, part in enumerate(parts):
        together.setdefault(groups.find(n), []).append(part)
    yield from together.values()


def _neighbours(
    parts: list[_Union], attribute: MergedAttribute, can_write: PerfectRule
) -> list[_Union]:
    """Unions of sets in the order of their values, as far as each can be written."""
    ordered = sorted(parts, key=lambda part: (part.values.intervals, part.members))
    found = [ordered[0]]
    for part in ordered[1:]:
        both = _union((found[-1], part))
        if can_write(both.values, attribute):
            found[-1] = both
        else:
            found.append(part)
    return found


# --- tests of strings, which have no value sets


def bare(node: Node) -> Node:
    """``s IS NOT NULL AND s LIKE 'a%' -> s LIKE 'a%'``; strict semantics adds the presence."""
    if not isinstance(node, ast.And) or len(node.items) != 2:
        return node
    for one, other in (node.items, node.items[::-1]):
        if is_presence(one) and not isinstance(other, ast.IsNull | ast.And | ast.Or):
            return other
    return node


def _with_tests(
    joined: list[Joined], nodes: Sequence[Node], tests: list[int], attribute: MergedAttribute
) -> list[Joined]:
    """``s LIKE 'ab%', s LIKE 'a%' -> s LIKE 'a%'``, ``s LIKE '%a', s NOT LIKE '%a' -> present``"""
    waiting = [*joined, *(Joined(nodes[n], (n,)) for n in tests)]
    found: list[Joined] = []
    while waiting:
        one = waiting.pop(0)
        for other in waiting:
            node = _test_union(one.node, other.node, attribute)
            if node is not None:
                waiting.remove(other)
                waiting.insert(0, Joined(node, tuple(sorted(one.members + other.members))))
                break
        else:
            found.append(one)
    return [each for each in found if len(each.members) > 1]


def _test_union(a: Node, b: Node, attribute: MergedAttribute) -> Node | None:
    known = facts(a, b, attribute.attribute.domain)
    if known.implies:
        return b
    if known.implied:
        return a
    if known.exhausts and not isinstance(a, ast.IsNull) and not isinstance(b, ast.IsNull):
        return attribute.presence
    return None


# --- two conditions, imperfectly


def widen(a: Node, b: Node, attribute: MergedAttribute, rules: RuleSet) -> list[Node]:
    """Conditions that both of two imply, the closest first; TRUE drops the attribute."""
    one, other = attribute.values(a), attribute.values(b)
    if one is not None and other is not None:
        wider = [rule(one, other, attribute) for rule in rules.imperfect]
        found = [attribute.condition(values) for values in wider if values is not None]
    else:
        found = [ast.TRUE]
        if _needs_presence(a) and _needs_presence(b):
            found.insert(0, attribute.presence)
    if rules.takes_tests:
        found.extend(filter(None, [prefix(a, b, attribute)]))
    return list(dict.fromkeys(found))


def prefix(a: Node, b: Node, attribute: MergedAttribute) -> Node | None:
    """``s = 'abc', startswith(s, 'abd') -> startswith(s, 'ab')``"""
    if isinstance(attribute.attribute.domain, Enumeration):  # a list of its values is closer
        return None
    beginnings = [*_beginnings(a, attribute), *_beginnings(b, attribute)]
    if not beginnings or None in beginnings:
        return None
    start = _common_beginning([text for text in beginnings if text is not None])
    subject = ast.Attribute(attribute.attribute.path, STRING)
    return ast.Call("startswith", (subject, ast.Literal(start, STRING)), BOOL) if start else None


def _common_beginning(texts: list[str]) -> str:
    first, last = min(texts), max(texts)  # all others lie between them
    length = next((n for n, c in enumerate(first) if last[n : n + 1] != c), len(first))
    return first[:length]


def _beginnings(node: Node, attribute: MergedAttribute) -> list[str | None]:
    """The beginnings of the values of a condition, None for any beginning."""
    match classify(node):
        case StringTest(ast.Attribute(), "startswith", text, False):
            return [text]
        case _:
            values = attribute.values(node)
            if attribute.attribute.type != STRING or values is None or values.missing:
                return [None]
            texts = values.members(attribute.order, attribute.list_size)
            return [None] if texts is None else [str(text) for text in texts]


def _needs_presence(node: Node) -> bool:
    """Whether a condition is false of a missing value."""
    return not any(isinstance(part, ast.IsNull) for part in ast.walk(node)) or isinstance(
        node, ast.Not
    )
