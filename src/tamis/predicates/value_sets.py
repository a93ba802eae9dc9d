"""Exact sets of values of one attribute: what predicates and conditions are true of.

A `ValueSet` is sorted intervals between cuts (`value_orders`), no two of which touch, and whether
the missing value belongs to it. Sets are exact and written in one way, so conditions are equivalent
iff their sets are equal, and one implies another iff its set is a subset of the other's.

`value_set` makes the set of a *condition*: a predicate of one attribute, or AND and OR of such
predicates. Comparisons, lists of values and null tests have one; tests such as LIKE have one only
if the domain of the attribute lists its values. `condition_of` turns a set into a condition again.
"""

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tamis.bounded_caches import remembered
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree, compile_value
from tamis.names import path_text
from tamis.predicates.classification import (
    Comparison,
    Constant,
    Membership,
    PairComparison,
    PartTest,
    Presence,
    classify,
)
from tamis.predicates.value_orders import Cut, ValueOrder, order_of
from tamis.schema import Attribute, Enumeration, Schema
from tamis.types import DOUBLE, STRING

Interval = tuple[Cut, Cut]

_NO_ATTRIBUTES = Schema({})
INTERVAL_BYTES = 150  # of an interval with its cuts; those of strings have their bytes besides
MOST_SUBSTRINGS = 60  # characters of a text whose substrings are listed


class ValueSet(NamedTuple):
    """Intervals of values, each from its first cut up to its second, and maybe the missing one."""

    intervals: tuple[Interval, ...] = ()
    missing: bool = False

    def __bool__(self) -> bool:
        return bool(self.intervals) or self.missing

    @property
    def nbytes(self) -> int:
        """About how much memory the set takes."""
        texts = sum(len(cut) for pair in self.intervals for cut in pair if type(cut) is bytes)
        return 100 + INTERVAL_BYTES * len(self.intervals) + texts

    def has(self, cut: Cut) -> bool:
        """Whether the value right after a cut belongs to the set."""
        place = bisect_right(self.intervals, cut, key=_low) - 1
        return place >= 0 and bool(cut < self.intervals[place][1])

    def contains(self, value: Any, order: ValueOrder) -> bool:
        """Whether a value belongs to the set; None is the missing one."""
        return self.missing if value is None else self.has(order.around(value)[0])

    def issubset(self, other: "ValueSet") -> bool:
        """Whether every value of this set is one of another."""
        if self.missing and not other.missing:
            return False
        mine, theirs = self.intervals, other.intervals
        if len(theirs) == 1:
            low, high = theirs[0]
            return not mine or bool(low <= mine[0][0] and mine[-1][1] <= high)
        for interval in mine:
            place = bisect_left(theirs, interval)
            if place < len(theirs) and theirs[place][0] == interval[0]:
                continue  # one that begins at the same cut and is at least as long
            if not place or theirs[place - 1][1] < interval[1]:
                return False
        return True

    def intersection(self, other: "ValueSet") -> "ValueSet":
        """The values of both sets."""
        found: list[Interval] = []
        a, b = self.intervals, other.intervals
        i = j = 0
        while i < len(a) and j < len(b):
            low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
            if low < high:
                found.append((low, high))
            if a[i][1] < b[j][1]:
                i += 1
            else:
                j += 1
        return ValueSet(tuple(found), self.missing and other.missing)

    def union(self, *others: "ValueSet") -> "ValueSet":
        """The values of this set and of all others."""
        sets = (self, *others)
        found: list[Interval] = []
        for low, high in sorted(interval for one in sets for interval in one.intervals):
            if found and low <= found[-1][1]:
                found[-1] = found[-1][0], max(found[-1][1], high)
            else:
                found.append((low, high))
        return ValueSet(tuple(found), any(one.missing for one in sets))

    def difference(self, other: "ValueSet") -> "ValueSet":
        """The values of this set that are not in another."""
        if not self.intervals:
            return ValueSet((), self.missing and not other.missing)
        first, last = self.intervals[0][0], self.intervals[-1][1]
        cuts = [first, *(cut for interval in other.intervals for cut in interval), last]
        gaps = zip(cuts[::2], cuts[1::2], strict=True)
        outside = ValueSet(tuple((low, high) for low, high in gaps if low < high), missing=True)
        found = self.intersection(outside)
        return ValueSet(found.intervals, self.missing and not other.missing)

    def members(self, order: ValueOrder, most: int) -> list[Any] | None:
        """The values of the set, in their order, None if there are more than `most`."""
        found: list[Any] = []
        for low, high in self.intervals:
            values = order.values(low, high, most - len(found))
            if values is None:
                return None
            found.extend(values)
        return found


def _low(interval: Interval) -> Cut:
    return interval[0]


NOTHING = ValueSet()
MISSING = ValueSet((), missing=True)


def with_missing(values: ValueSet) -> ValueSet:
    """A set and the missing value."""
    return ValueSet(values.intervals, missing=True)


# --- sets of predicates


@functools.lru_cache(maxsize=1_000)
def all_values(order: ValueOrder) -> ValueSet:
    """All values of a type or a domain, without the missing one."""
    if isinstance(order.domain, Enumeration):
        return listed(order.domain.values, order)
    return ValueSet(((order.start, order.end),))


def listed(values: Iterable[Any], order: ValueOrder) -> ValueSet:
    """The set of some constants, as far as they are values of the order."""
    intervals = sorted(map(order.around, values))
    return _within(intervals, order)


