"""Covering by evaluating a set of MBDs in one pass (MBD, section 4.3 and Fig. 7).

MBD is short for "modified binary decision diagram" and for the paper that has them: Li, Hou and
Jacobsen, "A unified approach to routing, covering and merging in publish/subscribe systems based on
modified binary decision diagrams" (ICDCS 2005).

A new filter gives each variable two bits. The RIGHT bit says that the variable's predicate is
implied by a predicate of the new filter, the LEFT bit that it implies one, or that the new filter
does not test its attribute. A stored filter whose output node the right bits make true covers the
new one. A stored filter whose output node the left bits make true is covered by the new one, if it
also tests every attribute that the new one tests. The paper leaves this condition out; the bits
alone cannot decide it.
"""

import numpy as np

from tamis.kernels.bdd_nodes import TRUE, Array, NodeStore
from tamis.kernels.jit import inner, jit
from tamis.kernels.mbd_matching import OutputNodes

RIGHT, LEFT = 1, 2
NO_SLOT = -1


@inner
def _follow_path(node: int, truth: Array, bit: int, s: NodeStore) -> int:
    """The value of one function when each variable has one of its two bits."""
    while node > TRUE:
        node = s.high[node] if truth[s.label[node]] & bit else s.low[node]
    return int(node)


@inner
def _first_right(mbd: int, outputs: OutputNodes, truth: Array, s: NodeStore) -> int:
    """The slot of an output node of an MBD that the right bits make true, or NO_SLOT."""
    high = _follow_path(outputs.high[mbd], truth, RIGHT, s)
    low = _follow_path(outputs.low[mbd], truth, RIGHT, s)
    if high + low > 0:
        slot = outputs.first[mbd]
        while slot >= 0:
            if (high if truth[outputs.variable[slot]] & RIGHT else low) == TRUE:
                return int(slot)
            slot = outputs.next[slot]
    return NO_SLOT


@inner
def _all_left(
    mbd: int, outputs: OutputNodes, truth: Array, tested_by: Array, tested: Array,
    s: NodeStore, found: Array, count: int,
) -> int:  # fmt: skip
    """Write the slots of an MBD that the new filter covers to found[count:].

    Returns the new count.
    """
    high = _follow_path(outputs.high[mbd], truth, LEFT, s)
    low = _follow_path(outputs.low[mbd], truth, LEFT, s)
    if high + low > 0:
        slot = outputs.first[mbd]
        while slot >= 0:
            if (high if truth[outputs.variable[slot]] & LEFT else low) == TRUE:
                lacks = np.uint64(0)
                for word in range(tested.size):
                    lacks |= tested[word] & ~tested_by[slot, word]
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
    tested_by: Array,
    tested: Array,
    s: NodeStore,
    found: Array,
) -> tuple[int, int]:
    """The covering algorithm of Fig. 7: a slot that covers the new filter, and how many it covers.

    The slots that the new filter covers are written to found[*]. Each MBD is evaluated once. A slot
    that covers the new filter ends the search; once the new filter covers a slot, the right bits
    are not evaluated any more. tested_by[slot, word] has a bit for each attribute that the filter
    of a slot tests, tested[word] for those of the new filter.
    """
    count = 0
    for mbd in range(size):
        if outputs.first[mbd] < 0:
            continue
        if count == 0:
            slot = _first_right(mbd, outputs, truth, s)
            if slot >= 0:
                return slot, 0
        count = _all_left(mbd, outputs, truth, tested_by, tested, s, found, count)
    return NO_SLOT, count


@jit
def find_covering(size: int, outputs: OutputNodes, truth: Array, s: NodeStore) -> int:
    """The first of two passes: a slot that covers the new filter, or NO_SLOT."""
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
    tested_by: Array,
    tested: Array,
    s: NodeStore,
    found: Array,
) -> int:
    """The second pass: write the slots that the new filter covers to found[*]; returns how many."""
    count = 0
    for mbd in range(size):
        if outputs.first[mbd] >= 0:
            count = _all_left(mbd, outputs, truth, tested_by, tested, s, found, count)
    return count
