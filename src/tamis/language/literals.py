r"""Literals: numbers and strings as they are written in a filter.

Numbers follow Spark SQL: ``10`` is a 32-bit integer if it fits and a 64-bit one if not, ``10L`` is
64 bits wide, ``0.5`` and ``5BD`` are exact decimals, ``5e-1`` and ``0.5D`` are doubles. Strings
are in single or double quotes; a quote inside is doubled or escaped; the escapes are
``\0 \b \n \r \t \Z \uhhhh \Uhhhhhhhh \ooo``; ``\%`` and ``\_`` keep their backslash, for LIKE; any
other escaped character stands for itself. ``r'...'`` has no escapes.
"""

import re
from decimal import Decimal

from tamis.language.ast import Literal
from tamis.types import (
    DOUBLE,
    INT,
    INT32,
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    MAX_DECIMAL_DIGITS,
    decimal_type,
)

_ESCAPE = re.compile(
    r"""\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))|''|\"\"""", re.DOTALL
)
_CONTROL = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_EXPONENT_DIGITS = 3  # a decimal beyond e999 has too many digits anyway, and would cost memory


class BadLiteral(ValueError):
    """A constant that is well-formed but has no value."""


def number_literal(text: str, *, negative: bool = False) -> Literal:
    """The number of a NUMBER token, with the sign before it."""
    body, suffix = _split_suffix(text)
    if negative:
        body = "-" + body
    if suffix == "L":
        if not body.lstrip("-").isdigit():
            raise BadLiteral("the suffix L is for whole numbers")
        return _whole(body, wide=True)
    if suffix == "D" or (not suffix and "e" in body):
        return _double(body)
    if suffix == "BD" or "." in body:
        return _decimal(body)
    return _whole(body, wide=False)


def _split_suffix(text: str) -> tuple[str, str]:
    lowered = text.lower()
    for suffix in ("bd", "l", "d"):
        if lowered.endswith(suffix):
            return lowered[: -len(suffix)], suffix.upper()
    return lowered, ""


def _whole(text: str, *, wide: bool) -> Literal:
    digits = text.lstrip("-0") or "0"
    if len(digits) > MAX_DECIMAL_DIGITS:
        raise BadLiteral(f"a number has at most {MAX_DECIMAL_DIGITS} digits")
    value = -int(digits) if text[0] == "-" else int(digits)
    if not wide and INT32_MIN <= value <= INT32_MAX:
        return Literal(value, INT32)
    if INT64_MIN <= value <= INT64_MAX:
        return Literal(value, INT)
    if wide:
        raise BadLiteral("the number does not fit in 64 bits")
    return _decimal(str(value))


def _double(text: str) -> Literal:
    value = float(text)
    if value in {float("inf"), float("-inf")}:
        raise BadLiteral("the number is too large for a double (at most about 1.8e308)")
    return Literal(value, DOUBLE)


def _decimal(text: str) -> Literal:
    _, _, exponent = text.partition("e")
    if len(exponent.lstrip("+-0")) > _EXPONENT_DIGITS:
        raise BadLiteral(f"a decimal has at most {MAX_DECIMAL_DIGITS} digits")
    value = Decimal(text)
    digits, scale = decimal_size(value)
    if digits > MAX_DECIMAL_DIGITS:
        raise BadLiteral(f"a decimal has at most {MAX_DECIMAL_DIGITS} digits; write 1.5D or 1.5e0")
    if value == 0:
        value = value.copy_abs()  # a decimal has no -0
    if scale == 0:
        value = Decimal(int(value))  # 1.5e3 has no digits after the point
    return Literal(value, decimal_type(digits, scale))


def decimal_size(value: Decimal) -> tuple[int, int]:
    """Digits and scale of the smallest decimal type that holds a value."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # pragma: no cover - literals are finite
        raise BadLiteral("not a finite number")
    if exponent > 0:
        return len(digits) + exponent, 0
    return max(len(digits), -exponent), -exponent


def string_value(text: str) -> str:
    """The value of a quoted string."""
    if text[0] in "rR":
        return text[2:-1]
    quote, body = text[0], text[1:-1]
    if "\\" not in body:
        return body.replace(quote + quote, quote)
    value = _ESCAPE.sub(lambda found: _unescape(found, quote), body)
    try:
        # Two escaped surrogates make one character, as in UTF-16.
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise BadLiteral("half of a surrogate pair is not a character") from None


def _unescape(found: re.Match[str], quote: str) -> str:
    short, long, octal, character = found.groups()
    if found[0][0] != "\\":  # two quotes
        return quote if found[0][0] == quote else found[0]
    if short or long:
        code = int(short or long, 16)
        if code > 0x10FFFF:
            raise BadLiteral(f"there is no character \\U{long}")
        return chr(code)
    if octal:
        return chr(int(octal, 8))
    if character in "%_":
        return "\\" + character
    return _CONTROL.get(character, character)


def string_text(value: str) -> str:
    r"""How a filter writes a string; `string_value` reads it back.

    >>> print(string_text("it's"))
    'it\'s'
    """
    body = value.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in body) + "'"