def compared(op: str, constant: Any, order: ValueOrder) -> ValueSet:
    """The values for which a comparison with a constant is true."""
    before, after = order.around(constant)
    match op:
        case "=":
            intervals = [(before, after)]
        case "<>":
            intervals = [(order.start, before), (after, order.end)]
        case "<":
            intervals = [(order.start, before)]
        case "<=":
            intervals = [(order.start, after)]
        case ">":
            intervals = [(after, order.end)]
        case _:
            intervals = [(before, order.end)]
    return _within(intervals, order)


def _within(intervals: Iterable[Interval], order: ValueOrder) -> ValueSet:
    """Sorted intervals as a set, without what lies outside the order."""
    found: list[Interval] = []
    for first, last in intervals:
        low, high = max(first, order.start), min(last, order.end)
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        elif low < high:
            found.append((low, high))
    return ValueSet(tuple(found))


@remembered(32_000_000)
def value_set(condition: Node, order: ValueOrder) -> ValueSet | None:
    """The values for which a condition on one attribute is true, None if it has no such set.

    `order` is that of the attribute, which the condition must be about.
    """
    if isinstance(condition, ast.And | ast.Or):
        sets = []
        for item in condition.items:
            found = value_set(item, order)
            if found is None:
                return None
            sets.append(found)
        if isinstance(condition, ast.Or):
            return sets[0].union(*sets[1:])
        return functools.reduce(ValueSet.intersection, sets)
    direct = _of_predicate(condition, order)
    if not isinstance(order.domain, Enumeration):
        return direct
    if direct is not None:
        return direct.intersection(with_missing(all_values(order)))
    if ast.has_clock(condition):
        return None  # there is another set at another time
    holds = holds_of(condition)
    return listed(filter(holds, order.domain.values), order)._replace(missing=holds(None))


def _of_predicate(predicate: Node, order: ValueOrder) -> ValueSet | None:
    """The set of a predicate whose kind and constants say what it is."""
    match classify(predicate):
        case Comparison(ast.Attribute(), op, constant):
            return compared(op, constant, order)
        case Membership(ast.Attribute(), constants, negated):
            inside = listed(constants, order)
            return all_values(order).difference(inside) if negated else inside
        case Presence(ast.Attribute(), present):
            return all_values(order) if present else MISSING
        case Constant(truth):
            return with_missing(all_values(order)) if truth else NOTHING
        case PartTest(ast.Attribute(), "contains", text, False) if len(text) <= MOST_SUBSTRINGS:
            ends = range(len(text) + 1)
            return listed({text[i:j] for i in ends for j in ends[i:]}, order)
        case PairComparison(ast.Attribute(), op, value) if not ast.varies(value):
            constant = compile_value(value, _NO_ATTRIBUTES)(())  # infinity or NaN
            return NOTHING if constant is None else compared(op, constant, order)
        case _:
            return None


@remembered()
def holds_of(condition: Node) -> Callable[[Any], bool]:
    """A function that tells whether a condition on one attribute is true of a value."""
    attribute = next(part for part in ast.walk(condition) if isinstance(part, ast.Attribute))
    holds = compile_tree(condition, Schema({path_text(attribute.path): str(attribute.type)}))
    return lambda value: holds((value,)) is True


# --- conditions of sets


@remembered(32_000_000)
def condition_of(values: ValueSet, attribute: Attribute) -> Node:
    """The condition that is true of a set of values; equal sets give equal conditions.

    FALSE stands for the empty set, TRUE for all values with the missing one.
    """
    subject = ast.Attribute(attribute.path, attribute.type)
    order = order_of(attribute)
    parts: list[Node] = []
    if values.intervals == all_values(order).intervals:
        return ast.TRUE if values.missing else ast.Not(ast.IsNull(subject))
    if values.intervals:
        parts.append(_of_values(values, subject, order))
    if values.missing:
        parts.append(ast.IsNull(subject))
    if not parts:
        return ast.FALSE
    return parts[0] if len(parts) == 1 else ast.Or(tuple(parts))


def _of_values(values: ValueSet, subject: ast.Attribute, order: ValueOrder) -> Node:
    outside = all_values(order).difference(values).intervals
    if len(values.intervals) > 1 and all(_is_point(*gap, order) for gap in outside):
        return _membership([low for low, _ in outside], subject, order, negated=True)
    points: list[Cut] = []
    parts: list[Node] = []
    for low, high in values.intervals:
        if _is_point(low, high, order):
            points.append(low)
        else:
            parts.append(_between(low, high, subject, order))
    if points:
        parts.append(_membership(points, subject, order, negated=False))
    return parts[0] if len(parts) == 1 else ast.Or(tuple(parts))


def _is_point(low: Cut, high: Cut, order: ValueOrder) -> bool:
    return bool(high == order.following(low))


def _membership(
    points: list[Cut], subject: ast.Attribute, order: ValueOrder, *, negated: bool
) -> Node:
    literals = tuple(ast.Literal(order.value(cut), subject.type) for cut in points)
    if len(literals) == 1:
        return ast.Compare("<>" if negated else "=", subject, literals[0])
    inside = ast.In(subject, literals)
    return ast.Not(inside) if negated else inside


def _between(low: Cut, high: Cut, subject: ast.Attribute, order: ValueOrder) -> Node:
    """The values of one interval; whole numbers are compared by >= and <= only."""
    everything = all_values(order).intervals
    parts: list[Node] = []
    if low > everything[0][0]:
        value, excluded = order.bound(low)
        parts.append(
            ast.Compare(">" if excluded else ">=", subject, ast.Literal(value, subject.type))
        )
    if high < everything[-1][1]:
        value, included = order.bound(high)
        if subject.type not in {STRING, DOUBLE}:
            value, included = order.value(high - 1), True
        parts.append(
            ast.Compare("<=" if included else "<", subject, ast.Literal(value, subject.type))
        )
    return parts[0] if len(parts) == 1 else ast.And(tuple(parts))
