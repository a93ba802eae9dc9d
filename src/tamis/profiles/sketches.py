"""Summaries of many values that stay small and can be merged.

Values are 64-bit keys in numpy (`tamis.predicates.keys`) or strings in Arrow. The summaries of two
parts merge into one of the whole with the same guarantees, in whatever order parts are merged.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.profiles.hashes import hashes_of, mixed
from tamis.types import INT64_MAX

Array = np.ndarray[Any, Any]

MINIMA = 1024  # hashes that are kept: the standard error of an estimate is 1 / sqrt(1022), 3.1 %
PRIORITY = "priority"  # the column of a sample that is not an attribute


# --- values that occur often


class FrequencyCounters(NamedTuple):
    """The values that occur often (Misra and Gries; Agarwal et al., Mergeable Summaries, 2012).

    A value occurred at least `counts` and at most `counts + error` times, one that is not here at
    most `error` times. With k counters and n values, `error` is at most n / (k + 1).
    """

    values: Any
    counts: Array  # int64, descending
    error: int

    def merge(self, other: "FrequencyCounters", most: int) -> "FrequencyCounters":
        """The counters of both, at most `most` of them."""
        values, codes = _coded(self.values, other.values)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, codes, np.concatenate([self.counts, other.counts]))
        return counters_of(values, counts, most, self.error + other.error)

    def weighted(self, factor: float) -> "FrequencyCounters":
        """The counters if every value had occurred `factor` times as often."""
        counts = np.round(self.counts * factor).astype(np.int64)
        stay = np.flatnonzero(counts > 0)
        return FrequencyCounters(
            _taken(self.values, stay), counts[stay], round(self.error * factor)
        )


def counters_of(values: Any, counts: Array, most: int, error: int = 0) -> FrequencyCounters:
    """The `most` largest counters of distinct values; the largest count left out is subtracted."""
    if len(counts) > most:
        # At least `most` + 1 values lose this count, so the sum of all errors stays bounded.
        least = int(np.partition(counts, len(counts) - most - 1)[len(counts) - most - 1])
        counts, error = counts - least, error + least
    stay = np.flatnonzero(counts > 0)
    values, counts = _taken(values, stay), counts[stay]
    # Equal counts are sorted by value, so that the order of parts does not matter.
    order = np.lexsort((_ranks(values), -counts))
    return FrequencyCounters(_taken(values, order), counts[order], error)


def _coded(some: Any, others: Any) -> tuple[Any, Array]:
    """The distinct values of both, and the number of each value among them."""
    if isinstance(some, np.ndarray):
        return np.unique(np.concatenate([some, others]), return_inverse=True)
    encoded = pa.concat_arrays([some, others]).dictionary_encode()
    return encoded.dictionary, np.asarray(encoded.indices)


def _ranks(values: Any) -> Array:
    """The ranks of distinct values."""
    if isinstance(values, np.ndarray):
        return values
    return np.argsort(np.asarray(pc.sort_indices(values)))


def _taken(values: Any, places: Array) -> Any:
    return values[places] if isinstance(values, np.ndarray) else values.take(pa.array(places))


# --- how many values are distinct


def smallest(some: Array, others: Array) -> Array:
    """The smallest distinct hashes of both, ascending; neither has one twice."""
    both = np.concatenate([some, others])
    if len(both) > 2 * MINIMA:
        both = np.partition(both, 2 * MINIMA)[: 2 * MINIMA]
    found: Array = np.unique(both)[:MINIMA]
    return found


def distinct_estimate(minima: Array) -> int:
    """How many distinct values have these smallest hashes; exact if none was left out."""
    if len(minima) < MINIMA:
        return len(minima)
    return round((MINIMA - 1) / ((int(minima[-1]) + 1) / 2**64))


# --- one attribute


class AttributeSummary(NamedTuple):
    """What is known of one attribute; its range ignores NaN, unless all values are NaN."""

    present: int
    counters: FrequencyCounters
    minima: Array  # uint64[*]: the smallest hashes of its values
    low: Any  # None if there is no value
    high: Any

    def merge(self, other: "AttributeSummary", most: int) -> "AttributeSummary":
        """The summary of the values of both."""
        bounds = [(s.low, s.high) for s in (self, other) if s.low is not None]
        return AttributeSummary(
            present=self.present + other.present,
            counters=self.counters.merge(other.counters, most),
            minima=smallest(self.minima, other.minima),
            low=min((low for low, _ in bounds), default=None),
            high=max((high for _, high in bounds), default=None),
        )

    def weighted(self, factor: float) -> "AttributeSummary":
        """The summary if every value had occurred `factor` times as often."""
        counters = self.counters.weighted(factor)
        return self._replace(present=round(self.present * factor), counters=counters)


def summary_of(values: Any, counts: Array, is_double: bool, most: int) -> AttributeSummary:
    """The summary of distinct values, with how often each occurred."""
    low = high = None
    if isinstance(values, np.ndarray):
        numbers = values[values != INT64_MAX] if is_double else values
        numbers = numbers if len(numbers) else values
        if len(numbers):
            low, high = int(numbers.min()), int(numbers.max())
    elif len(values):
        bounds = pc.min_max(values).as_py()
        low, high = bounds["min"], bounds["max"]
    minima = smallest(np.empty(0, np.uint64), hashes_of(values))
    return AttributeSummary(int(counts.sum()), counters_of(values, counts, most), minima, low, high)


# --- a sample of the events


def priorities_of(seed: int, part: int, first: int, count: int) -> Array:
    """Random numbers for the events of a part from `first` on, all different for one seed.

    They depend only on seed, part and row. If they depended on the content, equal events would all
    be chosen or all be left out.
    """
    start = np.uint64((part << 40) + first)
    key = mixed(np.array([seed % 2**64], np.uint64))
    return mixed((np.arange(count, dtype=np.uint64) + start) ^ key)


def first_by_priority(some: pa.Table, others: pa.Table, most: int) -> pa.Table:
    """The events of both with the smallest priorities: a uniform sample if both are."""
    both = pa.concat_tables([some, others])
    order = np.argsort(np.asarray(both[PRIORITY]), kind="stable")[:most]
    return both.take(pa.array(order)).combine_chunks()


def with_priorities(sample: pa.Table, factor: float) -> pa.Table:
    """The sample if there were `factor` times as many events.

    The smallest of many random numbers are smaller than those of few: so priorities are divided by
    the factor, and an event whose priority would be too large does not stay.
    """
    priorities = np.asarray(sample[PRIORITY]).astype(np.float64) / factor
    stay = np.flatnonzero(priorities < 2.0**64)
    place = sample.schema.get_field_index(PRIORITY)
    found = sample.take(pa.array(stay))
    return found.set_column(place, PRIORITY, pa.array(priorities[stay].astype(np.uint64)))


def deviation(events: int, sampled: int) -> float:
    """How far a share of the sample is from that of all events at most, 99 times in a hundred.

    For all values of an attribute at once (Dvoretzky, Kiefer and Wolfowitz, with Massart's factor).
    """
    if sampled >= events:
        return 0.0
    return float(np.sqrt(np.log(2 / 0.01) / (2 * sampled)))
