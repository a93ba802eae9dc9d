"""Filters and events as bits, one bit for each value of each attribute."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from rivals.columns import Bounds, Domain

Array = np.ndarray[Any, Any]

WORD = 64
SOME = 65_536  # filters at a time, where a byte for every bit would be too much


def cells(domains: Iterable[Domain]) -> Array:
    """The number of the first bit of each attribute, and the number of all bits."""
    return np.cumsum([0, *(domain.size for domain in domains)])


def filter_masks(bounds: Bounds, domains: list[Domain]) -> Array:
    """masks[filter, word]: the bits of values that are not allowed."""
    first = cells(domains)
    words = -(-int(first[-1]) // WORD)
    count = bounds.low.shape[1]
    masks = np.empty((count, words), np.int64)
    for start in range(0, count, SOME):
        some = slice(start, min(start + SOME, count))
        bits = np.zeros((some.stop - start, words * WORD), np.uint8)
        for n, domain in enumerate(domains):
            low, high, other = (part[n, some, None] for part in bounds)
            value = np.arange(domain.low, domain.high + 1)
            bits[:, first[n] : first[n + 1]] = (value < low) | (value > high) | (value == other)
        masks[some] = np.packbits(bits, axis=1, bitorder="little").view(np.int64)
    return masks


def event_masks(values: Array, domains: list[Domain]) -> Array:
    """masks[event, word]: the bits of the values."""
    first = cells(domains)
    masks = np.zeros((values.shape[1], -(-int(first[-1]) // WORD)), np.int64)
    event = np.arange(values.shape[1])
    for n, domain in enumerate(domains):
        cell = values[n] + (first[n] - domain.low)
        masks[event, cell // WORD] |= np.left_shift(1, cell % WORD)
    return masks
