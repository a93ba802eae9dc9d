"""The nodes of shared binary decision diagrams, in flat arrays.

They are the data structure of section 5 of Campailla et al., "Efficient filtering in
publish-subscribe systems using binary decision diagrams" (ICSE 2001), called BDD here.

Node 0 is false and node 1 is true. Every other node has a variable and two children with smaller
numbers, so the numbers are a topological order, and one pass over the arrays evaluates every node
once. `compact_nodes` puts the nodes of one variable side by side, as the paper numbers them.
Variables are ordered by their levels, the smallest on top. The diagrams are reduced: no node has
two equal children and no two nodes are equal, because `make_node` looks in the unique table first.

A kernel that runs out of space returns `FULL`, one that would pass the limit returns `OVER`. The
nodes that it has made stay in the arrays, so a second call, with larger arrays, continues from
there. Nothing recurses.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.jit import inner, jit
from tamis.kernels.records import record

Array = np.ndarray[Any, Any]

FALSE, TRUE = 0, 1
FULL, OVER = -1, -2  # returned instead of a node

NODES, LIMIT = 0, 1  # places of `NodeStore.sizes`
BOTTOM_LEVEL = 2**62  # below all variables


@record
class NodeStore(NamedTuple):
    """The arrays of a diagram."""

    label: Array  # int32[node]: the variable, -1 for false and true
    low: Array  # int32[node]: the child when the variable is false
    high: Array  # int32[node]: the child when the variable is true
    stamps: Array  # int32[node]: scratch of `count_nodes`, all zero
    level: Array  # int64[variable]
    unique: Array  # int32[slot]: a node, 0 for none; a power of two long, at most half full
    keys: Array  # int64[slot, 2]: computed table: an operation, and its two operands in one number
    results: Array  # int32[slot]: computed table: the result
    stack: Array  # int32[frame, 4]: scratch in two halves, each as deep as there are variables
    sizes: Array  # int64[2]: how many nodes there are, how many there may be


@inner
def level_of(node: int, s: NodeStore) -> int:
    """The level of a node's variable; false and true are below all variables."""
    return BOTTOM_LEVEL if node < 2 else s.level[s.label[node]]


@inner
def hash_of(a: int, b: int, c: int, size: int) -> int:
    """The slot for three numbers in a table whose size is a power of two."""
    mixed = np.int64(a) * 0x2545F491 + np.int64(b) * 0x1B873593 + np.int64(c) * 0x3C6EF35F
    mixed ^= mixed >> 29
    return int(mixed & (size - 1))


@jit
def make_node(variable: int, low: int, high: int, s: NodeStore) -> int:
    """The node with a variable and two children: the existing one, or a new one."""
    if low == high:
        return low
    slot = hash_of(low, high, variable, s.unique.size)
    while s.unique[slot] != 0:
        node = s.unique[slot]
        if s.low[node] == low and s.high[node] == high and s.label[node] == variable:
            return int(node)
        slot = (slot + 1) & (s.unique.size - 1)
    node = s.sizes[NODES]
    if node >= s.sizes[LIMIT]:
        return OVER
    if node >= s.label.size or 2 * node >= s.unique.size:
        return FULL
    s.label[node], s.low[node], s.high[node] = variable, low, high
    s.unique[slot] = node
    s.sizes[NODES] = node + 1
    return int(node)


@inner
def count_nodes(root: int, s: NodeStore, values: Array) -> int:
    """How many nodes a function has, without false and true; values[*] is scratch.

    A function with more nodes than values[*] has places counts as 2**40.
    """
    if root < 2:
        return 0
    # Breadth first; a node is stamped when it is put into values[*].
    values[0] = root
    s.stamps[root] = 1
    found, done = 1, 0
    while done < found:
        node = values[done]
        done += 1
        for child in (s.low[node], s.high[node]):
            if child > 1 and s.stamps[child] == 0:
                if found == values.size:
                    for k in range(found):
                        s.stamps[values[k]] = 0
                    return 2**40  # larger than anything that is kept
                s.stamps[child] = 1
                values[found] = child
                found += 1
    for k in range(found):
        s.stamps[values[k]] = 0
    return found


@jit
def rehash_nodes(s: NodeStore) -> None:
    """Fill an empty unique table with all nodes."""
    for node in range(2, s.sizes[NODES]):
        slot = hash_of(int(s.low[node]), int(s.high[node]), int(s.label[node]), s.unique.size)
        while s.unique[slot] != 0:
            slot = (slot + 1) & (s.unique.size - 1)
        s.unique[slot] = node


@jit
def mark_nodes(roots: Array, places: Array, s: NodeStore) -> int:
    """Set places[node] from 0 to 1 for every node that roots[*] need; returns how many."""
    for root in roots:
        places[root] = 1
    count = 0
    for node in range(s.sizes[NODES] - 1, 1, -1):
        if places[node]:
            count += 1
            places[s.low[node]] = places[s.high[node]] = 1
    return count


@jit
def compact_nodes(
    roots: Array, places: Array, ranks: Array, starts: Array, s: NodeStore, new: NodeStore
) -> None:
    """Copy the marked nodes to a new store, with the nodes of one variable side by side.

    ranks[variable] is 0 for the lowest level. Children are on lower levels than their parents, so
    they come before them. Written are starts[rank + 1], where the nodes of each variable start,
    places[node], the new number of a node, and roots[*], which get their new numbers.
    """
    for rank in range(starts.size):
        starts[rank] = 0
    for node in range(2, s.sizes[NODES]):
        starts[ranks[s.label[node]] + 1] += places[node]
    starts[0] = 2
    for rank in range(1, starts.size):
        starts[rank] += starts[rank - 1]
    for node in range(2, s.sizes[NODES]):
        if places[node]:
            rank = ranks[s.label[node]]
            places[node] = starts[rank]
            starts[rank] += 1
    for rank in range(starts.size - 1, 0, -1):
        starts[rank] = starts[rank - 1]
    starts[0] = 2
    places[FALSE], places[TRUE] = FALSE, TRUE
    for node in range(2, s.sizes[NODES]):
        if places[node]:
            here = places[node]
            new.label[here] = s.label[node]
            new.low[here], new.high[here] = places[s.low[node]], places[s.high[node]]
    for k in range(roots.size):
        roots[k] = places[roots[k]]
    new.sizes[NODES] = starts[starts.size - 1]
    rehash_nodes(new)
