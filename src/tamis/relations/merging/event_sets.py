"""Sets of events that can be weighed: what measures make of boxes and normal forms.

A `ProbabilitySpace` turns boxes into sets of events, which can be intersected and weighed. It has
two kinds: `IndependentAttributes`, where a set is a subset of the values of each attribute, and
`ListedEvents`, where it has one bit for each event.
"""

import functools
import random
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

from tamis.bounded_caches import remembered
from tamis.errors import OptionError
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.boxes import Box, single_attribute
from tamis.predicates.value_sets import holds_of
from tamis.relations.merging.distributions import Distribution
from tamis.schema import Schema

EventSet = Any  # what a probability space makes of boxes: never looked into


class ProbabilitySpace(Protocol):
    """Sets of events that can be weighed."""

    def of_box(self, box: Box) -> EventSet | None:
        """The events of a box, None if they cannot be told."""
        ...

    def of_form(self, form: Node) -> EventSet | None:
        """The events of any normal form, None if they are not one set here."""
        ...

    def common(self, a: EventSet, b: EventSet) -> EventSet | None:
        """The events of both, None if there are none."""
        ...

    def without(self, a: EventSet, b: EventSet) -> Iterator[EventSet]:
        """The events of the first only, in sets that have nothing in common."""
        ...

    def weight(self, events: EventSet) -> Fraction:
        """The probability that an event is in the set."""
        ...

    def rough(self, events: EventSet) -> float:
        """The same, quickly."""
        ...

    def check(self, positions: Iterable[int]) -> None:
        """Raise an `OptionError` if nothing is known about one of some attributes."""
        ...

    def draw(self, chance: random.Random) -> Row:
        """A random event; attributes about which nothing is known are missing."""
        ...


class IndependentAttributes:
    """Events whose attributes are independent; a set has a subset of values by position."""

    def __init__(self, distributions: Sequence[Distribution | str]) -> None:
        self._distributions = distributions  # or why there is none
        self._rough: dict[tuple[int, Any], float] = {}

    def _at(self, position: int) -> Distribution:
        found = self._distributions[position]
        if isinstance(found, str):
            raise OptionError(found)
        return found

    def of_box(self, box: Box) -> dict[int, Any] | None:
        found = {}
        for condition in box.conditions:
            subset = self._at(condition.position).subset(condition.node)
            if subset is None:
                return None
            found[condition.position] = subset
        return found

    def of_form(self, form: Node) -> None:
        """A form is one set only if it is a box, for which there is `of_box`."""

    def common(self, a: dict[int, Any], b: dict[int, Any]) -> dict[int, Any] | None:
        found = a | b
        for position in a.keys() & b.keys():
            subset = self._at(position).common(a[position], b[position])
            if not subset:
                return None
            found[position] = subset
        return found

    def without(self, a: dict[int, Any], b: dict[int, Any]) -> Iterator[dict[int, Any]]:
        inside = dict(a)
        pieces = []
        for position, subset in b.items():
            values = self._at(position)
            mine = inside.get(position, values.everything)
            outside, both = values.without(mine, subset), values.common(mine, subset)
            if not both:
                yield a
                return
            if outside:
                pieces.append(inside | {position: outside})
            inside[position] = both
        yield from pieces

    def weight(self, events: dict[int, Any]) -> Fraction:
        found = Fraction(1)
        for position, subset in events.items():
            found *= self._at(position).weight(subset)
        return found

    def rough(self, events: dict[int, Any]) -> float:
        found = 1.0
        for key in events.items():
            known = self._rough.get(key)
            if known is None:
                known = self._rough[key] = float(self._at(key[0]).weight(key[1]))
            found *= known
        return found

    def check(self, positions: Iterable[int]) -> None:
        for position in positions:
            self._at(position)

    def draw(self, chance: random.Random) -> Row:
        return tuple(
            None if isinstance(values, str) else values.draw(chance)
            for values in self._distributions
        )


class ListedEvents:
    """Listed events; a set has one bit for each."""

    def __init__(self, rows: Sequence[Row], schema: Schema) -> None:
        self._rows = rows
        self._schema = schema
        self._everything = (1 << len(rows)) - 1
        self.of_form = remembered()(self._of_form)

    @functools.cached_property
    def _columns(self) -> list[dict[Any, int]]:
        """For each attribute, which events have which value."""
        columns: list[dict[Any, int]] = [{} for _ in self._schema.attributes]
        for n, row in enumerate(self._rows):
            for column, value in zip(columns, row, strict=True):
                column[value] = column.get(value, 0) | 1 << n
        return columns

    def _of_form(self, form: Node) -> int:
        match form:
            case ast.Literal(value, _):
                return self._everything if value is True else 0
            case ast.And(items):
                return functools.reduce(int.__and__, map(self.of_form, items))
            case ast.Or(items):
                return functools.reduce(int.__or__, map(self.of_form, items))
        path = single_attribute(form)
        if path is None:
            holds = compile_tree(form, self._schema)
            return sum(1 << n for n, row in enumerate(self._rows) if holds(row) is True)
        column = self._columns[self._schema.positions[path]]
        test = holds_of(form)
        return functools.reduce(int.__or__, (m for v, m in column.items() if test(v)), 0)

    def of_box(self, box: Box) -> int:
        found = self._everything
        for condition in box.conditions:
            found &= self.of_form(condition.node)
        return found

    def common(self, a: int, b: int) -> int | None:
        return (a & b) or None

    def without(self, a: int, b: int) -> Iterator[int]:
        if a & ~b:
            yield a & ~b

    def weight(self, events: int) -> Fraction:
        return Fraction(events.bit_count(), len(self._rows) or 1)

    def rough(self, events: int) -> float:
        return events.bit_count() / (len(self._rows) or 1)

    def check(self, positions: Iterable[int]) -> None:
        """Everything is known about listed events."""

    def draw(self, chance: random.Random) -> Row:
        return chance.choice(self._rows)
