"""The matching tree that keeps its shape, annotated with successors (TREE, section 5).

TREE is short for Aguilera, Strom, Sturman, Astley and Chandra, "Matching events in a content-based
subscription system" (PODC 1999).

The legend is that of `growing_tree`. A *static tree* is ``(nodes[n, 8], successors[*], roots[r],
order[l], index[*, 3], classes[e], held[*])``: level l examines the attribute order[l]. The children
of a node are side by side, the *-child first, then in the order of their labels, so that looking
for a result reads the node that it leads to.

A path is a list of segments, one per level: a value or ``*``. A node is *entered* after the last
segment that is not part of a collapsed chain: ENTRY segments lead to it, and it examines the
attribute of LEVEL >= ENTRY. If the path ends in values, its successors are the paths in which one
or more of these are replaced by ``*``. Placing the stars from left to right reaches every such path
in exactly one way; where a path does not exist, those that are reached through it take its place.
So the successors of a node are the *nearest existing* ones, all of the same length. Going on from
successor to successor meets every node that must be visited exactly once, so nodes need not be
marked as visited.

A successor that is met in the middle of a collapsed chain (its own ENTRY is smaller) has no
successors of its own there. So successors are stored as ``2 * node + own``.
"""

from typing import Any

import numpy as np

from tamis.kernels import growing_tree as t
from tamis.kernels.growing_tree import NONE, Tree
from tamis.kernels.jit import inner, jit
from tamis.kernels.tree_conjunctions import Groups
from tamis.kernels.tree_factoring import I_ATTRIBUTE, I_STRIDE, L_GROUP, L_NEXT
from tamis.kernels.tree_match import FOUND, VISITED, EventArrays, report_group

Array = np.ndarray[Any, Any]
Static = tuple[Array, Array, Array, Array, Array, Array, Array]

Frozen = tuple[Array, Array, Array]  # nodes, roots, held

# Columns of nodes: the children are BLOCK ... BLOCK + COUNT - 1, the successors are at
# SUCCESSORS ... END - 1. LEVEL of a leaf is the number of levels; its groups are
# held[BLOCK] ... held[STAR - 1], and its COUNT is -1.
LABEL, LEVEL, BLOCK, COUNT, STAR, ENTRY, SUCCESSORS, END = range(8)
STATIC_COLUMNS = 8
# In the finished tree ENTRY becomes GATE, 2 * label + chained: the label of the first child, so
# that its row need not be read to see that it is not the one, and whether LEVEL > ENTRY.
GATE = ENTRY

NO_SPACE = -1  # returned if the successors do not fit into the pool

FEW = 8  # children up to which they are searched one after another
MANY = 64  # children beyond which refining does not compare sets of labels


@inner
def find_child(nodes: Array, v: int, label: int, skipped: int) -> int:
    """The child of a node along the edge of a value, or NONE; the first ones are skipped."""
    low = nodes[v, BLOCK] + skipped
    count = nodes[v, COUNT] - skipped
    if count <= FEW:
        for c in range(low, low + count):
            if nodes[c, LABEL] == label:
                return c
        return NONE
    high = low + count
    while low < high:
        middle = (low + high) // 2
        if nodes[middle, LABEL] < label:
            low = middle + 1
        else:
            high = middle
    end = nodes[v, BLOCK] + nodes[v, COUNT]
    return low if low < end and nodes[low, LABEL] == label else NONE


# --- from a growing tree


def _children(growing: Array, used: int) -> tuple[Array, Array]:
    """start[n + 1] and keys[*]: the children of v by values are keys[start[v]:start[v + 1]].

    A key is the label and the node in one number, so that keys sort by label.
    """
    by_value = np.flatnonzero(growing[:used, t.LABEL] != t.STAR_EDGE)
    parents = growing[by_value, t.PARENT]
    keys = growing[by_value, t.LABEL].astype(np.int64) << 32 | by_value
    start = np.zeros(used + 1, np.int64)
    np.cumsum(np.bincount(parents, minlength=used), out=start[1:])
    return start, keys[np.lexsort((keys, parents))]


@inner
def _write(nodes: Array, v: int, label: int, entry: int) -> None:
    """Begin a node; the caller fills in the rest."""
    nodes[v, LABEL] = label
    nodes[v, ENTRY] = entry
    nodes[v, STAR] = NONE
    nodes[v, COUNT] = -1
    nodes[v, SUCCESSORS] = nodes[v, END] = 0


