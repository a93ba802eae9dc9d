"""Factoring the equality tree: one subtree per value of the index attributes (TREE, section 5).

TREE is short for Aguilera, Strom, Sturman, Astley and Chandra, "Matching events in a content-based
subscription system" (PODC 1999).

The legend is that of `growing_tree`. members[*] are the groups to put into the subtrees. The values
of an index attribute that occur in them have the classes 1, 2, ...; all other values, and a missing
one, have class 0.
"""

from typing import Any

import numpy as np

from tamis.kernels.bits import larger
from tamis.kernels.growing_tree import (
    ATTRIBUTE,
    CHILD,
    Elements,
    Tree,
    lacks_room,
    process_sub,
    process_sub_levels,
)
from tamis.kernels.jit import inner, jit
from tamis.kernels.tree_conjunctions import G_USED, HOME, LENGTH, OLD, START, YOUNG, Groups

Array = np.ndarray[Any, Any]
Factors = tuple[Array, Array]  # index[*, 3], classes[e]

FactoringPlan = tuple[Array, Array, Array, Array]

# Without their tests of index attributes, different conjunctions may become equal and share a leaf.
# CHILD of such a leaf is a row of links[*, 2]: a group, and the next row or 0. Row 0 says how many
# rows are used.
L_GROUP, L_NEXT = range(2)

I_ATTRIBUTE, I_CLASSES, I_STRIDE = range(3)  # columns of index


def equality_members(groups: Groups) -> Array:
    """The groups of the equality tree, young or old, that have slots."""
    return _equality_groups(groups, YOUNG, has_slots=True)


def empty_groups(groups: Groups) -> Array:
    """The groups of the static tree that have no slots."""
    return _equality_groups(groups, OLD, has_slots=False)


def _equality_groups(groups: Groups, least_home: int, *, has_slots: bool) -> Array:
    """The groups with a home from `least_home` on that have slots, or have none."""
    rows, _, _, _, state, first = groups
    used = int(state[G_USED])
    return np.flatnonzero((rows[:used, HOME] >= least_home) & ((first[:used] >= 0) == has_slots))


@jit
def number_values(
    groups: Groups, elements: Array, members: Array, classes: Array, counts: Array
) -> None:
    """Give every value a class: write classes[e] and counts[a, 2], which must be zero.

    counts[a] says how often an attribute is tested, and how many classes its values have.
    """
    rows, pool, _, _, _, _ = groups
    for i in range(members.size):
        g = members[i]
        for k in range(rows[g, START], rows[g, START] + rows[g, LENGTH]):
            e = pool[k]
            a = elements[e, ATTRIBUTE]
            counts[a, 0] += 1
            if classes[e] == 0:
                counts[a, 1] += 1
                classes[e] = counts[a, 1]


@jit
def count_copies(
    groups: Groups, elements: Array, members: Array, radix: Array
) -> tuple[float, float]:
    """How often members are put into a subtree, and the most nodes that they need.

    radix[a] is how many classes an index attribute has, 0 for other attributes. A member that does
    not test an index attribute is put into the subtrees of all its classes.
    """
    rows, pool, _, _, _, _ = groups
    everywhere = 1.0
    for a in range(radix.size):
        if radix[a]:
            everywhere *= radix[a]
    total, nodes = 0.0, 0.0
    for i in range(members.size):
        g = members[i]
        times = everywhere
        for k in range(rows[g, START], rows[g, START] + rows[g, LENGTH]):
            a = elements[pool[k], ATTRIBUTE]
            if radix[a]:
                times /= radix[a]
        total += times
        nodes += times * (rows[g, LENGTH] + 1)
    return total, nodes


def place_in_subtrees(
    tree: Tree, elements: Elements, groups: Groups, members: Array, plan: FactoringPlan, start: int
) -> int:  # fmt: skip
    """Put the members from `start` on into every subtree that they are consistent with.

    A plan is ``(index[*, 3], classes[e], links[*, 2], levels[*])``. The levels are the attributes
    of a tree without collapsed chains; for a tree with collapsed chains there are none. Returns how
    many members are done; that is not all of them if more room is needed.
    """
    free = np.empty((len(plan[0]), 2), np.int64)
    rest = np.empty(groups[0][members, LENGTH].max(initial=0), np.int32)
    return int(_place_in_subtrees(tree, elements, groups, members, plan, start, free, rest))


@jit
def _place_in_subtrees(
    tree: Tree, elements: Elements, groups: Groups, members: Array, plan: FactoringPlan, start: int,
    free: Array, rest: Array,
) -> int:  # fmt: skip
    """`place_in_subtrees`.

    free[*, 2] are the index attributes that a member does not test, and a class; rest[*] are its
    elements that test other attributes.
    """
    index, classes, links, levels = plan
    rows, pool, _, _, _, _ = groups
    for i in range(start, members.size):
        g = members[i]
        sequence = pool[rows[g, START] : rows[g, START] + rows[g, LENGTH]]
        root, size, unset, copies_ = 0, 0, 0, 1
        for k in range(index.shape[0]):
            wanted = _class_of(elements[0], sequence, classes, index[k, I_ATTRIBUTE])
            if wanted:
                root += wanted * index[k, I_STRIDE]
            else:
                free[unset, 0], free[unset, 1] = k, 0
                unset += 1
                copies_ *= index[k, I_CLASSES]
        for k in range(sequence.size):
            if not _is_index(index, elements[0][sequence[k], ATTRIBUTE]):
                rest[size] = sequence[k]
                size += 1
        if lacks_room(tree, copies_ * (larger(size, levels.size) + 1)):
            return i
        while True:
            if levels.size:
                leaf = process_sub_levels(tree, elements, rest[:size], root, levels)
            else:
                leaf = process_sub(tree, elements, rest[:size], root, False)
            links[0, L_GROUP] += 1
            new = links[0, L_GROUP]
            links[new, L_GROUP] = g
            links[new, L_NEXT] = larger(tree[0][leaf, CHILD], 0)
            tree[0][leaf, CHILD] = new
            k = 0
            while k < unset:  # the next combination of classes
                j = free[k, 0]
                free[k, 1] += 1
                root += index[j, I_STRIDE]
                if free[k, 1] < index[j, I_CLASSES]:
                    break
                root -= index[j, I_CLASSES] * index[j, I_STRIDE]
                free[k, 1] = 0
                k += 1
            if k == unset:
                break
    return members.size


@inner
def _class_of(rows: Array, sequence: Array, classes: Array, attribute: int) -> int:
    """The class of the value for which a sequence tests an attribute, 0 if it does not."""
    for k in range(sequence.size):
        if rows[sequence[k], ATTRIBUTE] == attribute:
            return int(classes[sequence[k]])
    return 0


@inner
def _is_index(index: Array, attribute: int) -> bool:
    found = False
    for k in range(index.shape[0]):
        found |= index[k, I_ATTRIBUTE] == attribute
    return found
