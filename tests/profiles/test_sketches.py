"""Summaries that can be merged: what they promise holds for every way of merging."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.profiles.hashes import hashes_of, mixed
from tamis.profiles.sketches import (
    MINIMA,
    PRIORITY,
    counters_of,
    deviation,
    distinct_estimate,
    first_by_priority,
    priorities_of,
    smallest,
    summary_of,
)

NO_HASHES = np.empty(0, np.uint64)


def counters(values, most, *, text=False):
    counts = Counter(values)
    keys = sorted(counts)
    held = pa.array(map(str, keys), pa.large_string()) if text else np.array(keys, np.int64)
    return counters_of(held, np.array([counts[key] for key in keys], np.int64), most)


def known(found):
    values = found.values
    values = values.tolist() if isinstance(values, np.ndarray) else map(int, values.to_pylist())
    return dict(zip(values, found.counts.tolist(), strict=True))


PARTS = st.lists(st.lists(st.integers(0, 30), max_size=60), min_size=1, max_size=6)


@given(PARTS, st.integers(1, 12), st.booleans())
def test_bounds_hold_after_every_merge(parts, most, text):
    merged = counters([], most, text=text)
    for part in parts:
        merged = merged.merge(counters(part, most, text=text), most)
    true = Counter(value for part in parts for value in part)
    found, size = known(merged), true.total()
    assert len(found) <= most
    assert merged.counts.tolist() == sorted(merged.counts.tolist(), reverse=True)
    assert merged.error * (most + 1) <= size
    for value, count in true.items():
        assert found.get(value, 0) <= count <= found.get(value, 0) + merged.error
    assert {value for value, count in true.items() if count * (most + 1) > size} <= set(found)


def test_few_values_are_counted_exactly():
    merged = counters([1, 2, 2], 3).merge(counters([2, 3], 3), 3)
    assert (known(merged), merged.error) == ({2: 3, 1: 1, 3: 1}, 0)


@given(st.lists(st.lists(st.integers(0, 2**40), max_size=30), max_size=5))
def test_few_distinct_values_are_counted_exactly(parts):
    minima = NO_HASHES
    for part in parts:
        minima = smallest(minima, mixed(np.array(part, np.int64)))
    assert distinct_estimate(minima) == len({value for part in parts for value in part})


@pytest.mark.parametrize("size", [2_000, 50_000])
def test_many_distinct_values_are_estimated(size):
    whole = smallest(NO_HASHES, mixed(np.arange(size)))
    parts = NO_HASHES
    for start in range(0, size, 1000):  # each value comes twice
        parts = smallest(parts, mixed(np.arange(start, min(start + 2000, size))))
    assert parts.tolist() == whole.tolist()
    assert len(whole) == MINIMA
    assert distinct_estimate(whole) == pytest.approx(size, rel=0.1)


def test_a_range_leaves_nan_aside_unless_there_is_nothing_else():
    nan = 2**63 - 1
    ones = np.ones(2, np.int64)
    assert summary_of(np.array([5, nan]), ones, True, 10)[3:] == (5, 5)
    assert summary_of(np.array([5, nan]), ones, False, 10)[3:] == (5, nan)
    assert summary_of(np.array([nan]), ones[:1], True, 10)[3:] == (nan, nan)


def test_ranges_are_merged():
    def words(*values):
        return summary_of(
            pa.array(values, pa.large_string()), np.ones(len(values), np.int64), False, 9
        )

    assert words("b", "c").merge(words("", "a"), 9)[3:] == ("", "c")
    assert words().merge(words("é"), 9)[3:] == ("é", "é")
    assert words().merge(words(), 9)[3:] == (None, None)
    assert hashes_of(pa.array([], pa.large_string())).tolist() == []


def test_priorities_differ_by_seed_part_and_row():
    found = [
        priorities_of(seed, part, first, 100)
        for seed in (1, -7)
        for part in (0, 5)
        for first in (0, 100)
    ]
    assert len(np.unique(np.concatenate(found))) == 800
    assert priorities_of(1, 5, 100, 100).tolist() == found[3].tolist()


def sampled(rows):
    return pa.table({PRIORITY: pa.array([p for p, _ in rows], pa.uint64()),
                     "0": [value for _, value in rows]})  # fmt: skip


@given(st.lists(st.integers(0, 2**64 - 1), unique=True), st.integers(0, 20), st.integers(1, 9))
def test_a_sample_of_samples_is_that_of_the_whole(priorities, cut, most):
    rows = [(priority, f"event {n}") for n, priority in enumerate(priorities)]
    empty = sampled([]).cast(sampled([(1, "x")]).schema)
    parts = [first_by_priority(empty, sampled(part), most) if part else empty
             for part in (rows[:cut], rows[cut:])]  # fmt: skip
    found = first_by_priority(*parts, most)
    assert found["0"].to_pylist() == [value for _, value in sorted(rows)[:most]]


def test_a_sample_that_has_everything_is_exact():
    assert deviation(10, 10) == deviation(0, 0) == 0
    assert deviation(10**9, 16_384) == pytest.approx(0.0127, abs=1e-4)
