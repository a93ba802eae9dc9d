"""Covering by evaluation of a set of MBDs (MBD, section 4.3 and Fig. 7).

A new subscription gives each variable two bits. RIGHT: it is implied by what the new one asks.
LEFT: it implies that, or the new one does not ask its attribute. An output node that the right bits
make true covers the new one. One that the left bits make true is covered by the new one, if it asks
every attribute of it: the paper leaves this out, and the bits cannot tell it.
"""

import numpy as np

from tamis.kernels.diagrams import TRUE, Array, Outputs, Store
from tamis.kernels.jit import jit

RIGHT, LEFT = 1, 2
NOBODY = -1


@jit
def _walk(node: int, truth: Array, bit: int, s: Store) -> int:
    """The value of one function for one of the two bits."""
    while node > TRUE:
        node = s.high[node] if truth[s.label[node]] & bit else s.low[node]
    return int(node)


@jit
def _first_right(group: int, outputs: Outputs, truth: Array, s: Store) -> int:
    """An output node of a group that the right bits make true, or NOBODY."""
    high = _walk(outputs.high[group], truth, RIGHT, s)
    low = _walk(outputs.low[group], truth, RIGHT, s)
    if high + low > 0:
        slot = outputs.first[group]
        while slot >= 0:
            if (high if truth[outputs.variable[slot]] & RIGHT else low) == TRUE:
                return int(slot)
            slot = outputs.next[slot]
    return NOBODY


@jit
def _all_left(
    group: int, outputs: Outputs, truth: Array, asks: Array, asked: Array,
    s: Store, found: Array, count: int,
) -> int:  # fmt: skip
    """Write the output nodes of a group that the new one covers to found[count], ..."""
    high = _walk(outputs.high[group], truth, LEFT, s)
    low = _walk(outputs.low[group], truth, LEFT, s)
    if high + low > 0:
        slot = outputs.first[group]
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
def one_pass(
    size: int, outputs: Outputs, truth: Array, asks: Array, asked: Array, s: Store, found: Array
) -> tuple[int, int]:
    """Fig. 7: a slot that covers the new one, or how many slots it covers, in found[*].

    Each group is looked at once. A slot that covers the new one ends the search; after one that is
    covered by it the right bits are not evaluated any more. asks[slot, word] are the attributes of
    a slot, asked[word] those of the new one.
    """
    count = 0
    for group in range(size):
        if outputs.first[group] < 0:
            continue
        if count == 0:
            slot = _first_right(group, outputs, truth, s)
            if slot >= 0:
                return slot, 0
        count = _all_left(group, outputs, truth, asks, asked, s, found, count)
    return NOBODY, count


@jit
def covering_pass(size: int, outputs: Outputs, truth: Array, s: Store) -> int:
    """The first of two passes: a slot that covers the new one, or NOBODY."""
    for group in range(size):
        if outputs.first[group] >= 0:
            slot = _first_right(group, outputs, truth, s)
            if slot >= 0:
                return slot
    return NOBODY


@jit
def covered_pass(
    size: int, outputs: Outputs, truth: Array, asks: Array, asked: Array, s: Store, found: Array
) -> int:
    """The second: how many slots the new one covers, in found[*]."""
    count = 0
    for group in range(size):
        if outputs.first[group] >= 0:
            count = _all_left(group, outputs, truth, asks, asked, s, found, count)
    return count
