"""Events to try: do the computed values fall into the cells that a search has left open?"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tamis.language import ast
from tamis.predicates.value_orders import ValueOrder
from tamis.relations.entailment.array_elements import (
    FALSE,
    TRUE,
    ArrayCells,
    Member,
    WantedArray,
    arrays_for,
    constant_place,
)
from tamis.relations.entailment.cells import IntervalCells
from tamis.relations.entailment.computed_values import ComputedValues, cells_of
from tamis.relations.entailment.operands import OpenCells, Operand, Operands
from tamis.relations.entailment.value_tests import Pair
from tamis.types import STRING, Kind

MOST_CELLS = 40  # cells of an attribute whose examples are tried
LONGEST = 1_000  # characters of a string that is tried for its length
MOST_TRIALS = 3_000  # values that are tried in one state of the search

_WORDS = re.compile(r"[^\W_]+|\\.|.")


class TrialEvents:
    """Tries values of attributes, one attribute after the other."""

    def __init__(self, operands: Operands, computed_values: ComputedValues) -> None:
        self.operands = operands.all
        self.computed_values = computed_values
        self._ideas: dict[int, list[Any]] = {}

    def example(self, number: int, mask: int) -> Any:
        """A value of an attribute within some cells; the missing one only if there is no other."""
        operand = self.operands[number]
        present = mask & ~operand.missing
        if not present:
            return None
        return operand.cells.examples((present & -present).bit_length() - 1)[0]

    def attempt(
        self, computed: Sequence[int], attributes: Sequence[int], open_cells: OpenCells
    ) -> tuple[dict[int, Any] | None, bool]:
        """Values of attributes that put every computed value into an open cell, if they are found.

        The second result says whether everything was tried.
        """
        wanted = [n for n in computed if open_cells[n] != self.operands[n].full]
        needed = {n for number in wanted for n in self.operands[number].inputs}
        values = {n: self.example(n, open_cells[n]) for n in attributes if n not in needed}
        order = [n for n in attributes if n in needed]
        checks: list[list[int]] = [[] for _ in order]
        for number in wanted:
            checks[max(order.index(n) for n in self.operands[number].inputs)].append(number)
        complete = not any(self.operands[number].timed for number in wanted)
        lists = []
        for n in order:
            few = self.computed_values.few(n, open_cells[n])
            complete = complete and few is not None
            if few is None and isinstance(self.operands[n].cells, ArrayCells):
                few, complete = self._arrays(n, wanted, open_cells), False
            lists.append(self._candidates(n, open_cells[n], wanted) if few is None else few)
        return self._walk(order, lists, checks, values, open_cells, complete)

    def _walk(
        self,
        order: list[int],
        lists: list[list[Any]],
        checks: list[list[int]],
        values: dict[int, Any],
        open_cells: OpenCells,
        complete: bool,
    ) -> tuple[dict[int, Any] | None, bool]:
        if not order:
            return values, True
        tried = 0
        walks: list[Iterator[Any]] = [iter(lists[0])]
        while walks:
            at = len(walks) - 1
            value = next(walks[-1], _END)
            if value is _END:
                walks.pop()
                continue
            tried += 1
            if tried > MOST_TRIALS:
                return None, False
            values[order[at]] = value
            if not all(
                self.computed_values.bit(self.operands[number], values) & open_cells[number]
                for number in checks[at]
            ):
                continue
            if at + 1 == len(order):
                return values, complete
            walks.append(iter(lists[at + 1]))
        return None, complete

    def _arrays(self, number: int, wanted: Sequence[int], open_cells: OpenCells) -> list[Any]:
        """Arrays or maps to try: with and without the elements that the open cells say."""
        operand = self.operands[number]
        if not isinstance(operand.key, ast.Attribute):  # pragma: no cover - it is an attribute's
            return []
        wish = WantedArray([], [], [], {}, set())
        for other in wanted:
            computed = self.operands[other]
            if number not in computed.inputs:
                continue
            open_ = open_cells[other]
            if isinstance(computed.key, Member):
                _note_member(computed.key, open_ & (TRUE | FALSE), operand.key, wish)
            elif not isinstance(computed.key, Pair):
                self._note_place(computed, open_, operand.key, wish)
        found = arrays_for(wish, operand.key.type)
        return [*found, None] if open_cells[number] & operand.missing else found

    def _note_place(
        self, computed: Operand, open_: int, of: ast.Attribute, wish: WantedArray
    ) -> None:
        """What an element at a place has to be, and constants that may matter to something else."""
        key = computed.key
        if isinstance(key, Pair | Member):
            return
        place = constant_place(key, of)
        present = open_ & ~computed.missing
        if place is not None and present:
            wish.places[place] = computed.cells.examples((present & -present).bit_length() - 1)[0]
        elif place is not None:
            wish.absent.add(place)
        wanted = STRING if of.type.kind is Kind.MAP else of.type.element
        for part in ast.walk(key):
            if isinstance(part, ast.Literal) and part.type == wanted and part.value is not None:
                wish.free.append(part.value)

    def _candidates(self, number: int, mask: int, wanted: Sequence[int]) -> list[Any]:
        """Values to try: examples of the cells, and the constants of computed operands."""
        operand = self.operands[number]
        found: list[Any] = []
        for cell in cells_of(mask & ~operand.missing)[:MOST_CELLS]:
            found.extend(operand.cells.examples(cell))
        ideas = self._ideas_for(number, wanted)
        found.extend(idea for idea in ideas if mask >> operand.cells.cell(idea) & 1)
        if mask & operand.missing:
            found.append(None)
        return list({(type(value), repr(value)): value for value in found}.values())

    def _ideas_for(self, number: int, wanted: Sequence[int]) -> list[Any]:
        if number not in self._ideas:
            found: dict[Any, None] = {}
            operand = self.operands[number]
            for other in wanted:
                if number in self.operands[other].inputs:
                    found.update(dict.fromkeys(_ideas(operand, self.operands[other])))
            self._ideas[number] = list(found)
        return self._ideas[number]


_END = object()


def _note_member(member: Member, may_be: int, of: ast.Attribute, wish: WantedArray) -> None:
    """An element of an array, a key of a map or one of its values that is there, or is not.

    Elements of arrays that are computed in other ways are left to chance.
    """
    is_map = of.type.kind is Kind.MAP
    if member.array == (ast.Call("map_keys", (of,), member.array.type) if is_map else of):
        where = {TRUE: wish.inside, FALSE: wish.outside}.get(may_be, wish.free)
        where.append(member.constant)
    elif is_map and may_be == TRUE and member.array.type.element == of.type.element:
        wish.places[f"value {len(wish.places)}"] = member.constant


def _ideas(operand: Operand, computed: Operand) -> Iterator[Any]:
    """Values of an attribute that may matter to what is computed from it."""
    constants: list[Any] = []
    for cell in range(min(computed.cells.count, MOST_CELLS)):
        constants.extend(computed.cells.examples(cell)[:2])
    key = computed.key
    if isinstance(key, Member):
        constants.append(key.constant)
        key = key.array
    for node in key if isinstance(key, Pair) else (key,):
        for part in ast.walk(node):
            if isinstance(part, ast.Literal):
                constants.extend(part.value if isinstance(part.value, tuple) else (part.value,))
            elif isinstance(part, ast.RLike):
                constants.extend(_regex_ideas(part.pattern))
    if isinstance(operand.cells, IntervalCells):
        return _numbers(constants, operand.cells.order)
    return _strings(constants)


def _numbers(constants: Iterable[Any], order: ValueOrder) -> Iterator[Any]:
    for constant in constants:
        if isinstance(constant, str) or constant is None or not math.isfinite(constant):
            continue
        for near in (constant, -constant, constant + 1, constant - 1):
            # What a double cannot hold is near enough to what it can.
            number = order.around(float(near))[0] if order.is_double else math.floor(near)
            if order.start <= number < order.end:
                yield order.value(number)


def _strings(constants: Iterable[Any]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield from (constant, constant.lower(), constant.upper(), constant + "x")
        elif isinstance(constant, int) and 0 <= constant <= LONGEST:
            yield "x" * constant


def _regex_ideas(pattern: str) -> Iterator[str]:
    """Texts in which a simple regular expression may be found."""
    words = [word for word in _WORDS.findall(pattern) if word.isalnum()]
    yield from words
    yield "".join(words)
