"""Stretches of values of one attribute, to find those around or inside another one.

Stretches that end with the values of the attribute are in the order of their other end. Those of
numbers that do not are in classes of like length, each in the order of its lower ends: one of a
known length that lies around another begins not far below it. Only classes whose stretches can be
long enough, or short enough, are looked at.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import chain
from math import frexp, inf
from typing import Any

from tamis.predicates.regions import BEFORE, BOTTOM, TOP, Cut, whole
from tamis.relations.tables.terms import Term, before_values
from tamis.schema import Attribute
from tamis.types import STRING

Order = list[tuple[Cut, int, Term]]  # the number of a term keeps terms from being compared

LONGEST = 1_000  # the class of stretches, almost all doubles long, that may begin anywhere
ANY_LENGTH = 2_000  # the class of those that have no length


class Stretches:
    """Terms that are one stretch of more than a value."""

    def __init__(self, attribute: Attribute) -> None:
        everything = before_values(whole(attribute.type, attribute.domain), attribute.type)
        self._first, self._last = everything[0][0], everything[-1][1]
        self._measured = attribute.type != STRING
        self._from_first: Order = []  # by upper ends
        self._to_last: Order = []  # by lower ends
        self._classes: dict[int, Order] = {}  # by lower ends
        self._numbers: dict[Term, int] = {}
        self._made = 0

    def __iter__(self) -> Iterator[Term]:
        return iter(self._numbers)

    def enter(self, term: Term) -> None:
        """Take in a stretch."""
        self._made += 1
        self._numbers[term] = self._made
        order, end = self._place(term)
        insort(order, (end, self._made, term))

    def leave(self, term: Term) -> None:
        """Forget a stretch."""
        order, end = self._place(term)
        del order[bisect_left(order, (end, self._numbers.pop(term)))]

    def around(self, low: Cut, high: Cut) -> Iterator[Term]:
        """All that lie around a stretch, and some others."""
        found = [
            _terms(self._from_first, bisect_left(self._from_first, (high,))),
            _terms(self._to_last, 0, bisect_right(self._to_last, (low, inf))),
        ]
        least = _class(low, high) if self._measured else ANY_LENGTH
        for length, order in self._classes.items():
            if length >= least:
                start = bisect_left(order, (_far_below(high, length),))
                found.append(_terms(order, start, bisect_right(order, (low, inf))))
        return chain.from_iterable(found)

    def inside(self, low: Cut, high: Cut) -> Iterator[Term]:
        """All that lie inside a stretch, and some others."""
        found = []
        if low <= self._first:
            found.append(_terms(self._from_first, 0, bisect_right(self._from_first, (high, inf))))
        if high >= self._last:
            found.append(_terms(self._to_last, bisect_left(self._to_last, (low,))))
        most = _class(low, high) if self._measured else ANY_LENGTH
        for length, order in self._classes.items():
            if length <= most:
                start, end = bisect_left(order, (low,)), bisect_left(order, (high,))
                found.append(_terms(order, start, end))
        return chain.from_iterable(found)

    def _place(self, term: Term) -> tuple[Order, Cut]:
        """The order that a term belongs to, and by which end."""
        if term.low <= self._first:
            return self._from_first, term.high
        if term.high >= self._last:
            return self._to_last, term.low
        length = _class(term.low, term.high) if self._measured else ANY_LENGTH
        return self._classes.setdefault(length, []), term.low


def _terms(order: Order, start: int, end: int | None = None) -> Iterator[Term]:
    """The terms of a part of an order, without copying it."""
    end = len(order) if end is None else end
    return (order[place][2] for place in range(start, end))


def _far_below(high: Cut, length: int) -> Cut:
    """A cut below which no stretch of a class begins that reaches another cut."""
    if high == TOP or length >= LONGEST:
        return BOTTOM
    if isinstance(high[1], int):
        return 1, high[1] - (1 << length), BEFORE
    return 1, high[1] - 2.0 ** (length + 1), BEFORE  # twice as far, for what is rounded


def _class(low: Cut, high: Cut) -> int:
    """A whole number k such that the length of a stretch of numbers is at most 2 ** k."""
    if low == BOTTOM or high == TOP:
        return ANY_LENGTH
    length: Any = high[1] - low[1]
    return frexp(length)[1] if length < inf else ANY_LENGTH
