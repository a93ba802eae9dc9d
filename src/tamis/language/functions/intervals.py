"""Sums and differences of dates, timestamps and intervals.

An interval is a number of months, a number of whole days, or a duration; the last two are counted
in microseconds. A date stays a date when months or days are added, and becomes a timestamp when a
duration is. What would lie beyond the last moment of 64 bits is cut off there.
"""

from collections.abc import Sequence
from typing import Any

from tamis.calendar import DAY, differences, moment_of, moments_of, months_later, sums
from tamis.language import ast
from tamis.language.arithmetic import wrap
from tamis.language.ast import Node
from tamis.language.functions.function import Kernel, Meaning, RefusedArguments, Typed
from tamis.types import (
    DATE,
    DAYS,
    DURATION,
    INT32,
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    MONTHS,
    TIMESTAMP,
    Type,
    wider_time,
)

_MOMENTS = {DATE, TIMESTAMP}


def is_about_time(arguments: Sequence[Node]) -> bool:
    """Whether an operator has a date, a timestamp or an interval among its operands."""
    return any(argument.type.is_time for argument in arguments)


def typed(op: str, arguments: Sequence[Node]) -> Typed:
    """The operands and the type of a sum or difference; the moment or date comes first."""
    left, right = arguments
    if op == "+" and right.type in _MOMENTS:
        if left.type in _MOMENTS:
            raise RefusedArguments(
                "does not add two moments", hint="write - for the time between them"
            )
        swapped = typed(op, (right, left))
        return Typed(swapped.arguments[::-1], swapped.result)
    found = _result(left.type, right.type, op)
    if found is None:
        raise RefusedArguments(f"does not take {left.type} and {right.type}")
    first, second, result = found
    return Typed((ast.converted(left, first), ast.converted(right, second)), result)


def _result(left: Type, right: Type, op: str) -> tuple[Type, Type, Type] | None:
    """The types of the operands and of the result, None if there is none."""
    if left in _MOMENTS and right in _MOMENTS and op == "-":
        both = DATE if left == right == DATE else TIMESTAMP
        return both, both, DAYS if both == DATE else DURATION
    if left == DATE and right.is_integer:
        return DATE, INT32, DATE
    if left == DATE and right == DURATION:
        return TIMESTAMP, DURATION, TIMESTAMP
    if left in _MOMENTS and right in {MONTHS, DAYS, DURATION}:
        return left, right, left
    if left in {MONTHS, DAYS, DURATION} and right in {MONTHS, DAYS, DURATION}:
        both = wider_time(left, right) or left
        return (both, both, both) if wider_time(left, right) else None
    return None


# --- what they mean


def meaning(call: ast.Call) -> Meaning:
    """The function of two numbers that a call stands for."""
    sign = 1 if call.name == "+" else -1
    left, right = (argument.type for argument in call.arguments)
    if right in _MOMENTS and call.name == "+":
        inner = meaning(ast.Call("+", call.arguments[::-1], call.type))
        return lambda x, y: inner(y, x)
    if left == DATE:
        return _of_dates(right, sign)
    if left == MONTHS:
        return lambda x, y: min(max(x + sign * y, INT32_MIN), INT32_MAX)
    if right == MONTHS:
        return lambda x, y: moment_of(months_later(x // DAY, sign * y), x % DAY)
    return lambda x, y: min(max(x + sign * y, INT64_MIN), INT64_MAX)


def _of_dates(right: Type, sign: int) -> Meaning:
    if right == DATE:
        return lambda x, y: moment_of(x - y)
    if right == MONTHS:
        return lambda x, y: min(max(months_later(x, sign * y), INT32_MIN), INT32_MAX)
    size = DAY if right == DAYS else 1
    return lambda x, y: wrap(x + sign * (y // size), INT32)


def kernel(call: ast.Call) -> Kernel:
    """The same for arrays."""
    import numpy as np

    sign = 1 if call.name == "+" else -1
    left, right = (argument.type for argument in call.arguments)
    if right in _MOMENTS and call.name == "+":
        inner = kernel(ast.Call("+", call.arguments[::-1], call.type))
        return lambda x, y: inner(y, x)
    if left == DATE:
        return _of_days(right, sign)
    if left == MONTHS:
        return lambda x, y: np.clip(x + sign * y, INT32_MIN, INT32_MAX)
    if right == MONTHS:
        return lambda x, y: moments_of(months_later(x // DAY, sign * y), x % DAY)
    return sums if sign == 1 else differences


def operations(call: ast.Call) -> tuple[str, ...]:
    """What a program does for moments and durations; it does not know the calendar."""
    if {DATE, MONTHS} & {argument.type for argument in call.arguments}:
        return ()
    return (f"time {call.name}",)


def _of_days(right: Type, sign: int) -> Kernel:
    import numpy as np

    if right == DATE:
        return lambda x, y: moments_of(x - y)
    if right == MONTHS:
        return lambda x, y: np.clip(months_later(x, sign * y), INT32_MIN, INT32_MAX)
    size = DAY if right == DAYS else 1

    def later(x: Any, y: Any) -> Any:
        return (x + sign * (y // size)).astype("int32").astype("int64")

    return later