@inner
def _write_leaf(links: Array, first: int, nodes: Array, v: int, held: Array, used: int) -> int:
    """Write the groups of a leaf; returns how much of `held` is used now."""
    nodes[v, BLOCK] = used
    link = first
    while link:
        held[used] = links[link, L_GROUP]
        used += 1
        link = links[link, L_NEXT]
    nodes[v, STAR] = used
    return used


def freeze(tree: Tree, links: Array, order: Array, parents: Array, frozen: Frozen) -> None:
    """Write a tree that `place_in_subtrees` made as nodes[n, 8], roots[r], held[*] and parents[n].

    order[l] are the attributes of the levels. Parents come before children.
    """
    growing, _, _, state = tree
    used = int(state[t.USED])
    level_of = np.zeros(order.max(initial=0) + 1, np.int64)
    level_of[order] = np.arange(order.size)
    stack = np.empty((used + 1, 2), np.int64)
    _freeze(tree, links, order, parents, frozen, *_children(growing, used), level_of, stack)


@jit
def _freeze(
    tree: Tree, links: Array, order: Array, parents: Array, frozen: Frozen, start: Array,
    keys: Array, level_of: Array, stack: Array,
) -> None:  # fmt: skip
    """`freeze`; stack[*, 2] are the old and the new id of nodes to write."""
    nodes, roots, held = frozen
    growing, _, old_roots, _ = tree
    new = holding = 0
    for r in range(old_roots.size):
        roots[r] = NONE
        if old_roots[r] < 0:
            continue
        roots[r] = new
        _write(nodes, new, NONE, 0)
        parents[new] = NONE
        stack[0, 0], stack[0, 1] = old_roots[r], new
        new += 1
        top = 1
        while top:
            top -= 1
            old, v = stack[top, 0], stack[top, 1]
            if growing[old, t.TEST] == t.LEAF:
                nodes[v, LEVEL] = order.size
                holding = _write_leaf(links, growing[old, t.CHILD], nodes, v, held, holding)
                continue
            level = level_of[growing[old, t.TEST]]
            nodes[v, LEVEL] = level
            if growing[old, t.STAR] >= 0:
                nodes[v, STAR] = new
                _write(nodes, new, NONE, level + 1)
                parents[new] = v
                stack[top, 0], stack[top, 1] = growing[old, t.STAR], new
                top += 1
                new += 1
            block = keys[start[old] : start[old + 1]]
            nodes[v, BLOCK], nodes[v, COUNT] = new, block.size
            for k in range(block.size - 1, -1, -1):  # the first child is written next
                c = new + k
                _write(nodes, c, block[k] >> 32, level + 1)
                parents[c] = v
                stack[top, 0], stack[top, 1] = block[k] & 0xFFFFFFFF, c
                top += 1
            new += block.size


# --- successors


@jit
def annotate_successors(
    nodes: Array, parents: Array, order: Array, pool: Array, stack: Array
) -> int:
    """Write the successors of all nodes to pool[*]; returns how many, or `NO_SPACE`.

    order[n] has the nodes by their entries; stack[*] is scratch.

    The successors of the child c of N by a value v are found where matching would find them: it
    follows v at the successors of N, at their successors where there is no v, and takes the *-edge
    of N last.
    """
    used = 0
    for k in range(order.size):
        c = order[k]
        parent = parents[c]
        nodes[c, SUCCESSORS] = nodes[c, END] = used
        if parent < 0 or nodes[c, LABEL] < 0:
            continue
        level = nodes[parent, LEVEL]
        top = 0
        if nodes[parent, ENTRY] == level:
            top = _push(nodes, pool, parent, stack, top)
        while top > 0:
            top -= 1
            m, own = stack[top] >> 1, stack[top] & 1
            if used + 1 >= pool.size:
                return NO_SPACE
            if nodes[m, LEVEL] > level:  # within a chain, or a leaf
                pool[used] = 2 * m
                used += 1
            else:
                w = find_child(nodes, m, nodes[c, LABEL], 0)
                if w < 0:
                    w = nodes[m, STAR]
                else:
                    own = 0  # its successors are those of the child now
                if w >= 0:
                    pool[used] = 2 * w + 1
                    used += 1
            if own:
                top = _push(nodes, pool, m, stack, top)
        if top < 0 or used + 1 >= pool.size:
            return NO_SPACE
        if nodes[parent, STAR] >= 0:
            pool[used] = 2 * nodes[parent, STAR] + 1
            used += 1
        nodes[c, END] = used
    return used


