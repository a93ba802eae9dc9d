"""Timestamps: microseconds since 1970-01-01 in UTC, from and to text.

Text without a time zone is in UTC. Years of events go from 0001 to 9999.
"""

import re
from datetime import UTC, date, datetime, timedelta, timezone

from tamis.calendar import DAY, SECOND, date_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
FIRST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND

_TEXT = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*(Z|UTC|[+-]\d{2}:\d{2})?)?)?)?",
    re.ASCII,
)


def timestamp_from_text(text: str) -> int | None:
    """The timestamp of a text like ``2024-01-31 12:30:00.5+01:00``; None if it is not a timestamp.

    The forms are those that Spark SQL reads: a year, a month, a day, or a day with a time, with an
    optional zone ``Z``, ``UTC`` or ``+hh:mm``. Digits beyond microseconds are cut off.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0),
            int(second or 0), int((fraction or "0")[:6].ljust(6, "0")), tzinfo=_zone(zone),
        )  # fmt: skip
        microseconds = timestamp_from_datetime(moment)
    except (ValueError, OverflowError):
        return None
    # The time zone may move the time beyond year 1 or 9999.
    return microseconds if FIRST <= microseconds <= LAST else None


def timestamp_from_datetime(moment: datetime | date) -> int:
    """The timestamp of a `datetime` or `date`; without a time zone it is in UTC."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    elif moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // _MICROSECOND


def timestamp_text(microseconds: int) -> str:
    """The text of a timestamp, in UTC: ``2024-01-31 12:30:00.5Z``."""
    return f"{moment_text(microseconds)}Z"


def moment_text(microseconds: int) -> str:
    """The text of a timestamp without its zone, which is UTC: ``2024-01-31 12:30:00.5``."""
    day, time = divmod(microseconds, DAY)
    seconds, rest = divmod(time, SECOND)
    minutes, second = divmod(seconds, 60)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{date_text(day)} {minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{fraction}"


def date_text(day: int) -> str:
    """The text of a day, counted from 1970-01-01; years after 9999 have a sign."""
    year, month, of_month = date_of(day)
    sign = "-" if year < 0 else "+" if year > 9_999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{of_month:02d}"


def _zone(text: str | None) -> timezone:
    if text is None or text in {"Z", "UTC"}:
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:6])
    if minutes > 59 or hours * 60 + minutes > 18 * 60:
        raise ValueError(text)
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)
