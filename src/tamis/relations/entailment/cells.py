"""The values of an operand, divided into cells that its tests cannot tell apart.

A cell is one bit; a *mask* of bits is a set of cells. A test becomes the mask of the cells whose
values make it true. No cell is empty: each has a value to show, and a cell of few values can list
them all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tamis.language.evaluation import Evaluator
from tamis.predicates.value_orders import ValueOrder
from tamis.predicates.value_sets import ValueSet, compared, listed
from tamis.relations.entailment.string_languages import Language, TooManySteps, explore, places
from tamis.relations.entailment.value_tests import ValueTest

FEW = 16  # values that a cell may list
# For which of "below", "equal" and "above" a comparison is true.
_SIDES = {"<": 0b001, "<=": 0b011, "=": 0b010, "<>": 0b101, ">": 0b100, ">=": 0b110}
MOST_CELLS = 100_000

Values = Sequence[Any]


class Cells(Protocol):
    """The cells of one operand."""

    count: int

    def mask(self, test: ValueTest) -> int:
        """The cells for which a test is true, whether or not it is negated."""

    def cell(self, value: Any) -> int:
        """The number of the cell of a value."""

    def values(self, cell: int) -> Values | None:
        """All values of a cell, None if there are many."""

    def examples(self, cell: int) -> Values:
        """A few values of a cell, a readable one first."""


def true_values(test: ValueTest, order: ValueOrder) -> ValueSet:
    """The values for which a comparison or a list of constants is true."""
    if test.kind == "in":
        return listed(test.constant, order)
    return compared(test.kind, test.constant, order)


class IntervalCells:
    """Cells of an ordered type: intervals, from one cut to the next."""

    def __init__(self, order: ValueOrder, tests: Iterable[ValueTest]) -> None:
        self.order = order
        cuts = {order.start}
        for test in tests:
            if test.kind != "null":
                cuts.update(cut for pair in true_values(test, order).intervals for cut in pair)
        cuts.discard(order.end)
        self.cuts = sorted(cuts)
        self.count = len(self.cuts)
        if self.count > MOST_CELLS:
            raise TooManySteps

    def mask(self, test: ValueTest) -> int:
        bits = bytearray(b"0") * self.count
        for low, high in true_values(test, self.order).intervals:
            first, end = bisect_left(self.cuts, low), bisect_left(self.cuts, high)
            bits[first:end] = b"1" * (end - first)
        return int(bits[::-1], 2)

    def cell(self, value: Any) -> int:
        return bisect_right(self.cuts, self.order.around(value)[0]) - 1

    def ends(self, cell: int) -> tuple[int, int]:
        """The numbers of the first and the last value of a cell."""
        end = self.cuts[cell + 1] if cell + 1 < self.count else self.order.end
        return self.cuts[cell], end - 1

    def between(self, low: int, high: int) -> int:
        """The cells that have a value from one number to another."""
        if low > high:
            return 0
        first = max(bisect_right(self.cuts, low) - 1, 0)
        return (1 << bisect_right(self.cuts, high)) - 1 & ~((1 << first) - 1)

    def values(self, cell: int) -> Values | None:
        low, high = self.ends(cell)
        return self.order.values(low, high + 1, FEW)

    def examples(self, cell: int) -> Values:
        low, high = self.ends(cell)
        best = self.order.readable(low, high + 1)
        numbers = dict.fromkeys((best, best + 1, best - 1, low, high, (low + high) // 2))
        return [self.order.value(number) for number in numbers if low <= number <= high]


class StringCells:
    """Cells of strings: their places among the constants, and the languages that they are in."""

    def __init__(self, tests: Iterable[ValueTest]) -> None:
        constants: set[str] = set()
        languages: dict[Language, None] = {}
        ordered = False
        for test in tests:
            if test.kind == "language":
                languages[test.constant] = None
            elif test.kind == "in":
                constants.update(test.constant)
            elif test.kind != "null":
                constants.add(test.constant)
                ordered = ordered or test.kind not in {"=", "<>"}
        self.constants = sorted(constants)
        self.languages = list(languages)
        self.ordered = ordered
        if languages:
            shown = explore(self.constants, self.languages, ordered=ordered)
        else:
            shown = {(p, 0): s for p, s in places(self.constants, ordered=ordered).items()}
        if len(shown) > MOST_CELLS:
            raise TooManySteps
        keys = sorted(shown)
        self.cells = {key: cell for cell, key in enumerate(keys)}
        self.places = [place for place, _ in keys]
        self.answers = [answers for _, answers in keys]
        self.shown = [shown[key] for key in keys]
        self.count = len(keys)

    def mask(self, test: ValueTest) -> int:
        if test.kind == "language":
            bit = self.languages.index(test.constant)
            return _bits(cell for cell, given in enumerate(self.answers) if given >> bit & 1)
        if test.kind == "in":
            return _bits(c for value in test.constant for c in self._at(self._point(value)))
        point = self._point(test.constant)
        below, equal = (1 << bisect_left(self.places, point)) - 1, _bits(self._at(point))
        sides = below, equal, (1 << self.count) - 1 ^ below ^ equal
        return sum(side for n, side in enumerate(sides) if _SIDES[test.kind] >> n & 1)

    def _point(self, constant: str) -> int:
        return 2 * bisect_left(self.constants, constant) + 1

    def _at(self, place: int) -> range:
        return range(bisect_left(self.places, place), bisect_right(self.places, place))

    def cell(self, value: Any) -> int:
        at = bisect_left(self.constants, value)
        if at < len(self.constants) and self.constants[at] == value:
            place = 2 * at + 1
        else:
            place = 2 * at if self.ordered else 0
        answers = 0
        for bit, language in enumerate(self.languages):
            state = language.start
            for letter in value:
                state = language.step(state, letter)
            answers |= language.accepts(state) << bit
        return self.cells[place, answers]

    def values(self, cell: int) -> Values | None:
        return (self.shown[cell],) if self.places[cell] % 2 else None

    def examples(self, cell: int) -> Values:
        return (self.shown[cell],)


class _SingleValues:
    """One cell for each of a few values."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.listed = list(values)
        self.count = len(self.listed)

    def cell(self, value: Any) -> int:
        return self.listed.index(value)

    def values(self, cell: int) -> Values | None:
        return (self.listed[cell],)

    def examples(self, cell: int) -> Values:
        return (self.listed[cell],)


class ListedCells(_SingleValues):
    """One cell for each value of a small domain; every test is tried with every value."""

    def mask(self, test: ValueTest) -> int:  # noqa: ARG002 - tests are evaluated, see `tried`
        raise AssertionError("the tests of listed values are evaluated")

    def tried(self, holds: Evaluator) -> int:
        """The cells for whose values a test is true."""
        return _bits(cell for cell, value in enumerate(self.listed) if holds(value) is True)


class OutcomeCells(_SingleValues):
    """What comparing two values can give: below, equal, above; or what a test can: no, yes."""

    def mask(self, test: ValueTest) -> int:
        return 0b10 if test.kind == "holds" else _SIDES[test.kind]


def _bits(cells: Iterable[int]) -> int:
    found = bytearray()
    for cell in cells:
        if cell >> 3 >= len(found):
            found.extend(bytes((cell >> 3) + 1 - len(found)))
        found[cell >> 3] |= 1 << (cell & 7)
    return int.from_bytes(found, "little")
