"""Matching by a tree that grows (TREE, Fig. 4).

The legend is that of `tree`. An *event* is ``(codes[a], ordinals[a], missing[a], truth[p],
holds[e], stack[*], found[c], tally[2])``: the element of each attribute's value, or NONE if no
conjunction asks for it; the value's place in the order of numbers, and whether there is none; which
predicates are true, as far as tests ask; which elements are, if that was decided beforehand;
scratch; the slots found; and how many were found and how many nodes were visited.
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
from tamis.kernels.jit import jit
from tamis.kernels.tree_conjunctions import FOLLOWING, NEXT, Groups

Array = np.ndarray[Any, Any]
EventArrays = tuple[Array, Array, Array, Array, Array, Array, Array, Array]

FOUND, VISITED = range(2)  # places of the tally

_LEAST = np.iinfo(np.int64).min
_GREATEST = np.iinfo(np.int64).max


# --- what is known of an event


@jit
def order_doubles(ordinals: Array, doubles: Array, positions: Array) -> None:
    """ordinals[a] and doubles[a] are one memory; what is there as a double becomes an ordinal.

    positions[*] are the attributes in question. NaN is above every number.
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
    """Note that predicates are true, or (0) are not any more."""
    for k in range(satisfied.size):
        event[3][satisfied[k]] = truth


@jit
def mark_values(satisfied: Array, of_predicate: Array, rows: Array, event: EventArrays) -> None:
    """Note what the satisfied equalities say of an event's values."""
    for k in range(satisfied.size):
        p = satisfied[k]
        if p < of_predicate.size and of_predicate[p] >= 0:
            e = of_predicate[p]
            if rows[e, KIND] == K_EXAMINE:
                event[0][rows[e, ATTRIBUTE]] = e


@jit
def _holds(rows: Array, e: int, event: EventArrays, by_value: bool) -> bool:
    """Perform the test of an element, on the event's values where numbers tell it."""
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
    """Perform the tests of all elements, of which there are few."""
    holds = event[4]
    for e in range(size):
        holds[e] = rows[e, KIND] != K_EXAMINE and _holds(rows, e, event, by_value)


# --- the search


@jit
def report_group(groups: Groups, event: EventArrays, g: int) -> None:
    """The slots of a group are found."""
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
    """Visit what an event reaches from the root; False if the stack was too short.

    rows[e, 11] are the elements. Their tests are performed now or, if `decided`, were before. The
    *-edges that wait on the stack are at most as many as the result edges of one path.
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
