"""The constraints of one attribute with the boxes that have them, indexed to find related ones.

The constraints that another implies, and those that imply it, are found without visiting all of
them: points by a hash, intervals by their ends, sets by their members, tests of strings by the
parts of a text. Only the others are visited one by one. The results are candidates, some of which
are not related at all; the caller compares them.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from tamis.language import ast
from tamis.predicates.classification import StringTest, classify
from tamis.predicates.value_orders import Cut
from tamis.relations.tables.constraints import Constraint
from tamis.relations.tables.interval_index import IntervalIndex
from tamis.schema import Attribute

V = TypeVar("V")

LONGEST = 40  # characters of a text whose parts are looked up

Test = tuple[str, str]  # the name of the test and its text


class Postings(Generic[V]):
    """Constraints of one attribute, each with a value of type V."""

    def __init__(self, attribute: Attribute) -> None:
        self.under: dict[Constraint, V] = {}
        self._points: dict[Cut, Constraint] = {}
        self._sorted_points: list[Cut] = []
        self._intervals = IntervalIndex(attribute)
        self._sets: dict[Cut, dict[Constraint, None]] = {}  # by each member
        self._tests: dict[Test, Constraint] = {}
        self._others: dict[Constraint, None] = {}

    def add(self, constraint: Constraint, under: V) -> None:
        """Add a constraint that is not there."""
        self.under[constraint] = under
        if constraint.values is None:
            test = _test(constraint)
            if test is None:
                self._others[constraint] = None
            else:
                self._tests[test] = constraint
        elif constraint.members is not None and constraint.is_interval:
            self._points[constraint.low] = constraint
            insort(self._sorted_points, constraint.low)
        elif constraint.members is not None:
            for low in constraint.members:
                self._sets.setdefault(low, {})[constraint] = None
        elif constraint.is_interval:
            self._intervals.add(constraint)
        else:
            self._others[constraint] = None

    def remove(self, constraint: Constraint) -> None:
        """Remove a constraint."""
        del self.under[constraint]
        if constraint.values is None:
            test = _test(constraint)
            if test is None:
                del self._others[constraint]
            else:
                del self._tests[test]
        elif constraint.members is not None and constraint.is_interval:
            del self._points[constraint.low]
            del self._sorted_points[bisect_left(self._sorted_points, constraint.low)]
        elif constraint.members is not None:
            for low in constraint.members:
                del self._sets[low][constraint]
                if not self._sets[low]:
                    del self._sets[low]
        elif constraint.is_interval:
            self._intervals.remove(constraint)
        else:
            del self._others[constraint]

    def weaker(self, constraint: Constraint) -> Iterable[Constraint]:
        """All constraints that a constraint implies, and some others."""
        if constraint.values is None:
            test = _test(constraint)
            if test is None:
                return self.under
            return chain(self._tests_for(*test), self._intervals, self._others)
        values = constraint.values.intervals
        if (
            not values or constraint.values.missing
        ):  # neither an interval nor a set has the missing one
            return self._others
        first = values[0][0]
        found: list[Iterable[Constraint]] = [
            self._intervals.around(first, values[-1][1]),
            self._others,
        ]
        if constraint.members is None:
            found.append(self._tests.values())
        else:
            found += [self._sets.get(first, ()), self._tests_of(first)]
            if constraint.is_interval:
                found.append(self._at(first))
        return chain(*found)

    def stronger(self, constraint: Constraint) -> Iterable[Constraint]:
        """All constraints that imply a constraint, and some others."""
        if constraint.values is None:
            return self.under
        if constraint.members is not None:
            points = (self._points[low] for low in constraint.members if low in self._points)
            sets = dict.fromkeys(
                one for low in constraint.members for one in self._sets.get(low, ())
            )
            return chain(points, sets, self._others)
        found: list[Iterable[Constraint]] = []
        for low, high in constraint.values.intervals:
            found += [self._intervals.inside(low, high), self._points_inside(low, high)]
        sets = dict.fromkeys(one for members in self._sets.values() for one in members)
        return chain(*found, sets, self._tests.values(), self._others)

    def overlapping(self, constraint: Constraint) -> Iterable[Constraint]:
        """All constraints that an event can make true together with this one, and some others."""
        if constraint.values is None:
            return self.under
        intervals = constraint.values.intervals
        found = [self._intervals.overlapping(low, high) for low, high in intervals]
        if constraint.members is None:
            found += [self._points_inside(low, high) for low, high in intervals]
            sets: Iterable[Constraint] = (one for some in self._sets.values() for one in some)
        else:
            found.append(self._points[low] for low in constraint.members if low in self._points)
            sets = (one for low in constraint.members for one in self._sets.get(low, ()))
        return dict.fromkeys(chain(*found, sets, self._tests.values(), self._others))

    # --- looking up

    def _at(self, low: Cut) -> Iterator[Constraint]:
        constraint = self._points.get(low)
        if constraint is not None:
            yield constraint

    def _points_inside(self, low: Cut, high: Cut) -> Iterator[Constraint]:
        points = self._sorted_points
        first, last = bisect_left(points, low), bisect_left(points, high)
        return (self._points[cut] for cut in points[first:last])

    def _tests_of(self, cut: Cut) -> Iterable[Constraint]:
        """The tests that the string after a cut passes."""
        if not self._tests:  # which only strings have
            return ()
        value = cut.decode("utf-8", "surrogatepass")
        return chain(
            self._tests_for("startswith", value),
            (self._tests[one] for one in _ends(value) if one in self._tests),
        )

    def _tests_for(self, name: str, text: str) -> Iterable[Constraint]:
        """The tests that strings pass which have a text at a place, and maybe others."""
        if len(self._tests) <= LONGEST or len(text) > LONGEST:
            return self._tests.values()
        parts = dict.fromkeys(_weaker_tests(name, text))
        return [self._tests[one] for one in parts if one in self._tests]


def _test(constraint: Constraint) -> Test | None:
    """The test of a constraint that is a single test of a part of a string."""
    match classify(constraint.node):
        case StringTest(ast.Attribute(), function, text, False):
            return function, text
        case _:
            return None


def _weaker_tests(name: str, text: str) -> Iterator[Test]:
    """The tests that every string with a text at a place passes."""
    ends = range(len(text) + 1)
    if name == "startswith":
        yield from ((name, text[:end]) for end in ends)
    elif name == "endswith":
        yield from _ends(text)
    for start in ends:
        yield from (("contains", text[start:end]) for end in ends[start:])


def _ends(text: str) -> Iterator[Test]:
    return (("endswith", text[start:]) for start in range(len(text) + 1))
