"""Ordered linked lists of constants, one per attribute and operator (COUNT, section 3.1).

The paper's general way to find satisfied predicates; tamis bisects arrays instead. They are here to
be compared with, because what the paper says of lists it says of these: entries lie in memory in
the order in which they came, and a search walks from the head of a list to the first entry that
can no longer be satisfied.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.comparisons import ABOVE, AT_LEAST, AT_MOST, BELOW, EQUAL, OPERATORS
from tamis.kernels.jit import jit

Array = np.ndarray[Any, Any]

NONE = -1
ENTRY_BYTES = 24  # a key, an id and a pointer, as a C compiler lays them out


class StoredComparison(NamedTuple):
    """A comparison of the attribute at a position with a constant, and its predicate."""

    position: int
    op: str
    constant: int
    predicate: int


class LinkedLists:
    """Lists that are walked; `<` and `<=` have the largest constant first, the others last."""

    def __init__(self, attributes: int, comparisons: Sequence[StoredComparison]) -> None:
        self.size = len(comparisons)
        self._keys = np.array([one.constant for one in comparisons], np.int64)
        self._ids = np.array([one.predicate for one in comparisons], np.int32)
        self._heads = np.full(len(OPERATORS) * attributes, NONE, np.int32)
        self._next = np.full(self.size, NONE, np.int32)
        for entry, one in sorted(enumerate(comparisons), key=_from_the_end, reverse=True):
            segment = len(OPERATORS) * one.position + OPERATORS.index(one.op)
            self._next[entry], self._heads[segment] = self._heads[segment], entry

    @property
    def bytes(self) -> int:
        return self._heads.nbytes + ENTRY_BYTES * self.size

    def satisfied(self, keys: Array, present: Array) -> Array:
        """The predicates that are true of an event, given by `Keys.row`."""
        found = np.empty(self.size + 1, np.int32)
        lists = self._heads, self._next, self._keys, self._ids
        return found[: walk_lists(keys, present, *lists, found)]


def _from_the_end(entry: tuple[int, StoredComparison]) -> int:
    """The order of entries in a list: the constant, or its opposite where large ones are first."""
    comparison = entry[1]
    return -comparison.constant if comparison.op in {"<", "<="} else comparison.constant


@jit
def walk_lists(
    keys: Array, present: Array, heads: Array, following: Array, constants: Array, ids: Array,
    found: Array,
) -> int:  # fmt: skip
    """Write the predicates that an event satisfies to found[*]; returns how many.

    keys[attribute] is valid where present[attribute] is 1; heads[6 * attribute + operator] is the
    first entry of a list, following[entry] the next one.
    """
    count = 0
    for segment in range(heads.size):
        attribute, op = segment // 6, segment % 6
        if not present[attribute]:
            continue
        key, entry = keys[attribute], heads[segment]
        while entry >= 0:
            constant = constants[entry]
            if op == EQUAL:
                holds, is_last = key == constant, constant >= key
            elif op == BELOW:
                holds, is_last = key < constant, key >= constant
            elif op == AT_MOST:
                holds, is_last = key <= constant, key > constant
            elif op == ABOVE:
                holds, is_last = key > constant, key <= constant
            elif op == AT_LEAST:
                holds, is_last = key >= constant, key < constant
            else:
                holds, is_last = key != constant, False
            found[count] = ids[entry]
            count += holds
            entry = NONE if is_last else following[entry]
    return count
