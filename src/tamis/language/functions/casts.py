r"""``CAST(x AS type)`` and ``TRY_CAST(x AS type)``.

CAST follows Spark with ANSI mode off: what does not fit wraps around or is cut, and a text that is
not a number is null. TRY_CAST is strict, and null wherever something would not fit.
"""

import math
import re
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from tamis.calendar import DAY, SECOND, moment_of, moments_of
from tamis.language import ast
from tamis.language.arithmetic import fit, wrap
from tamis.language.ast import Node
from tamis.language.functions.date_texts import BLANK, day_of_text, moment_of_text
from tamis.language.functions.function import (
    Function,
    Kernel,
    Meaning,
    Nulls,
    RefusedArguments,
    Typed,
)
from tamis.language.functions.numbers import saturated
from tamis.timestamps import date_text, moment_text
from tamis.types import (
    BOOL,
    DATE,
    DOUBLE,
    INT,
    INT32,
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    MAX_DECIMAL_DIGITS,
    NULL,
    SHORT_DECIMAL_DIGITS,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    decimal_type,
)

# The names of types as Spark has them; INT has 32 bits here, unlike the int of a schema.
TYPE_NAMES = {
    "INT": INT32, "INTEGER": INT32, "BIGINT": INT, "LONG": INT, "DOUBLE": DOUBLE,
    "STRING": STRING, "BOOLEAN": BOOL, "TIMESTAMP": TIMESTAMP, "DATE": DATE,
}  # fmt: skip
_TEXTS = {INT32: "INT", INT: "BIGINT", BOOL: "BOOLEAN"}


def type_text(wanted: Type) -> str:
    """A type as CAST writes it."""
    return _TEXTS.get(wanted) or str(wanted).upper()


def named_type(name: str, digits: Sequence[int]) -> Type | None:
    """The type of a name and the numbers in parentheses after it, None if there is none."""
    word = name.upper()
    if word in {"DECIMAL", "DEC", "NUMERIC"}:
        precision, scale = (*digits, *(10, 0)[len(digits) :])[:2]
        if len(digits) > 2 or not 0 <= scale <= precision <= MAX_DECIMAL_DIGITS or not precision:
            return None
        return decimal_type(precision, scale)
    return TYPE_NAMES.get(word) if not digits else None


def cast(name: str, operand: Node, wanted: Type) -> Node:
    """The node of a conversion; raises a `RefusedArguments` for types that are not converted."""
    if operand.type == wanted:
        return operand
    if operand.type == NULL:
        return ast.converted(operand, wanted)
    call = ast.Call(name, (operand,), wanted)
    if converter(call) is None:
        raise RefusedArguments(
            f"{name.upper()} does not convert {operand.type} to {type_text(wanted)}", 0
        )
    return call


# --- the conversions


def _meaning(call: ast.Call) -> Meaning:
    found = converter(call)
    if found is None:  # pragma: no cover - `cast` has refused it
        raise AssertionError(call)
    return found


def converter(call: ast.Call) -> Meaning | None:
    """The function of a conversion, None if there is none."""
    source, wanted, strict = call.arguments[0].type, call.type, call.name == "try_cast"
    match source.kind:
        case Kind.STRING:
            return _from_text(wanted, strict)
        case Kind.BOOL:
            return _from_truth(wanted, strict)
        case Kind.INT32 | Kind.INT | Kind.DOUBLE | Kind.DECIMAL:
            return _from_number(source, wanted, strict)
        case Kind.TIMESTAMP:
            return _from_moment(wanted)
        case Kind.DATE:
            return _from_day(wanted)
        case _:
            return None


_EXACT_PRODUCT = Context(prec=100)


def _bounds(whole: Type) -> tuple[int, int]:
    return (INT32_MIN, INT32_MAX) if whole == INT32 else (INT64_MIN, INT64_MAX)


def _from_number(source: Type, wanted: Type, strict: bool) -> Meaning | None:
    if wanted.is_integer:
        low, high = _bounds(wanted)
        if strict and wanted == INT32 and source.digits > SHORT_DECIMAL_DIGITS:
            return lambda value: _by_double(float(value))
        if strict:
            return lambda value: _exact(value, low, high)
        if source == DOUBLE:
            return lambda value: saturated(value, low, high)
        return lambda value: wrap(int(value), wanted)
    if wanted == DOUBLE:
        return float
    if wanted.kind is Kind.DECIMAL:
        if source == DOUBLE:
            return lambda value: fit(Decimal(repr(value)), wanted) if math.isfinite(value) else None
        return lambda value: fit(Decimal(value), wanted)
    if wanted == BOOL:
        return lambda value: value != 0
    if wanted == TIMESTAMP:
        return _seconds(source, strict)
    return str if wanted == STRING and source.is_integer else None


def _by_double(value: float) -> int | None:
    """How Spark's TRY_CAST makes an INT of a long decimal: 0.9, with 38 nines, is 1."""
    inside = math.floor(value) <= INT32_MAX and math.ceil(value) >= INT32_MIN
    return saturated(value, INT32_MIN, INT32_MAX) if inside else None


def _seconds(source: Type, strict: bool) -> Meaning:
    """Numbers as seconds since 1970; what does not fit is cut off, of a decimal wraps around."""
    if source == DOUBLE and strict:
        return lambda value: _exact(value * SECOND, INT64_MIN, INT64_MAX)
    if source == DOUBLE:
        return lambda value: saturated(value * SECOND) if math.isfinite(value) else None
    if source.kind is Kind.DECIMAL:
        return lambda value: wrap(int(_EXACT_PRODUCT.multiply(value, SECOND)), INT)
    return lambda value: moment_of(0, value * SECOND)


