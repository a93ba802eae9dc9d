"""Texts as dates and timestamps, in the forms that Spark SQL casts, and back.

A date is ``2024``, ``2024-1`` or ``2024-01-31``, and what follows a space or a ``T`` is ignored. A
timestamp may go on with hours, minutes, seconds, a fraction, and a zone: ``Z``, ``UTC``, ``GMT``,
``UT``, an offset like ``+01:00``, or one after the other. Years have up to seven digits and a sign.
"""

import re

from tamis.calendar import DAY, HOUR, MINUTE, SECOND, date_of, day_of
from tamis.types import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

BLANK = "".join(map(chr, range(0x21))) + "\x7f"

_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_MOMENT = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(\D.*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_SHORT_HOUR = re.compile(r"([+-])(\d):", re.ASCII)
_SHORT_MINUTE = re.compile(r"([+-])(\d\d):(\d)$", re.ASCII)
_OFFSET = re.compile(r"([+-])(?:(\d{1,2})|(\d\d):(\d\d)(?::(\d\d))?|(\d\d)(\d\d)(\d\d)?)", re.ASCII)
_MOST = 18 * HOUR  # of an offset


def day_of_text(text: str) -> int | None:
    """The day of a text, None if it is not a date."""
    found = _DATE.fullmatch(text.strip(BLANK))
    day = None if found is None else _day(*found.groups())
    return day if day is not None and INT32_MIN <= day <= INT32_MAX else None


def moment_of_text(text: str) -> int | None:
    """The moment of a text, None if it is not a timestamp."""
    found = _MOMENT.fullmatch(text.strip(BLANK))
    if found is None:
        return None
    day = _day(*found.groups()[:3])
    hour, minute, second = (int(part or 0) for part in found.groups()[3:6])
    fraction, zone = found.groups()[6:]
    offset = _offset(zone)
    if day is None or offset is None or hour > 23 or minute > 59 or second > 59:
        return None
    rest = int((fraction or "0")[:6].ljust(6, "0"))
    moment = day * DAY + hour * HOUR + minute * MINUTE + second * SECOND + rest - offset
    return moment if INT64_MIN <= moment <= INT64_MAX else None


def _day(year: str, month: str | None, of_month: str | None) -> int | None:
    date = int(year), int(month or 1), int(of_month or 1)
    if not 1 <= date[1] <= 12 or not 1 <= date[2] <= 31:
        return None
    day: int = day_of(*date)
    return day if date_of(day) == date else None


def _offset(zone: str | None) -> int | None:
    """How far the local time is ahead, None for what is not a zone."""
    if zone is None:
        return 0
    text = _SHORT_HOUR.sub(r"\g<1>0\2:", zone.strip(BLANK[:-1]), count=1)
    text = _SHORT_MINUTE.sub(r"\1\2:0\3", text, count=1)
    for prefix in ("UTC", "GMT", "UT"):
        if text.startswith(prefix):
            text = text[len(prefix) :] or "Z"
            break
    if text == "Z":
        return 0
    found = _OFFSET.fullmatch(text)
    if found is None:
        return None
    sign, *parts = found.groups()
    short, hour, minute, second, *packed = (int(part or 0) for part in parts)
    hours, minutes, seconds = short + hour + packed[0], minute + packed[1], second + packed[2]
    offset = hours * HOUR + minutes * MINUTE + seconds * SECOND
    if minutes > 59 or seconds > 59 or offset > _MOST:
        return None
    return -offset if sign == "-" else offset
