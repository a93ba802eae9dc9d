"""Functions of dates and timestamps, in UTC.

Where a function takes a date, a timestamp counts with the day it is in; where it takes a timestamp,
a date counts as its midnight. A constant text is read as what is wanted.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tamis.calendar import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    date_of,
    day_of,
    moment_of,
    moments_of,
    monday,
    months_later,
    week,
)
from tamis.errors import did_you_mean
from tamis.language import ast
from tamis.language.arithmetic import wrap
from tamis.language.ast import Node
from tamis.language.functions.casts import converter
from tamis.language.functions.date_texts import day_of_text, moment_of_text
from tamis.language.functions.function import (
    Function,
    Kernel,
    Meaning,
    Nulls,
    RefusedArguments,
    Typed,
)
from tamis.language.functions.signatures import count, of_type
from tamis.types import (
    DATE,
    INT,
    INT32,
    INT32_MAX,
    INT32_MIN,
    INT64_MIN,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
)


def as_day(argument: Node, place: int) -> Node:
    """An argument that is taken as a date."""
    return _as_time(argument, place, DATE, day_of_text)


def as_moment(argument: Node, place: int) -> Node:
    """An argument that is taken as a timestamp."""
    return _as_time(argument, place, TIMESTAMP, moment_of_text)


def _as_time(argument: Node, place: int, wanted: Type, read: Callable[[str], int | None]) -> Node:
    if argument.type in {DATE, TIMESTAMP, NULL}:
        return ast.converted(argument, wanted)
    if isinstance(argument, ast.Literal) and isinstance(argument.value, str):
        value = read(argument.value)
        if value is None:
            raise RefusedArguments(
                f"takes a {wanted} here, and {argument.value!r} is not one", place
            )
        return ast.Literal(value, wanted)
    raise RefusedArguments(
        f"takes a {wanted} here, but this is of type {argument.type}", place,
        f"write CAST(... AS {str(wanted).upper()}) to convert it",
    )  # fmt: skip


# --- the parts of dates and timestamps


def _part(
    name: str, take: Callable[[Any], Any], of: Callable[[Node, int], Node], *spellings: str
) -> Function:
    """A function of a day or a moment whose result is a small whole number."""

    def typed(arguments: Sequence[Node]) -> Typed:
        count(arguments, 1)
        return Typed((of(arguments[0], 0),), INT32)

    return Function(
        name, typed, lambda _: take, spellings, kernel=lambda _: take
    )  # the same for numbers and arrays


def _since_1970(name: str, unit: int) -> Function:
    """A function that counts the units from 1970 to a moment; parts of one do not count."""

    def typed(arguments: Sequence[Node]) -> Typed:
        count(arguments, 1)
        return Typed((as_moment(arguments[0], 0),), INT)

    return Function(
        name, typed, lambda _: lambda moment: moment // unit, kernel=lambda _: lambda m: m // unit
    )


def _day_of_year(day: Any) -> Any:
    return day - day_of(date_of(day)[0], 1, 1) + 1


# --- truncation


def _at(months: int) -> Callable[[Any], Any]:
    """The first day of the period of some months that a day is in."""

    def first(day: Any) -> Any:
        year, month, _ = date_of(day)
        return day_of(year, month - (month - 1) % months, 1)

    return first


_PERIODS = {"YEAR": _at(12), "QUARTER": _at(3), "MONTH": _at(1), "WEEK": monday}
_UNITS = {
    "DAY": DAY, "HOUR": HOUR, "MINUTE": MINUTE, "SECOND": SECOND, "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}  # fmt: skip
_NAMES = {"YYYY": "YEAR", "YY": "YEAR", "MM": "MONTH", "MON": "MONTH", "DD": "DAY"}


def _unit(argument: Node, place: int, known: Sequence[str]) -> ast.Literal:
    """The constant that names a unit, in its one spelling."""
    if not isinstance(argument, ast.Literal) or not isinstance(argument.value, str):
        raise RefusedArguments("needs a constant here that names a unit, such as 'MONTH'", place)
    word = argument.value.upper()
    name = _NAMES.get(word, word)
    if name not in known:
        hint = did_you_mean(word, known) or f"expected one of {', '.join(known)}"
        raise RefusedArguments(f"does not know the unit {argument.value!r}", place, hint)
    return ast.Literal(name, STRING)


def _date_trunc(arguments: Sequence[Node]) -> Typed:
    count(arguments, 2)
    unit = _unit(arguments[0], 0, [*_PERIODS, *_UNITS])
    return Typed((unit, as_moment(arguments[1], 1)), TIMESTAMP)


def _trunc(arguments: Sequence[Node]) -> Typed:
    count(arguments, 2)
    return Typed((as_day(arguments[0], 0), _unit(arguments[1], 1, [*_PERIODS])), DATE)


def _unit_of(node: Node) -> str:
    return str(node.value) if isinstance(node, ast.Literal) else ""


def _start(call: ast.Call) -> Meaning:
    unit = _unit_of(call.arguments[0])
    if unit in _UNITS:
        size = _UNITS[unit]
        return lambda _, moment: max(moment - moment % size, INT64_MIN)
    first = _PERIODS[unit]
    return lambda _, moment: moment_of(first(moment // DAY))


def _start_kernel(call: ast.Call) -> Kernel | None:
    import numpy as np

    unit = _unit_of(call.arguments[0])
    if unit not in _UNITS:
        first = _PERIODS[unit]
        return lambda _, moments: moments_of(first(moments // DAY))
    size = _UNITS[unit]

    def start(_: Any, moments: Any) -> Any:
        rest = moments % size
        return np.where(moments < INT64_MIN + rest, INT64_MIN, moments - rest)

    return start


def _first_day(call: ast.Call) -> Meaning:
    first = _PERIODS[_unit_of(call.arguments[1])]
    return lambda day, _: max(first(day), INT32_MIN)


def _first_day_kernel(call: ast.Call) -> Kernel | None:
    import numpy as np

    first = _PERIODS[_unit_of(call.arguments[1])]
    return lambda days, _: np.maximum(first(days), INT32_MIN)


# --- arithmetic of days; whole numbers wrap around


def _days(arguments: Sequence[Node]) -> Typed:
    count(arguments, 2)
    return Typed((as_day(arguments[0], 0), of_type(arguments[1], 1, INT32)), DATE)


def _difference(arguments: Sequence[Node]) -> Typed:
    count(arguments, 2)
    return Typed((as_day(arguments[0], 0), as_day(arguments[1], 1)), INT32)


def _later(day: int, days: int) -> int:
    return wrap(day + days, INT32)


def _earlier(day: int, days: int) -> int:
    return wrap(day - days, INT32)


def _later_kernel(_call: ast.Call) -> Kernel:
    return lambda days, others: (days + others).astype("int32").astype("int64")


def _earlier_kernel(_call: ast.Call) -> Kernel:
    return lambda days, others: (days - others).astype("int32").astype("int64")


def months_after(day: int, months: int) -> int:
    """The day some months after another one, cut off at the ends of 32 bits."""
    found: int = months_later(day, months)
    return min(max(found, INT32_MIN), INT32_MAX)


def months_after_kernel(days: Any, months: Any) -> Any:
    """`months_after` for arrays."""
    import numpy as np

    return np.clip(months_later(days, months), INT32_MIN, INT32_MAX)


def _last_day(day: int) -> int:
    year, month, _ = date_of(day)
    return months_after(int(day_of(year, month, 1)), 1) - 1


def _last_days(days: Any) -> Any:
    year, month, _ = date_of(days)
    return months_after_kernel(day_of(year, month, 1), 1) - 1


def _one_day(arguments: Sequence[Node]) -> Typed:
    count(arguments, 1)
    return Typed((as_day(arguments[0], 0),), DATE)


# --- conversions by name


def _conversion(name: str, wanted: Type) -> Function:
    """A function that is CAST to a type."""

    def typed(arguments: Sequence[Node]) -> Typed:
        count(arguments, 1)
        (argument,) = arguments
        if argument.type == NULL:
            return Typed((ast.converted(argument, wanted),), wanted)
        if argument.type != wanted and converter(_cast(argument, wanted)) is None:
            raise RefusedArguments(f"does not convert {argument.type} to {wanted}", 0)
        return Typed((argument,), wanted)

    def meaning(call: ast.Call) -> Meaning:
        (argument,) = call.arguments
        return converter(_cast(argument, wanted)) or (lambda value: value)

    def nulls(call: ast.Call) -> Nulls:
        known = call.arguments[0].type in {DATE, TIMESTAMP}
        return Nulls.STRICT if known else Nulls.PROPAGATED

    def kernel(call: ast.Call) -> Kernel | None:
        source = call.arguments[0].type
        if source == wanted:
            return lambda values: values
        if source == TIMESTAMP:
            return lambda values: values // DAY
        return moments_of if source == DATE else None

    return Function(name, typed, meaning, nulls=nulls, kernel=kernel)


def _cast(argument: Node, wanted: Type) -> ast.Call:
    return ast.Call("cast", (argument,), wanted)


# The parts that EXTRACT names, and the functions that give them.
PART_NAMES = {
    "YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "WEEK": "weekofyear", "DAY": "day",
    "DAYOFWEEK": "dayofweek", "DOW": "dayofweek", "DOY": "dayofyear", "HOUR": "hour",
    "MINUTE": "minute",
}  # fmt: skip

DATES = (
    _part("year", lambda day: date_of(day)[0], as_day),
    _part("quarter", lambda day: (date_of(day)[1] + 2) // 3, as_day),
    _part("month", lambda day: date_of(day)[1], as_day),
    _part("day", lambda day: date_of(day)[2], as_day, "dayofmonth"),
    _part("dayofweek", lambda day: (day + 4) % 7 + 1, as_day),
    _part("weekday", lambda day: (day + 3) % 7, as_day),
    _part("dayofyear", _day_of_year, as_day),
    _part("weekofyear", week, as_day),
    _part("hour", lambda moment: moment // HOUR % 24, as_moment),
    _part("minute", lambda moment: moment // MINUTE % 60, as_moment),
    _part("second", lambda moment: moment // SECOND % 60, as_moment),
    Function("date_trunc", _date_trunc, _start, kernel=_start_kernel),
    Function("trunc", _trunc, _first_day, kernel=_first_day_kernel),
    Function("datediff", _difference, lambda _: _earlier, ("date_diff",), kernel=_earlier_kernel),
    Function("date_add", _days, lambda _: _later, ("dateadd",), kernel=_later_kernel),
    Function("date_sub", _days, lambda _: _earlier, kernel=_earlier_kernel),
    Function("add_months", _days, lambda _: months_after, kernel=lambda _: months_after_kernel),
    Function("last_day", _one_day, lambda _: _last_day, kernel=lambda _: _last_days),
    _since_1970("unix_seconds", SECOND),
    _since_1970("unix_millis", SECOND // 1_000),
    _since_1970("unix_micros", 1),
    _conversion("to_date", DATE),
    _conversion("to_timestamp", TIMESTAMP),
)
