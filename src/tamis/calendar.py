"""The calendar: days and microseconds since 1970-01-01, and what they are called.

It is the Gregorian calendar for all times, also before it was introduced. All functions take whole
numbers or arrays of them: rounding down is the same for both. Days that no moment of 64 bits lies
in are cut off at the first or last moment.
"""

from typing import Any

from tamis.types import INT64_MAX, INT64_MIN

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND

# Years begin in March here, so that a leap day is the last day of its year; 400 years are an era.
_ERA = 146_097  # days of an era
_MARCH = 719_468  # days from 0000-03-01 to 1970-01-01
_LAST_DAY = INT64_MAX // DAY


def date_of(day: Any) -> tuple[Any, Any, Any]:
    """The year, month and day of the month of a day."""
    shifted = day + _MARCH
    era = shifted // _ERA
    rest = shifted - era * _ERA
    year = (rest - rest // 1_460 + rest // 36_524 - rest // (_ERA - 1)) // 365
    of_year = rest - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    of_month = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 - 12 * (month // 10)
    return year + era * 400 + (month <= 2), month, of_month


def day_of(year: Any, month: Any, of_month: Any) -> Any:
    """The day with this date."""
    year = year - (month <= 2)
    era = year // 400
    rest = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + of_month - 1
    return era * _ERA + rest * 365 + rest // 4 - rest // 100 + of_year - _MARCH


def months_later(day: Any, months: Any) -> Any:
    """The day some months later; the last day of the month if that is too short."""
    year, month, of_month = date_of(day)
    total = year * 12 + month - 1 + months
    first = day_of(total // 12, total % 12 + 1, 1)
    following = day_of((total + 1) // 12, (total + 1) % 12 + 1, 1)
    length = following - first
    too_long = of_month > length
    return first + of_month - 1 - too_long * (of_month - length)


def monday(day: Any) -> Any:
    """The first day of a day's week."""
    return day - (day + 3) % 7


def week(day: Any) -> Any:
    """The number of a day's week: the first one of a year has at least four days in it."""
    thursday = monday(day) + 3
    return (thursday - day_of(date_of(thursday)[0], 1, 1)) // 7 + 1


# --- moments


def moment_of(day: int, time: int = 0) -> int:
    """The moment at a time of a day, cut off at the ends of 64 bits."""
    return min(max(day * DAY + time, INT64_MIN), INT64_MAX)


def moments_of(days: Any, times: Any = 0) -> Any:
    """`moment_of` for arrays."""
    import numpy as np

    inside = np.clip(days, -_LAST_DAY, _LAST_DAY)
    return sums(inside * DAY, times + np.clip(days - inside, -2, 2) * DAY)


def sums(moments: Any, others: Any) -> Any:
    """Sums of arrays of moments and durations, cut off at the ends of 64 bits."""
    import numpy as np

    found = np.asarray(moments + others)
    beyond = ((moments ^ found) & (others ^ found)) < 0
    return np.where(beyond, np.where(np.asarray(moments) < 0, INT64_MIN, INT64_MAX), found)


def differences(moments: Any, others: Any) -> Any:
    """Differences of arrays of moments and durations, cut off at the ends of 64 bits."""
    import numpy as np

    found = np.asarray(moments - others)
    beyond = ((moments ^ others) & (moments ^ found)) < 0
    return np.where(beyond, np.where(np.asarray(moments) < 0, INT64_MIN, INT64_MAX), found)
