"""Seeded random numbers that are the same on every platform.

What decides a draw is an integer or the exact product of a few floats: no logarithm and no power,
whose last bit differs between mathematical libraries, ever meets a random number directly.
"""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Chance = np.random.Generator

# Filters and events of one seed come from different streams: they must not be correlated.
SUBSCRIPTIONS, EVENTS = range(2)

_RESOLUTION = 2**32  # steps of a cumulative probability


def seeded(seed: int, stream: int, block: int | None = None) -> Chance:
    """The random numbers of a seed for one purpose; each block has its own."""
    spawned = () if block is None else (block,)
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence([seed, stream], spawn_key=spawned))
    )


def cumulated(probabilities: Array) -> Array:
    """Upper ends of the intervals that probabilities cut 0..2**32 into."""
    ends = np.cumsum(probabilities, dtype=np.float64)
    bounds: Array = np.floor(ends / ends[-1] * _RESOLUTION).astype(np.int64)
    bounds[-1] = _RESOLUTION
    return bounds


def zipf_bounds(size: int, exponent: float) -> Array:
    """`cumulated` of Zipf's law: rank r of `size` has a probability proportional to r**-exponent.

    An exponent of 0 is the uniform distribution.
    """
    return cumulated(1.0 / np.arange(1, size + 1, dtype=np.float64) ** exponent)


def draw_ranks(chance: Chance, bounds: Array, count: int) -> Array:
    """Numbers from 0, each as probable as its interval of `bounds` is wide."""
    return np.searchsorted(bounds, chance.integers(0, _RESOLUTION, count), side="right")


def draw_alternatives(chance: Chance, bounds: Array, groups: Array) -> Array:
    """For each group an interval of its own: group g has those of `bounds` from g * 2**32 on."""
    keys = chance.integers(0, _RESOLUTION, groups.size)
    keys += groups.astype(np.int64) * _RESOLUTION
    return np.searchsorted(bounds, keys, side="right")


def grouped_bounds(groups: list[Array]) -> Array:
    """The `bounds` of `draw_alternatives`: `cumulated` probabilities, group behind group."""
    return np.concatenate([cumulated(one) + g * _RESOLUTION for g, one in enumerate(groups)])


def draw_subsets(chance: Chance, lengths: Array, size: int, *, ascending: bool) -> Array:
    """For each row `lengths[row]` different numbers below `size`; flat, row behind row.

    The first steps of a Fisher-Yates shuffle, taken by all rows at once.
    """
    widest = int(lengths.max(initial=0))
    rows = np.arange(lengths.size)
    deck = np.tile(np.arange(size, dtype=np.int16), (lengths.size, 1))
    for place in range(widest):
        other = chance.integers(place, size, lengths.size)
        kept = deck[rows, other]
        deck[rows, other] = deck[:, place]
        deck[:, place] = kept
    inside = np.arange(widest) < lengths[:, np.newaxis]
    hands = deck[:, :widest]
    if ascending:
        hands = np.sort(np.where(inside, hands, np.int16(size)), axis=1)
    return hands[inside].astype(np.int64)
