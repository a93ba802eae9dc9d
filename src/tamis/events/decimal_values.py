"""Decimals of events: read without losing a digit, or refused.

A decimal attribute takes decimals, whole numbers, and texts such as ``'0.10'``, because many
programs send amounts as texts to keep their digits. A float counts as the number that Python prints
for it: 0.1 is 0.1. What has more digits than the attribute is refused, never rounded.
"""

import math
import numbers
import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from tamis.types import Type

_TEXT = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?)\s*")
_LONGEST_TEXT = 1_000  # characters
_EXACT = Context(prec=1_100)


def decimal_reader(of: Type) -> Callable[[Any], Decimal]:
    """A function that reads values of a decimal type; raises a TypeError or ValueError."""
    unit = Decimal((0, (1,), -of.scale))
    limit = Decimal(10) ** (of.digits - of.scale)

    def read(value: Any) -> Decimal:
        given = _decimal(value)
        if not -limit < given < limit:
            raise ValueError(f"it has more than {of.digits - of.scale} digits before the point")
        try:
            found = given.quantize(unit, context=_EXACT)
        except InvalidOperation:  # it has very many digits
            found = Decimal(0)
        if found != given:
            raise ValueError(f"it has more than {of.scale} digits after the point")
        return found or found.copy_abs()  # a decimal has no -0

    return read


def decimal_of_text(text: str) -> Decimal:
    """The number of a text."""
    found = _TEXT.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if found is None:
        raise ValueError("write a number such as 0.10")
    return Decimal(found[1])


def _decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        given = value
    elif isinstance(value, str):
        return decimal_of_text(value)
    elif isinstance(value, bool) or type(value).__name__ == "bool_":
        raise TypeError
    elif isinstance(value, numbers.Integral):
        return Decimal(int(value))
    elif isinstance(value, float):
        given = Decimal(repr(float(value))) if math.isfinite(value) else Decimal(value)
    elif isinstance(value, numbers.Real) and hasattr(value, "item"):  # a float of numpy
        given = Decimal(str(value))
    else:
        raise TypeError
    if not given.is_finite():
        raise ValueError("a decimal is a finite number")
    return given
