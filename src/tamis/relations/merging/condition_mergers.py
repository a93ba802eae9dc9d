"""Merging conditions of one attribute by a set of rules: many perfectly, or two imperfectly."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.implication import facts
from tamis.predicates.regions import Cut
from tamis.relations.extents import Extent
from tamis.relations.merging.filter_texts import members
from tamis.relations.merging.merge_rules import Ground, Rules, listing
from tamis.schema import Enumeration
from tamis.types import BOOL, STRING

MOST_TESTS = 32  # conditions that are no sets of values, compared pair by pair


class Joined(NamedTuple):
    """A condition that is true exactly when one of some conditions is."""

    node: Node
    members: tuple[int, ...]  # their places in what was asked


def join(nodes: Sequence[Node], ground: Ground, rules: Rules) -> list[Joined]:
    """Perfect mergers of conditions, each of at least two; a condition is in one of them at most.

    The union of all is tried first, then those whose values touch, then lists of what is left.
    """
    extents = [(n, ground.extent(node)) for n, node in enumerate(nodes)]
    known = [_Part(found, (n,)) for n, found in extents if found is not None]
    tests = [n for n, found in extents if found is None]
    joined = [
        Joined(ground.condition(part.extent), tuple(sorted(part.members)))
        for part in _join_extents(known, ground, rules)
    ]
    if not tests or not rules.takes_tests or len(nodes) > MOST_TESTS:
        return [each for each in joined if len(each.members) > 1]
    return _with_tests(joined, nodes, tests, ground)


class _Part(NamedTuple):
    extent: Extent
    members: tuple[int, ...]

    def and_(self, other: "_Part") -> "_Part":
        return _Part(self.extent.joined(other.extent), self.members + other.members)


def _join_extents(parts: list[_Part], ground: Ground, rules: Rules) -> list[_Part]:
    if len(parts) < 2:
        return parts
    everything = _all_of(parts)
    if rules.can_say(everything.extent, ground):
        return [everything]
    found: list[_Part] = []
    for together in _touching(parts):
        whole_part = _all_of(together)
        if len(together) == 1 or rules.can_say(whole_part.extent, ground):
            found.append(whole_part)
        else:
            found.extend(_one_by_one(together, ground, rules))
    if listing not in rules.sayings:
        return found
    finite: list[_Part] = []
    others: list[_Part] = []
    for part in found:
        (finite if listing(part.extent.values, ground) else others).append(part)
    return [*others, *_lists(finite, ground)] if len(finite) > 1 else found


def _all_of(parts: list[_Part]) -> _Part:
    stretches = sorted(stretch for part in parts for stretch in part.extent.values)
    values: list[tuple[Cut, Cut]] = []
    for low, high in stretches:
        if values and low <= values[-1][1]:
            values[-1] = values[-1][0], max(values[-1][1], high)
        else:
            values.append((low, high))
    missing = any(part.extent.missing for part in parts)
    return _Part(Extent(tuple(values), missing), tuple(n for part in parts for n in part.members))


def _touching(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Parts whose values overlap or lie side by side, those of one stretch after another."""
    stretches = sorted(
        (*stretch, n) for n, part in enumerate(parts) for stretch in part.extent.values
    )
    leader = list(range(len(parts)))

    def find(n: int) -> int:
        while leader[n] != n:
            leader[n] = leader[leader[n]]
            n = leader[n]
        return n

    reached: tuple[Cut, int] | None = None
    for low, high, n in stretches:
        if reached is not None and low <= reached[0]:
            leader[find(n)] = find(reached[1])
        if reached is None or high > reached[0]:
            reached = high, n
    together: dict[int, list[_Part]] = {}
    for n, part in enumerate(parts):
        together.setdefault(find(n), []).append(part)
    yield from together.values()


def _one_by_one(parts: list[_Part], ground: Ground, rules: Rules) -> list[_Part]:
    """Neighbours, as far as each with the next can be said."""
    ordered = sorted(parts, key=lambda part: (part.extent.values, part.members))
    found = [ordered[0]]
    for part in ordered[1:]:
        both = found[-1].and_(part)
        if rules.can_say(both.extent, ground):
            found[-1] = both
        else:
            found.append(part)
    return found


