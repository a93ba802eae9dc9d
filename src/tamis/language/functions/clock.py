"""``now()`` and ``current_date()``: the moment and the day at which an event arrives."""

from collections.abc import Callable, Sequence
from typing import Any

from tamis.calendar import DAY
from tamis.language import ast
from tamis.language.arrival import arrival
from tamis.language.ast import Node
from tamis.language.functions.function import Function, Kernel, Typed
from tamis.language.functions.signatures import count
from tamis.types import DATE, TIMESTAMP, Type


def _typed(result: Type) -> Callable[[Sequence[Node]], Typed]:
    def typed(arguments: Sequence[Node]) -> Typed:
        count(arguments, 0)
        return Typed((), result)

    return typed


def _today() -> int:
    return arrival() // DAY


def _kernel(read: Callable[[], int]) -> Callable[[ast.Call], Kernel | None]:
    def kernel(_call: ast.Call) -> Kernel | None:
        import numpy as np

        def one_for_all() -> Any:
            return np.array(read(), np.int64)

        return one_for_all

    return kernel


CLOCK = (
    Function(
        ast.NOW, _typed(TIMESTAMP), lambda _: arrival, ("current_timestamp",),
        kernel=_kernel(arrival),
    ),
    Function(
        ast.TODAY, _typed(DATE), lambda _: _today, ("curdate",), kernel=_kernel(_today)
    ),
)  # fmt: skip

# Names that are calls without parentheses, unless an attribute has them.
BARE_CLOCKS = frozenset({"current_timestamp", "current_date"})
