"""What an entry of the table of functions says.

A call in a filter becomes an `ast.Call` with the name of its entry. Everybody who handles calls
asks the entry: the parser for its types, the evaluator for its meaning, the normal form for its
nulls, the printer for its text, and batches of events for its kernel.

There are two kinds of results. A *test* (``contains``) is a condition, like a comparison; it has a
place among the predicates of a normal form. Everything else is a *value*, also if it is true or
false (``coalesce(b, TRUE)``): like an attribute, it is compared with constants.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.types import Type

# A function of values, none of which is null unless the entry handles nulls itself.
Meaning = Callable[..., Any]
# A function of numpy arrays: the values of the arguments for many events, without their nulls. The
# results where an argument is null do not matter.
Kernel = Callable[..., Any]


class Nulls(Enum):
    """When a call is null."""

    STRICT = "exactly when an argument is"
    PROPAGATED = "when an argument is, and perhaps also for some values"
    OWN = "as the function says, which is given the nulls as None"
    NEVER = "never; the function is given the nulls as None"

    @property
    def are_given(self) -> bool:
        """Whether the function is called with nulls."""
        return self in {Nulls.OWN, Nulls.NEVER}


class Typed(NamedTuple):
    """The arguments of a call, converted to the types that the function takes, and its type."""

    arguments: tuple[Node, ...]
    result: Type


class RefusedArguments(Exception):
    """Why a function does not take its arguments; raised by the typing rule of an entry."""

    def __init__(self, problem: str, argument: int | None = None, hint: str | None = None) -> None:
        super().__init__(problem)
        self.argument = argument  # its place among the arguments; None for the whole call
        self.hint = hint


class TooLarge(RefusedArguments):
    """A refusal because of a limit, not of a type."""


def always(nulls: Nulls) -> Callable[[ast.Call], Nulls]:
    """The nulls of a function for which they do not depend on the types."""
    return lambda _call: nulls


_strict = always(Nulls.STRICT)


@dataclass(frozen=True)
class Function:
    """One function or operator.

    `typed` checks and converts the arguments or raises a `RefusedArguments`; `meaning` gives the
    function of Python values for a checked call, `kernel` the same for arrays or None if there is
    none for these types. Without a kernel, the meaning is called once for each distinct combination
    of values. `operations` name what a program does for a call of these types
    (`kernels.term_operations`): the first of its arguments, the next of the result; none if it
    cannot. An operation of two operands is repeated for more arguments, one of one operand takes
    the first argument.
    """

    name: str
    typed: Callable[[Sequence[Node]], Typed]
    meaning: Callable[[ast.Call], Meaning]
    spellings: tuple[str, ...] = ()
    nulls: Callable[[ast.Call], Nulls] = _strict
    kernel: Callable[[ast.Call], Kernel | None] = lambda _call: None
    is_test: bool = False
    operations: Callable[[ast.Call], tuple[str, ...]] = lambda _call: ()
