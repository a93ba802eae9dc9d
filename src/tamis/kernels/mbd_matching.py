"""Matching by a set of MBDs, diagrams whose output nodes share their children (MBD, section 3.3).

MBD is short for "modified binary decision diagram" and for the paper that has them: Li, Hou and
Jacobsen, "A unified approach to routing, covering and merging in publish/subscribe systems based on
modified binary decision diagrams" (ICDCS 2005). An MBD is a pair of children and a list of output
nodes above them: each has a variable, and belongs to the filter of one slot.
"""

from typing import NamedTuple

from tamis.kernels.bdd_nodes import TRUE, Array, NodeStore
from tamis.kernels.jit import inner, jit
from tamis.kernels.records import record


@record
class OutputNodes(NamedTuple):
    """A set of MBDs; the output nodes of each are a linked list of slots."""

    low: Array  # int32[mbd]: the low child of all its output nodes
    high: Array  # int32[mbd]: the high child
    first: Array  # int32[mbd]: the first slot of its list, -1 for a number that is free
    next: Array  # int32[slot]: the next slot of the list, -1 for the last
    previous: Array  # int32[slot]: the slot before, -1 for the first
    variable: Array  # int64[slot]: the variable of the output node


@jit
def eval_mbds(size: int, outputs: OutputNodes, truth: Array, s: NodeStore, found: Array) -> int:
    """Write the slots whose output node is true to found[*]; returns how many (section 3.3).

    The children of an MBD are evaluated once for all its output nodes.
    """
    count = 0
    for mbd in range(size):
        if outputs.first[mbd] < 0:
            continue
        high = follow_path(outputs.high[mbd], truth, s)
        low = follow_path(outputs.low[mbd], truth, s)
        if high + low == 0:
            continue
        slot = outputs.first[mbd]
        while slot >= 0:
            if (high if truth[outputs.variable[slot]] else low) == TRUE:
                found[count] = slot
                count += 1
            slot = outputs.next[slot]
    return count


@inner
def follow_path(node: int, truth: Array, s: NodeStore) -> int:
    """The value of one function, found along a path from its root."""
    while node > TRUE:
        node = s.high[node] if truth[s.label[node]] else s.low[node]
    return int(node)
