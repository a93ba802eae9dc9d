"""Output nodes in groups of equal children: the set of MBDs (MBD, section 3.1 and Fig. 4).

An MBD is a group of output nodes over the same two children. An output node is a variable in a
group, and belongs to the filter of one slot.
"""

import numpy as np

from tamis.diagrams.diagram import FALSE, TRUE, Array, Diagram
from tamis.kernels.diagrams import Outputs, evaluate_groups
from tamis.predicates.comparison_index import Ids
from tamis.predicates.id_pool import IdPool


class Groups:
    """The output nodes of filters over the nodes of a diagram."""

    def __init__(self) -> None:
        self._by_children: dict[tuple[int, int], int] = {}
        self._pool = IdPool()
        self._group_of: Array = np.full(64, -1, np.int32)  # slot -> group
        self._constant: dict[int, bool] = {}  # slots whose filter asks nothing
        self._outputs = Outputs(
            low=np.zeros(64, np.int32),
            high=np.zeros(64, np.int32),
            first=np.full(64, -1, np.int32),
            next=np.full(64, -1, np.int32),
            previous=np.full(64, -1, np.int32),
            variable=np.zeros(64, np.int64),
        )

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self._by_children)

    def hang(self, slot: int, root: int, diagram: Diagram) -> None:
        """Make a root an output node of the group with its children, or of a new one (Fig. 4)."""
        if root in {FALSE, TRUE}:
            self._constant[slot] = root == TRUE
            return
        self._make_room(slot)
        children = diagram.children(root)
        group = self._by_children.get(children)
        if group is None:
            group = self._by_children[children] = self._pool.take()
            self._make_room_for_group(group)
            self._outputs.low[group], self._outputs.high[group] = children
        outputs = self._outputs
        outputs.variable[slot] = diagram.label(root)
        behind = int(outputs.first[group])
        outputs.first[group], outputs.previous[slot], outputs.next[slot] = slot, -1, behind
        if behind >= 0:
            outputs.previous[behind] = slot
        self._group_of[slot] = group

    def unhang(self, slot: int) -> None:
        """Take the output node of a slot away; a group without any is gone."""
        if self._constant.pop(slot, None) is not None:
            return
        outputs = self._outputs
        group = int(self._group_of[slot])
        self._group_of[slot] = -1
        before, behind = int(outputs.previous[slot]), int(outputs.next[slot])
        if before < 0:
            outputs.first[group] = behind
        else:
            outputs.next[before] = behind
        if behind >= 0:
            outputs.previous[behind] = before
        if outputs.first[group] < 0:
            del self._by_children[int(outputs.low[group]), int(outputs.high[group])]
            self._pool.give_back(group)

    @property
    def arrays(self) -> tuple[int, Outputs]:
        """One more than the largest group, and the arrays, for kernels that read them."""
        return self._pool.size, self._outputs

    def outputs(self) -> list[list[int]]:
        """The slots of each group."""
        found = []
        for group in self._by_children.values():
            slots, slot = [], int(self._outputs.first[group])
            while slot >= 0:
                slots.append(slot)
                slot = int(self._outputs.next[slot])
            found.append(slots)
        return found

    def true_slots(self, truth: Array, diagram: Diagram) -> Ids:
        """The slots whose output node is true; truth[variable] is 0 or 1."""
        found = np.empty(len(self._group_of), np.int32)
        count = evaluate_groups(self._pool.size, self._outputs, truth, diagram.store, found)
        always = [slot for slot, value in self._constant.items() if value]
        if not always:
            return found[:count]
        return np.concatenate([found[:count], np.array(always, np.int32)])

    def collect(self, diagram: Diagram) -> None:
        """Drop the nodes that no group needs."""
        taken = np.fromiter(self._by_children.values(), np.int64, len(self))
        low, high = self._outputs.low, self._outputs.high
        roots = np.concatenate([low[taken], high[taken]])
        diagram.collect(roots)
        low[taken], high[taken] = roots[: len(taken)], roots[len(taken) :]
        pairs = zip(low[taken].tolist(), high[taken].tolist(), strict=True)
        self._by_children = dict(zip(pairs, taken.tolist(), strict=True))

    def _make_room(self, slot: int) -> None:
        while slot >= len(self._group_of):
            outputs = self._outputs
            self._group_of = _twice(self._group_of)
            self._outputs = outputs._replace(
                next=_twice(outputs.next),
                previous=_twice(outputs.previous),
                variable=_twice(outputs.variable),
            )

    def _make_room_for_group(self, group: int) -> None:
        if group >= len(self._outputs.first):
            outputs = self._outputs
            self._outputs = outputs._replace(
                low=_twice(outputs.low), high=_twice(outputs.high), first=_twice(outputs.first)
            )


def _twice(array: Array) -> Array:
    """Twice as long; -1 where new."""
    return np.concatenate([array, np.full_like(array, -1)])
