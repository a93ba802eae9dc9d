"""Distinct conjunctions of the matching tree: equal ones share a leaf (TREE, footnote 1).

TREE is short for Aguilera, Strom, Sturman, Astley and Chandra, "Matching events in a content-based
subscription system" (PODC 1999).

A *group* is one distinct conjunction, a sequence of elements in the fixed order, with the slots
that hold it. *Groups* are ``(rows[g, 7], pool[*], table[*], slots[c, 3], state[5], first[g])``: the
sequences are in the pool, and the table finds a group by its sequence. The legend is that of
`growing_tree`.

Matching reads only `first`: the first slot of a group and whether there are more, as
``2 * slot + more``, or NONE.
"""

from typing import Any

import numpy as np

from tamis.kernels.growing_tree import (
    ATTRIBUTE,
    CHILD,
    CHILDREN,
    K_EXAMINE,
    K_LOWER,
    K_UPPER,
    KIND,
    NONE,
    USES,
    Elements,
    drop_use,
    element_order,
    mix,
)
from tamis.kernels.jit import inner, jit

Array = np.ndarray[Any, Any]
Groups = tuple[Array, Array, Array, Array, Array, Array]

# Columns of rows. LEAF_OF is the leaf of a group in a growing tree; NEXT and BEFORE join the groups
# of one leaf into a list (where implied edges are followed, equivalent groups share a leaf); HOME
# says which tree has it. NEXT of a free group is the next free one.
START, LENGTH, HASH, LEAF_OF, NEXT, BEFORE, HOME = range(7)
GROUP_COLUMNS = 7

# Homes of groups; the last two are the equality tree. A group without slots stays in the old tree
# until that is built again.
FREED, GENERAL, YOUNG, OLD = range(4)

GROUP, FOLLOWING, PRECEDING = range(3)  # columns of slots

# Places of the state: how many ids were ever used, the first free one, groups in use, how much of
# the pool is taken, and how much of that is waste.
G_USED, G_FREE, G_LIVE, G_POOL, G_WASTE = range(5)

MOST_TRANSLATED = 256  # predicates of a conjunction that `element_sequence` sorts

# What `element_sequence` returns instead of a length: a predicate has no element yet, the
# conjunction is never true, or some of its predicates must become one element.
UNKNOWN, IMPOSSIBLE, COMPOSED = -1, -2, -3


# --- from predicates to sequences


@inner
def _arrange(sequence: Array, size: int, rows: Array) -> None:
    """Sort elements into the fixed order."""
    for i in range(1, size):
        e = sequence[i]
        k = i - 1
        while k >= 0 and element_order(rows, sequence[k], e) > 0:
            sequence[k + 1] = sequence[k]
            k -= 1
        sequence[k + 1] = e


@jit
def element_sequence(predicates: Array, of_predicate: Array, rows: Array, sequence: Array) -> int:
    """Write the sequence of a conjunction; returns its length, negative if more work is needed.

    predicates[*] are its predicates, of_predicate[p] is the element of a predicate, or NONE.
    """
    if predicates.size > MOST_TRANSLATED:
        return COMPOSED
    for k in range(predicates.size):
        p = predicates[k]
        if p >= of_predicate.size or of_predicate[p] < 0:
            return UNKNOWN
        sequence[k] = of_predicate[p]
    _arrange(sequence, predicates.size, rows)
    for k in range(1, predicates.size):
        a, b = sequence[k - 1], sequence[k]
        if rows[a, ATTRIBUTE] == rows[b, ATTRIBUTE]:
            if rows[a, KIND] == K_EXAMINE and rows[b, KIND] == K_EXAMINE:
                return IMPOSSIBLE
            if rows[a, KIND] in (K_UPPER, K_LOWER) and rows[b, KIND] in (K_UPPER, K_LOWER):
                return COMPOSED
    return predicates.size


@jit
def only_equalities(sequence: Array, rows: Array) -> bool:
    """Whether the equality tree can hold a conjunction."""
    found = True
    for k in range(sequence.size):
        found &= rows[sequence[k], KIND] == K_EXAMINE
    return found


# --- groups


@inner
def _hash(sequence: Array) -> int:
    h = sequence.size
    for k in range(sequence.size):
        h = mix(h, sequence[k])
    return h


@jit
def find_group(groups: Groups, sequence: Array) -> int:
    """The group of a sequence, or NONE."""
    rows, pool, table, _, _, _ = groups
    h = _hash(sequence)
    mask = table.size - 1
    i = h & mask
    while table[i] >= 0:
        g = table[i]
        if rows[g, HASH] == h and rows[g, LENGTH] == sequence.size:
            start = rows[g, START]
            k = 0
            while k < sequence.size and pool[start + k] == sequence[k]:
                k += 1
            if k == sequence.size:
                return int(g)
        i = (i + 1) & mask
    return NONE


