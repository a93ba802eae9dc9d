"""For each value of each attribute the bits of filters, with numpy.

A domain of many values is divided into 64 ranges. For a range, a second row of bits has the filters
with a bound inside it: those of them that are left at the end are tested again. Filters with an
equality on such a domain hardly ever match; they are found by bisection of a sorted list.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rivals.base import total
from rivals.columns import (
    EQUAL,
    Atoms,
    Domain,
    atom_bounds,
    domains_of,
    read_atoms,
    values_of,
)
from rivals.keys import spread
from tamis.workloads import Workload

Array = np.ndarray[Any, Any]

WORD = 64
RANGES = 64  # into which a domain is cut; one of no more values is cut into these
PORTION = 262_144  # bytes of bits at a time: what fits the caches


class Table(NamedTuple):
    """One attribute."""

    domain: Domain
    possible: Array  # uint64[range, word]
    doubtful: Array | None

    def ranges(self, values: Array) -> Array:
        return _ranges(values, self.domain)


class Equalities(NamedTuple):
    """The filters that are listed under a constant of one attribute."""

    attribute: int
    constants: Array  # ascending
    filters: Array


class Bitmaps:
    """One row of bits for each range; see the module."""

    def __init__(self, source: Workload, filters: pa.ChunkedArray) -> None:
        self._domains = domains_of(source.schema)
        self._atoms = read_atoms(filters)

    def build(self) -> None:
        atoms = self._atoms
        self._starts = np.cumsum(atoms.lengths) - atoms.lengths
        self._low, self._high, self._other = atom_bounds(atoms, self._domains)
        wide = np.array([domain.size > RANGES for domain in self._domains])
        rare = np.flatnonzero((atoms.operator == EQUAL) & wide[atoms.attribute])
        listed, first = np.unique(atoms.filter[rare], return_index=True)
        self._equalities = _equalities(atoms, rare[first])
        self._filters = np.delete(np.arange(len(atoms.lengths), dtype=np.int32), listed)
        self._words = -(-len(self._filters) // WORD)
        self._tables = [self._table(n, domain) for n, domain in enumerate(self._domains)]

    def count(self, events: pa.Table) -> Array:
        counts = [np.empty(0, np.int64)]
        values = self._values(events)
        for _, bits in self._portions(values, PORTION):
            counts.append(np.bitwise_count(bits).sum(axis=1, dtype=np.int64))
        event, _ = self._listed(values)
        found: Array = np.concatenate(counts) + np.bincount(event, minlength=values.shape[1])
        return found

    def pairs(self, events: pa.Table) -> tuple[Array, Array]:
        values = self._values(events)
        event, filter_ = self._listed(values)
        parts = [(event.astype(np.int32), filter_.astype(np.int32))]
        for start, bits in self._portions(values, PORTION // 4):  # unpacked they are larger
            event, slot = _ones(bits)
            parts.append(((event + start).astype(np.int32), self._filters[slot]))
        events_, filters = zip(*parts, strict=True)
        return np.concatenate(events_), np.concatenate(filters)

    def arrays(self) -> list[Array]:
        found: list[Array] = [self._filters]
        for table in self._tables:
            found.append(table.possible)
            found += [] if table.doubtful is None else [table.doubtful]
        for one in self._equalities:
            found += [one.constants, one.filters]
        if self._equalities or any(table.doubtful is not None for table in self._tables):
            found += [self._starts, *self._atoms, self._low, self._high, self._other]
        return found

    # --- building

    def _table(self, attribute: int, domain: Domain) -> Table:
        """The rows of one attribute: which filters its ranges leave possible."""
        slot_of = np.full(len(self._atoms.lengths), -1)
        slot_of[self._filters] = np.arange(len(self._filters))
        atom = np.flatnonzero(self._atoms.attribute == attribute)
        slots = slot_of[self._atoms.filter[atom]]
        atom, slots = atom[slots >= 0], slots[slots >= 0]
        low, high, other = self._low[atom], self._high[atom], self._other[atom]
        first, last, odd = (_ranges(ends, domain) for ends in (low, high, other))
        is_exact = domain.size <= RANGES
        possible, doubtful = [], []
        truth = np.ones(self._words * WORD, np.uint8)
        truth[len(self._filters) :] = 0  # after the last filter
        for number in range(domain.size if is_exact else RANGES):
            inside = (first <= number) & (number <= last)
            if is_exact:
                inside &= number != odd
            else:
                edge = ((number == first) & (low > domain.low)) | (number == odd)
                edge |= (number == last) & (high < domain.high)
                doubt = np.zeros_like(truth)
                doubt[slots] = edge & inside
                doubtful.append(_packed(doubt))
            truth[slots] = inside
            possible.append(_packed(truth))
        return Table(domain, np.array(possible), None if is_exact else np.array(doubtful))

    # --- matching

    def _portions(self, values: Array, most: int) -> Iterator[tuple[int, Array]]:
        """The first event and the bits of some events at a time."""
        portion = max(1, most // (8 * max(self._words, 1)))
        for start in range(0, values.shape[1], portion):
            yield start, self._bits(values[:, start : start + portion])

    def _values(self, events: pa.Table) -> Array:
        total(events)
        return values_of(events, self._domains)

    def _bits(self, values: Array) -> Array:
        """bits[event, word]: the filters that match."""
        bits = np.full((values.shape[1], self._words), ~np.uint64(0))
        row = np.empty_like(bits)
        doubts = np.zeros_like(bits)
        for table, column in zip(self._tables, values, strict=True):
            ranges = table.ranges(column)
            np.take(table.possible, ranges, axis=0, out=row, mode="clip")
            np.bitwise_and(bits, row, out=bits)
            if table.doubtful is not None:
                np.take(table.doubtful, ranges, axis=0, out=row, mode="clip")
                np.bitwise_or(doubts, row, out=doubts)
        np.bitwise_and(doubts, bits, out=doubts)
        event, slot = _ones(doubts)
        wrong = ~self._true(values, event, self._filters[slot])
        place = event[wrong], slot[wrong] // WORD
        bit = np.left_shift(np.uint64(1), (slot[wrong] % WORD).astype(np.uint64))
        np.bitwise_and.at(bits, place, ~bit)
        return bits

    def _listed(self, values: Array) -> tuple[Array, Array]:
        """The matches among filters with an equality."""
        events, filters = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for one in self._equalities:
            column = values[one.attribute]
            starts = np.searchsorted(one.constants, column)
            ends = np.searchsorted(one.constants, column, side="right")
            event, place = spread(starts, ends - 1)
            true = self._true(values, event, one.filters[place])
            events.append(event[true])
            filters.append(one.filters[place[true]])
        return np.concatenate(events), np.concatenate(filters)

    def _true(self, values: Array, event: Array, filter_: Array) -> Array:
        """Whether all atoms of filters are true of events."""
        starts = self._starts[filter_]
        which, atom = spread(starts, starts + self._atoms.lengths[filter_] - 1)
        value = values[self._atoms.attribute[atom], event[which]]
        false = (value < self._low[atom]) | (value > self._high[atom])
        false |= value == self._other[atom]
        true: Array = np.bincount(which[false], minlength=len(event)) == 0
        return true


def _equalities(atoms: Atoms, chosen: Array) -> list[Equalities]:
    """For each attribute the chosen atoms by their constants."""
    found = []
    for attribute in np.unique(atoms.attribute[chosen]).tolist():
        some = chosen[atoms.attribute[chosen] == attribute]
        some = some[np.argsort(atoms.constant[some], kind="stable")]
        found.append(Equalities(attribute, atoms.constant[some], atoms.filter[some]))
    return found


def _ranges(values: Array, domain: Domain) -> Array:
    """The number of the range of each value; the value itself, counted from 0, if they are few."""
    if domain.size <= RANGES:
        return values - domain.low
    found: Array = (values - domain.low) * RANGES // domain.size
    return found


def _packed(bits: Array) -> Array:
    return np.packbits(bits, bitorder="little").view(np.uint64)


def _ones(bits: Array) -> tuple[Array, Array]:
    """The rows and columns of the bits that are set; empty words are skipped if there are many."""
    counts = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    row = np.repeat(np.arange(len(bits)), counts)
    width = bits.shape[1] * WORD
    if counts.sum() > bits.size:
        return row, np.flatnonzero(_unpacked(bits)) - row * width
    place = np.flatnonzero(bits)
    one = np.flatnonzero(_unpacked(bits.ravel()[place]))
    return row, place[one // WORD] * WORD + one % WORD - row * width


def _unpacked(words: Array) -> Array:
    return np.unpackbits(words.view(np.uint8).ravel(), bitorder="little").view(np.bool_)
