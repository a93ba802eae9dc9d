"""Texts as values of a type, by the rules of Spark's CSV and XML readers, which are those of Java.

A text that is not a value of its type raises a ValueError.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from tamis.timestamps import timestamp_from_datetime, timestamp_from_text

Reader = Callable[[str], Any]

INT32, INT64 = (-(1 << 31), (1 << 31) - 1), (-(1 << 63), (1 << 63) - 1)

_ROUNDED = Context(prec=20_000, rounding=ROUND_HALF_UP)
_WHOLE = re.compile(r"[+-]?\d+")  # digits of any script, as in Java
# As `Double.parseDouble` takes it: with a suffix, and with white space around it.
_DOUBLE = re.compile(
    r"[\x00-\x20]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?[\x00-\x20]*"
)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")
_WORDS = {
    "NaN": float("nan"), "+NaN": float("nan"), "-NaN": float("nan"),
    "Infinity": float("inf"), "+Infinity": float("inf"), "-Infinity": float("-inf"),
    "Inf": float("inf"), "-Inf": float("-inf"),
}  # fmt: skip
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
# yyyy-MM-dd['T'][' ']HH:mm:ss[.SSSSSSSSS][.SSSSSS][.SSS][.SS][.S][XXX]
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T? ?([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)


def as_whole(text: str) -> int:
    """A text as a whole number of any size."""
    if _WHOLE.fullmatch(text) is None or len(text) > 4000:
        raise ValueError
    return int(text)


def as_double(text: str) -> float:
    """A text as a double."""
    found = _DOUBLE.fullmatch(text)
    if found is not None:
        return float(found[1])
    if text in _WORDS:
        return _WORDS[text]
    raise ValueError


def as_date(text: str) -> date:
    """A text as a date: a year, a month and a day."""
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError
    return date(int(found[1]), int(found[2]), int(found[3]))


def timestamp_of_pattern(text: str) -> int | None:
    """The timestamp of a date and a time to the second; None for every other text."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    offset = UTC
    try:
        if zone is not None and zone != "Z":
            ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
            offset = timezone(ahead if zone[0] == "+" else -ahead)
        moment = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second),
            int((fraction or "0")[:6].ljust(6, "0")), tzinfo=offset,
        )  # fmt: skip
    except ValueError:
        return None
    return timestamp_from_datetime(moment)


def text_reader(kind: pa.DataType, *, is_inferred: bool) -> Reader:
    """The function that reads texts of a column of a type.

    `is_inferred` says whether the types were inferred: then timestamps have the form that made them
    timestamps; otherwise they have any form that Spark SQL can cast.
    """
    if pa.types.is_timestamp(kind):
        return _needed(timestamp_of_pattern if is_inferred else timestamp_from_text)
    if pa.types.is_decimal(kind):
        return _decimal_reader(kind)
    readers: dict[pa.DataType, Reader] = {
        pa.int32(): lambda text: _within(as_whole(text), INT32),
        pa.int64(): lambda text: _within(as_whole(text), INT64),
        pa.float64(): as_double, pa.bool_(): _as_truth, pa.date32(): as_date,
        pa.string(): str,
    }  # fmt: skip
    return readers[kind]


def _needed(read: Callable[[str], int | None]) -> Reader:
    def reader(text: str) -> int:
        found = read(text)
        if found is None:
            raise ValueError
        return found

    return reader


def _within(value: int, bounds: tuple[int, int]) -> int:
    if not bounds[0] <= value <= bounds[1]:
        raise ValueError
    return value


def _as_truth(text: str) -> bool:
    word = text.lower()
    if word not in {"true", "false"}:
        raise ValueError
    return word == "true"


def _decimal_reader(kind: pa.DataType) -> Reader:
    unit = Decimal((0, (1,), -kind.scale))

    def read(text: str) -> Decimal:
        if _DECIMAL.fullmatch(text) is None:
            raise ValueError
        try:
            value = Decimal(text)
            if value.adjusted() > kind.precision - kind.scale:
                raise ValueError
            found = value.quantize(unit, context=_ROUNDED)
        except InvalidOperation:
            raise ValueError from None
        if found and found.adjusted() >= kind.precision - kind.scale:
            raise ValueError
        return found

    return read
