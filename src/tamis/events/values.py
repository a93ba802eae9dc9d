"""Values of events: checked against the schema and converted to the form that engines use.

Inside tamis an int is a Python int within 64 bits, a double a float, a decimal a Decimal with as
many digits after the point as its type has, a string a str that is valid Unicode, a bool a bool, a
timestamp an int of microseconds since 1970 in UTC, and a missing value None.
"""

import numbers
import re
from collections.abc import Callable
from datetime import date, datetime
from math import isinf
from typing import Any

from tamis.errors import EventError, did_you_mean
from tamis.events.decimal_values import decimal_of_text, decimal_reader
from tamis.schema import Attribute, Enumeration
from tamis.timestamps import timestamp_from_datetime, timestamp_from_text
from tamis.types import INT64_MAX, INT64_MIN, Kind, Type

Reader = Callable[[Any], Any]

_WHOLE = re.compile(r"\s*([+-]?)0*([0-9]{1,30})\s*")
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def value_reader(attribute: Attribute) -> Reader:
    """A function that checks and converts the values of one attribute."""
    return _with_domain(attribute, _plain_reader(attribute.type))


def text_reader(attribute: Attribute) -> Reader:
    """`value_reader` for values given as text, in CSV or XML; only a string can be empty."""
    if attribute.type.kind is Kind.DECIMAL:
        exact = _plain_reader(attribute.type)
        read = _with_domain(attribute, lambda text: exact(decimal_of_text(text)))
    else:
        read = _with_domain(attribute, _TEXT_READERS[attribute.type.kind])
    if attribute.type.kind is Kind.STRING:
        return read
    return lambda text: None if text == "" else read(text)


def _plain_reader(of: Type) -> Reader:
    return decimal_reader(of) if of.kind is Kind.DECIMAL else _READERS[of.kind]


def _with_domain(attribute: Attribute, read: Callable[[Any], Any]) -> Reader:
    def reader(value: Any) -> Any:
        if value is None or type(value).__name__ == "NAType":  # pandas.NA
            return None
        try:
            result = read(value)
        except (TypeError, ValueError, OverflowError) as error:
            reason = f": {error}" if str(error) else ""
            raise EventError(
                f"attribute {attribute.name} expects {attribute}, got {_shown(value)}{reason}"
            ) from None
        if attribute.domain is not None and result is not None:
            check_domain(attribute, result)
        return result

    return reader


def check_domain(attribute: Attribute, value: Any) -> None:
    """Raise an error for a value outside the domain of its attribute."""
    domain = attribute.domain
    if domain is None or value in domain:
        return
    hint = did_you_mean(value, domain.values) if isinstance(domain, Enumeration) else None
    raise EventError(
        f"attribute {attribute.name}: {_shown(value)} lies outside the domain {domain}"
        + (f"; {hint}" if hint else "")
    )


def _shown(value: Any) -> str:
    kind = type(value).__name__
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a huge number, or an object whose repr fails
        return f"a value of type {kind}"
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({kind})"


def _read_int(value: Any) -> int:
    if type(value) is int:
        whole = value
    elif isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError
    else:
        whole = int(value)
    if not INT64_MIN <= whole <= INT64_MAX:
        raise ValueError("it does not fit in 64 bits")
    return whole


def _read_double(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not (
        isinstance(value, numbers.Real) or type(value).__name__ == "Decimal"
    ):
        raise TypeError
    try:
        return float(value)
    except OverflowError:
        raise ValueError("it is too large for a double") from None


def _read_string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("it is not valid Unicode text") from None
    return str(value)


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}:
        return bool(value)
    raise TypeError


def _read_timestamp(value: Any) -> int | None:
    if isinstance(value, str):
        return _timestamp_of_text(value)
    if isinstance(value, datetime | date):
        if value != value:  # noqa: PLR0124 - NaT of pandas
            return None
        return timestamp_from_datetime(value)
    raise TypeError("write a datetime or a text such as '2024-01-31 12:30:00'")


def _timestamp_of_text(text: str) -> int:
    moment = timestamp_from_text(text)
    if moment is None:
        raise ValueError("write '2024-01-31 12:30:00', with a zone Z or +01:00 if it is not UTC")
    return moment


def _int_of_text(text: str) -> int:
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise ValueError
    return _read_int(int(found[1] + found[2]))


def _double_of_text(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError from None
    if "_" in text:  # which float() accepts
        raise ValueError
    if isinf(number) and any(map(str.isdigit, text)):
        raise ValueError("it is too large for a double")
    return number


def _bool_of_text(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUTHS:
        raise ValueError("write true or false")
    return _TRUTHS[word]


_READERS: dict[Kind, Reader] = {
    Kind.INT: _read_int,
    Kind.DOUBLE: _read_double,
    Kind.STRING: _read_string,
    Kind.BOOL: _read_bool,
    Kind.TIMESTAMP: _read_timestamp,
}
_TEXT_READERS: dict[Kind, Reader] = {
    Kind.INT: _int_of_text,
    Kind.DOUBLE: _double_of_text,
    Kind.STRING: _read_string,
    Kind.BOOL: _bool_of_text,
    Kind.TIMESTAMP: _timestamp_of_text,
}
