"""Hundreds of simulated networks of the very brokers that are served.

TAMIS_SEEDS asks for more of them; `tests/network_seeds.py` plays many by hand.
"""

import logging
import os
from collections import Counter

import pytest

from tamis.broker.simulation.trial import play

PART = 56  # seeds
PARTS = int(os.environ.get("TAMIS_SEEDS", "336")) // 2 // PART


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_no_promise_is_broken(part):
    logging.getLogger("tamis.broker").setLevel(logging.CRITICAL)
    faults, acknowledged, delivered, moves = Counter(), 0, 0, 0
    for seed in range(part * PART, (part + 1) * PART):
        outcome = play(seed)
        assert not outcome.wrong, (seed, outcome.wrong)
        faults += outcome.faults
        acknowledged += outcome.acknowledged
        delivered += outcome.delivered
        moves += outcome.moves
    assert len(faults) == 17  # kinds
    assert acknowledged > 5 * PART
    assert delivered > 5 * PART
    assert moves


def test_a_seed_repeats_its_trial():
    logging.getLogger("tamis.broker").setLevel(logging.CRITICAL)
    first, second = (play(3, is_traced=True) for _ in range(2))
    assert len(first.trace) > 20
    assert first == second
