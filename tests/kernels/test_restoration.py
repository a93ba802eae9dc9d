"""Matches of a compacted table, turned back, against plain lists."""

import numpy as np
import pytest

from cases import each
from tamis.kernels.restoration import FEW, count_restored, find_watched, write_restored

pytestmark = pytest.mark.uncompiled


def ends(counts):
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int64)


@each("density", [0.0, 0.3, 1.0])
def test_every_event_gets_the_originals_of_its_forms(density):
    chance = np.random.default_rng(3)
    starts = ends(chance.integers(0, 2 * FEW, 10))
    first = [np.flatnonzero(chance.random(5) < density).astype(np.int32) for _ in range(9)]
    more = [5 + np.flatnonzero(chance.random(5) < density).astype(np.int32) for _ in range(9)]
    bounds = [ends([len(x) for x in some]) for some in (first, more)]
    arrays = bounds[0], np.concatenate(first), bounds[1], np.concatenate(more)
    totals = np.zeros(9, np.int64)
    count_restored(*arrays, starts, totals)
    pairs = zip(first, more, strict=True)
    expected = [
        [n for form in (*some, *others) for n in range(starts[form], starts[form + 1])]
        for some, others in pairs
    ]
    assert totals.tolist() == [len(one) for one in expected]
    restored = np.full(totals.sum(), -1, np.int32)
    write_restored(*arrays, starts, restored)
    assert restored.tolist() == [one for some in expected for one in some]


def test_events_with_a_watched_place():
    bounds, places = np.array([0, 2, 2, 5]), np.array([0, 1, 1, 1, 3])
    found = np.ones(3, np.bool_)
    for watched, expected in [
        ([1, 0, 0, 0], [True, False, False]),
        ([0, 0, 1, 1], [False, False, True]),
        ([0, 0, 0, 0], [False, False, False]),
    ]:
        find_watched(bounds, places, np.array(watched, np.bool_), found)
        assert found.tolist() == expected
