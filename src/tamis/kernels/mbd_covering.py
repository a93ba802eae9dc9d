"""Covering by evaluation of a set of MBDs (MBD, section 4.3 and Fig. 7).

A new subscription gives each variable two bits. RIGHT: it is implied by what the new one asks.
LEFT: it implies that, or the new one does not ask its attribute. An output node that the right bits
make true covers the new one. One that the left bits make true is covered by the new one, if it asks
every attribute of it: the paper leaves this out, and the bits cannot tell it.
"""

import numpy as np

from tamis.kernels.bdd_nodes import TRUE, Array, NodeStore
from tamis.kernels.jit import jit
from tamis.kernels.mbd_matching import OutputNodes

RIGHT, LEFT = 1, 2
NO_SLOT = -1


@jit
def _follow_path(node: int, truth: Array, bit: int, s: NodeStore) -> int:
    """The value of one function for one of the two bits."""
    while node > TRUE:
        node = s.high[node] if truth[s.label[node]] & bit else s.low[node]
    return int(node)


@jit
def _first_right(mbd: int, outputs: OutputNodes, truth: Array, s: NodeStore) -> int:
    """An output node of a group that the right bits make true, or NOBODY."""
    high = _follow_path(outputs.high[mbd], truth, RIGHT, s)
    low = _follow_path(outputs.low[mbd], truth, RIGHT, s)
    if high + low > 0:
        slot = outputs.first[mbd]
        while slot >= 0:
            if (high if truth[outputs.variable[slot]] & RIGHT else low) == TRUE:
                return int(slot)
            slot = outputs.next[slot]
    return NO_SLOT


@jit
def _all_left(
    mbd: int, outputs: OutputNodes, truth: Array, asks: Array, asked: Array,
    s: NodeStore, found: Array, count: int,
) -> int:  # fmt: skip
    """Write the output nodes of a group that the new one covers to found[count], ..."""
    high = _follow_path(outputs.high[mbd], truth, LEFT, s)
    low = _follow_path(outputs.low[mbd], truth, LEFT, s)
    if high + low > 0:
        slot = outputs.first[mbd]
        while slot >= 0:
            if (high if truth[outputs.variable[slot]] & LEFT else low) == TRUE:
                lacks = np.uint64(0)
                for word in range(asked.size):
                    lacks |= asked[word] & ~asks[slot, word]
                if lacks == 0:
                    found[count] = slot
                    count += 1
            slot = outputs.next[slot]
    return count


@jit
def one_pass_covering(
    size: int,
    outputs: OutputNodes,
    truth: Array,
    asks: Array,
    asked: Array,
    s: NodeStore,
    found: Array,
) -> tuple[int, int]:
    """Fig. 7: a slot that covers the new one, or how many slots it covers, in found[*].

    Each group is looked at once. A slot that covers the new one ends the search; after one that is
    covered by it the right bits are not evaluated any more. asks[slot, word] are the attributes of
    a slot, asked[word] those of the new one.
    """
    count = 0
    for mbd in range(size):
        if outputs.first[mbd] < 0:
            continue
        if count == 0:
            slot = _first_right(mbd, outputs, truth, s)
            if slot >= 0:
                return slot, 0
        count = _all_left(mbd, outputs, truth, asks, asked, s, found, count)
    return NO_SLOT, count


@jit
def find_covering(size: int, outputs: OutputNodes, truth: Array, s: NodeStore) -> int:
    """The first of two passes: a slot that covers the new one, or NOBODY."""
    for mbd in range(size):
        if outputs.first[mbd] >= 0:
            slot = _first_right(mbd, outputs, truth, s)
            if slot >= 0:
                return slot
    return NO_SLOT


@jit
def find_covered(
    size: int,
    outputs: OutputNodes,
    truth: Array,
    asks: Array,
    asked: Array,
    s: NodeStore,
    found: Array,
) -> int:
    """The second: how many slots the new one covers, in found[*]."""
    count = 0
    for mbd in range(size):
        if outputs.first[mbd] >= 0:
            count = _all_left(mbd, outputs, truth, asks, asked, s, found, count)
    return count
