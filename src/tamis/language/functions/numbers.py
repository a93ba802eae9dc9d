"""Functions of numbers: rounding, roots and powers."""

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any

from tamis.language import ast
from tamis.language.arithmetic import fit, wrap
from tamis.language.ast import Node
from tamis.language.functions.function import (
    Function,
    Kernel,
    Meaning,
    Nulls,
    RefusedArguments,
    Typed,
)
from tamis.language.functions.signatures import count, fixed, number, of_type
from tamis.types import (
    DOUBLE,
    INT,
    INT32,
    INT64_MAX,
    INT64_MIN,
    MAX_DECIMAL_DIGITS,
    Kind,
    Type,
    decimal_type,
)

_ROUNDED = Context(prec=1_000, rounding=ROUND_HALF_UP)
_MOST_PLACES = 400  # a double has no digit beyond


# --- round


def _round(arguments: Sequence[Node]) -> Typed:
    count(arguments, 1, 2)
    operand = number(arguments[0], 0)
    places = arguments[1] if len(arguments) > 1 else ast.Literal(0, INT32)
    if not isinstance(places, ast.Literal) or type(places.value) is not int:
        raise RefusedArguments("rounds to a number of places that is a whole constant", 1)
    places = of_type(places, 1, INT32)
    return Typed((operand, places), _rounded_type(operand.type, _places(places)))


def _places(node: Node) -> int:
    bare = ast.without_cast(node)
    assert isinstance(bare, ast.Literal)  # noqa: S101 - the typing rule has seen to it
    assert isinstance(bare.value, int)  # noqa: S101 - as above
    return max(-_MOST_PLACES, min(bare.value, _MOST_PLACES))


def _rounded_type(of: Type, places: int) -> Type:
    if of.kind is not Kind.DECIMAL:
        return of
    whole = of.digits - of.scale + 1  # rounding may carry into one more digit
    if places < 0:
        return decimal_type(min(max(whole, 1 - places), MAX_DECIMAL_DIGITS), 0)
    scale = min(of.scale, places)
    return decimal_type(min(whole + scale, MAX_DECIMAL_DIGITS), scale)


def _rounding(call: ast.Call) -> Meaning:
    result, places = call.type, _places(call.arguments[1])
    unit = Decimal((0, (1,), -places))

    def of_decimal(value: Decimal, _places: int) -> Decimal | None:
        return fit(value.quantize(unit, context=_ROUNDED), result)

    def of_double(value: float, _places: int) -> float:
        if not math.isfinite(value):
            return value
        return float(Decimal(repr(value)).quantize(unit, context=_ROUNDED)) + 0.0

    def of_whole(value: int, _places: int) -> int:
        if places >= 0:
            return value
        return wrap(int(Decimal(value).quantize(unit, context=_ROUNDED)), result)

    if result.kind is Kind.DECIMAL:
        return of_decimal
    return of_double if result == DOUBLE else of_whole


def _rounding_kernel(call: ast.Call) -> Kernel | None:
    places = _places(call.arguments[1])
    if call.type.is_integer and places >= 0:
        return lambda value, _places: value
    if call.type.kind is not Kind.DECIMAL:
        return None
    from tamis.language.functions import decimal_kernels

    return decimal_kernels.rounding(call, places)


def _rounding_nulls(call: ast.Call) -> Nulls:
    return Nulls.PROPAGATED if call.type.kind is Kind.DECIMAL else Nulls.STRICT


def _rounding_operations(call: ast.Call) -> tuple[str, ...]:
    places = _places(call.arguments[1])
    if call.type.is_integer and places >= 0:
        return ("same",)
    return ("double round",) if call.type == DOUBLE and places == 0 else ()


# --- floor and ceil


def _to_whole(arguments: Sequence[Node]) -> Typed:
    count(arguments, 1)
    operand = number(arguments[0], 0)
    of = operand.type
    if of.kind is not Kind.DECIMAL:
        return Typed((ast.converted(operand, INT) if of == INT32 else operand,), INT)
    digits = of.digits - of.scale + 1 if of.scale else of.digits
    return Typed((operand,), decimal_type(min(digits, MAX_DECIMAL_DIGITS), 0))


