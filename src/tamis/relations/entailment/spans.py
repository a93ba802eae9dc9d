"""The values of one attribute that make a condition true, where they can be listed.

Numbers, moments and truth values are whole numbers in their order (see `orders`), and a condition
is true of some ranges of them. Of strings, it is true of some, or of all but some; other conditions
on strings have no span. Spans are exact: one lies within another iff the condition follows.
"""

import functools
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.relations.entailment.ordered_values import Order
from tamis.relations.entailment.questions import Question, question
from tamis.schema import Attribute, Enumeration, Schema
from tamis.types import STRING

Range = tuple[int, int]  # the first and the last number of a stretch


class Numbers(NamedTuple):
    """Ranges of whole numbers, sorted, not touching each other; and perhaps the missing value."""

    ranges: tuple[Range, ...]
    missing: bool

    def __bool__(self) -> bool:
        return bool(self.ranges) or self.missing

    def within(self, other: "Numbers") -> bool:
        """Whether every value of it is one of another."""
        if self.missing and not other.missing:
            return False
        theirs = other.ranges
        if len(theirs) == 1:
            low, high = theirs[0]
            return not self.ranges or (low <= self.ranges[0][0] and self.ranges[-1][1] <= high)
        starts = [low for low, _ in theirs]
        for low, high in self.ranges:
            at = bisect_right(starts, low) - 1
            if at < 0 or theirs[at][1] < high:
                return False
        return True


class Names(NamedTuple):
    """Some strings, or all `others`; and perhaps the missing value."""

    names: frozenset[str]
    others: bool
    missing: bool

    def __bool__(self) -> bool:
        return bool(self.names) or self.others or self.missing

    def within(self, other: "Names") -> bool:
        """Whether every value of it is one of another."""
        if self.missing and not other.missing:
            return False
        if self.others:
            return other.others and other.names <= self.names
        return self.names.isdisjoint(other.names) if other.others else self.names <= other.names


Span = Numbers | Names


@functools.lru_cache(maxsize=1_000)
def whole(attribute: Attribute, missing: bool) -> Span:
    """Every value of an attribute."""
    if isinstance(attribute.domain, Enumeration):
        return Names(frozenset(attribute.domain.values), others=False, missing=missing)
    if attribute.type == STRING:
        return Names(frozenset(), others=True, missing=missing)
    order = _order(attribute)
    return Numbers(((order.low, order.high),), missing)


@functools.lru_cache(maxsize=50_000)
def span(condition: Node, attribute: Attribute, missing: bool) -> Span | None:
    """The values of an attribute, and perhaps the missing one, that make a condition of it true."""
    if isinstance(condition, ast.And | ast.Or):
        found = []
        for item in condition.items:
            part = span(item, attribute, missing)
            if part is None:
                return None
            found.append(part)
        return _joined(found, attribute, missing, every=isinstance(condition, ast.And))
    if isinstance(attribute.domain, Enumeration):
        return _tried(condition, attribute, attribute.domain, missing)
    asked = question(condition)
    if isinstance(asked, bool):
        return whole(attribute, missing) if asked else _nothing(attribute)
    if not isinstance(asked.subject, ast.Attribute):
        return None
    if asked.ask == "null":
        return _presence(attribute, missing, negated=asked.negated)
    return _names(asked) if attribute.type == STRING else _numbers(asked, _order(attribute))


@functools.lru_cache(maxsize=1_000)
def _order(attribute: Attribute) -> Order:
    return Order(attribute.type, attribute.domain)


def _nothing(attribute: Attribute) -> Span:
    if attribute.type == STRING:
        return Names(frozenset(), others=False, missing=False)
    return Numbers((), missing=False)


def _presence(attribute: Attribute, missing: bool, *, negated: bool) -> Span:
    if negated:
        return whole(attribute, missing=False)
    return _nothing(attribute)._replace(missing=missing)


