"""Intervals of values of one attribute, to find those around or inside another one.

Intervals that reach an end of the values of the attribute are in the order of their other end. The
others are in classes of similar length, each in the order of its lower ends: an interval of a known
length that lies around another begins not far below it. Only classes whose intervals can be long
enough, or short enough, are searched. Intervals of strings have no length and are one class.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import chain
from math import inf

from tamis.predicates.value_orders import Cut, order_of
from tamis.predicates.value_sets import all_values
from tamis.relations.tables.constraints import Constraint
from tamis.schema import Attribute

Ordered = list[
    tuple[Cut, int, Constraint]
]  # the number of a constraint keeps constraints from being compared


class IntervalIndex:
    """Constraints that are one interval of more than one value."""

    def __init__(self, attribute: Attribute) -> None:
        order = order_of(attribute)
        everything = all_values(order).intervals
        self._first, self._last = everything[0][0], everything[-1][1]
        self._measured = not order.is_string
        self._from_first: Ordered = []  # by upper ends
        self._to_last: Ordered = []  # by lower ends
        self._classes: dict[int, Ordered] = {}  # by lower ends
        self._numbers: dict[Constraint, int] = {}
        self._made = 0

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self._numbers)

    def add(self, constraint: Constraint) -> None:
        """Add an interval."""
        self._made += 1
        self._numbers[constraint] = self._made
        ordered, end = self._place(constraint)
        insort(ordered, (end, self._made, constraint))

    def remove(self, constraint: Constraint) -> None:
        """Remove an interval."""
        ordered, end = self._place(constraint)
        del ordered[bisect_left(ordered, (end, self._numbers.pop(constraint)))]

    def around(self, low: Cut, high: Cut) -> Iterator[Constraint]:
        """All intervals that lie around another one, and some others."""
        found = [
            _constraints(self._from_first, bisect_left(self._from_first, (high,))),
            _constraints(self._to_last, 0, bisect_right(self._to_last, (low, inf))),
        ]
        least = self._class(low, high)
        for length, ordered in self._classes.items():
            if length >= least:
                farthest = high - (1 << length) if self._measured else self._first
                start = bisect_left(ordered, (farthest,))
                found.append(_constraints(ordered, start, bisect_right(ordered, (low, inf))))
        return chain.from_iterable(found)

    def inside(self, low: Cut, high: Cut) -> Iterator[Constraint]:
        """All intervals that lie inside another one, and some others."""
        found = []
        if low <= self._first:
            found.append(
                _constraints(self._from_first, 0, bisect_right(self._from_first, (high, inf)))
            )
        if high >= self._last:
            found.append(_constraints(self._to_last, bisect_left(self._to_last, (low,))))
        most = self._class(low, high)
        for length, ordered in self._classes.items():
            if length <= most:
                start, end = bisect_left(ordered, (low,)), bisect_left(ordered, (high,))
                found.append(_constraints(ordered, start, end))
        return chain.from_iterable(found)

    def overlapping(self, low: Cut, high: Cut) -> Iterator[Constraint]:
        """All intervals that have a value in common with another one, and some others."""
        found = [
            _constraints(self._from_first, bisect_right(self._from_first, (low, inf))),
            _constraints(self._to_last, 0, bisect_left(self._to_last, (high,))),
        ]
        for length, ordered in self._classes.items():
            farthest = low - (1 << length) if self._measured else self._first
            start, end = bisect_left(ordered, (farthest,)), bisect_left(ordered, (high,))
            found.append(_constraints(ordered, start, end))
        return chain.from_iterable(found)

    def _place(self, constraint: Constraint) -> tuple[Ordered, Cut]:
        """The list that a constraint belongs to, and the end by which it is ordered there."""
        if constraint.low <= self._first:
            return self._from_first, constraint.high
        if constraint.high >= self._last:
            return self._to_last, constraint.low
        return self._classes.setdefault(
            self._class(constraint.low, constraint.high), []
        ), constraint.low

    def _class(self, low: Cut, high: Cut) -> int:
        """A number k such that an interval has fewer than ``2 ** k`` values; 0 for all strings."""
        length: int = (high - low).bit_length() if self._measured else 0
        return length


def _constraints(ordered: Ordered, start: int, end: int | None = None) -> Iterator[Constraint]:
    """The constraints of a part of a list, without copying it."""
    end = len(ordered) if end is None else end
    return (ordered[place][2] for place in range(start, end))
