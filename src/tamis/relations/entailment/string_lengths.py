"""Lengths of strings: ``length(s) > 3`` is a language, as ``s LIKE '____%'`` is.

A test of the length of an attribute becomes one of the attribute itself, so that it is related to
its other tests. An automaton counts up to the longest length that matters; beyond a limit, lengths
stay numbers by themselves.
"""

from collections.abc import Iterable, Sequence

from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.value_orders import value_order
from tamis.relations.entailment.cells import true_values
from tamis.relations.entailment.value_tests import ValueTest
from tamis.schema import IntRange
from tamis.types import INT32, INT32_MAX

LONGEST = 100  # characters that an automaton counts

LENGTHS = value_order(INT32, IntRange(0, INT32_MAX))


class Lengths:
    """The strings of some lengths; states are lengths, and the last one stands for all longer."""

    def __init__(self, holds: Sequence[bool]) -> None:
        self.start = 0
        self.cost = 1
        self.letters: Iterable[str] = ()
        self._holds = holds

    def step(self, state: int, letter: str) -> int:  # noqa: ARG002 - any character counts
        return min(state + 1, len(self._holds) - 1)

    def accepts(self, state: int) -> bool:
        return self._holds[state]


def measured(operand: Node | tuple[Node, ...]) -> ast.Attribute | None:
    """The attribute whose length an operand is, None if it is anything else."""
    if isinstance(operand, ast.Call) and operand.name == "length":
        (argument,) = operand.arguments
        return argument if isinstance(argument, ast.Attribute) else None
    return None


def without_lengths(tests: dict[Node, ValueTest]) -> dict[Node, ValueTest]:
    """Tests in which those of lengths are of the strings, unless a length is too long."""
    longest: dict[Node, int] = {}
    for test in tests.values():
        attribute = measured(test.operand)
        if attribute is not None:
            longest[attribute] = max(longest.get(attribute, 0), _last(test))
    if not longest:
        return tests
    found = {}
    for predicate, test in tests.items():
        attribute = measured(test.operand)
        if attribute is not None and longest[attribute] <= LONGEST:
            found[predicate] = _as_language(attribute, test)
        else:
            found[predicate] = test
    return found


def _last(test: ValueTest) -> int:
    """A length from which on all lengths give the same answer."""
    constants = test.constant if test.kind == "in" else (test.constant,)
    last: int = max(0, *(LENGTHS.around(constant)[1] for constant in constants))
    return last


def _as_language(attribute: ast.Attribute, test: ValueTest) -> ValueTest:
    values = true_values(test, LENGTHS)
    language = Lengths([values.has(length) for length in range(_last(test) + 1)])
    return ValueTest(attribute, "language", language, test.negated)
