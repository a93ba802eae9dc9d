"""A compiled set of subscriptions: programs in flat arrays that never change.

Only `alive` changes: a subscription that goes is marked there. Slots are numbers from 0 in the
order of the handles.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.engines.slots import SPREAD
from tamis.kernels.programs import (
    AND_LEAF,
    AND_TOP,
    OR_LEAF,
    OR_TOP,
    PUSH,
    Programs,
)  # fmt: skip

Array = np.ndarray[Any, Any]


# Clusters whose first predicate is expected to let less than this share of events through are found
# from the events; the others are always looked at.
SELECTIVE = 0.2


class Item(NamedTuple):
    """A subscription to compile."""

    handle: int
    shape: str
    predicates: tuple[int, ...]


class Segment:
    """Subscriptions of some shapes, in the order of their handles by slot."""

    def __init__(self, items: Sequence[Item], selectivity: Callable[[Array], Array]) -> None:
        items = sorted(items)
        largest = items[-1].handle if items else 0
        self.handles: Array = np.array(
            [item.handle for item in items], np.int32 if largest < 2**31 else np.int64
        )
        # How many marks `ascending` needs, 0 where handles are too far apart to mark them all.
        self.marks = largest + 1 if largest < SPREAD * len(items) else 0
        self.alive: Array = np.empty(0, np.uint8)  # made when the first one goes
        self.dead = 0
        self.is_dense = False  # whether most subscriptions match some event of a block
        self._sub_of_slot: Array = np.empty(0, np.int32)  # made when first asked for
        by_shape: dict[str, list[int]] = {}
        for slot, item in enumerate(items):
            by_shape.setdefault(item.shape, []).append(slot)
        # Conjunctions first: their clusters follow each other without gaps.
        self.shapes = sorted(by_shape, key=lambda shape: ("|" in shape, shape))
        self.depth = max(map(_depth, by_shape), default=1)
        self.programs = self._compile(items, by_shape, selectivity)

    def __len__(self) -> int:
        return len(self.handles) - self.dead

    def find(self, handle: int) -> int:
        """The slot of a handle, -1 if it is not here or gone."""
        slot = int(np.searchsorted(self.handles, handle))
        if slot == len(self.handles) or self.handles[slot] != handle:
            return -1
        return slot if not self.dead or self.alive[slot] else -1

    def kill(self, slot: int) -> None:
        """Mark the subscription of a slot as gone."""
        if not self.dead:
            self.alive = np.ones(len(self.handles), np.uint8)
        self.alive[slot] = 0
        self.dead += 1

    def item(self, slot: int) -> Item:
        """The subscription of a slot."""
        if not len(self._sub_of_slot):
            self._sub_of_slot = np.empty(len(self.handles), np.int32)
            self._sub_of_slot[self.programs.slots] = np.arange(len(self.handles), dtype=np.int32)
        return self._item(int(self._sub_of_slot[slot]))

    def living(self) -> Iterator[Item]:
        """The subscriptions that are left."""
        for sub, slot in enumerate(self.programs.slots.tolist()):
            if not self.dead or self.alive[slot]:
                yield self._item(sub)

    def _item(self, sub: int) -> Item:
        programs = self.programs
        number = int(np.searchsorted(programs.subs, sub, side="right")) - 1
        shape = self.shapes[number]
        width = shape.count("a")
        at = int(programs.refs_at[number]) + (sub - int(programs.subs[number])) * width
        handle = int(self.handles[programs.slots[sub]])
        return Item(handle, shape, tuple(programs.refs[at : at + width].tolist()))

    def _compile(
        self, items: Sequence[Item], by_shape: dict[str, list[int]],
        selectivity: Callable[[Array], Array],
    ) -> Programs:  # fmt: skip
        subs, refs_at, ops_at = [0], [], [0]
        refs: list[Array] = []
        ops: list[int] = []
        slots: list[Array] = []
        cluster_shapes: list[Array] = []
        cluster_subs: list[Array] = []
        access: list[Array] = []
        used = formulas = 0
        for number, shape in enumerate(self.shapes):
            members = by_shape[shape]
            order = np.array(members, np.int32)
            table = np.array([items[slot].predicates for slot in members], np.int32)
            if "|" not in shape:
                formulas = number + 1
                ranked = np.argsort(selectivity(table), axis=1, kind="stable")
                table = np.take_along_axis(table, ranked, axis=1)
                rows = np.argsort(table[:, 0], kind="stable")
                table, order = table[rows], order[rows]
                starts = np.flatnonzero(np.diff(table[:, 0], prepend=-1))
                cluster_subs.append(starts + subs[-1])
                cluster_shapes.append(np.full(len(starts), number))
                access.append(table[starts, 0])
            refs_at.append(used)
            used += table.size
            refs.append(table.reshape(-1))
            ops += _operations(shape)
            ops_at.append(len(ops))
            slots.append(order)
            subs.append(subs[-1] + len(members))
        first = _joined(access, np.int32)  # the access predicate of each cluster
        leads = selectivity(first) < SELECTIVE if len(first) else np.zeros(0, np.bool_)
        chosen = np.flatnonzero(leads)
        chosen = chosen[np.argsort(first[chosen], kind="stable")]
        predicates, starts = np.unique(first[chosen], return_index=True)
        return Programs(
            subs=np.array(subs, np.int64), refs_at=np.array(refs_at, np.int64),
            refs=_joined(refs, np.int32), ops_at=np.array(ops_at, np.int64),
            ops=np.array(ops, np.int8), formulas=formulas,
            cluster_shapes=_joined(cluster_shapes, np.int32),
            cluster_subs=_joined([*cluster_subs, np.array([subs[formulas]])], np.int64),
            plain=np.flatnonzero(~leads).astype(np.int32), access=predicates.astype(np.int32),
            access_at=np.append(starts, len(chosen)).astype(np.int64),
            access_clusters=chosen.astype(np.int32), slots=_joined(slots, np.int32),
        )  # fmt: skip


def _joined(arrays: list[Array], kind: type) -> Array:
    return np.concatenate(arrays).astype(kind) if arrays else np.empty(0, kind)


def _operations(shape: str) -> list[int]:
    """The operations of a shape; a leaf that is combined at once is not pushed."""
    found = []
    for place, sign in enumerate(shape):
        behind = shape[place + 1 : place + 2]
        if sign == "a":
            if behind in {"&", "|"}:
                found.append(AND_LEAF if behind == "&" else OR_LEAF)
            else:
                found.append(PUSH)
        elif shape[place - 1] != "a":
            found.append(AND_TOP if sign == "&" else OR_TOP)
    return found


def _depth(shape: str) -> int:
    """How many values the shape needs on its stack."""
    depth = deepest = 0
    for op in _operations(shape):
        depth += (op == PUSH) - (op >= AND_TOP)
        deepest = max(deepest, depth)
    return deepest
