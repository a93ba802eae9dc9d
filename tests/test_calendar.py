"""The calendar, against Python's and beyond its years."""

from datetime import date, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tamis.calendar import (
    DAY,
    date_of,
    day_of,
    moment_of,
    moments_of,
    monday,
    months_later,
    sums,
    week,
)
from tamis.types import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

EPOCH = date(1970, 1, 1)
DAYS_OF_DATES = st.integers((date.min - EPOCH).days, (date.max - EPOCH).days)
ALL_DAYS = st.integers(INT32_MIN, INT32_MAX)


@given(DAYS_OF_DATES)
def test_days_are_those_of_the_gregorian_calendar(day):
    known = EPOCH + timedelta(days=day)
    assert date_of(day) == (known.year, known.month, known.day)
    assert day_of(known.year, known.month, known.day) == day
    assert monday(day) == day - known.weekday()
    assert week(day) == known.isocalendar().week


@given(ALL_DAYS)
def test_a_day_is_that_of_its_date_and_400_years_are_an_era(day):
    year, month, of_month = date_of(day)
    assert day_of(year, month, of_month) == day
    assert date_of(day + 146_097) == (year + 400, month, of_month)


@given(st.lists(ALL_DAYS, min_size=1), st.integers(-5_000, 5_000))
def test_arrays_have_the_days_of_numbers(days, months):
    array = np.array(days)
    assert [*zip(*(part.tolist() for part in date_of(array)), strict=True)] == [
        date_of(day) for day in days
    ]
    assert months_later(array, months).tolist() == [months_later(day, months) for day in days]
    assert moments_of(array).tolist() == [moment_of(day) for day in days]


def test_months_later_is_never_a_day_of_the_month_after():
    january = day_of(2024, 1, 31)
    assert date_of(months_later(january, 1)) == (2024, 2, 29)
    assert date_of(months_later(january, 13)) == (2025, 2, 28)
    assert date_of(months_later(january, -2)) == (2023, 11, 30)
    assert date_of(months_later(day_of(2024, 12, 31), 2)) == (2025, 2, 28)


@given(st.integers(INT64_MIN, INT64_MAX), st.integers(INT64_MIN, INT64_MAX))
def test_moments_are_cut_off_at_the_ends(one, other):
    expected = min(max(one + other, INT64_MIN), INT64_MAX)
    assert sums(np.array([one]), np.array([other])).tolist() == [expected]
    day, time = divmod(one, DAY)
    assert moments_of(np.array([day]), np.array([time])).tolist() == [one] == [moment_of(day, time)]
