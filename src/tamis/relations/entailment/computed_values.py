"""What computed values and their inputs say about each other.

`ComputedValues.narrow` closes cells that are impossible: a computed value is missing when an input
is; where the inputs have few values left, it is computed; and of two attributes that are compared,
each bounds the other. It may leave too many cells open, never too few.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from tamis.relations.entailment.cells import IntervalCells
from tamis.relations.entailment.operands import OpenCells, Operand, Operands
from tamis.relations.entailment.string_languages import TooManySteps
from tamis.relations.entailment.value_tests import Pair

FEW_ROWS = 64  # combinations of values of the inputs that are tried at every step
MOST_COMPUTATIONS = 50_000  # in one search


def cells_of(mask: int) -> list[int]:
    """The numbers of the bits of a mask."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


class ComputedValues:
    """The computed operands of one search."""

    def __init__(self, operands: Operands) -> None:
        self.operands = operands.all
        self.row: list[Any] = [None] * len(operands.space.schema)
        self.computations = 0
        self._known: dict[tuple[int, ...], int | None] = {}
        self._values: dict[tuple[int, int], list[Any] | None] = {}
        self._numbers = {
            operand.key: number
            for number, operand in enumerate(self.operands)
            if isinstance(operand.cells, IntervalCells)
        }
        self._concerned = {n: self._concerns(n) for n in operands.computed}

    def _concerns(self, number: int) -> set[int]:
        """The operands whose cells a computed operand may close."""
        operand = self.operands[number]
        sides = operand.key if isinstance(operand.key, Pair) else ()
        return {number, *operand.inputs} | {self._numbers[n] for n in sides if n in self._numbers}

    def narrow(self, computed: Sequence[int], open_cells: OpenCells) -> bool:
        """Close impossible cells until nothing changes; False if an operand has no cell left."""
        changed = True
        while changed:
            changed = False
            for number in computed:
                operand = self.operands[number]
                before = [open_cells[n] for n in self._concerned[number]]
                self._missing(number, operand, open_cells)
                self._try_values(number, operand, open_cells)
                if isinstance(operand.key, Pair):
                    self._bounds(number, operand.key, open_cells)
                after = [open_cells[n] for n in self._concerned[number]]
                if 0 in after:
                    return False
                changed = changed or before != after
        return True

    def _missing(self, number: int, operand: Operand, open_cells: OpenCells) -> None:
        """It is missing if an input it needs is; else present if all are, unless it is fallible."""
        inputs = operand.inputs
        if any(open_cells[n] == self.operands[n].missing for n in operand.needed):
            open_cells[number] &= operand.missing
        elif not operand.fallible and not any(
            open_cells[n] & self.operands[n].missing for n in inputs
        ):
            open_cells[number] &= ~operand.missing
        if not open_cells[number] & operand.missing:
            for n in operand.needed:
                open_cells[n] &= ~self.operands[n].missing
        elif open_cells[number] == operand.missing and not operand.fallible:
            lacking = [n for n in inputs if open_cells[n] & self.operands[n].missing]
            if len(lacking) == 1:
                open_cells[lacking[0]] &= self.operands[lacking[0]].missing

    def _try_values(self, number: int, operand: Operand, open_cells: OpenCells) -> None:
        """Keep the cells that the open values of the inputs lead to, if these are few."""
        key = (number, *(open_cells[n] for n in operand.inputs))
        if key not in self._known:
            self._known[key] = self._cells(operand, open_cells)
        known = self._known[key]
        if known is not None:
            open_cells[number] &= known

    def _cells(self, operand: Operand, open_cells: OpenCells) -> int | None:
        if operand.timed:
            return None
        lists: list[list[Any]] = []
        size = 1
        for n in operand.inputs:
            values = self.few(n, open_cells[n])
            if values is None:
                return None
            lists.append(values)
            size *= len(values)
            if size > FEW_ROWS:
                return None
        found = 0
        for row in itertools.product(*lists):
            found |= self.bit(operand, dict(zip(operand.inputs, row, strict=True)))
        return found

    def few(self, number: int, mask: int) -> list[Any] | None:
        """All values of some cells of an attribute, None if there are many."""
        key = number, mask
        if key not in self._values:
            self._values[key] = self._few(self.operands[number], mask)
        return self._values[key]

    @staticmethod
    def _few(operand: Operand, mask: int) -> list[Any] | None:
        if mask.bit_count() > FEW_ROWS:
            return None
        found: list[Any] = []
        for cell in cells_of(mask & ~operand.missing):
            values = operand.cells.values(cell)
            if values is None:
                return None
            found.extend(values)
        return [*found, None] if mask & operand.missing else found

    def bit(self, operand: Operand, values: dict[int, Any]) -> int:
        """The cell of a computed operand, given the values of its inputs."""
        self.computations += 1
        if self.computations > MOST_COMPUTATIONS:
            raise TooManySteps
        for n in operand.inputs:
            self.row[self.operands[n].position] = values[n]
        value = operand.compute(self.row)
        return operand.missing if value is None else 1 << operand.cells.cell(value)

    def _bounds(self, number: int, pair: Pair, open_cells: OpenCells) -> None:
        """Below, equal or above: what the ends of both sides allow, and the other way round."""
        left, right = self._numbers.get(pair.left), self._numbers.get(pair.right)
        if left is None or right is None or pair.left == pair.right:
            return
        a, b = self.operands[left].cells, self.operands[right].cells
        if not isinstance(a, IntervalCells) or not isinstance(b, IntervalCells):
            return
        x, y = self._ends(left, a, open_cells), self._ends(right, b, open_cells)
        if x is None or y is None:
            return
        open_ = open_cells[number]
        if not x[0] < y[1]:
            open_ &= ~0b001
        if x[0] > y[1] or x[1] < y[0]:
            open_ &= ~0b010
        if not x[1] > y[0]:
            open_ &= ~0b100
        open_cells[number] &= open_
        outcomes = open_cells[number]
        if outcomes & self.operands[number].missing or not outcomes:
            return
        low, high = x
        if not outcomes & 0b100:  # the left is at most the right
            high = min(high, y[1] if outcomes & 0b010 else y[1] - 1)
        if not outcomes & 0b001:
            low = max(low, y[0] if outcomes & 0b010 else y[0] + 1)
        self._keep(left, a, open_cells, low, high)
        low, high = y
        if not outcomes & 0b001:
            high = min(high, x[1] if outcomes & 0b010 else x[1] - 1)
        if not outcomes & 0b100:
            low = max(low, x[0] if outcomes & 0b010 else x[0] + 1)
        self._keep(right, b, open_cells, low, high)

    def _ends(
        self, number: int, cells: IntervalCells, open_cells: OpenCells
    ) -> tuple[int, int] | None:
        present = open_cells[number] & ~self.operands[number].missing
        if not present:
            return None
        first, last = (present & -present).bit_length() - 1, present.bit_length() - 1
        return cells.ends(first)[0], cells.ends(last)[1]

    @staticmethod
    def _keep(
        number: int, cells: IntervalCells, open_cells: OpenCells, low: int, high: int
    ) -> None:
        """Only the cells that have a value from low to high."""
        open_cells[number] &= cells.between(low, high)
