"""Seeded random numbers that are the same on every platform.

A draw is decided by an integer or by the exact product of a few floats. No random number is ever
compared with a logarithm or a power, whose last bit differs between mathematical libraries.
"""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Chance = np.random.Generator

# Filters and events of one seed come from different streams, so that they are not correlated.
SUBSCRIPTIONS, EVENTS = range(2)

_RESOLUTION = 2**32  # steps of a cumulative probability


def seeded(seed: int, stream: int, block: int | None = None) -> Chance:
    """The random numbers of a seed for one purpose; each block has its own."""
    spawned = () if block is None else (block,)
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence([seed, stream], spawn_key=spawned))
    )


def cumulated(probabilities: Array) -> Array:
    """The upper ends of the intervals into which probabilities divide 0..2**32."""
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
    """Numbers from 0 on, each with the probability of its interval of `bounds`."""
    return np.searchsorted(bounds, chance.integers(0, _RESOLUTION, count), side="right")


def draw_alternatives(chance: Chance, bounds: Array, groups: Array) -> Array:
    """One interval for each group; those of group g are in `bounds` from g * 2**32 on."""
    keys = chance.integers(0, _RESOLUTION, groups.size)
    keys += groups.astype(np.int64) * _RESOLUTION
    return np.searchsorted(bounds, keys, side="right")


def grouped_bounds(groups: list[Array]) -> Array:
    """The `bounds` for `draw_alternatives`: the `cumulated` probabilities, group after group."""
    return np.concatenate([cumulated(one) + g * _RESOLUTION for g, one in enumerate(groups)])


def draw_subsets(chance: Chance, lengths: Array, size: int, *, ascending: bool) -> Array:
    """For each row, `lengths[row]` different numbers below `size`, in one array row after row.

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
