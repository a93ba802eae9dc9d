"""The distinct conjunctions of an engine, and the slots that hold each."""

from collections.abc import Iterator

import numpy as np

from tamis.engines.tree.arrays import Array, grown
from tamis.engines.tree.elements import DistinctElements
from tamis.kernels import tree_conjunctions as k
from tamis.kernels.growing_tree import NONE


class ConjunctionStore:
    """Sequences of elements, each distinct one under a number; see `kernels.tree_conjunctions`."""

    def __init__(self, elements: DistinctElements) -> None:
        self._elements = elements
        state = np.zeros(5, np.int64)
        state[k.G_FREE] = NONE
        self.arrays: k.Groups = (
            np.zeros((64, k.GROUP_COLUMNS), np.int64),
            np.zeros(256, np.int32),
            np.full(256, NONE, np.int32),
            np.full((64, 3), NONE, np.int32),
            state,
            np.full(64, NONE, np.int32),
        )

    def __len__(self) -> int:
        return int(self.arrays[4][k.G_LIVE])

    @property
    def rows(self) -> Array:
        return self.arrays[0]

    @property
    def slots(self) -> int:
        """The length of vectors over slots."""
        return len(self.arrays[3])

    def sequence(self, group: int) -> Array:
        """The elements of a group; valid until the next group is added."""
        start, length = self.rows[group, k.START], self.rows[group, k.LENGTH]
        return self.arrays[1][start : start + length]

    def find(self, sequence: Array) -> int:
        return k.find_group(self.arrays, sequence)

    def add(self, sequence: Array, home: int) -> int:
        """A new group, which has no slots yet."""
        self._make_room(len(sequence))
        return k.add_group(self.arrays, self._elements.arrays, sequence, home)

    def drop(self, group: int) -> None:
        """Drop a group that has no slots and is in no tree."""
        k.drop_group(self.arrays, self._elements.arrays, group)
        if not len(self):
            state = self.arrays[4]
            state[k.G_POOL] = state[k.G_WASTE] = 0

    def is_empty(self, group: int) -> bool:
        """Whether no slot holds a group."""
        return bool(self.arrays[5][group] == NONE)

    def join(self, slot: int, group: int) -> None:
        """Let a slot hold a group."""
        rows, pool, table, slots, state, first = self.arrays
        if slot >= len(slots):
            self.arrays = (rows, pool, table, grown(slots, slot + 1, NONE), state, first)
        k.add_slot(self.arrays, slot, group)

    def leave(self, slot: int) -> int:
        """Let a slot go; returns its group if that has no other slot, else NONE."""
        return k.remove_slot(self.arrays, slot)

    def slots_of(self, group: int) -> Iterator[int]:
        """The slots that hold a group."""
        slots, first = self.arrays[3], int(self.arrays[5][group])
        slot = first >> 1 if first >= 0 else NONE
        while slot >= 0:
            yield slot
            slot = int(slots[slot, k.FOLLOWING])

    def holds(self, slot: int) -> bool:
        """Whether a slot holds a group; a conjunction that is never true has none."""
        slots = self.arrays[3]
        return slot < len(slots) and bool(slots[slot, k.GROUP] >= 0)

    def _make_room(self, length: int) -> None:
        rows, pool, table, slots, state, first = self.arrays
        if state[k.G_LIVE] >= len(rows):
            rows, first = grown(rows, len(rows) + 1), grown(first, len(rows) + 1, NONE)
        if state[k.G_POOL] + length > len(pool):
            needed = int(state[k.G_POOL] - state[k.G_WASTE]) + length
            larger = np.zeros(max(2 * needed, len(pool)), np.int32)
            k.compact_pool((rows, pool, table, slots, state, first), larger)
            pool = larger
        if 2 * (state[k.G_LIVE] + 1) > len(table):
            table = np.full(2 * len(table), NONE, np.int32)
            k.rebuild_table((rows, pool, table, slots, state, first))
        self.arrays = (rows, pool, table, slots, state, first)
