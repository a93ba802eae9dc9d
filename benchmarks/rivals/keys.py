"""Keys under which filters are filed and by which events find them, for joins and for numpy.

Each class has `of_filters`, the keys of filters and for each key the number of its filter, and
`of_events`, keys[event, *]. A filter and an event that match have exactly one key in common.
"""

from typing import Any

import numpy as np

from rivals.columns import Bounds, Domain
from rivals.masks import cells

Array = np.ndarray[Any, Any]

RANGES = 16  # in which values of a large domain are filed
FIRST = 6  # attributes that make a pattern


class NarrowKeys:
    """A key for each value of each attribute, for domains of few values."""

    def __init__(self, domains: list[Domain]) -> None:
        self._domains = domains
        self._first = cells(domains)[:-1]

    def of_filters(self, bounds: Bounds) -> tuple[Array, Array]:
        widths = bounds.high - bounds.low + 1 - (bounds.other >= bounds.low)
        sizes = np.array([domain.size for domain in self._domains])
        chosen = (widths / sizes[:, None]).argmin(axis=0)
        low, high, other = (_chosen(part, chosen) for part in bounds)
        filter_, value = spread(low, high)
        kept = value != other[filter_]
        filter_, value = filter_[kept], value[kept]
        return self._key(chosen[filter_], value), filter_

    def of_events(self, values: Array) -> Array:
        return self._key(np.arange(len(values))[:, None], values).T

    def _key(self, attribute: Array, value: Array) -> Array:
        lows = np.array([domain.low for domain in self._domains])
        key: Array = self._first[attribute] + value - lows[attribute]
        return key


class WideKeys:
    """A key for each value of an equality, and one for each of a few ranges."""

    def __init__(self, domains: list[Domain]) -> None:
        self._domains = domains
        self._sizes = np.array([domain.size for domain in domains])
        self._lows = np.array([domain.low for domain in domains])

    def of_filters(self, bounds: Bounds) -> tuple[Array, Array]:
        widths = (bounds.high - bounds.low + 1) / self._sizes[:, None]
        chosen = widths.argmin(axis=0)
        low, high, _ = (_chosen(part, chosen) for part in bounds)
        equal = np.flatnonzero(low == high)
        ranged = np.flatnonzero(low < high)
        attribute = chosen[ranged]
        which, range_ = spread(self._range(attribute, low[ranged]),
                               self._range(attribute, high[ranged]))  # fmt: skip
        keys = [
            self._exact(chosen[equal], low[equal]),
            self._ranged(attribute[which], range_),
        ]
        return np.concatenate(keys), np.concatenate([equal, ranged[which]])

    def of_events(self, values: Array) -> Array:
        attribute = np.arange(len(values))[:, None]
        ranged = self._ranged(attribute, self._range(attribute, values))
        return np.concatenate([self._exact(attribute, values), ranged]).T

    def _range(self, attribute: Array, value: Array) -> Array:
        found: Array = (value - self._lows[attribute]) * RANGES // self._sizes[attribute]
        return found

    def _exact(self, attribute: Array, value: Array) -> Array:
        key: Array = (value - self._lows[attribute]) * len(self._sizes) + attribute
        return key

    def _ranged(self, attribute: Array, range_: Array) -> Array:
        key: Array = -1 - range_ * len(self._sizes) - attribute
        return key


class Patterns:
    """A key for the equalities on the first attributes: a value of each, or none."""

    def __init__(self, domains: list[Domain]) -> None:
        self._domains = domains[:FIRST]
        sizes = [domain.size + 1 for domain in self._domains]
        self.weights = np.cumprod([1, *sizes])[:-1]
        self.count = int(np.prod(sizes))
        lefts = np.arange(2 ** len(self._domains))
        # places[pattern, attribute]: 1 where the value counts
        self._places = (lefts[:, None] >> np.arange(len(self._domains))) & 1

    def of_filters(self, bounds: Bounds) -> tuple[Array, Array]:
        key = np.zeros(bounds.low.shape[1], np.int64)
        for n, domain in enumerate(self._domains):
            low, high = bounds.low[n], bounds.high[n]
            stated = (low > domain.low) | (high < domain.high)
            key += self.weights[n] * np.where(stated, low - domain.low + 1, 0)
        return key, np.arange(len(key))

    def of_events(self, values: Array) -> Array:
        first = values[: len(self._domains)].T - [domain.low for domain in self._domains] + 1
        keys: Array = (first * self.weights) @ self._places.T
        return keys


Keys = NarrowKeys | WideKeys | Patterns


def spread(low: Array, high: Array) -> tuple[Array, Array]:
    """Every whole number of ranges; the number of the range, and the number itself."""
    lengths = np.maximum(high - low + 1, 0)
    which = np.repeat(np.arange(len(low)), lengths)
    starts = np.cumsum(lengths) - lengths
    return which, np.arange(len(which)) + np.repeat(low - starts, lengths)


def _chosen(rows: Array, chosen: Array) -> Array:
    """rows[chosen[n], n]."""
    found: Array = np.take_along_axis(rows, chosen[None, :], axis=0)[0]
    return found
