"""Draws: are they spread as they should be."""

import numpy as np
import pytest

from tamis.workloads.random_draws import (
    cumulated,
    draw_alternatives,
    draw_ranks,
    draw_subsets,
    grouped_bounds,
    seeded,
    zipf_bounds,
)


def test_ranks_are_zipf():
    ranks = draw_ranks(seeded(1, 0), zipf_bounds(4, 1.0), 100_000)
    shares = np.bincount(ranks) / ranks.size
    assert shares == pytest.approx(np.array([12, 6, 4, 3]) / 25, abs=0.01)


def test_an_exponent_of_zero_is_uniform():
    ranks = draw_ranks(seeded(1, 0), zipf_bounds(5, 0.0), 100_000)
    assert np.bincount(ranks) / ranks.size == pytest.approx([0.2] * 5, abs=0.01)


def test_what_has_no_probability_does_not_come():
    bounds = cumulated(np.array([0.0, 0.5, 0.0, 0.5, 0.0]))
    assert set(draw_ranks(seeded(1, 0), bounds, 1000)) == {1, 3}


def test_alternatives_of_a_group():
    bounds = grouped_bounds([np.array([1.0]), np.array([0.25, 0.75]), np.array([0.5, 0.5])])
    groups = np.repeat([1, 0, 2], 20_000)
    drawn = draw_alternatives(seeded(1, 0), bounds, groups)
    assert set(drawn[20_000:40_000]) == {0}
    assert np.bincount(drawn[:20_000])[1:3] / 20_000 == pytest.approx([0.25, 0.75], abs=0.02)
    assert np.bincount(drawn[40_000:])[3:5] / 20_000 == pytest.approx([0.5, 0.5], abs=0.02)


@pytest.mark.parametrize("ascending", [False, True])
def test_subsets_have_different_members(ascending):
    lengths = np.array([3, 1, 6, 0, 2] * 4000)
    flat = draw_subsets(seeded(1, 0), lengths, 6, ascending=ascending)
    assert np.bincount(flat) / flat.size == pytest.approx([1 / 6] * 6, abs=0.01)
    rows = np.split(flat, np.cumsum(lengths)[:-1])
    assert [row.size for row in rows] == lengths.tolist()
    assert all(len(set(row.tolist())) == row.size for row in rows)
    assert all(np.all(np.diff(row) > 0) for row in rows) == ascending


def test_every_subset_is_as_probable_as_another():
    pairs = draw_subsets(seeded(1, 0), np.full(60_000, 2), 4, ascending=False).reshape(-1, 2)
    counts = np.bincount(pairs[:, 0] * 4 + pairs[:, 1], minlength=16).reshape(4, 4) / 60_000
    assert counts == pytest.approx((1 - np.eye(4)) / 12, abs=0.01)


def test_streams_of_a_seed_differ():
    assert seeded(1, 0).random() != seeded(1, 1).random() != seeded(2, 0).random()
