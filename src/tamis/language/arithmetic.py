"""Arithmetic, as Spark SQL computes with ANSI mode off.

Whole numbers wrap at their width. Division is exact on decimals and floating-point otherwise,
never whole. Dividing by zero, and a decimal that outgrows 38 digits, give null. Doubles are ordered
totally: nan equals itself and is greater than everything else, and -0.0 equals 0.0.
"""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from tamis.types import DOUBLE, INT, INT32, MAX_DECIMAL_DIGITS, Kind, Type, decimal_type

_EXACT = Context(prec=160, rounding=ROUND_HALF_UP)
_PRODUCT = Context(prec=MAX_DECIMAL_DIGITS + 1, rounding=ROUND_HALF_UP)
_QUOTIENT_UNIT = Decimal((0, (1,), -(MAX_DECIMAL_DIGITS + 1)))
_MIN_SCALE = 6  # digits after the point that a decimal with too many digits keeps if possible

# Both operands have the type of the operation; None means that there is no result.
BinaryOperation = Callable[[Any, Any], Any]


def wider(left: Type, right: Type) -> Type:
    """The type in which two numbers are compared.

    Where decimals together have more than 38 digits, some of those after the point are lost.
    """
    if Kind.DOUBLE in {left.kind, right.kind}:
        return DOUBLE
    if Kind.DECIMAL in {left.kind, right.kind}:
        a, b = as_decimal(left), as_decimal(right)
        scale = max(a.scale, b.scale)
        whole = max(a.digits - a.scale, b.digits - b.scale)
        lost = max(0, whole + scale - MAX_DECIMAL_DIGITS)
        return decimal_type(whole + scale - lost, scale - lost)
    return INT if INT in {left, right} else INT32


def as_decimal(number: Type) -> Type:
    """The decimal type that holds every value of a whole or decimal type."""
    if number.kind is Kind.INT32:
        return decimal_type(10, 0)
    if number.kind is Kind.INT:
        return decimal_type(20, 0)
    return number


def loses_digits(source: Type, wanted: Type) -> bool:
    """Whether a decimal type has no room for some values of a whole or decimal type."""
    if wanted.kind is not Kind.DECIMAL or not (source.is_integer or source.kind is Kind.DECIMAL):
        return False
    held = as_decimal(source)
    return held.scale > wanted.scale or held.digits - held.scale > wanted.digits - wanted.scale


def decimal_result(op: str, left: Type, right: Type) -> Type:
    """The type of an operation on two decimals; digits that do not fit are cut from the right."""
    p1, s1, p2, s2 = left.digits, left.scale, right.digits, right.scale
    if op in {"+", "-"}:
        scale = max(s1, s2)
        digits = max(p1 - s1, p2 - s2) + scale + 1
    elif op == "*":
        scale = s1 + s2
        digits = p1 + p2 + 1
    elif op == "/":
        scale = max(_MIN_SCALE, s1 + p2 + 1)
        digits = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        digits = min(p1 - s1, p2 - s2) + scale
    if digits > MAX_DECIMAL_DIGITS:
        whole = digits - scale
        scale = max(MAX_DECIMAL_DIGITS - whole, min(scale, _MIN_SCALE))
        digits = MAX_DECIMAL_DIGITS
    return decimal_type(digits, scale)


def wrap(value: int, result: Type) -> int:
    """A whole number cut to the width of its type, as two's complement does."""
    half = 2**31 if result.kind is Kind.INT32 else 2**63
    return (value + half) % (2 * half) - half


def operation(op: str, result: Type) -> BinaryOperation:
    """The function that computes ``x op y``, for x and y that are not null."""
    if result.kind is Kind.DOUBLE:
        return _DOUBLE[op]
    if result.kind is Kind.DECIMAL:
        return _decimal_operation(op, result)
    return _whole_operation(op, result)


def _whole_operation(op: str, result: Type) -> BinaryOperation:
    compute: Callable[[int, int], int]
    match op:
        case "+":
            compute = int.__add__
        case "-":
            compute = int.__sub__
        case "*":
            compute = int.__mul__
        case "%":
            compute = _truncated_remainder
        case _:
            compute = _truncated_quotient
    by_division = op in {"%", "DIV"}

    def apply(x: int, y: int) -> int | None:
        return None if by_division and y == 0 else wrap(compute(x, y), result)

    return apply


def _truncated_quotient(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _truncated_remainder(x: int, y: int) -> int:
    remainder = abs(x) % abs(y)
    return -remainder if x < 0 else remainder


def _divide_doubles(x: float, y: float) -> float | None:
    return None if y == 0 else x / y


def _remainder_of_doubles(x: float, y: float) -> float | None:
    if y == 0:
        return None
    return math.nan if math.isinf(x) or math.isnan(x) or math.isnan(y) else math.fmod(x, y)


_DOUBLE: dict[str, BinaryOperation] = {
    "+": float.__add__,
    "-": float.__sub__,
    "*": float.__mul__,
    "/": _divide_doubles,
    "%": _remainder_of_doubles,
}


def _decimal_operation(op: str, result: Type) -> BinaryOperation:
    compute: Callable[[Decimal, Decimal], Decimal]
    match op:
        case "+":
            compute = _EXACT.add
        case "-":
            compute = _EXACT.subtract
        case "*":
            compute = _PRODUCT.multiply
        case "%":
            compute = _EXACT.remainder
        case _:
            compute = _divide_decimals
    by_division = op in {"/", "%"}

    def apply(x: Decimal, y: Decimal) -> Decimal | None:
        return None if by_division and y == 0 else fit(compute(x, y), result)

    return apply


def _divide_decimals(x: Decimal, y: Decimal) -> Decimal:
    return _EXACT.divide(x, y).quantize(_QUOTIENT_UNIT, context=_EXACT)


def fit(value: Decimal, result: Type) -> Decimal | None:
    """A decimal rounded half up to its type; None if it does not fit."""
    if value and value.adjusted() > MAX_DECIMAL_DIGITS:
        return None
    rounded = value.quantize(Decimal((0, (1,), -result.scale)), context=_EXACT)
    if rounded.adjusted() >= result.digits - result.scale and rounded != 0:
        return None
    return rounded.copy_abs() if rounded == 0 else rounded


def order_key(value: float) -> tuple[int, float]:
    """A key that orders doubles totally: -inf ... -0.0 = 0.0 ... inf, nan."""
    return (1, 0.0) if value != value else (0, value)  # noqa: PLR0124 - only nan differs from itself
