"""Limits, ticks and bins, also of unusual numbers."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.errors import OptionError
from tamis.report.scales import (
    LARGEST,
    Scale,
    bin_names,
    decades,
    doubling,
    labels,
    limits,
    measured,
    rounded,
    ticks,
)

anything = st.lists(st.floats() | st.integers() | st.none(), max_size=6)


@each(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 61_000, [0, 20_000, 40_000, 60_000]),
        (-3, 7, [-2, 0, 2, 4, 6]),
        (0, 0.003, [0, 0.001, 0.002, 0.003]),
        (1e9, 1e9 + 10, [1e9, 1e9 + 2, 1e9 + 4, 1e9 + 6, 1e9 + 8, 1e9 + 10]),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high) == expected


def test_ticks_of_whole_numbers_are_whole():
    assert ticks(1, 3, whole=True) == [1, 2, 3]
    assert ticks(1, 20, whole=True) == [5, 10, 15, 20]
    assert ticks(0.9, 1.1, whole=True) == [1]


def test_limits_are_moved_to_ticks():
    assert rounded(0, 61_000) == (0, 80_000)
    assert rounded(-1, 9) == (-2, 10)
    assert rounded(0, 100) == (0, 100)


@given(anything, st.booleans())
def test_every_value_has_its_place_and_ticks_are_few(values, from_zero):
    drawn = [measured(value) for value in values]
    low, high = rounded(*limits(drawn, from_zero=from_zero))
    scale = Scale(low, high, 0, 100)
    assert all(-0.1 <= scale.place(v) <= 100.1 for v in drawn if math.isfinite(v))
    levels = ticks(low, high)
    assert 2 <= len(levels) <= 9
    assert levels == sorted(set(levels))
    assert len(set(labels(levels))) == len(levels)


def test_equal_values_get_room():
    assert limits([5, 5]) == (0, 5)
    assert limits([5, 5], from_zero=False) == (4.5, 5.5)
    assert limits([-5]) == (-5, 0)
    assert limits([0, 0]) == limits([]) == limits([math.nan], from_zero=False) == (0, 1)


def test_what_can_be_drawn():
    assert measured(3) == 3
    assert measured(Decimal("1.5")) == measured(Fraction(3, 2)) == 1.5
    assert measured(10**400) == measured(1e305) == LARGEST
    assert measured(-(10**400)) == -LARGEST
    assert measured(-5e-324) == 0
    assert all(math.isnan(measured(v)) for v in (None, "a", math.nan, math.inf, -math.inf))


def test_logarithmic_places():
    scale = Scale(1, 100, 0, 10, log=True)
    assert [scale.place(value) for value in (1, 10, 100)] == [0, 5, 10]


def test_decades_are_not_too_many():
    assert decades(0.5, 1000) == [1, 10, 100, 1000]
    assert len(decades(1e-300, 1e300)) < 10


def test_labels_share_a_unit():
    assert labels([0, 20_000, 40_000]) == ["0", "20,000", "40,000"]
    assert labels([0, 5e5, 1e6]) == ["0", "0.5 M", "1 M"]
    assert labels([-2e9, 0]) == ["-2 G", "0"]
    assert labels([1e12, 3e12]) == ["1 T", "3 T"]
    assert labels([0, 1e300]) == ["0", "1e+300"]
    assert labels([]) == []


def test_names_of_bins():
    assert bin_names([0, 1, 2, 4], 3) == ["0", "1", "2–3"]
    assert bin_names([0, 1000, 2000], 3) == ["0–999", "1,000–1,999", "2,000 and more"]
    assert bin_names([0, 0.5, math.inf], 2) == ["0 to 0.5", "0.5 to ∞"]
    assert bin_names([], 0) == bin_names([1], 0) == []


def test_bins_that_double():
    assert doubling({0: 7, 1: 5, 3: 2, 2: 1, 4: 1}) == ([0, 1, 2, 4, 8], [7, 5, 3, 1])
    assert doubling({0: 3}) == ([0, 1], [3])
    assert doubling({}) == ([0, 1], [0])


@given(st.dictionaries(st.integers(0, 10**6), st.integers(0, 100)))
def test_bins_hold_everything(frequencies):
    edges, counts = doubling(frequencies)
    for number, count in enumerate(counts):
        inside = range(edges[number], edges[number + 1])
        assert count == sum(many for value, many in frequencies.items() if value in inside)
    assert sum(counts) == sum(frequencies.values())


def test_bins_begin_at_zero():
    with pytest.raises(OptionError, match="-3 is among the numbers"):
        doubling({5: 1, -3: 1})
