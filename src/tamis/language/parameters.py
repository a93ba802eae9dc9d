"""Parameters: values that are given beside a filter and written into its text as constants.

``price < :limit`` with ``{"limit": 10}`` is ``price < 10``. Nothing after this module knows of
parameters: the text with its constants is read, kept and printed like any other, and the shape
cache reads it as fast. An error points at the text as it was given.
"""

import math
import numbers
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from tamis.bounded_caches import remembered
from tamis.errors import ExpressionError, OptionError, ParseError, TypeMismatch, did_you_mean
from tamis.language.literals import string_text
from tamis.language.tokens import NAME, QUOTED, STRING, check_text
from tamis.timestamps import timestamp_from_datetime, timestamp_text
from tamis.types import MAX_DECIMAL_DIGITS

T = TypeVar("T")

_PARAMETER = re.compile(rf"{STRING}|{QUOTED}|(?<!:):({NAME})", re.DOTALL)
# Beside these, a constant needs no space to stay a word of its own.
_BEFORE, _AFTER = frozenset(" \t\r\n(,=<>"), frozenset(" \t\r\n),=<>")
_LONGEST_BITS = 4 * MAX_DECIMAL_DIGITS  # of a whole number; the parser counts the digits


class Place(NamedTuple):
    """A parameter in the text of a filter, from its colon to its end."""

    name: str
    start: int
    end: int


class FilledFilter(NamedTuple):
    """A filter with the values of its parameters: `text` as it is read, `original` as given."""

    text: str
    original: str
    places: tuple[Place, ...]  # in the original
    filled: tuple[tuple[int, int], ...]  # the start and end of each place in the text

    def in_original(self, error: ExpressionError) -> ExpressionError:
        """An error about the text, as one about the original."""
        hint = error.hint
        for place, (start, end) in zip(self.places, self.filled, strict=True):
            if start <= error.start and error.end <= end and error.start < error.end:
                value = self.text[start:end].strip(" ()")
                shown = value if len(value) <= 60 else value[:57] + "..."
                hint = f"the value of :{place.name} is {shown}"
                if value.startswith("array("):
                    hint += "; give each value of a list a parameter of its own: IN (:a, :b)"
        start, end = self._place(error.start, 0), self._place(error.end, 1)
        return type(error)(error.problem, self.original, start, max(start, end), hint)

    def _place(self, position: int, side: int) -> int:
        """The place in the original of one in the text; inside a value, a side of its parameter."""
        moved = position
        for place, (start, end) in zip(self.places, self.filled, strict=True):
            if position <= start:
                break
            if position < end:
                return place.end if side else place.start
            moved = position - end + place.end
        return moved


def read_with(read: Callable[[str], T], text: str, parameters: Mapping[str, Any] | None) -> T:
    """What `read` makes of a filter with parameters; its errors are about the text as given."""
    if parameters is None:
        return read(text)
    filled = fill(text, parameters)
    try:
        return read(filled.text)
    except ExpressionError as error:
        raise filled.in_original(error) from None


def fill(text: str, parameters: Mapping[str, Any]) -> FilledFilter:
    """A filter with constants instead of its parameters."""
    check_text(text)
    if not isinstance(parameters, Mapping):
        raise OptionError(
            f"parameters are a dict of names and values, not {type(parameters).__name__}"
        )
    places = _places(text)
    constants = {place.name: _constant(text, place, parameters) for place in places}
    if len(constants) < len(parameters):
        raise _unused(text, constants, parameters)
    pieces: list[str] = []
    filled: list[tuple[int, int]] = []
    last = length = 0
    for name, start, end in places:
        before = text[last:start]
        constant = _set_apart(constants[name], text, start, end)
        length += len(before)
        filled.append((length, length + len(constant)))
        length += len(constant)
        pieces += before, constant
        last = end
    pieces.append(text[last:])
    return FilledFilter("".join(pieces), text, places, tuple(filled))


@remembered()
def _places(text: str) -> tuple[Place, ...]:
    """The parameters of a filter; many filters have the same text."""
    return tuple(
        Place(found[1], found.start(), found.end())
        for found in _PARAMETER.finditer(text)
        if found[1] is not None
    )


