"""How much a merger is true of that none of its parts is (MBD paper, sections 5.3 and 5.4).

The imperfect degree of a merger is the share of its events that match no part; times the
probability of the merger it is the IMT, the share of *all* events that it lets through for nobody.
With advertisements, only what they announce counts, as all that ever comes (definition 2).
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tamis.events import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.language.expression import Expression
from tamis.relations.boxes import Box, box_of
from tamis.relations.event_space import World, form_of
from tamis.relations.merging.event_sets import Cell, Space
from tamis.relations.merging.measures import Measure
from tamis.semantics import Semantics

MOST_CELLS = 10_000  # of a set of events; beyond them it is estimated
FEW_CELLS = 1_000  # of one merger of many
DRAWS = 10_000
_SMOOTH = 4  # draws that are added, half of them hits, so that no estimate seems certain


@dataclass(frozen=True, slots=True)
class Degree:
    """The imperfect degree of a merger: 0 adds nothing, near 1 it is true of little else.

    An exact one is a fraction and its error is 0. Of an estimate `error` is the standard error:
    two of three times the truth is no farther away, nineteen of twenty times within twice of it.
    """

    value: Fraction | float
    probability: Fraction | float | None  # of the merger, among all that come; None: not weighed
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

    It is counted where all filters are made of conditions of single attributes that the measure can
    weigh; otherwise events are drawn.
    """
    forms = [form_of(part, semantics) for part in parts]
    announced = [form_of(each, semantics) for each in advertisements]
    return degree_of_forms(
        form_of(merger, semantics), forms, World.of(semantics), measure.space(semantics),
        announced, draws=draws, seed=seed,
    )  # fmt: skip


def degree_of_forms(
    merger: Node, parts: Sequence[Node], world: World, space: Space,
    advertisements: Sequence[Node] = (), *, draws: int = DRAWS, seed: int = 1,
) -> Degree:  # fmt: skip
    """The same, of forms in a space."""
    for form in (merger, *parts, *advertisements):
        space.check(world.schema.positions[path] for path in ast.attributes(form))
    try:
        return _counted(merger, parts, Cells(space, world), advertisements)
    except _NotCountable:
        chance = random.Random(seed)  # noqa: S311 - no secret, but the same every time
        return _estimated(merger, parts, world, space, advertisements, draws, chance)


def degree_of_boxes(
    merger: Box, parts: Sequence[Box], world: World, space: Space, announced: list[Cell] | None,
    bound: float,
) -> Degree:  # fmt: skip
    """The degree of a merger of boxes, or a bound if it takes too many cells.

    `bound` is what its IMT cannot exceed; the error of a bound is as large as itself.
    """
    cells = Cells(space, world, FEW_CELLS)
    whole = [cells.of_box(merger)]
    arriving = Fraction(1)
    if announced is not None:
        both = (space.common(whole[0], each) for each in announced)
        whole = [cell for cell in both if cell is not None]
        arriving = cells.weight(announced)
    try:
        return _share(whole, (cells.of_box(part) for part in parts), cells, arriving)
    except _NotCountable:
        probability = float(cells.weight(whole) / arriving)
        value = min(1.0, bound / probability)
        return Degree(value, probability, value, exact=False)


class _NotCountable(Exception):
    """A set of events is no union of cells, or of too many."""


class Cells:
    """Sets of events as lists of cells that have nothing in common."""

    def __init__(self, space: Space, world: World, most: int = MOST_CELLS) -> None:
        self.space = space
        self._world = world
        self._most = most

    def of_form(self, form: Node) -> list[Cell]:
        """The events of a form."""
        cell = self.space.cell_of_form(form)
        if cell is not None:
            return [cell]
        return self.union(self.of_box(box) for box in self._boxes(form))

    def of_box(self, box: Box) -> Cell:
        cell = self.space.cell(box.conditions)
        if cell is None:
            raise _NotCountable
        return cell

    def union(self, cells: Iterable[Cell]) -> list[Cell]:
        """The events of any of some cells."""
        found: list[Cell] = []
        for cell in cells:
            found.extend(self.outside([cell], found))
            if len(found) > self._most:
                raise _NotCountable
        return found

    def outside(self, cells: list[Cell], others: Iterable[Cell]) -> list[Cell]:
        """The events of some cells, without those of others."""
        for other in others:
            cells = [piece for cell in cells for piece in self.space.without(cell, other)]
            if len(cells) > self._most:
                raise _NotCountable
            if not cells:
                break
        return cells

    def within(self, cells: list[Cell], others: list[Cell]) -> list[Cell]:
        """The events of both."""
        if len(cells) * len(others) > 100 * self._most:
            raise _NotCountable
        both = (self.space.common(cell, other) for cell in cells for other in others)
        return [cell for cell in both if cell is not None]

    def weight(self, cells: Iterable[Cell]) -> Fraction:
        """The probability of an event in one of some cells that have nothing in common."""
        return sum(map(self.space.weight, cells), Fraction(0))

    def _boxes(self, form: Node) -> list[Box]:
        """Boxes of which one is true iff the form is."""
        box, never = box_of(form, self._world)
        if never:
            return []
        if box is not None:
            return [box]
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
    merger: Node, parts: Sequence[Node], cells: Cells, advertisements: Sequence[Node]
) -> Degree:
    whole = cells.of_form(merger)
    arriving = Fraction(1)
    if advertisements:
        announced = cells.union(c for each in advertisements for c in cells.of_form(each))
        whole = cells.within(whole, announced)
        arriving = cells.weight(announced)
    return _share(whole, (c for part in parts for c in cells.of_form(part)), cells, arriving)


def _share(whole: list[Cell], parts: Iterable[Cell], cells: Cells, arriving: Fraction) -> Degree:
    weight = cells.weight(whole)
    if not weight:
        return Degree(Fraction(0), Fraction(0))
    added = cells.outside(whole, parts)
    return Degree(cells.weight(added) / weight, weight / arriving)


def _estimated(
    merger: Node, parts: Sequence[Node], world: World, space: Space,
    advertisements: Sequence[Node], draws: int, chance: random.Random,
) -> Degree:  # fmt: skip
    def test(form: Node) -> Callable[[Row], bool]:
        holds = compile_tree(form, world.schema)
        return lambda row: holds(row) is True

    is_in, are_in = test(merger), [test(part) for part in parts]
    announced = [test(each) for each in advertisements]
    arriving = hits = added = 0
    for _ in range(draws):
        row = space.draw(chance)
        if announced and not any(each(row) for each in announced):
            continue
        arriving += 1
        if is_in(row):
            hits += 1
            added += not any(each(row) for each in are_in)
    smooth = (added + _SMOOTH / 2) / (hits + _SMOOTH)
    error = math.sqrt(smooth * (1 - smooth) / (hits + _SMOOTH))
    return Degree(added / max(1, hits), hits / max(1, arriving), error, exact=False)
