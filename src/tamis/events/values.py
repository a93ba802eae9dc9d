"""Values of events: checked against the schema and converted to the form that engines use.

Inside tamis an int is a Python int within 64 bits, a double a float, a decimal a Decimal with as
many digits after the point as its type has, a string a str that is valid Unicode, a bool a bool, a
timestamp an int of microseconds since 1970 in UTC, an array a tuple of such values, a map a
`MapValue`, and a missing value or element None.
"""

import numbers
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from math import isinf
from typing import Any

from tamis.errors import EventError, OptionError, did_you_mean
from tamis.events.decimal_values import decimal_of_text, decimal_reader
from tamis.language.arrival import arrival
from tamis.schema import Attribute, Enumeration
from tamis.timestamps import timestamp_from_datetime, timestamp_from_text
from tamis.types import INT64_MAX, INT64_MIN, Kind, Type

Reader = Callable[[Any], Any]


class MapValue(dict[str, Any]):
    """The value of a map. It has a hash, as it never changes: values are looked up in caches."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash


XML_VALUE = "_VALUE"  # the text of an element of XML that has attributes, beside these
_WHOLE = re.compile(r"\s*([+-]?)0*([0-9]{1,30})\s*")
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def value_reader(attribute: Attribute) -> Reader:
    """A function that checks and converts the values of one attribute."""
    return _with_domain(attribute, _reader_of(attribute.type, _READERS))


def text_reader(attribute: Attribute) -> Reader:
    """`value_reader` for values given as text, in CSV or XML; only a string can be empty."""
    of = attribute.type
    read = _with_domain(attribute, _reader_of(of, _TEXT_READERS))
    if of.is_nested:
        return read
    if of.kind is Kind.STRING:
        return lambda text: read(_plain_text(text, attribute))
    return lambda text: None if text == "" else read(_plain_text(text, attribute))


def _plain_text(value: Any, attribute: Attribute) -> Any:
    """The text of an element that has attributes, of which the schema does not know."""
    if isinstance(value, list):
        raise EventError(f"the event names {attribute.path[-1]!r} twice, and it is not an array")
    return value.get(XML_VALUE, value) if isinstance(value, dict) else value


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


# --- arrays and maps


def _reader_of(kind: Type, scalars: Mapping[Kind, Reader]) -> Reader:
    is_text = scalars is _TEXT_READERS
    if kind.kind is Kind.DECIMAL:
        exact = decimal_reader(kind)
        return (lambda text: exact(decimal_of_text(text))) if is_text else exact
    if kind.element is None:
        return scalars[kind.kind]
    read = scalars[kind.element.kind]
    if is_text and kind.element.kind is not Kind.STRING:
        whole = read
        read = lambda text: None if text == "" else whole(text)  # noqa: E731 - as `text_reader`
    if kind.kind is Kind.MAP:
        return lambda value: _read_map(value, read)
    return lambda value: _read_array(value, read, is_text=is_text)


def _read_array(value: Any, read: Reader, *, is_text: bool) -> tuple[Any, ...]:
    if is_text:  # an element of XML may be there once, and have attributes
        value = value if isinstance(value, list) else [value]
        value = [one.get(XML_VALUE, one) if isinstance(one, dict) else one for one in value]
    if type(value).__name__ == "ndarray" and value.ndim == 1:
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise TypeError("write a list")
    return tuple([_read_element(n, one, read) for n, one in enumerate(value)])


def _read_map(value: Any, read: Reader) -> MapValue:
    if isinstance(value, list) and all(isinstance(one, tuple) and len(one) == 2 for one in value):
        pairs: Iterable[tuple[Any, Any]] = value  # as Arrow gives a map
    elif isinstance(value, Mapping):
        pairs = value.items()
    else:
        raise TypeError("write a dict")
    found = MapValue()
    for key, one in pairs:
        name = _read_string(key)
        if name in found:
            raise ValueError(f"it has the key {_shown(name)} twice")
        found[name] = _read_element(name, one, read)
    return found


def _read_element(place: int | str, value: Any, read: Reader) -> Any:
    if value is None or type(value).__name__ == "NAType":
        return None
    try:
        return read(value)
    except (TypeError, ValueError, OverflowError) as error:
        reason = f": {error}" if str(error) else ""
        at = place if isinstance(place, int) else _shown(place)
        raise ValueError(f"element {at} is {_shown(value)}{reason}") from None


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


def moment_of_call(now: Any) -> int:
    """The moment at which a caller lets events arrive, in microseconds.

    Without one it is that of the call in which this one is made, or the present.
    """
    if now is None:
        return arrival()
    try:
        found = _read_timestamp(now)
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise OptionError(
            f"now is a datetime or a text such as '2024-01-31 12:30:00', not {_shown(now)}"
        )
    return found
