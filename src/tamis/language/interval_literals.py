"""Intervals as they are written: ``INTERVAL 1 DAY``, ``INTERVAL 1 DAY '2' HOURS``.

A number and a unit may be repeated. An interval of years and months has months; one of weeks and
days has days; any other is a duration.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

from tamis.calendar import DAY, HOUR, MINUTE, SECOND
from tamis.language.ast import Literal
from tamis.language.literals import BadLiteral
from tamis.types import DAYS, DURATION, INT32_MAX, INT64_MAX, MONTHS

_MONTHS = {"YEAR": 12, "MONTH": 1}
_LONG = {"WEEK": 7 * DAY, "DAY": DAY}
_SHORT = {
    "HOUR": HOUR, "MINUTE": MINUTE, "SECOND": SECOND, "MILLISECOND": 1_000, "MICROSECOND": 1,
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?(?:[0-9]+|[0-9]*\.[0-9]{1,6})")
UNITS = frozenset(
    {*_MONTHS, *_LONG, *_SHORT, *(f"{name}S" for name in (*_MONTHS, *_LONG, *_SHORT))}
)


def interval_literal(parts: Sequence[tuple[str, str]]) -> Literal:
    """The constant of numbers and units."""
    units = [unit.upper().removesuffix("S") for _, unit in parts]
    is_monthly = all(unit in _MONTHS for unit in units)
    if not is_monthly and any(unit in _MONTHS for unit in units):
        raise BadLiteral("an interval has years and months, or days and times, but not both")
    sizes = _MONTHS if is_monthly else _LONG | _SHORT
    amounts = [
        _amount(number, unit) * sizes[unit] for (number, _), unit in zip(parts, units, strict=True)
    ]
    total = int(sum(amounts, Fraction()))
    if abs(total) > (INT32_MAX if is_monthly else INT64_MAX):
        raise BadLiteral("the interval is too long")
    if is_monthly:
        return Literal(total, MONTHS)
    return Literal(total, DAYS if all(unit in _LONG for unit in units) else DURATION)


def _amount(number: str, unit: str) -> Fraction:
    if not _NUMBER.fullmatch(number) or ("." in number and unit != "SECOND"):
        wanted = "a number with up to six digits after the point" if unit == "SECOND" else "whole"
        raise BadLiteral(f"{number[:40]!r} is not a number of {unit.lower()}s, which is {wanted}")
    return Fraction(number)


def interval_text(literal: Literal) -> str:
    """An interval as a filter writes it."""
    value = literal.value if isinstance(literal.value, int) else 0
    if literal.type == MONTHS:
        sizes: dict[str, int] = _MONTHS
    else:
        sizes = {"DAY": DAY} if literal.type == DAYS else _SHORT
    unit, size = next((u, s) for u, s in sizes.items() if value % s == 0)
    return f"INTERVAL {value // size} {unit}{'' if abs(value) == size else 'S'}"
