"""Matching by a set of MBDs, diagrams whose output nodes share their children (MBD, section 3.3).

MBD is short for "modified binary decision diagram" and for the paper that has them: Li, Hou and
Jacobsen, "A unified approach to routing, covering and merging in publish/subscribe systems based on
modified binary decision diagrams" (ICDCS 2005). An MBD is a pair of children and a list of output
nodes above them: each has a variable, and belongs to the filter of one slot.
"""

from typing import NamedTuple

from tamis.kernels.bdd_nodes import TRUE, Array, NodeStore
from tamis.kernels.jit import jit


class OutputNodes(NamedTuple):
    """Output nodes in groups of equal children; those of a group form a list."""

    low: Array  # int32[group]: the children of its output nodes
    high: Array  # int32[group]
    first: Array  # int32[group]: the first slot of its list, -1 for a free group
    next: Array  # int32[slot]: the next slot of the list, -1 at its end
    previous: Array  # int32[slot]: the one before, -1 at its start
    variable: Array  # int64[slot]: what the output node asks


@jit
def eval_mbds(size: int, outputs: OutputNodes, truth: Array, s: NodeStore, found: Array) -> int:
    """Write the slots of the output nodes that are true to found[*] (MBD, section 3.3).

    The children of a group are evaluated once. How many slots were written.
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


@jit
def follow_path(node: int, truth: Array, s: NodeStore) -> int:
    """The value of one function: a path from its root."""
    while node > TRUE:
        node = s.high[node] if truth[s.label[node]] else s.low[node]
    return int(node)
