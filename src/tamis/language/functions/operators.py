"""Arithmetic: ``+ - * / % DIV``, the sign, and ``abs``."""

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context
from typing import Any

from tamis.language import ast
from tamis.language.arithmetic import decimal_result, operation, wrap
from tamis.language.ast import Node
from tamis.language.functions import intervals
from tamis.language.functions.function import (
    Function,
    Kernel,
    Meaning,
    Nulls,
    RefusedArguments,
    Typed,
)
from tamis.language.functions.signatures import count, decimal_operand, number, one_number
from tamis.types import DOUBLE, INT, INT32, NULL, Kind


def _typed(op: str) -> Callable[[Sequence[Node]], Typed]:
    def typed(arguments: Sequence[Node]) -> Typed:
        count(arguments, 2)
        if op in {"+", "-"} and intervals.is_about_time(arguments):
            return intervals.typed(op, arguments)
        untyped = INT if op == "DIV" else DOUBLE
        kinds = [argument.type for argument in arguments if argument.type != NULL]
        a, b = (number(x, n, kinds[0] if kinds else untyped) for n, x in enumerate(arguments))
        if op == "DIV":
            if not (a.type.is_integer and b.type.is_integer):
                raise RefusedArguments(
                    f"divides whole numbers, not {a.type} and {b.type}", hint="write / instead"
                )
            return Typed((ast.converted(a, INT), ast.converted(b, INT)), INT)
        both = {a.type.kind, b.type.kind}
        if Kind.DOUBLE in both or (op == "/" and Kind.DECIMAL not in both):
            return Typed((ast.converted(a, DOUBLE), ast.converted(b, DOUBLE)), DOUBLE)
        if Kind.DECIMAL in both:
            da, db = decimal_operand(a), decimal_operand(b)
            return Typed((ast.converted(a, da), ast.converted(b, db)), decimal_result(op, da, db))
        whole = INT if INT in {a.type, b.type} else INT32
        return Typed((ast.converted(a, whole), ast.converted(b, whole)), whole)

    return typed


def _nulls(call: ast.Call) -> Nulls:
    """A division by zero and a decimal with too many digits are null."""
    exact = call.name in {"+", "-", "*"} and call.type.kind is not Kind.DECIMAL
    return Nulls.STRICT if exact else Nulls.PROPAGATED


def _meaning(call: ast.Call) -> Meaning:
    if intervals.is_about_time(call.arguments):
        return intervals.meaning(call)
    return operation(call.name, call.type)


# --- kernels


def _wrapped(call: ast.Call, compute: Kernel) -> Kernel:
    """A kernel whose results have the width of the call's type; 64 bits wrap by themselves."""
    if call.type != INT32:
        return compute
    return lambda *values: compute(*values).astype("int32").astype("int64")


def _exact_kernel(compute: Kernel) -> Callable[[ast.Call], Kernel | None]:
    """The kernel of ``+ - *`` and signs, which numpy computes as they are defined."""

    def kernel(call: ast.Call) -> Kernel | None:
        if intervals.is_about_time(call.arguments):
            return intervals.kernel(call)
        if call.type.kind is Kind.DECIMAL:
            return _decimal_kernel(call, compute)
        return _wrapped(call, compute)

    return kernel


def _decimal_kernel(call: ast.Call, compute: Kernel) -> Kernel | None:
    if len(call.arguments) == 2:
        from tamis.language.functions.decimal_kernels import operation as on_decimals

        return on_decimals(call)
    return compute if call.type.digits <= _SHORT.prec else None


def _division_kernel(call: ast.Call) -> Kernel | None:
    import numpy as np

    if call.type == DOUBLE:
        compute = np.divide if call.name == "/" else np.fmod

        def divided(x: Any, y: Any) -> tuple[Any, Any]:
            with np.errstate(all="ignore"):
                return compute(x, y), y != 0

        return divided
    if call.type.kind is Kind.DECIMAL:
        from tamis.language.functions.decimal_kernels import operation as on_decimals

        return on_decimals(call)
    if not call.type.is_integer:
        return None

    def whole(x: Any, y: Any) -> tuple[Any, Any]:
        # numpy rounds down; the smallest number divided by -1 is itself, as it wraps around.
        divisor = np.where((y == 0) | (y == -1), 1, y)
        remainder = np.fmod(x, divisor)
        if call.name == "%":
            return remainder, y != 0
        quotient = (x - remainder) // divisor
        return np.where(y == -1, -x, quotient), y != 0

    return whole


def _operations(call: ast.Call) -> tuple[str, ...]:
    if call.type == DOUBLE:
        return (f"double {call.name}",)
    if intervals.is_about_time(call.arguments):
        return intervals.operations(call)
    if call.type.kind is Kind.DECIMAL:
        return _decimal_operations(call)
    return (f"whole {call.name}", *(["whole to int32"] if call.type == INT32 else []))


def _decimal_operations(call: ast.Call) -> tuple[str, ...]:
    """Of decimals none of whose digits are cut off; those of a sum or remainder have one scale."""
    scales = [argument.type.scale for argument in call.arguments]
    if call.name == "/" or call.type.scale != (sum if call.name == "*" else max)(scales):
        return ()
    return (f"{'decimal' if call.name in {'+', '-', '*'} else 'whole'} {call.name}",)


# --- signs

# Spark cuts a decimal to 34 digits when it turns its sign.
_SHORT = Context(prec=34, rounding=ROUND_HALF_EVEN)


def _negative(call: ast.Call) -> Meaning:
    result = call.type
    if result.is_integer:
        return lambda value: wrap(-value, result)
    if result == DOUBLE:
        return float.__neg__
    return _SHORT.minus


def _absolute(call: ast.Call) -> Meaning:
    result = call.type
    if result.is_integer:
        return lambda value: wrap(abs(value), result)
    if result == DOUBLE:
        return float.__abs__
    return lambda value: _SHORT.minus(value) if value < 0 else value


NEGATIVE = "negative"

OPERATORS = (
    Function(
        "+", _typed("+"), _meaning, nulls=_nulls, kernel=_exact_kernel(lambda x, y: x + y),
        operations=_operations,
    ),
    Function(
        "-", _typed("-"), _meaning, nulls=_nulls, kernel=_exact_kernel(lambda x, y: x - y),
        operations=_operations,
    ),
    Function(
        "*", _typed("*"), _meaning, nulls=_nulls, kernel=_exact_kernel(lambda x, y: x * y),
        operations=_operations,
    ),
    Function(
        "/", _typed("/"), _meaning, nulls=_nulls, kernel=_division_kernel, operations=_operations
    ),
    Function(
        "%", _typed("%"), _meaning, ("mod",), _nulls, _division_kernel, operations=_operations
    ),
    Function(
        "DIV", _typed("DIV"), _meaning, nulls=_nulls, kernel=_division_kernel,
        operations=_operations,
    ),
    Function(
        NEGATIVE, one_number, _negative, kernel=_exact_kernel(lambda x: -x), operations=_operations
    ),
    Function("abs", one_number, _absolute, kernel=_exact_kernel(abs), operations=_operations),
)  # fmt: skip
