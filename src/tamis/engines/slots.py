"""Slots: small dense numbers under which an engine holds what belongs to a handle.

Handles grow for ever as subscriptions come and go; slots are reused, so arrays over them stay as
small as what is held.
"""

import numpy as np

from tamis.kernels.handles import Handles, sorted_handles
from tamis.predicates.comparison_index import Ids
from tamis.predicates.id_pool import IdPool

# Handles are marked in an array over all of them while it has at most this many entries per slot.
SPREAD = 16


class Slots:
    """Gives out slots and translates them back to handles."""

    def __init__(self) -> None:
        self._pool = IdPool()
        self._handles: Handles = np.full(64, -1, np.int64)
        self._marks = np.zeros(64, np.uint8)  # by handle, scratch of `sorted_handles`
        self._top = 0  # one more than the largest handle

    @property
    def size(self) -> int:
        """One more than the largest slot ever given out: the length of vectors over slots."""
        return self._pool.size

    def take(self, handle: int) -> int:
        """Give a free slot to a handle, which may have several."""
        slot = self._pool.take()
        if slot >= len(self._handles):
            more = np.full(len(self._handles), -1, np.int64)
            self._handles = np.concatenate([self._handles, more])
        self._handles[slot] = handle
        self._top = max(self._top, handle + 1)
        return slot

    def give_back(self, slot: int) -> None:
        """Make a slot free again."""
        self._handles[slot] = -1
        self._pool.give_back(slot)

    def handles_of(self, slots: Ids) -> Handles:
        """The handles of slots, each once, in ascending order."""
        if len(self._marks) < self._top <= SPREAD * len(self._handles):
            self._marks = np.zeros(2 * self._top, np.uint8)
        marks = self._marks if self._top <= len(self._marks) else self._marks[:0]
        return sorted_handles(slots, self._handles, marks)
