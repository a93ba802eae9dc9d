"""Events to try: do the computed values fall where a search wants them?"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tamis.language import ast
from tamis.relations.entailment.cells import Stretches
from tamis.relations.entailment.computed_values import Computing, cells_of
from tamis.relations.entailment.ordered_values import Order
from tamis.relations.entailment.questions import Pair
from tamis.relations.entailment.subjects import Subject, Subjects

MOST_CELLS = 40  # cells of an attribute that are looked at for values
LONGEST = 1_000  # characters of a string that is tried for its length
MOST_TRIALS = 3_000  # values that are tried in one room

Room = list[int]
_WORDS = re.compile(r"[^\W_]+|\\.|.")


class Trials:
    """Tries values of attributes, one attribute after the other."""

    def __init__(self, subjects: Subjects, computing: Computing) -> None:
        self.subjects = subjects.all
        self.computing = computing
        self._ideas: dict[int, list[Any]] = {}

    def example(self, number: int, mask: int) -> Any:
        """A value of an attribute within some cells; one that is there, if there is one."""
        subject = self.subjects[number]
        present = mask & ~subject.missing
        if not present:
            return None
        return subject.cells.examples((present & -present).bit_length() - 1)[0]

    def attempt(
        self, computed: Sequence[int], attributes: Sequence[int], room: Room
    ) -> tuple[dict[int, Any] | None, bool]:
        """Values of attributes that put every computed subject into its room, if they are found.

        The second answer says whether everything was tried.
        """
        wanted = [n for n in computed if room[n] != self.subjects[n].full]
        needed = {n for number in wanted for n in self.subjects[number].inputs}
        values = {n: self.example(n, room[n]) for n in attributes if n not in needed}
        order = [n for n in attributes if n in needed]
        checks: list[list[int]] = [[] for _ in order]
        for number in wanted:
            checks[max(order.index(n) for n in self.subjects[number].inputs)].append(number)
        complete = True
        lists = []
        for n in order:
            few = self.computing.few(n, room[n])
            complete = complete and few is not None
            lists.append(self._candidates(n, room[n], wanted) if few is None else few)
        return self._walk(order, lists, checks, values, room, complete)

    def _walk(
        self,
        order: list[int],
        lists: list[list[Any]],
        checks: list[list[int]],
        values: dict[int, Any],
        room: Room,
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
                self.computing.bit(self.subjects[number], values) & room[number]
                for number in checks[at]
            ):
                continue
            if at + 1 == len(order):
                return values, complete
            walks.append(iter(lists[at + 1]))
        return None, complete

    def _candidates(self, number: int, mask: int, wanted: Sequence[int]) -> list[Any]:
        """Values to try: examples of the cells, and what computed subjects speak of."""
        subject = self.subjects[number]
        found: list[Any] = []
        for cell in cells_of(mask & ~subject.missing)[:MOST_CELLS]:
            found.extend(subject.cells.examples(cell))
        ideas = self._ideas_for(number, wanted)
        found.extend(idea for idea in ideas if mask >> subject.cells.cell(idea) & 1)
        if mask & subject.missing:
            found.append(None)
        return list({(type(value), repr(value)): value for value in found}.values())

    def _ideas_for(self, number: int, wanted: Sequence[int]) -> list[Any]:
        if number not in self._ideas:
            found: dict[Any, None] = {}
            subject = self.subjects[number]
            for other in wanted:
                if number in self.subjects[other].inputs:
                    found.update(dict.fromkeys(_ideas(subject, self.subjects[other])))
            self._ideas[number] = list(found)
        return self._ideas[number]


_END = object()


def _ideas(subject: Subject, computed: Subject) -> Iterator[Any]:
    """Values of an attribute that may matter to what is computed from it."""
    constants: list[Any] = []
    for cell in range(min(computed.cells.count, MOST_CELLS)):
        constants.extend(computed.cells.examples(cell)[:2])
    nodes = computed.key if isinstance(computed.key, Pair) else (computed.key,)
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Literal):
                constants.append(part.value)
            elif isinstance(part, ast.RLike):
                constants.extend(_regex_ideas(part.pattern))
    if isinstance(subject.cells, Stretches):
        return _numbers(constants, subject.cells.order)
    return _strings(constants)


def _numbers(constants: Iterable[Any], order: Order) -> Iterator[Any]:
    for constant in constants:
        if isinstance(constant, str) or constant is None or not math.isfinite(constant):
            continue
        for near in (constant, -constant, constant + 1, constant - 1):
            # What a double cannot hold is near enough to what it can.
            number = order.around(float(near))[0] if order.is_double else math.floor(near)
            if order.low <= number <= order.high:
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