@inner
def _push(nodes: Array, pool: Array, v: int, stack: Array, top: int) -> int:
    """Put the successors of a node on the stack; returns the new top, or -1 if they do not fit."""
    start, end = nodes[v, SUCCESSORS], nodes[v, END]
    if top + end - start > stack.size:
        return -1
    for k in range(end - 1, start - 1, -1):
        stack[top] = pool[k]
        top += 1
    return top


@inner
def _within(nodes: Array, m: int, v: int) -> bool:
    """Whether v has a child for every value for which m has one."""
    if nodes[m, COUNT] > MANY or nodes[v, COUNT] > MANY:
        return False
    at, end = nodes[v, BLOCK], nodes[v, BLOCK] + nodes[v, COUNT]
    for c in range(nodes[m, BLOCK], nodes[m, BLOCK] + nodes[m, COUNT]):
        while at < end and nodes[at, LABEL] < nodes[c, LABEL]:
            at += 1
        if at == end or nodes[at, LABEL] != nodes[c, LABEL]:
            return False
    return True


@jit
def refine_successors(nodes: Array, old: Array, pool: Array, stack: Array, ends: Array) -> int:
    """Write the refined successors to another pool; returns how many, or `NO_SPACE`.

    Matching goes to the successors of a node when it has no child for the event's value. A
    successor that examines the same attribute, and has children only for values for which the node
    has one, is blocked as well; what is reached from it takes its place. ends[n, 2] receives where
    the successors of each node are.
    """
    used = 0
    for v in range(nodes.shape[0]):
        ends[v, 0] = used
        level = nodes[v, LEVEL]
        top = _push(nodes, old, v, stack, 0)
        while top > 0:
            top -= 1
            m, own = stack[top] >> 1, stack[top] & 1
            blocked = (
                nodes[v, ENTRY] == level == nodes[m, LEVEL]
                and nodes[v, COUNT] >= 0
                and _within(nodes, m, v)
            )
            kept = stack[top]
            if blocked:
                kept = 2 * nodes[m, STAR] + 1 if nodes[m, STAR] >= 0 else NONE
                if own:
                    top = _push(nodes, old, m, stack, top)
            if kept >= 0:
                if used == pool.size:
                    return NO_SPACE
                pool[used] = kept
                used += 1
        if top < 0:
            return NO_SPACE
        ends[v, 1] = used
    return used


@jit
def set_gates(nodes: Array) -> None:
    """Replace ENTRY by GATE in all nodes."""
    for v in range(nodes.shape[0]):
        first = nodes[nodes[v, BLOCK], LABEL] if nodes[v, COUNT] > 0 else NONE
        nodes[v, GATE] = 2 * first + (nodes[v, LEVEL] > nodes[v, ENTRY])


# --- matching


@inner
def _subtree(static: Static, codes: Array) -> int:
    """The root of the subtree for an event's values of the index attributes."""
    _, _, roots, _, index, classes, _ = static
    place = 0
    for k in range(index.shape[0]):
        e = codes[index[k, I_ATTRIBUTE]]
        if 0 <= e < classes.size:
            place += classes[e] * index[k, I_STRIDE]
    return int(roots[place])


@jit
def match_static(static: Static, annotated: bool, groups: Groups, event: EventArrays) -> bool:
    """Visit the nodes that an event reaches in its subtree; False if the stack is too short.

    Result edges are followed until there is none or a leaf is reached, then the successors; without
    annotations, the *-edges.
    """
    nodes, successors, _, order, _, _, held = static
    codes, _, _, _, _, stack, _, tally = event
    before = tally[FOUND]
    visited = top = 0
    v = _subtree(static, codes)
    own = 1
    while v >= 0 or top:
        if v < 0:
            top -= 1
            v, own = stack[top] >> 1, stack[top] & 1
        visited += 1
        level, gate = nodes[v, LEVEL], nodes[v, GATE]
        child, star = NONE, NONE
        if level == order.size:
            for k in range(nodes[v, BLOCK], nodes[v, STAR]):
                report_group(groups, event, held[k])
        else:
            star = nodes[v, STAR]
            code = codes[order[level]]
            if code >= 0:
                if gate >> 1 == code:
                    child = nodes[v, BLOCK]
                elif nodes[v, COUNT] > 1:
                    child = find_child(nodes, v, code, 1)
        if annotated:
            if own and (child < 0 or gate & 1):
                top = _push(nodes, successors, v, stack, top)
        elif child >= 0 and star >= 0:
            if top < stack.size:
                stack[top] = 2 * star
                top += 1
            else:
                top = -1
        if top < 0:
            tally[FOUND] = before
            return False
        v = child if child >= 0 else star
        own = 1
    tally[VISITED] += visited
    return True
