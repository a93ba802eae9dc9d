"""From matched slots to handles: each once, in ascending order."""

from typing import Any

import numpy as np

from tamis.kernels.jit import jit

Array = np.ndarray[Any, Any]

# Marking and sweeping beats sorting when at least one handle in this many is matched.
SPARSE = 64


def ascending(slots: Array, handles: Array, marks: Array) -> Array:
    """slots[*], handles[slot], marks[handle], which must be zero and is left so."""
    if len(slots) * SPARSE > len(marks):
        return _sweep(slots, handles, marks)
    found = np.sort(handles[slots])
    if len(found) > 1:
        found = found[np.concatenate((np.ones(1, np.bool_), found[1:] != found[:-1]))]
    return found


@jit
def _sweep(slots: Array, handles: Array, marks: Array) -> Array:
    count = 0
    low, high = marks.size, -1
    for k in range(slots.size):
        h = handles[slots[k]]
        if marks[h] == 0:
            marks[h] = 1
            count += 1
            low = min(low, h)
            high = max(high, h)
    found = np.empty(count, np.int64)
    place = 0
    for h in range(low, high + 1):
        if marks[h]:
            found[place] = h
            place += 1
            marks[h] = 0
    return found
