"""Lengths of strings: ``length(s) > 3`` is a language, as ``s LIKE '____%'`` is.

A question about the length of an attribute becomes one about the attribute, so that it has to do
with what else is asked there. An automaton counts up to the longest length that matters; beyond a
limit, lengths stay numbers by themselves.
"""

from collections.abc import Iterable, Sequence

from tamis.language import ast
from tamis.language.ast import Node
from tamis.relations.entailment.cells import Stretches
from tamis.relations.entailment.ordered_values import Order
from tamis.relations.entailment.questions import Question
from tamis.schema import IntRange
from tamis.types import INT32, INT32_MAX

LONGEST = 100  # characters that an automaton counts

LENGTHS = Order(INT32, IntRange(0, INT32_MAX))


class Lengths:
    """The strings of some lengths; states are lengths, and all from the last on are one."""

    def __init__(self, holds: Sequence[bool]) -> None:
        self.start = 0
        self.cost = 1
        self.letters: Iterable[str] = ()
        self._holds = holds

    def step(self, state: int, letter: str) -> int:  # noqa: ARG002 - any character counts
        return min(state + 1, len(self._holds) - 1)

    def accepts(self, state: int) -> bool:
        return self._holds[state]


def measured(subject: Node | tuple[Node, ...]) -> ast.Attribute | None:
    """The attribute whose length a subject is."""
    if isinstance(subject, ast.Call) and subject.name == "length":
        (operand,) = subject.arguments
        return operand if isinstance(operand, ast.Attribute) else None
    return None


def without_lengths(asked: dict[Node, Question]) -> dict[Node, Question]:
    """Questions in which those about lengths are about the strings, where no length is too long."""
    if not any(measured(question.subject) for question in asked.values()):
        return asked
    longest: dict[Node, int] = {}
    for question in asked.values():
        attribute = measured(question.subject)
        if attribute is not None:
            longest[attribute] = max(longest.get(attribute, 0), _last(question))
    found = {}
    for leaf, question in asked.items():
        attribute = measured(question.subject)
        if attribute is not None and longest[attribute] <= LONGEST:
            found[leaf] = _as_language(attribute, question)
        else:
            found[leaf] = question
    return found


def _last(question: Question) -> int:
    """The first length from which on all are alike."""
    constants = question.constant if question.ask == "in" else (question.constant,)
    return max(0, *(LENGTHS.around(constant)[1] for constant in constants))


def _as_language(attribute: ast.Attribute, question: Question) -> Question:
    stretches = Stretches(LENGTHS, [question])
    mask = stretches.mask(question)
    lengths = range(_last(question) + 1)
    holds = [bool(mask >> stretches.cell(length) & 1) for length in lengths]
    return Question(attribute, "language", Lengths(holds), question.negated)
