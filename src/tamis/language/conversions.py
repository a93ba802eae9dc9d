"""Conversions between types: those that the typing rules insert (`Cast`).

They lose nothing but digits and times of day, and whole numbers that become shorter wrap around.
Where a decimal may not fit, the result may be null; the typing rules write a CAST instead.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tamis.calendar import DAY, moment_of
from tamis.language.arithmetic import fit, loses_digits, wrap
from tamis.types import DATE, INT32, TIMESTAMP, Kind, Type


def conversion(source: Type, wanted: Type) -> Callable[[Any], Any]:
    """The function of a `Cast`, for values that are not null."""
    if source.element is not None and wanted.element is not None:
        convert = conversion(source.element, wanted.element)
        return lambda array: tuple([None if one is None else convert(one) for one in array])
    if wanted.kind is Kind.DOUBLE:
        return float
    if loses_digits(source, wanted):
        return lambda value: fit(Decimal(value), wanted)
    if wanted.kind is Kind.DECIMAL and source.kind is not Kind.DECIMAL:
        return Decimal
    if wanted == INT32 and source.kind is Kind.INT:
        return lambda value: wrap(value, INT32)
    if wanted == DATE and source == TIMESTAMP:
        return lambda value: value // DAY
    if wanted == TIMESTAMP and source == DATE:
        return moment_of
    return _itself


def _itself(value: Any) -> Any:
    return value
