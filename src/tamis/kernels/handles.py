"""From matched slots to handles: each handle once, in ascending order."""

from typing import Any

import numpy as np

from tamis.kernels.bits import larger, smaller
from tamis.kernels.jit import jit

Array = np.ndarray[Any, Any]
Handles = np.ndarray[Any, np.dtype[np.int64]]

# Marking the handles and collecting the marks beats sorting if at least one in 64 is matched.
SPARSE = 64


def sorted_handles(slots: Array, handles: Array, marks: Array) -> Array:
    """The distinct handles of slots[*], ascending, by handles[slot].

    marks[handle] is scratch, all zero before and after; it is empty where there are too many
    handles to mark them.
    """
    found = np.empty(slots.size, np.int64)
    if _translate(slots, handles, found):
        return found
    if len(slots) * SPARSE > len(marks) > 0:
        return found[: _sweep(found, marks)]
    found.sort()
    distinct: Array = found[np.concatenate((np.ones(1, np.bool_), found[1:] != found[:-1]))]
    return distinct


@jit
def _translate(slots: Array, handles: Array, found: Array) -> bool:
    """Write the handles of the slots; returns whether they are strictly ascending already."""
    rising = True
    before = -1
    for k in range(slots.size):
        handle = handles[slots[k]]
        rising &= handle > before
        found[k] = before = handle
    return rising


@jit
def _sweep(found: Array, marks: Array) -> int:
    """Write the distinct handles in ascending order: mark each, then collect the marks."""
    count = 0
    low, high = marks.size, -1
    for h in found:
        if marks[h] == 0:
            marks[h] = 1
            count += 1
            low = smaller(low, h)
            high = larger(high, h)
    place = 0
    for h in range(low, high + 1):
        if marks[h]:
            found[place] = h
            place += 1
            marks[h] = 0
    return count