def saturated(value: float, low: int = INT64_MIN, high: int = INT64_MAX) -> int:
    """A double as a whole number: the nearest one within bounds, 0 for NaN, cut towards 0."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(int(value), high))


def _towards(direction: str, of_double: Callable[[float], int]) -> Callable[[ast.Call], Meaning]:
    def meaning(call: ast.Call) -> Meaning:
        (operand,) = call.arguments
        if operand.type == DOUBLE:
            return lambda value: (
                saturated(of_double(value)) if math.isfinite(value) else saturated(value)
            )
        if operand.type == INT:
            return lambda value: value
        return lambda value: fit(value.to_integral_value(direction), call.type)

    return meaning


def _towards_kernel(name: str) -> Callable[[ast.Call], Kernel | None]:
    def kernel(call: ast.Call) -> Kernel | None:
        (operand,) = call.arguments
        if operand.type == INT:
            return lambda value: value
        if operand.type.kind is Kind.DECIMAL:
            from tamis.language.functions import decimal_kernels

            return decimal_kernels.towards(call, -1 if name == "floor" else 1)
        if operand.type != DOUBLE:
            return None
        import numpy as np

        def rounded(value: Any) -> Any:
            whole = getattr(np, name)(value)
            inside = np.abs(whole) < 2.0**63
            ends = np.where(whole > 0, INT64_MAX, np.where(np.isnan(whole), 0, INT64_MIN))
            return np.where(inside, np.where(inside, whole, 0).astype(np.int64), ends)

        return rounded

    return kernel


def _towards_operations(call: ast.Call) -> tuple[str, ...]:
    (operand,) = call.arguments
    if operand.type == INT:
        return ("same",)
    return (f"double {call.name}",) if operand.type == DOUBLE else ()


# --- roots and powers


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _root_kernel(_call: ast.Call) -> Kernel | None:
    import numpy as np

    def root(value: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return np.sqrt(value)

    return root


def _power(base: float, exponent: float) -> float:
    """As Java has it: unlike elsewhere, NaN and 1 to the power of infinity are NaN."""
    if exponent == 0:
        return 1.0
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    is_odd = math.isfinite(exponent) and exponent % 2 == 1
    if base == 0 and exponent < 0:
        return math.copysign(math.inf, base) if is_odd else math.inf
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and is_odd else math.inf
    except ValueError:
        return math.nan


# --- signs


def _sign(value: float) -> float:
    """-1, 0 or 1; NaN and both zeros stay what they are."""
    return math.copysign(1.0, value) if value < 0 or value > 0 else value


def _sign_kernel(_call: ast.Call) -> Kernel | None:
    import numpy as np

    return lambda value: np.where((value < 0) | (value > 0), np.copysign(1.0, value), value)


NUMBERS = (
    Function(
        "round", _round, _rounding, nulls=_rounding_nulls, kernel=_rounding_kernel,
        operations=_rounding_operations,
    ),
    Function(
        "floor", _to_whole, _towards(ROUND_FLOOR, math.floor), kernel=_towards_kernel("floor"),
        operations=_towards_operations,
    ),
    Function(
        "ceil", _to_whole, _towards(ROUND_CEILING, math.ceil), ("ceiling",),
        kernel=_towards_kernel("ceil"), operations=_towards_operations,
    ),
    Function(
        "sqrt", fixed([DOUBLE], DOUBLE), lambda _: _root, kernel=_root_kernel,
        operations=lambda _: ("double sqrt",),
    ),
    Function("sign", fixed([DOUBLE], DOUBLE), lambda _: _sign, ("signum",), kernel=_sign_kernel),
    Function("power", fixed([DOUBLE, DOUBLE], DOUBLE), lambda _: _power, ("pow",)),
)  # fmt: skip
