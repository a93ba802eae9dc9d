"""How much more a merger matches than its parts (MBD, sections 5.3 and 5.4).

The imperfect degree of a merger is the share of its events that match no part (definition 1); times
the probability of the merger it is the IMT (imperfect merging threshold), the share of *all* events
that it lets through although no part matches. With advertisements, only the events that they
announce count, because no others arrive (definition 2).
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.language.expression import Expression
from tamis.predicates.boxes import Box, box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.merging.event_sets import EventSet, ProbabilitySpace
from tamis.relations.merging.measures import Measure
from tamis.semantics import Semantics

MOST_SETS = 10_000  # in a union; beyond that it is estimated
FEW_SETS = 1_000  # the same for one of many mergers
DRAWS = 10_000
_SMOOTH = 4  # added draws, half of them hits, so that no estimate looks certain


@dataclass(frozen=True, slots=True)
class Degree:
    """The imperfect degree of a merger: 0 adds nothing, near 1 almost all of it is added.

    An exact degree is a fraction and its error is 0. `error` is the standard error of an estimate:
    two times out of three the truth is no farther away, nineteen out of twenty times within twice
    that distance.
    """

    value: Fraction | float
    probability: Fraction | float | None  # of the merger among arriving events; None if unknown
    error: float = 0.0
    exact: bool = True

    @property
    def imt(self) -> Fraction | float:
        """The share of all events that match the merger and no part of it."""
        return self.value * self.probability if self.value and self.probability else Fraction(0)


PERFECT = Degree(Fraction(0), None)


def degree(
    merger: Expression, parts: Iterable[Expression], semantics: Semantics, measure: Measure, *,
    advertisements: Iterable[Expression] = (), draws: int = DRAWS, seed: int = 1,
) -> Degree:  # fmt: skip
    """The imperfect degree of a merger of some filters.

    It is computed exactly if all filters are made of conditions on single attributes that the
    measure can weigh; otherwise it is estimated from random events.
    """
    forms = [form_of(part, semantics) for part in parts]
    announced = [form_of(each, semantics) for each in advertisements]
    return degree_of_forms(
        form_of(merger, semantics), forms, EventSpace.of(semantics),
        measure.probabilities(semantics), announced, draws=draws, seed=seed,
    )  # fmt: skip


def degree_of_forms(
    merger: Node, parts: Sequence[Node], space: EventSpace, probabilities: ProbabilitySpace,
    advertisements: Sequence[Node] = (), *, draws: int = DRAWS, seed: int = 1,
) -> Degree:  # fmt: skip
    """The same for normal forms in a probability space."""
    for form in (merger, *parts, *advertisements):
        probabilities.check(space.schema.positions[path] for path in ast.attributes(form))
    try:
        return _counted(merger, parts, EventUnions(probabilities, space), advertisements)
    except _NotCountable:
        chance = random.Random(seed)  # noqa: S311 - not a secret, and the same every time
        return _estimated(merger, parts, space, probabilities, advertisements, draws, chance)


def degree_of_boxes(
    merger: Box, parts: Sequence[Box], space: EventSpace, probabilities: ProbabilitySpace,
    announced: list[EventSet] | None, bound: float,
) -> Degree:  # fmt: skip
    """The degree of a merger of boxes, or a bound if that takes too many sets.

    `bound` is a value that its IMT cannot exceed; the error of a bound is as large as the bound.
    """
    unions = EventUnions(probabilities, space, FEW_SETS)
    whole = [unions.of_box(merger)]
    arriving = Fraction(1)
    if announced is not None:
        both = (probabilities.common(whole[0], each) for each in announced)
        whole = [one for one in both if one is not None]
        arriving = unions.weight(announced)
    try:
        return _share(whole, (unions.of_box(part) for part in parts), unions, arriving)
    except _NotCountable:
        probability = float(unions.weight(whole) / arriving)
        value = min(1.0, bound / probability)
        return Degree(value, probability, value, exact=False)


class _NotCountable(Exception):
    """A set of events is not a union of sets that can be weighed, or of too many."""


class EventUnions:
    """Unions of sets of events: lists of sets that have nothing in common."""

    def __init__(
        self, probabilities: ProbabilitySpace, space: EventSpace, most: int = MOST_SETS
    ) -> None:
        self.probabilities = probabilities
        self._space = space
        self._most = most

    def of_form(self, form: Node) -> list[EventSet]:
        """The events of a form."""
        events = self.probabilities.of_form(form)
        if events is not None:
            return [events]
        return self.union(self.of_box(box) for box in self._boxes(form))

    def of_box(self, box: Box) -> EventSet:
        """The events of a box."""
        events = self.probabilities.of_box(box)
        if events is None:
            raise _NotCountable
        return events

    def union(self, sets: Iterable[EventSet]) -> list[EventSet]:
        """The events of any of some sets."""
        found: list[EventSet] = []
        for events in sets:
            found.extend(self.outside([events], found))
            if len(found) > self._most:
                raise _NotCountable
        return found

    def outside(self, sets: list[EventSet], others: Iterable[EventSet]) -> list[EventSet]:
        """The events of a union, without those of other sets."""
        for other in others:
            sets = [rest for one in sets for rest in self.probabilities.without(one, other)]
            if len(sets) > self._most:
                raise _NotCountable
            if not sets:
                break
        return sets

    def within(self, sets: list[EventSet], others: list[EventSet]) -> list[EventSet]:
        """The events of both of two unions."""
        if len(sets) * len(others) > 100 * self._most:
            raise _NotCountable
        both = (self.probabilities.common(one, other) for one in sets for other in others)
        return [one for one in both if one is not None]

    def weight(self, sets: Iterable[EventSet]) -> Fraction:
        """The probability of an event in a union."""
        return sum(map(self.probabilities.weight, sets), Fraction(0))

    def _boxes(self, form: Node) -> list[Box]:
        """Boxes of which one is true iff the form is."""
        box = box_of(form, self._space)
        if box is not None:
            return [] if box.is_empty else [box]
        match form:
            case ast.Or(items):
                return [box for item in items for box in self._boxes(item)]
            case ast.And(items):
                return self._products(items)
            case _:
                raise _NotCountable

    def _products(self, items: tuple[Node, ...]) -> list[Box]:
        found = [Box(())]
        for item in items:
            factors = self._boxes(item)
            if len(found) * len(factors) > self._most:
                raise _NotCountable
            found = [box for a in found for b in factors for box in self._boxes(_both(a, b))]
        return found


def _both(a: Box, b: Box) -> Node:
    nodes = tuple(condition.node for condition in (*a.conditions, *b.conditions))
    return ast.And(nodes) if nodes else ast.TRUE


def _counted(
    merger: Node, parts: Sequence[Node], unions: EventUnions, advertisements: Sequence[Node]
) -> Degree:
    whole = unions.of_form(merger)
    arriving = Fraction(1)
    if advertisements:
        announced = unions.union(one for each in advertisements for one in unions.of_form(each))
        whole = unions.within(whole, announced)
        arriving = unions.weight(announced)
    return _share(whole, (one for part in parts for one in unions.of_form(part)), unions, arriving)


def _share(
    whole: list[EventSet], parts: Iterable[EventSet], unions: EventUnions, arriving: Fraction
) -> Degree:
    weight = unions.weight(whole)
    if not weight:
        return Degree(Fraction(0), Fraction(0))
    added = unions.outside(whole, parts)
    return Degree(unions.weight(added) / weight, weight / arriving)


def _estimated(
    merger: Node, parts: Sequence[Node], space: EventSpace, probabilities: ProbabilitySpace,
    advertisements: Sequence[Node], draws: int, chance: random.Random,
) -> Degree:  # fmt: skip
    def test(form: Node) -> Callable[[Row], bool]:
        holds = compile_tree(form, space.schema)
        return lambda row: holds(row) is True

    is_in, are_in = test(merger), [test(part) for part in parts]
    announced = [test(each) for each in advertisements]
    arriving = hits = added = 0
    for _ in range(draws):
        row = probabilities.draw(chance)
        if announced and not any(each(row) for each in announced):
            continue
        arriving += 1
        if is_in(row):
            hits += 1
            added += not any(each(row) for each in are_in)
    smooth = (added + _SMOOTH / 2) / (hits + _SMOOTH)
    error = math.sqrt(smooth * (1 - smooth) / (hits + _SMOOTH))
    return Degree(added / max(1, hits), hits / max(1, arriving), error, exact=False)