@jit
def add_group(groups: Groups, elements: Elements, sequence: Array, home: int) -> int:
    """Add a group without slots; the arrays are large enough."""
    rows, pool, table, _, state, first = groups
    g = state[G_FREE]
    if g >= 0:
        state[G_FREE] = rows[g, NEXT]
    else:
        g = state[G_USED]
        state[G_USED] += 1
    state[G_LIVE] += 1
    rows[g, START] = state[G_POOL]
    rows[g, LENGTH] = sequence.size
    rows[g, HASH] = _hash(sequence)
    rows[g, LEAF_OF] = rows[g, NEXT] = rows[g, BEFORE] = first[g] = NONE
    rows[g, HOME] = home
    for k in range(sequence.size):
        pool[state[G_POOL] + k] = sequence[k]
        elements[0][sequence[k], USES] += 1
    state[G_POOL] += sequence.size
    _enter(table, rows[g, HASH], g)
    return int(g)


@inner
def _enter(table: Array, h: int, g: int) -> None:
    mask = table.size - 1
    i = h & mask
    while table[i] >= 0:
        i = (i + 1) & mask
    table[i] = g


@jit
def drop_group(groups: Groups, elements: Elements, g: int) -> None:
    """Remove a group; its elements have one use less."""
    rows, pool, table, _, state, _ = groups
    mask = table.size - 1
    hole = rows[g, HASH] & mask
    while table[hole] != g:
        hole = (hole + 1) & mask
    i = hole
    while True:
        i = (i + 1) & mask
        if table[i] < 0:
            break
        if ((i - rows[table[i], HASH]) & mask) >= ((i - hole) & mask):
            table[hole] = table[i]
            hole = i
    table[hole] = NONE
    for k in range(rows[g, START], rows[g, START] + rows[g, LENGTH]):
        drop_use(elements, pool[k])
    state[G_WASTE] += rows[g, LENGTH]
    rows[g, HOME] = FREED
    rows[g, NEXT] = state[G_FREE]
    state[G_FREE] = g
    state[G_LIVE] -= 1


@jit
def rebuild_table(groups: Groups) -> None:
    """Enter all groups into the table, which is empty."""
    rows, _, table, _, state, _ = groups
    for g in range(state[G_USED]):
        if rows[g, HOME] != FREED:
            _enter(table, rows[g, HASH], g)


@jit
def compact_pool(groups: Groups, pool: Array) -> None:
    """Move the sequences into another pool, without waste."""
    rows, old, _, _, state, _ = groups
    used = 0
    for g in range(state[G_USED]):
        if rows[g, HOME] != FREED:
            start = rows[g, START]
            rows[g, START] = used
            for k in range(rows[g, LENGTH]):
                pool[used] = old[start + k]
                used += 1
    state[G_POOL] = used
    state[G_WASTE] = 0


# --- slots of groups


@jit
def add_slot(groups: Groups, slot: int, g: int) -> None:
    """Add a slot to the group whose conjunction it holds."""
    slots, first = groups[3], groups[5]
    after = first[g] >> 1 if first[g] >= 0 else NONE
    slots[slot, GROUP] = g
    slots[slot, FOLLOWING] = after
    slots[slot, PRECEDING] = NONE
    if after >= 0:
        slots[after, PRECEDING] = slot
    first[g] = 2 * slot + (after >= 0)


@jit
def remove_slot(groups: Groups, slot: int) -> int:
    """Remove a slot from its group; returns the group if it has no other slot, else NONE."""
    slots, first = groups[3], groups[5]
    g = slots[slot, GROUP]
    before, after = slots[slot, PRECEDING], slots[slot, FOLLOWING]
    slots[slot, GROUP] = NONE
    if after >= 0:
        slots[after, PRECEDING] = before
    if before >= 0:
        slots[before, FOLLOWING] = after
    head = first[g] >> 1 if before >= 0 else after
    if head < 0:
        first[g] = NONE
        return int(g)
    first[g] = 2 * head + (slots[head, FOLLOWING] >= 0)
    return NONE


# --- groups of leaves


@jit
def attach_to_leaf(groups: Groups, nodes: Array, leaf: int, g: int) -> None:
    """Add a group to a leaf of a growing tree."""
    rows = groups[0]
    first = nodes[leaf, CHILD]
    rows[g, LEAF_OF] = leaf
    rows[g, NEXT] = first
    rows[g, BEFORE] = NONE
    if first >= 0:
        rows[first, BEFORE] = g
    nodes[leaf, CHILD] = g
    nodes[leaf, CHILDREN] += 1


@jit
def detach_from_leaf(groups: Groups, nodes: Array, g: int) -> int:
    """Remove a group from its leaf; returns the leaf if it has no other group, else NONE."""
    rows = groups[0]
    leaf, before, after = rows[g, LEAF_OF], rows[g, BEFORE], rows[g, NEXT]
    if after >= 0:
        rows[after, BEFORE] = before
    if before >= 0:
        rows[before, NEXT] = after
    else:
        nodes[leaf, CHILD] = after
    nodes[leaf, CHILDREN] -= 1
    return NONE if nodes[leaf, CHILD] >= 0 else int(leaf)
