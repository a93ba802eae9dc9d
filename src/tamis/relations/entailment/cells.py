"""The values of a subject, cut into cells that its questions cannot tell apart.

A cell is one bit; a *mask* of bits is a set of cells. A question is the mask of the cells of whose
values it is true. Cells are not empty: each has a value to show, and where a cell has few values,
it can name them all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tamis.language.evaluation import Evaluator
from tamis.relations.entailment.ordered_values import Order
from tamis.relations.entailment.questions import Question
from tamis.relations.entailment.string_languages import Language, TooLarge, explore, places

FEW = 16  # values that a cell may name
MOST_CELLS = 100_000

Values = Sequence[Any]


class Cells(Protocol):
    """The cells of one subject."""

    count: int

    def mask(self, question: Question) -> int:
        """The cells for which the answer is yes, whether or not the question is negated."""

    def cell(self, value: Any) -> int:
        """The number of the cell of a value."""

    def values(self, cell: int) -> Values | None:
        """All values of a cell, None if they are many."""

    def examples(self, cell: int) -> Values:
        """A few values of a cell, a pleasant one first."""


class Stretches:
    """Cells of an ordered type: stretches of neighbours, from one cut to the next."""

    def __init__(self, order: Order, questions: Iterable[Question], *, apart: bool = False) -> None:
        """With `apart`, every value has a cell of its own."""
        self.order = order
        cuts = {order.low}
        if apart:
            cuts.update(range(order.low, order.high + 1))
        else:
            for question in questions:
                if question.ask == "in":
                    for constant in question.constant:
                        cuts.update(order.around(constant))
                elif question.ask != "null":
                    cuts.update(order.around(question.constant))
        self.cuts = sorted(cut for cut in cuts if order.low <= cut <= order.high)
        self.count = len(self.cuts)
        if self.count > MOST_CELLS:
            raise TooLarge

    def _below(self, number: int) -> int:
        """The cells below a cut."""
        return (1 << bisect_left(self.cuts, number)) - 1

    def mask(self, question: Question) -> int:
        every = (1 << self.count) - 1
        if question.ask == "in":
            return self._points(question.constant)
        first, behind = self.order.around(question.constant)
        match question.ask:
            case "<":
                return self._below(first)
            case "<=":
                return self._below(behind)
            case ">":
                return every ^ self._below(behind)
            case ">=":
                return every ^ self._below(first)
            case "=":
                return self._below(behind) ^ self._below(first)
            case _:
                return every ^ self._below(behind) ^ self._below(first)

    def _points(self, constants: Iterable[Any]) -> int:
        bits = bytearray(self.count // 8 + 1)
        for constant in constants:
            first, behind = self.order.around(constant)
            for cell in range(bisect_left(self.cuts, first), bisect_left(self.cuts, behind)):
                bits[cell >> 3] |= 1 << (cell & 7)
        return int.from_bytes(bits, "little")

    def cell(self, value: Any) -> int:
        return bisect_right(self.cuts, self.order.around(value)[0]) - 1

    def ends(self, cell: int) -> tuple[int, int]:
        """The numbers of the first and the last value of a cell."""
        last = self.cuts[cell + 1] - 1 if cell + 1 < self.count else self.order.high
        return self.cuts[cell], last

    def between(self, low: int, high: int) -> int:
        """The cells that have a value from one number to another."""
        if low > high:
            return 0
        first = max(bisect_right(self.cuts, low) - 1, 0)
        return (1 << bisect_right(self.cuts, high)) - 1 & ~((1 << first) - 1)

    def values(self, cell: int) -> Values | None:
        low, high = self.ends(cell)
        if high - low >= FEW:
            return None
        return [self.order.value(number) for number in range(low, high + 1)]

    def examples(self, cell: int) -> Values:
        low, high = self.ends(cell)
        best = self.order.pleasant(low, high)
        numbers = dict.fromkeys((best, best + 1, best - 1, low, high, (low + high) // 2))
        return [self.order.value(number) for number in numbers if low <= number <= high]


class Strings:
    """Cells of strings: places among the constants, and the languages that a string is in."""

    def __init__(self, questions: Iterable[Question]) -> None:
        constants: set[str] = set()
        languages: dict[Language, None] = {}
        ordered = False
        for question in questions:
            if question.ask == "language":
                languages[question.constant] = None
            elif question.ask == "in":
                constants.update(question.constant)
            elif question.ask != "null":
                constants.add(question.constant)
                ordered = ordered or question.ask not in {"=", "<>"}
        self.constants = sorted(constants)
        self.languages = list(languages)
        self.ordered = ordered
        if languages:
            shown = explore(self.constants, self.languages, ordered=ordered)
        else:
            shown = {(p, 0): s for p, s in places(self.constants, ordered=ordered).items()}
        if len(shown) > MOST_CELLS:
            raise TooLarge
        keys = sorted(shown)
        self.cells = {key: cell for cell, key in enumerate(keys)}
        self.places = [place for place, _ in keys]
        self.answers = [answers for _, answers in keys]
        self.shown = [shown[key] for key in keys]
        self.count = len(keys)

    def mask(self, question: Question) -> int:
        if question.ask == "language":
            bit = self.languages.index(question.constant)
            return _bits(cell for cell, given in enumerate(self.answers) if given >> bit & 1)
        if question.ask == "in":
            return _bits(c for value in question.constant for c in self._at(self._point(value)))
        point = self._point(question.constant)
        every = (1 << self.count) - 1
        equal = _bits(self._at(point))
        if question.ask in {"=", "<>"}:
            return equal if question.ask == "=" else every ^ equal
        below = (1 << bisect_left(self.places, point)) - 1
        match question.ask:
            case "<":
                return below
            case "<=":
                return below | equal
            case ">":
                return every ^ below ^ equal
            case _:
                return every ^ below

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


class Listed:
    """A cell for each value of a small domain; every test is tried on every value."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.listed = list(values)
        self.count = len(self.listed)

    def mask(self, question: Question) -> int:  # noqa: ARG002 - the questions are tried, see `tried`
        raise AssertionError("a listed subject has no questions of its own")

    def tried(self, holds: Evaluator) -> int:
        """The cells of whose values a test is true."""
        return _bits(cell for cell, value in enumerate(self.listed) if holds(value) is True)

    def cell(self, value: Any) -> int:
        return self.listed.index(value)

    def values(self, cell: int) -> Values | None:
        return (self.listed[cell],)

    def examples(self, cell: int) -> Values:
        return (self.listed[cell],)


_COMPARED = {"<": 0b001, "<=": 0b011, "=": 0b010, "<>": 0b101, ">": 0b100, ">=": 0b110}


class Outcomes:
    """What comparing two values can give: below, equal, above; or what a test can: no, yes."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.outcomes = tuple(values)
        self.count = len(self.outcomes)

    def mask(self, question: Question) -> int:
        if question.ask == "holds":
            return 0b10
        return _COMPARED[question.ask]

    def cell(self, value: Any) -> int:
        return self.outcomes.index(value)

    def values(self, cell: int) -> Values | None:
        return (self.outcomes[cell],)

    def examples(self, cell: int) -> Values:
        return (self.outcomes[cell],)


def _bits(cells: Iterable[int]) -> int:
    found = bytearray()
    for cell in cells:
        if cell >> 3 >= len(found):
            found.extend(bytes((cell >> 3) + 1 - len(found)))
        found[cell >> 3] |= 1 << (cell & 7)
    return int.from_bytes(found, "little")