def _set_apart(constant: str, text: str, start: int, end: int) -> str:
    """A constant as a word of its own: ``-:x`` is neither a comment nor a number with a sign."""
    last = start - 1
    while last >= 0 and text[last].isspace():
        last -= 1
    if last >= 0 and text[last] == "-":
        constant = f"({constant})"
    before = "" if start == 0 or text[start - 1] in _BEFORE else " "
    after = "" if end == len(text) or text[end] in _AFTER else " "
    return f"{before}{constant}{after}"


def _constant(text: str, place: Place, parameters: Mapping[str, Any]) -> str:
    if place.name not in parameters:
        raise ParseError(
            f"there is no value for the parameter :{place.name}", text, place.start, place.end,
            did_you_mean(place.name, map(str, parameters)),
        )  # fmt: skip
    try:
        return constant_text(parameters[place.name])
    except ValueError as error:
        raise TypeMismatch(
            f"the value of :{place.name} cannot be used: {error}", text, place.start, place.end
        ) from None


def _unused(text: str, used: Mapping[str, str], parameters: Mapping[Any, Any]) -> ParseError:
    unused = next(name for name in parameters if name not in used)
    problem = f"the filter has no parameter :{unused}"
    if not isinstance(unused, str):
        problem = f"the name of a parameter is a string, not {unused!r}"
    hint = did_you_mean(str(unused), used) or f"write :{unused} where its value belongs"
    return ParseError(problem, text, 0, 0, hint)


def constant_text(value: Any) -> str:
    """How a filter writes a value; a `ValueError` says why it has no way to."""
    common = _COMMON_TEXTS.get(type(value))
    if common is not None:
        return common(value)
    for kinds, text in _TEXTS:
        if isinstance(value, kinds):
            return text(value)
    kind = type(value).__name__
    if kind in {"bool", "bool_"}:  # numpy's
        return _truth(value)
    if kind == "NAType":  # pandas.NA
        return "NULL"
    if isinstance(value, list | tuple):
        return f"array({', '.join(map(_element, value))})"
    hint = "; write a list" if isinstance(value, set | frozenset) else ""
    raise ValueError(f"it is of type {kind}{hint}")


def _element(value: Any) -> str:
    if isinstance(value, list | tuple):
        raise ValueError("an array has no arrays in it")  # noqa: TRY004 - as the others
    return constant_text(value)


def _truth(value: Any) -> str:
    return "TRUE" if value else "FALSE"


def _string(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("it is not valid Unicode text") from None
    return string_text(value)


def _whole(value: numbers.Integral) -> str:
    whole = int(value)
    if whole.bit_length() > _LONGEST_BITS:
        raise ValueError(f"a number has at most {MAX_DECIMAL_DIGITS} digits")
    return str(whole)


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError(f"a decimal is finite, not {value}")
    if abs(value.adjusted()) > MAX_DECIMAL_DIGITS or len(value.as_tuple().digits) > 100:
        raise ValueError(f"a decimal has at most {MAX_DECIMAL_DIGITS} digits")
    return format(value, "f") + "BD"


def _double(value: numbers.Real) -> str:
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("it is too large for a double") from None
    if math.isfinite(number):
        return f"{number!r}D"
    return f"CAST('{number!r}' AS DOUBLE)"


def _moment(value: datetime) -> str:
    if value != value:  # noqa: PLR0124 - NaT of pandas
        return "NULL"
    return f"TIMESTAMP '{timestamp_text(timestamp_from_datetime(value))}'"


def _day(value: date) -> str:
    return f"DATE '{value.isoformat()}'"


# Values of these types, the narrower type first: a bool is an int, a datetime is a date.
_TEXTS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (str, _string),
    (bool, _truth),
    (numbers.Integral, _whole),
    (Decimal, _decimal),
    (numbers.Real, _double),
    (datetime, _moment),
    (date, _day),
    (type(None), lambda _: "NULL"),
)
# The same for the types of most values: to ask whether a value is a number takes long.
_COMMON_TEXTS: dict[type, Callable[[Any], str]] = {
    str: _string, bool: _truth, int: _whole, float: _double,
}  # fmt: skip