def _exact(value: Any, low: int, high: int) -> int | None:
    """A number cut towards 0, None if it is not within bounds."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    whole = int(value)
    if whole == INT64_MAX + 1 and high == INT64_MAX and isinstance(value, float):
        return high  # a double cannot tell the two apart
    return whole if low <= whole <= high else None


def _from_truth(wanted: Type, strict: bool) -> Meaning | None:
    if wanted.is_integer or (wanted == TIMESTAMP and not strict):
        return int
    if wanted == DOUBLE:
        return float
    if wanted == STRING:
        return lambda value: "true" if value else "false"
    return None


# --- from dates and timestamps


def _from_moment(wanted: Type) -> Meaning | None:
    if wanted == DATE:
        return lambda moment: moment // DAY
    if wanted == STRING:
        return moment_text
    if wanted == BOOL:
        return lambda moment: moment != 0
    if wanted.is_integer:
        low, high = _bounds(wanted)
        return lambda moment: _exact(moment // SECOND, low, high)
    if wanted == DOUBLE:
        return lambda moment: moment / float(SECOND)
    if wanted.kind is Kind.DECIMAL:
        return lambda moment: fit(Decimal(moment).scaleb(-6), wanted)
    return None


def _from_day(wanted: Type) -> Meaning | None:
    if wanted == TIMESTAMP:
        return moment_of
    return date_text if wanted == STRING else None


# --- from text

_SPACE = "".join(map(chr, range(0x21)))
_WHOLE = re.compile(r"[+-]?[0-9]+")
_CUT = re.compile(r"(?=[^+-]|.[^+-])[+-]?([0-9]*)(?:\.[0-9]*)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EXACT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")  # with digits of all scripts
_HEX = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_INFINITE = {
    "inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf,
    "-inf": -math.inf, "-infinity": -math.inf, "nan": math.nan, "+nan": math.nan,
    "-nan": math.nan,
}  # fmt: skip
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}


def _from_text(wanted: Type, strict: bool) -> Meaning | None:
    if wanted.is_integer:
        low, high = _bounds(wanted)
        return lambda text: _whole_of(text, low, high, strict)
    if wanted == DOUBLE:
        return _double_of
    if wanted == BOOL:
        return _truth_of
    if wanted.kind is Kind.DECIMAL:
        return lambda text: _decimal_of(text, wanted)
    return day_of_text if wanted == DATE else moment_of_text if wanted == TIMESTAMP else None


def _whole_of(text: str, low: int, high: int, strict: bool) -> int | None:
    body = text.strip(BLANK)
    found = (_WHOLE if strict else _CUT).fullmatch(body)
    if found is None or not body:
        return None
    digits = body.partition(".")[0]
    if len(digits) > 1_000:
        digits = digits[0] + digits[1:].lstrip("0") if digits[0] in "+-" else digits.lstrip("0")
        if len(digits) > 40:
            return None
    value = int(digits) if digits.strip("+-") else 0
    return value if low <= value <= high else None


def _double_of(text: str) -> float | None:
    body = text.strip(_SPACE)
    number = body[:-1] if body[-1:] in "dDfF" and len(body) > 1 else body
    if _DECIMAL.fullmatch(number):
        return float(number)
    if _HEX.fullmatch(body) or _HEX.fullmatch(number):
        try:
            return float.fromhex(body if _HEX.fullmatch(body) else number)
        except OverflowError:
            return -math.inf if body[0] == "-" else math.inf
    if body in {"+NaN", "-NaN"}:
        return math.nan
    word = body.lower()
    return None if word in {"+nan", "-nan"} else _INFINITE.get(word)


def _truth_of(text: str) -> bool | None:
    word = text.strip(BLANK).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _decimal_of(text: str, wanted: Type) -> Decimal | None:
    body = text.strip(_SPACE)
    if not _EXACT.fullmatch(body):
        return None
    try:
        value = Decimal(body)
        if value == 0 or value.adjusted() < -wanted.scale - 2:
            value = Decimal(0)
        return None if value.adjusted() > MAX_DECIMAL_DIGITS else fit(value, wanted)
    except InvalidOperation:
        return None


# --- nulls


def _nulls(call: ast.Call) -> Nulls:
    source, wanted = call.arguments[0].type, call.type
    if source == STRING or wanted.kind is Kind.DECIMAL or call.name == "try_cast":
        return Nulls.PROPAGATED
    if (source == TIMESTAMP and wanted == INT32) or (source == DOUBLE and wanted == TIMESTAMP):
        return Nulls.PROPAGATED
    return Nulls.STRICT


def _kernel(call: ast.Call) -> Kernel | None:
    """Of conversions between dates and timestamps, and from and to decimals."""
    source, wanted = call.arguments[0].type, call.type
    if source == TIMESTAMP and wanted == DATE:
        return lambda moments: moments // DAY
    if source == DATE and wanted == TIMESTAMP:
        return moments_of
    if Kind.DECIMAL not in {source.kind, wanted.kind}:
        return None
    from tamis.language.functions import decimal_kernels

    return decimal_kernels.cast(call)


def _typed(name: str) -> Callable[[Sequence[Node]], Typed]:
    def typed(_arguments: Sequence[Node]) -> Typed:
        raise RefusedArguments("needs a type", hint=f"write {name.upper()}(x AS DOUBLE)")

    return typed


CASTS = tuple(
    Function(name, _typed(name), _meaning, nulls=_nulls, kernel=_kernel)
    for name in ("cast", "try_cast")
)