def _lists(parts: list[_Part], ground: Ground) -> list[_Part]:
    """As few lists as their limit allows, of values in their order."""
    ordered = sorted(parts, key=lambda part: (part.extent.values, part.members))
    found = [ordered[0]]
    for part in ordered[1:]:
        both = found[-1].and_(part)
        if listing(both.extent.values, ground):
            found[-1] = both
        else:
            found.append(part)
    return found


# --- tests of strings, which are no sets of values that can be written down


def bare(node: Node) -> Node:
    """``s IS NOT NULL AND s LIKE 'a%' -> s LIKE 'a%'``, which strict semantics would not say."""
    if not isinstance(node, ast.And) or len(node.items) != 2:
        return node
    for one, other in (node.items, node.items[::-1]):
        is_presence = isinstance(one, ast.Not) and isinstance(one.operand, ast.IsNull)
        if is_presence and not isinstance(other, ast.IsNull | ast.And | ast.Or):
            return other
    return node


def _with_tests(
    joined: list[Joined], nodes: Sequence[Node], tests: list[int], ground: Ground
) -> list[Joined]:
    """``s LIKE 'ab%', s LIKE 'a%' -> s LIKE 'a%'``, ``s LIKE '%a', s NOT LIKE '%a' -> present``"""
    waiting = [*joined, *(Joined(nodes[n], (n,)) for n in tests)]
    found: list[Joined] = []
    while waiting:
        one = waiting.pop(0)
        for other in waiting:
            node = _test_union(one.node, other.node, ground)
            if node is not None:
                waiting.remove(other)
                waiting.insert(0, Joined(node, tuple(sorted(one.members + other.members))))
                break
        else:
            found.append(one)
    return [each for each in found if len(each.members) > 1]


def _test_union(a: Node, b: Node, ground: Ground) -> Node | None:
    known = facts(a, b, ground.attribute.domain)
    if known.implies:
        return b
    if known.implied:
        return a
    if known.exhausts and not isinstance(a, ast.IsNull) and not isinstance(b, ast.IsNull):
        return ground.presence
    return None


# --- two conditions, imperfectly


def widen(a: Node, b: Node, ground: Ground, rules: Rules) -> list[Node]:
    """Conditions that both of two imply, the closest first; TRUE drops the attribute."""
    one, other = ground.extent(a), ground.extent(b)
    if one is not None and other is not None:
        extents = [widening(one, other, ground) for widening in rules.widenings]
        found = [ground.condition(each) for each in extents if each is not None]
    else:
        found = [ast.TRUE]
        if _asks_presence(a) and _asks_presence(b):
            found.insert(0, ground.presence)
    if rules.takes_tests:
        found.extend(filter(None, [prefix(a, b, ground)]))
    return list(dict.fromkeys(found))


def prefix(a: Node, b: Node, ground: Ground) -> Node | None:
    """``s = 'abc', startswith(s, 'abd') -> startswith(s, 'ab')``"""
    if isinstance(ground.attribute.domain, Enumeration):  # a list of its values is closer
        return None
    beginnings = [*_beginnings(a, ground), *_beginnings(b, ground)]
    if not beginnings or None in beginnings:
        return None
    start = _common_beginning([text for text in beginnings if text is not None])
    subject = ast.Attribute(ground.attribute.path, STRING)
    return ast.Call("startswith", (subject, ast.Literal(start, STRING)), BOOL) if start else None


def _common_beginning(texts: list[str]) -> str:
    first, last = min(texts), max(texts)  # all others lie between them
    length = next((n for n, c in enumerate(first) if last[n : n + 1] != c), len(first))
    return first[:length]


def _beginnings(node: Node, ground: Ground) -> list[str | None]:
    """What values of a condition begin with, None if that may be anything."""
    match node:
        case ast.Call("startswith", (ast.Attribute(), ast.Literal(text, _)), _):
            return [str(text)]
        case _:
            found = ground.extent(node)
            if ground.attribute.type != STRING or found is None or found.missing:
                return [None]
            texts = members(found.values, ground.attribute, ground.list_size)
            return [None] if texts is None else [str(text) for text in texts]


def _asks_presence(node: Node) -> bool:
    """Whether a condition is false of a missing value."""
    return not any(isinstance(part, ast.IsNull) for part in ast.walk(node)) or isinstance(
        node, ast.Not
    )
