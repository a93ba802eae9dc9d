"""The set of MBDs: output nodes with the same children (MBD, section 3.1 and Fig. 4).

MBD is short for "modified binary decision diagram" and for the paper that has them: Li, Hou and
Jacobsen, "A unified approach to routing, covering and merging in publish/subscribe systems based on
modified binary decision diagrams" (ICDCS 2005). An MBD is a pair of children and the output nodes
above them; an output node has a variable and belongs to the filter of one slot.
"""

import numpy as np

from tamis.diagrams.diagram import FALSE, TRUE, Array, Diagram
from tamis.kernels.mbd_matching import OutputNodes, eval_mbds
from tamis.predicates.comparison_index import Ids
from tamis.predicates.id_pool import IdPool


class MbdSet:
    """The output nodes of filters over the nodes of a diagram."""

    def __init__(self) -> None:
        self._by_children: dict[tuple[int, int], int] = {}
        self._pool = IdPool()
        self._mbd_of: Array = np.full(64, -1, np.int32)  # slot -> MBD
        self._constant: dict[int, bool] = {}  # slots whose filter is always true or always false
        self._outputs = OutputNodes(
            low=np.zeros(64, np.int32),
            high=np.zeros(64, np.int32),
            first=np.full(64, -1, np.int32),
            next=np.full(64, -1, np.int32),
            previous=np.full(64, -1, np.int32),
            variable=np.zeros(64, np.int64),
        )

    def __len__(self) -> int:
        """How many MBDs there are."""
        return len(self._by_children)

    def insert(self, slot: int, root: int, diagram: Diagram) -> None:
        """Add a root as an output node to the MBD with its children, or to a new one (Fig. 4)."""
        if root in {FALSE, TRUE}:
            self._constant[slot] = root == TRUE
            return
        self._make_room(slot)
        children = diagram.children(root)
        mbd = self._by_children.get(children)
        if mbd is None:
            mbd = self._by_children[children] = self._pool.take()
            self._make_room_for_mbd(mbd)
            self._outputs.low[mbd], self._outputs.high[mbd] = children
        outputs = self._outputs
        outputs.variable[slot] = diagram.label(root)
        after = int(outputs.first[mbd])
        outputs.first[mbd], outputs.previous[slot], outputs.next[slot] = slot, -1, after
        if after >= 0:
            outputs.previous[after] = slot
        self._mbd_of[slot] = mbd

    def remove(self, slot: int) -> None:
        """Remove the output node of a slot, and its MBD if that was the last one."""
        if self._constant.pop(slot, None) is not None:
            return
        outputs = self._outputs
        mbd = int(self._mbd_of[slot])
        self._mbd_of[slot] = -1
        before, after = int(outputs.previous[slot]), int(outputs.next[slot])
        if before < 0:
            outputs.first[mbd] = after
        else:
            outputs.next[before] = after
        if after >= 0:
            outputs.previous[after] = before
        if outputs.first[mbd] < 0:
            del self._by_children[int(outputs.low[mbd]), int(outputs.high[mbd])]
            self._pool.give_back(mbd)

    @property
    def arrays(self) -> tuple[int, OutputNodes]:
        """How many numbers MBDs have, used or free, and the arrays, for kernels that read them."""
        return self._pool.size, self._outputs

    def outputs(self) -> list[list[int]]:
        """The slots of each MBD."""
        found = []
        for mbd in self._by_children.values():
            slots, slot = [], int(self._outputs.first[mbd])
            while slot >= 0:
                slots.append(slot)
                slot = int(self._outputs.next[slot])
            found.append(slots)
        return found

    def true_slots(self, truth: Array, diagram: Diagram) -> Ids:
        """The slots whose output node is true; truth[variable] is 0 or 1."""
        found = np.empty(len(self._mbd_of), np.int32)
        count = eval_mbds(self._pool.size, self._outputs, truth, diagram.store, found)
        always = [slot for slot, value in self._constant.items() if value]
        if not always:
            return found[:count]
        return np.concatenate([found[:count], np.array(always, np.int32)])

    def collect(self, diagram: Diagram) -> None:
        """Collect the nodes that no MBD needs."""
        taken = np.fromiter(self._by_children.values(), np.int64, len(self))
        low, high = self._outputs.low, self._outputs.high
        roots = np.concatenate([low[taken], high[taken]])
        diagram.collect(roots)
        low[taken], high[taken] = roots[: len(taken)], roots[len(taken) :]
        pairs = zip(low[taken].tolist(), high[taken].tolist(), strict=True)
        self._by_children = dict(zip(pairs, taken.tolist(), strict=True))

    def _make_room(self, slot: int) -> None:
        while slot >= len(self._mbd_of):
            outputs = self._outputs
            self._mbd_of = _twice(self._mbd_of)
            self._outputs = outputs._replace(
                next=_twice(outputs.next),
                previous=_twice(outputs.previous),
                variable=_twice(outputs.variable),
            )

    def _make_room_for_mbd(self, mbd: int) -> None:
        if mbd >= len(self._outputs.first):
            outputs = self._outputs
            self._outputs = outputs._replace(
                low=_twice(outputs.low), high=_twice(outputs.high), first=_twice(outputs.first)
            )


def _twice(array: Array) -> Array:
    """A copy twice as long, with -1 in the second half."""
    return np.concatenate([array, np.full_like(array, -1)])
