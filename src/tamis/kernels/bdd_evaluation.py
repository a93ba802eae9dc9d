"""EvalBDD and MVEvalBDD: the value of every node of a shared diagram, in one pass.

They are Fig. 3 and Fig. 5 of Campailla et al., "Efficient filtering in publish-subscribe systems
using binary decision diagrams" (ICSE 2001), called BDD here. The paper numbers nodes from the root
down and goes from the last to the first; `bdd_nodes` numbers them from the leaves up, so the pass
goes from the first to the last.
"""

from typing import NamedTuple

import numpy as np

from tamis.kernels.bdd_nodes import FALSE, NODES, TRUE, Array, NodeStore
from tamis.kernels.jit import inner, jit
from tamis.kernels.records import record

UNDEFINED = 2  # the third truth value, * in the paper


@record
class VariableRanges(NamedTuple):
    """Where the nodes of each variable are, as `compact_nodes` puts them; newer ones come after."""

    variables: Array  # int64[rank]
    starts: Array  # int64[rank + 1]


@jit
def eval_bdd(truth: Array, ranges: VariableRanges, s: NodeStore, value: Array) -> None:
    """EvalBDD (BDD, Fig. 3): write value[node] of every node; truth[variable] is 0 or 1."""
    value[FALSE], value[TRUE] = 0, 1
    starts = ranges.starts
    for k in range(ranges.variables.size):
        child = s.high if truth[ranges.variables[k]] else s.low
        for node in range(starts[k], starts[k + 1]):
            value[node] = value[child[node]]
    for node in range(starts[starts.size - 1], s.sizes[NODES]):
        value[node] = value[s.high[node] if truth[s.label[node]] else s.low[node]]


@jit
def mv_eval_bdd(truth: Array, ranges: VariableRanges, s: NodeStore, value: Array) -> None:
    """MVEvalBDD (BDD, Fig. 5): the same in three values, where truth may also be UNDEFINED.

    A node is undefined if its variable is, and then its children are not read, or if one of its
    children is.
    """
    value[FALSE], value[TRUE] = 0, 1
    starts = ranges.starts
    for k in range(ranges.variables.size):
        test = truth[ranges.variables[k]]
        if test == UNDEFINED:
            for node in range(starts[k], starts[k + 1]):
                value[node] = UNDEFINED
        else:
            for node in range(starts[k], starts[k + 1]):
                value[node] = _ite_star(test, value[s.low[node]], value[s.high[node]])
    for node in range(starts[starts.size - 1], s.sizes[NODES]):
        test = truth[s.label[node]]
        if test == UNDEFINED:
            value[node] = UNDEFINED
        else:
            value[node] = _ite_star(test, value[s.low[node]], value[s.high[node]])


@inner
def _ite_star(test: int, low: int, high: int) -> int:
    """ITE* of Fig. 5: if-then-else, undefined if one of the branches is."""
    # Values are 0, 1 and 2 for undefined: the second bit says whether a value is undefined.
    return (high if test else low) & 1 | (low | high) & UNDEFINED


@jit
def undefined_variables(
    variables: Array, starts: Array, attributes: Array, missing: Array, truth: Array
) -> None:
    """Set truth[variable] to UNDEFINED for each of variables[*] that tests a missing attribute.

    variables[k] tests attributes[starts[k]:starts[k + 1]]; missing[attribute] is 0 or 1.
    """
    for k in range(variables.size):
        for j in range(starts[k], starts[k + 1]):
            if missing[attributes[j]]:
                truth[variables[k]] = UNDEFINED


@jit
def true_slots(value: Array, roots: Array, found: Array) -> int:
    """Write the slots whose root is true to found[*]; returns how many there are.

    found[*] must be one longer than roots[*].
    """
    count = 0
    for slot in range(roots.size):
        found[count] = slot
        count += value[roots[slot]] == 1
    return count


def without_missing(slots: Array, needed: Array, missing: Array) -> Array:
    """Those of slots[*] that need no missing attribute, by needed[slot, word] and missing[word]."""
    found = np.empty(slots.size, np.int32)
    return found[: _without_missing(slots, needed, missing, found)]


@jit
def _without_missing(slots: Array, needed: Array, missing: Array, found: Array) -> int:
    """Write the slots that need no missing attribute to found[*]; returns how many."""
    count = 0
    for slot in slots:
        lacks = np.uint64(0)
        for word in range(missing.size):
            lacks |= needed[slot, word] & missing[word]
        found[count] = slot
        count += lacks == 0
    return count
