"""Sets of events that can be weighed: what measures make of boxes.

A space turns boxes into *cells*, which can be cut with each other and weighed.
"""

import functools
import random
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

from tamis.errors import OptionError
from tamis.events import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.regions import tester
from tamis.relations.extents import single_attribute
from tamis.relations.merging.distributions import Distribution
from tamis.schema import Schema

Cell = Any  # what a space makes of boxes: never looked into
Conditions = Iterable[tuple[int, Node]]  # of a box: positions and conditions


class Space(Protocol):
    """Sets of events that can be weighed. `Product` and `Joint` are such."""

    def cell(self, conditions: Conditions) -> Cell | None:
        """The events of a box, None if that cannot be said."""
        ...

    def cell_of_form(self, form: Node) -> Cell | None:
        """The events of any form, None if that is no cell."""
        ...

    def common(self, a: Cell, b: Cell) -> Cell | None:
        """The events of both, None if there is none."""
        ...

    def without(self, a: Cell, b: Cell) -> Iterator[Cell]:
        """The events of the first only, in cells that have nothing in common."""
        ...

    def weight(self, cell: Cell) -> Fraction:
        """The probability of an event in the cell."""
        ...

    def rough(self, cell: Cell) -> float:
        """The same, quickly."""
        ...

    def check(self, positions: Iterable[int]) -> None:
        """Raise an `OptionError` if nothing is known of one of some attributes."""
        ...

    def draw(self, chance: random.Random) -> Row:
        """An event, as filters see it; attributes of which nothing is known are missing."""
        ...


class Product:
    """Events whose attributes are independent; a cell is a part of the values of each."""

    def __init__(self, distributions: Sequence[Distribution | str]) -> None:
        self._distributions = distributions  # or why there is none
        self._rough: dict[tuple[int, Any], float] = {}

    def _at(self, position: int) -> Distribution:
        found = self._distributions[position]
        if isinstance(found, str):
            raise OptionError(found)
        return found

    def cell(self, conditions: Conditions) -> dict[int, Any] | None:
        found = {}
        for position, node in conditions:
            part = self._at(position).part(node)
            if part is None:
                return None
            found[position] = part
        return found

    def cell_of_form(self, form: Node) -> None:
        """Forms are cells only if they are boxes, for which there is `cell`."""

    def common(self, a: dict[int, Any], b: dict[int, Any]) -> dict[int, Any] | None:
        found = a | b
        for position in a.keys() & b.keys():
            part = self._at(position).common(a[position], b[position])
            if not part:
                return None
            found[position] = part
        return found

    def without(self, a: dict[int, Any], b: dict[int, Any]) -> Iterator[dict[int, Any]]:
        inside = dict(a)
        pieces = []
        for position, part in b.items():
            values = self._at(position)
            mine = inside.get(position, values.everything)
            outside, both = values.without(mine, part), values.common(mine, part)
            if not both:
                yield a
                return
            if outside:
                pieces.append(inside | {position: outside})
            inside[position] = both
        yield from pieces

    def weight(self, cell: dict[int, Any]) -> Fraction:
        found = Fraction(1)
        for position, part in cell.items():
            found *= self._at(position).weight(part)
        return found

    def rough(self, cell: dict[int, Any]) -> float:
        found = 1.0
        for key in cell.items():
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


class Joint:
    """Events in a row; a cell has a bit for each."""

    def __init__(self, rows: Sequence[Row], schema: Schema) -> None:
        self._rows = rows
        self._schema = schema
        self._everything = (1 << len(rows)) - 1
        self.cell_of_form = functools.lru_cache(maxsize=100_000)(self._cell_of_form)

    @functools.cached_property
    def _columns(self) -> list[dict[Any, int]]:
        """For each attribute, which events have which value."""
        columns: list[dict[Any, int]] = [{} for _ in self._schema.attributes]
        for n, row in enumerate(self._rows):
            for column, value in zip(columns, row, strict=True):
                column[value] = column.get(value, 0) | 1 << n
        return columns

    def _cell_of_form(self, form: Node) -> int:
        match form:
            case ast.Literal(value, _):
                return self._everything if value is True else 0
            case ast.And(items):
                return functools.reduce(int.__and__, map(self.cell_of_form, items))
            case ast.Or(items):
                return functools.reduce(int.__or__, map(self.cell_of_form, items))
        path = single_attribute(form)
        if path is None:
            holds = compile_tree(form, self._schema)
            return sum(1 << n for n, row in enumerate(self._rows) if holds(row) is True)
        column = self._columns[self._schema.positions[path]]
        test = tester(form)
        return functools.reduce(int.__or__, (m for v, m in column.items() if test(v)), 0)

    def cell(self, conditions: Conditions) -> int:
        found = self._everything
        for _, node in conditions:
            found &= self.cell_of_form(node)
        return found

    def common(self, a: int, b: int) -> int | None:
        return (a & b) or None

    def without(self, a: int, b: int) -> Iterator[int]:
        if a & ~b:
            yield a & ~b

    def weight(self, cell: int) -> Fraction:
        return Fraction(cell.bit_count(), len(self._rows) or 1)

    def rough(self, cell: int) -> float:
        return cell.bit_count() / (len(self._rows) or 1)

    def check(self, positions: Iterable[int]) -> None:
        """All is known of events that are there."""

    def draw(self, chance: random.Random) -> Row:
        return chance.choice(self._rows)
