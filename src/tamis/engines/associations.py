"""Which predicate belongs to which conjunctions: lists, bits or bytes (COUNT, section 3.3).

All three grow by doubling and answer the same question. They differ in memory (for n conjunctions
of m predicates on average, and p distinct predicates) and in time (for s satisfied predicates):

======= ================ ==============================
lists   4 * n * m bytes  steps for s * n * m / p
bits    n * p / 8 bytes  steps for s * n / 8 and n
bytes   n * p bytes      steps for s * n and n
======= ================ ==============================
"""

from typing import Any, Protocol

import numpy as np

from tamis.errors import CapacityError
from tamis.kernels.counting import (
    count_bits,
    count_bytes,
    count_lists,
    link,
    mark_bits,
    mark_bytes,
    unlink,
)
from tamis.predicates.comparison_index import Ids

MATRIX_BUDGET = 2 * 2**30  # bytes of one matrix


class Association(Protocol):
    """What counting needs to know of predicates and conjunctions.

    Implementers: `Lists`, `Bits`, `Bytes`.
    """

    def insert(self, slot: int, predicates: Ids) -> None:
        """Associate a free slot with predicates; `CapacityError`, with nothing changed, if full."""

    def delete(self, slot: int, predicates: Ids) -> None:
        """Dissociate a slot from its predicates."""

    def complete(self, satisfied: Ids) -> Ids:
        """The slots all of whose predicates are satisfied, in any order."""

    def bytes_of(self, slots: int, predicates: int) -> int:
        """The bytes for this many slots and predicates, without what is kept to grow."""


def _grown(array: np.ndarray[Any, Any], *shape: int) -> np.ndarray[Any, Any]:
    """The array with at least this shape, doubled where it was too small; zero where new."""
    if all(have >= want for have, want in zip(array.shape, shape, strict=True)):
        return array
    larger = tuple(
        have if have >= want else max(want, 2 * have)
        for have, want in zip(array.shape, shape, strict=True)
    )
    grown = np.zeros(larger, array.dtype)
    grown[tuple(slice(0, have) for have in array.shape)] = array
    return grown


class _Counts:
    """The hit and count vectors that all three have."""

    def __init__(self) -> None:
        self.needed = np.zeros(64, np.uint16)
        self.hits = np.zeros(64, np.uint16)
        self.found = np.zeros(65, np.int32)  # one more, which a kernel may write but not count

    def make_room(self, slot: int) -> None:
        if slot >= len(self.needed):
            self.needed = _grown(self.needed, (slot // 64 + 1) * 64)  # whole words of bits
            self.hits = np.zeros(len(self.needed), np.uint16)
            self.found = np.zeros(len(self.needed) + 1, np.int32)

    def vector_bytes(self, slots: int) -> int:
        """The bytes of the hit and count vectors."""
        return slots * (self.needed.itemsize + self.hits.itemsize)


class Lists(_Counts):
    """Each predicate has a list of its conjunctions, in one pool."""

    def __init__(self) -> None:
        super().__init__()
        self._start = np.zeros(64, np.int64)
        self._length = np.zeros(64, np.int64)
        self._capacity = np.zeros(64, np.int64)
        self._pool = np.zeros(1024, np.int32)
        self._used = 0

    def insert(self, slot: int, predicates: Ids) -> None:
        self.make_room(slot)
        top = max(predicates.tolist()) + 1  # there are few: faster than with numpy
        if top > len(self._start):
            self._start = _grown(self._start, top)
            self._length = _grown(self._length, top)
            self._capacity = _grown(self._capacity, top)
        while True:
            used = link(
                predicates, slot, self._start, self._length, self._capacity, self._pool, self._used
            )
            if used >= 0:
                break
            self._pool = _grown(self._pool, 2 * len(self._pool))
        self._used = used
        self.needed[slot] = len(predicates)

    def delete(self, slot: int, predicates: Ids) -> None:
        unlink(predicates, slot, self._start, self._length, self._pool)
        self.needed[slot] = 0

    def complete(self, satisfied: Ids) -> Ids:
        count = count_lists(
            satisfied, self._start, self._length, self._pool, self.hits, self.needed, self.found
        )
        return self.found[:count].copy()

    def bytes_of(self, slots: int, predicates: int) -> int:
        heads = self._start.itemsize + self._length.itemsize + self._capacity.itemsize
        entries = int(self._capacity.sum()) * self._pool.itemsize
        return self.vector_bytes(slots) + predicates * heads + entries


class _Matrix(_Counts):
    """One row per predicate, one column (or one bit of a column) per conjunction."""

    def __init__(self, kind: type[np.generic], per_column: int) -> None:
        super().__init__()
        self._per_column = per_column
        self.matrix = np.zeros((16, 16), kind)
        self.columns = 0

    def make_columns(self, slot: int, predicates: Ids) -> None:
        columns = slot // self._per_column + 1
        shape = max(predicates.tolist()) + 1, columns  # there are few: faster than with numpy
        rows = max(shape[0], len(self.matrix))
        size = rows * max(columns, self.matrix.shape[1]) * self.matrix.itemsize
        if size > max(MATRIX_BUDGET, self.matrix.nbytes):  # what fits already may stay
            raise CapacityError(
                f"a matrix of {shape[0]:,} predicates by {slot + 1:,} conjunctions exceeds "
                f"{MATRIX_BUDGET / 2**30:.0f} GiB; the engine counting-list holds them in lists"
            )
        self.matrix = _grown(self.matrix, *shape)
        self.columns = max(self.columns, columns)
        self.make_room(slot)

    def bytes_of(self, slots: int, predicates: int) -> int:
        return self.vector_bytes(slots) + predicates * self.columns * self.matrix.itemsize


class Bits(_Matrix):
    """One bit per predicate and conjunction."""

    def __init__(self) -> None:
        super().__init__(np.uint64, 64)

    def insert(self, slot: int, predicates: Ids) -> None:
        self.make_columns(slot, predicates)
        mark_bits(predicates, self.matrix, slot)
        self.needed[slot] = len(predicates)

    def delete(self, slot: int, predicates: Ids) -> None:
        self.matrix[predicates, slot // 64] &= ~np.uint64(1 << slot % 64)
        self.needed[slot] = 0

    def complete(self, satisfied: Ids) -> Ids:
        count = count_bits(satisfied, self.matrix, self.columns, self.hits, self.needed, self.found)
        return self.found[:count].copy()


class Bytes(_Matrix):
    """One byte per predicate and conjunction."""

    def __init__(self) -> None:
        super().__init__(np.uint8, 1)

    def insert(self, slot: int, predicates: Ids) -> None:
        self.make_columns(slot, predicates)
        mark_bytes(predicates, self.matrix, slot)
        self.needed[slot] = len(predicates)

    def delete(self, slot: int, predicates: Ids) -> None:
        self.matrix[predicates, slot] = 0
        self.needed[slot] = 0

    def complete(self, satisfied: Ids) -> Ids:
        count = count_bytes(
            satisfied, self.matrix, self.columns, self.hits, self.needed, self.found
        )
        return self.found[:count].copy()