def _tried(
    condition: Node, attribute: Attribute, domain: Enumeration, missing: bool
) -> Names | None:
    holds = holding(condition, attribute)
    names = frozenset(value for value in domain.values if holds(value))
    return Names(names, others=False, missing=missing and holds(None))


class _Holding:
    """A condition of one attribute, to be asked about one value after another."""

    def __init__(self, condition: Node, attribute: Attribute) -> None:
        schema = Schema.of_attributes([attribute])
        self._holds = compile_tree(condition, schema)

    def __call__(self, value: object) -> bool:
        return self._holds((value,)) is True


@functools.lru_cache(maxsize=10_000)
def holding(condition: Node, attribute: Attribute) -> _Holding:
    """A function that tells whether a condition is true of a value of its one attribute."""
    return _Holding(condition, attribute)


def _names(asked: Question) -> Names | None:
    match asked.ask:
        case "=" | "<>":
            return Names(frozenset((asked.constant,)), others=asked.ask == "<>", missing=False)
        case "in":
            return Names(frozenset(asked.constant), others=asked.negated, missing=False)
        case _:
            return None


def _numbers(asked: Question, order: Order) -> Numbers:
    if asked.ask == "in":
        points = [(first, behind - 1) for first, behind in map(order.around, asked.constant)]
        ranges = _merged(points, order)
    else:
        ranges = _compared(asked, order)
    if asked.negated:
        ranges = _complement(ranges, order)
    return Numbers(ranges, missing=False)


def _compared(asked: Question, order: Order) -> tuple[Range, ...]:
    first, behind = order.around(asked.constant)
    match asked.ask:
        case "=":
            found = [(first, behind - 1)]
        case "<>":
            found = [(order.low, first - 1), (behind, order.high)]
        case "<":
            found = [(order.low, first - 1)]
        case "<=":
            found = [(order.low, behind - 1)]
        case ">":
            found = [(behind, order.high)]
        case _:
            found = [(first, order.high)]
    return _merged(found, order)


def _merged(ranges: Iterable[Range], order: Order) -> tuple[Range, ...]:
    """Ranges sorted, those that overlap or touch as one, and nothing outside of the order."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        low, high = max(first, order.low), min(last, order.high)
        if low > high:
            continue
        if found and low <= found[-1][1] + 1:
            if high > found[-1][1]:
                found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return tuple(found)


def _complement(ranges: Sequence[Range], order: Order) -> tuple[Range, ...]:
    ends = [order.low - 1, *(end for pair in ranges for end in pair), order.high + 1]
    gaps = zip(ends[::2], ends[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in gaps if low + 1 < high)


def _joined(spans: Sequence[Span], attribute: Attribute, missing: bool, *, every: bool) -> Span:
    """What lies in every span, or in any."""
    absent = (all if every else any)(part.missing for part in spans)
    if attribute.type == STRING:
        names = [part for part in spans if isinstance(part, Names)]
        return _joined_names(names, every=every)._replace(missing=missing and absent)
    order = _order(attribute)
    ranges = [part.ranges for part in spans if isinstance(part, Numbers)]
    if every:  # what lies in every one lies outside of no one
        ranges = [_complement(part, order) for part in ranges]
    found = _merged((pair for part in ranges for pair in part), order)
    return Numbers(_complement(found, order) if every else found, missing and absent)


def _joined_names(spans: Sequence[Names], *, every: bool) -> Names:
    some = [part.names for part in spans if not part.others]
    but = [part.names for part in spans if part.others]
    if every:
        excluded = frozenset().union(*but)
        if not some:
            return Names(excluded, others=True, missing=False)
        return Names(some[0].intersection(*some[1:]) - excluded, others=False, missing=False)
    included = frozenset().union(*some)
    if not but:
        return Names(included, others=False, missing=False)
    return Names(but[0].intersection(*but[1:]) - included, others=True, missing=False)
