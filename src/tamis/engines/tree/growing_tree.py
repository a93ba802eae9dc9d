"""The matching tree to which conjunctions are added, and removed, one by one (TREE, appendices)."""

import numpy as np

from tamis.engines.tree.arrays import Array, grown
from tamis.engines.tree.distinct_conjunctions import ConjunctionStore
from tamis.engines.tree.elements import DistinctElements
from tamis.errors import CapacityError
from tamis.kernels import growing_tree as t
from tamis.kernels import tree_conjunctions as k
from tamis.kernels.tree_match import EventArrays, match

NO_FACTS = np.zeros(0, np.int64)
MOST_LOOKED_UP = 64  # implications for one conjunction; further implied edges are not followed


class GrowingTree:
    """Nodes and edges in flat arrays.

    With `levels`, the attributes in order, every node tests the attribute of its level; without,
    chains collapse.
    """

    def __init__(
        self, elements: DistinctElements, groups: ConjunctionStore, *, levels: Array | None = None,
        implied_edges: bool = False, roots: int = 1,
    ) -> None:  # fmt: skip
        self._elements = elements
        self._groups = groups
        self.levels = levels
        self._implied_edges = implied_edges
        state = np.zeros(t.STATE_PLACES, np.int64)
        state[t.FREE] = t.NONE
        self.arrays: t.Tree = (
            np.zeros((64, t.NODE_COLUMNS), np.int32),
            np.full((64, 2), t.NONE, np.int32),
            np.full(roots, t.NONE, np.int32),
            state,
        )

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return int(self.arrays[3][t.NODES])

    @property
    def edges(self) -> int:
        """How many edges there are: one to every node that is not a root."""
        return self.nodes - int(np.count_nonzero(self.arrays[2] >= 0))

    def plant(self, group: int, sequence: Array, limit: int) -> None:
        """Add a conjunction; `CapacityError`, with nothing changed, beyond `limit` nodes."""
        self.arrays[3][t.LIMIT] = limit
        elements = self._elements.arrays
        looked_up = 0
        while True:
            if self.levels is None:
                leaf = t.process_sub(self.arrays, elements, sequence, 0, self._implied_edges)
            else:
                leaf = t.process_sub_levels(self.arrays, elements, sequence, 0, self.levels)
            if leaf >= 0:
                break
            if leaf == t.ASK:
                state = self.arrays[3]
                looked_up += 1
                known = looked_up <= MOST_LOOKED_UP and self._elements.look_up(
                    int(state[t.ASK_SOURCE]), int(state[t.ASK_TARGET])
                )
                elements = self._elements.arrays
                if not known:
                    elements = (elements[0], NO_FACTS, elements[2])
            else:
                self.make_room(leaf)
        k.attach_to_leaf(self._groups.arrays, self.arrays[0], leaf, group)

    def uproot(self, group: int) -> None:
        """Remove a conjunction."""
        leaf = k.detach_from_leaf(self._groups.arrays, self.arrays[0], group)
        if leaf >= 0:
            t.remove_leaf(self.arrays, self._elements.arrays, leaf, self.levels is None)

    def make_room(self, lack: int) -> None:
        """Enlarge the arrays by what a kernel says it needs."""
        nodes, table, roots, state = self.arrays
        needed = int(state[t.NEEDED])
        if lack == t.FULL:
            raise CapacityError(
                f"the matching tree has {self.nodes:,} nodes and may have {state[t.LIMIT]:,}; "
                f"the conjunction needs {needed:,} more (option max_nodes)"
            )
        size = len(table)
        while 2 * (int(state[t.HASHED]) + needed) > size:
            size *= 2
        if size > len(table):
            larger = np.full((size, 2), t.NONE, np.int32)
            t.rehash(table, larger)
            table = larger
        self.arrays = (grown(nodes, self.nodes + needed), table, roots, state)

    def search(self, event: EventArrays, *, decided: bool = False) -> bool:
        """Find the conjunctions of an event; False if its stack is too short."""
        return match(self.arrays, self._elements.rows, self._groups.arrays, event, decided)
