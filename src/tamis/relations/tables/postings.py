"""The terms of one attribute with the boxes that have them, indexed to find related terms.

The terms that a term implies, and those that imply it, are found without visiting all terms: points
by a hash, intervals by their ends, sets by their members, tests of strings by the parts of a text.
Only the other terms are visited one by one. The results are candidates, some of which are not
related at all; the caller compares them.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from tamis.language import ast
from tamis.predicates.classification import StringTest, classify
from tamis.predicates.value_orders import Cut
from tamis.relations.tables.interval_index import IntervalIndex
from tamis.relations.tables.terms import Term
from tamis.schema import Attribute

V = TypeVar("V")

LONGEST = 40  # characters of a text whose parts are looked up

Test = tuple[str, str]  # the name of the test and its text


class Postings(Generic[V]):
    """Terms of one attribute, each with a value of type V."""

    def __init__(self, attribute: Attribute) -> None:
        self.under: dict[Term, V] = {}
        self._points: dict[Cut, Term] = {}
        self._sorted_points: list[Cut] = []
        self._intervals = IntervalIndex(attribute)
        self._sets: dict[Cut, dict[Term, None]] = {}  # by each member
        self._tests: dict[Test, Term] = {}
        self._others: dict[Term, None] = {}

    def add(self, term: Term, under: V) -> None:
        """Add a term that is not there."""
        self.under[term] = under
        if term.values is None:
            test = _test(term)
            if test is None:
                self._others[term] = None
            else:
                self._tests[test] = term
        elif term.members is not None and term.is_interval:
            self._points[term.low] = term
            insort(self._sorted_points, term.low)
        elif term.members is not None:
            for low in term.members:
                self._sets.setdefault(low, {})[term] = None
        elif term.is_interval:
            self._intervals.add(term)
        else:
            self._others[term] = None

    def remove(self, term: Term) -> None:
        """Remove a term."""
        del self.under[term]
        if term.values is None:
            test = _test(term)
            if test is None:
                del self._others[term]
            else:
                del self._tests[test]
        elif term.members is not None and term.is_interval:
            del self._points[term.low]
            del self._sorted_points[bisect_left(self._sorted_points, term.low)]
        elif term.members is not None:
            for low in term.members:
                del self._sets[low][term]
                if not self._sets[low]:
                    del self._sets[low]
        elif term.is_interval:
            self._intervals.remove(term)
        else:
            del self._others[term]

    def weaker(self, term: Term) -> Iterable[Term]:
        """All terms that a term implies, and some others."""
        if term.values is None:
            test = _test(term)
            if test is None:
                return self.under
            return chain(self._tests_for(*test), self._intervals, self._others)
        values = term.values.intervals
        if not values or term.values.missing:  # neither an interval nor a set has the missing one
            return self._others
        first = values[0][0]
        found: list[Iterable[Term]] = [self._intervals.around(first, values[-1][1]), self._others]
        if term.members is None:
            found.append(self._tests.values())
        else:
            found += [self._sets.get(first, ()), self._tests_of(first)]
            if term.is_interval:
                found.append(self._at(first))
        return chain(*found)

    def stronger(self, term: Term) -> Iterable[Term]:
        """All terms that imply a term, and some others."""
        if term.values is None:
            return self.under
        if term.members is not None:
            points = (self._points[low] for low in term.members if low in self._points)
            sets = dict.fromkeys(one for low in term.members for one in self._sets.get(low, ()))
            return chain(points, sets, self._others)
        found: list[Iterable[Term]] = []
        for low, high in term.values.intervals:
            found += [self._intervals.inside(low, high), self._points_inside(low, high)]
        sets = dict.fromkeys(one for members in self._sets.values() for one in members)
        return chain(*found, sets, self._tests.values(), self._others)

    def overlapping(self, term: Term) -> Iterable[Term]:
        """All terms that an event can make true together with a term, and some others."""
        if term.values is None:
            return self.under
        intervals = term.values.intervals
        found = [self._intervals.overlapping(low, high) for low, high in intervals]
        if term.members is None:
            found += [self._points_inside(low, high) for low, high in intervals]
            sets: Iterable[Term] = (one for some in self._sets.values() for one in some)
        else:
            found.append(self._points[low] for low in term.members if low in self._points)
            sets = (one for low in term.members for one in self._sets.get(low, ()))
        return dict.fromkeys(chain(*found, sets, self._tests.values(), self._others))

    # --- looking up

    def _at(self, low: Cut) -> Iterator[Term]:
        term = self._points.get(low)
        if term is not None:
            yield term

    def _points_inside(self, low: Cut, high: Cut) -> Iterator[Term]:
        points = self._sorted_points
        first, last = bisect_left(points, low), bisect_left(points, high)
        return (self._points[cut] for cut in points[first:last])

    def _tests_of(self, cut: Cut) -> Iterable[Term]:
        """The tests that the string after a cut passes."""
        if not self._tests:  # which only strings have
            return ()
        value = cut.decode("utf-8", "surrogatepass")
        return chain(
            self._tests_for("startswith", value),
            (self._tests[one] for one in _ends(value) if one in self._tests),
        )

    def _tests_for(self, name: str, text: str) -> Iterable[Term]:
        """The tests that strings pass which have a text at a place, and maybe others."""
        if len(self._tests) <= LONGEST or len(text) > LONGEST:
            return self._tests.values()
        parts = dict.fromkeys(_weaker_tests(name, text))
        return [self._tests[one] for one in parts if one in self._tests]


def _test(term: Term) -> Test | None:
    """The test of a term that is a single test of a part of a string."""
    match classify(term.node):
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
