"""The algorithm match on a growing tree (TREE, Fig. 4).

TREE is short for Aguilera, Strom, Sturman, Astley and Chandra, "Matching events in a content-based
subscription system" (PODC 1999).

The legend is that of `growing_tree`. An *event* is ``(codes[a], ordinals[a], missing[a], truth[p],
holds[e], stack[*], found[c], tally[2])``:

* codes: the element of each attribute's value, NONE if no conjunction tests for it
* ordinals, missing: the value's place in the order of numbers, and whether there is no value
* truth: which predicates are true, of those that tests need
* holds: which elements are true, if that was decided beforehand
* stack: scratch
* found, tally: the slots that match; how many they are, and how many nodes were visited
"""

from typing import Any

import numpy as np

from tamis.kernels.growing_tree import (
    ATTRIBUTE,
    BOOLEAN,
    CHILD,
    CHILDREN,
    F_ASK,
    F_NEVER,
    F_NULL,
    F_POINT,
    FORM,
    HIGH,
    K_EXAMINE,
    KEY,
    KIND,
    LEAF,
    LOW,
    NONE,
    OTHER,
    PREDICATE,
    STAR,
    TEST,
    Tree,
    child_of,
)
from tamis.kernels.jit import inner, jit
from tamis.kernels.tree_conjunctions import FOLLOWING, NEXT, Groups

Array = np.ndarray[Any, Any]
EventArrays = tuple[Array, Array, Array, Array, Array, Array, Array, Array]

FOUND, VISITED = range(2)  # places of the tally

_LEAST = np.iinfo(np.int64).min
_GREATEST = np.iinfo(np.int64).max


# --- what is known of an event


@jit
def order_doubles(ordinals: Array, doubles: Array, positions: Array) -> None:
    """Turn the doubles of the attributes positions[*] into ordinals, in place.

    ordinals[a] and doubles[a] are the same memory. NaN is above every number.
    """
    for k in range(positions.size):
        a = positions[k]
        bits = ordinals[a]
        if np.isnan(doubles[a]):
            ordinals[a] = _GREATEST
        elif bits < 0:
            ordinals[a] = -(bits - _LEAST)


@jit
def mark_predicates(satisfied: Array, event: EventArrays, truth: int) -> None:
    """Note that predicates are true (1), or that they are not any more (0)."""
    for k in range(satisfied.size):
        event[3][satisfied[k]] = truth


@jit
def mark_values(satisfied: Array, of_predicate: Array, rows: Array, event: EventArrays) -> None:
    """Note the elements of an event's values, by the equalities that it satisfies."""
    for k in range(satisfied.size):
        p = satisfied[k]
        if p < of_predicate.size and of_predicate[p] >= 0:
            e = of_predicate[p]
            if rows[e, KIND] == K_EXAMINE:
                event[0][rows[e, ATTRIBUTE]] = e


@inner
def _holds(rows: Array, e: int, event: EventArrays, by_value: bool) -> bool:
    """Perform the test of an element, by the event's value where numbers can express it."""
    ordinals, missing, truth = event[1], event[2], event[3]
    form = rows[e, FORM]
    if by_value and form not in (F_ASK, F_NEVER):
        a = rows[e, ATTRIBUTE]
        if form == F_NULL:
            return bool(missing[a])
        if missing[a]:
            return False
        if form == F_POINT:
            return bool(ordinals[a] != rows[e, KEY])
        return bool(rows[e, LOW] <= ordinals[a] <= rows[e, HIGH])
    second = rows[e, OTHER]
    return bool(truth[rows[e, PREDICATE]] != 0 and (second < 0 or truth[second] != 0))


@jit
def decide_elements(rows: Array, size: int, event: EventArrays, by_value: bool) -> None:
    """Perform the tests of all elements, where there are few of them."""
    holds = event[4]
    for e in range(size):
        holds[e] = rows[e, KIND] != K_EXAMINE and _holds(rows, e, event, by_value)


# --- match


@inner
def report_group(groups: Groups, event: EventArrays, g: int) -> None:
    """Add the slots of a group to the slots found."""
    slots, first = groups[3], groups[5]
    found, tally = event[6], event[7]
    if first[g] < 0:
        return
    slot, more = first[g] >> 1, first[g] & 1
    found[tally[FOUND]] = slot
    tally[FOUND] += 1
    while more:
        slot = slots[slot, FOLLOWING]
        found[tally[FOUND]] = slot
        tally[FOUND] += 1
        more = slots[slot, FOLLOWING] >= 0


@jit
def match(tree: Tree, rows: Array, groups: Groups, event: EventArrays, decided: bool) -> bool:
    """Visit the nodes that an event reaches from the root (Fig. 4); False if the stack is full.

    rows[e, 11] are the elements. Their tests are performed during the visit or, if `decided`, were
    performed before. The stack has the *-edges that are still to be followed, at most as many as
    one path has result edges.
    """
    nodes, table, roots, _ = tree
    codes, _, _, _, holds, stack, _, tally = event
    before = tally[FOUND]
    visited = top = 0
    v = roots[0]
    while v >= 0 or top:
        if v < 0:
            top -= 1
            v = stack[top]
        visited += 1
        test = nodes[v, TEST]
        if test == LEAF:
            g = nodes[v, CHILD]
            report_group(groups, event, g)
            for _ in range(1, nodes[v, CHILDREN]):
                g = groups[0][g, NEXT]
                report_group(groups, event, g)
            v = NONE
            continue
        child = NONE
        if test >= 0:
            if codes[test] >= 0:
                child = child_of(nodes, table, v, codes[test])
        elif holds[BOOLEAN - test] if decided else _holds(rows, BOOLEAN - test, event, True):
            child = nodes[v, CHILD]
        star = nodes[v, STAR]
        if child < 0:
            v = star
            continue
        if star >= 0:
            if top == stack.size:
                tally[FOUND] = before
                return False
            stack[top] = star
            top += 1
        v = child
    tally[VISITED] += visited
    return True
