"""From matches of a compacted table to matches of the original table.

Dimensions: equivalent filters are one *form* f; the original filters of form f have the numbers
from starts[f] to starts[f + 1]. Event e matches some forms in the compacted table, which are
first[bounds[e]:bounds[e + 1]], and more forms when it is evaluated again, which are
more[more_bounds[e]:more_bounds[e + 1]].
"""

from typing import Any

import numpy as np

from tamis.kernels.jit import inner, jit

Array = np.ndarray[Any, Any]

FEW = 8  # originals of a form up to which writing them one by one is faster


@jit
def find_watched(bounds: Array, places: Array, watched: Array, found: Array) -> None:
    """Write to found[e] whether one of places[bounds[e]:bounds[e + 1]] is watched."""
    for e in range(bounds.size - 1):
        found[e] = False
        for k in range(bounds[e], bounds[e + 1]):
            if watched[places[k]]:
                found[e] = True
                break


@jit
def count_restored(
    bounds: Array, first: Array, more_bounds: Array, more: Array, starts: Array, totals: Array
) -> None:
    """Write to totals[event] how many original filters it matches."""
    for e in range(bounds.size - 1):
        total = np.int64(0)
        for k in range(bounds[e], bounds[e + 1]):
            total += starts[first[k] + 1] - starts[first[k]]
        for k in range(more_bounds[e], more_bounds[e + 1]):
            total += starts[more[k] + 1] - starts[more[k]]
        totals[e] = total


@jit
def write_restored(
    bounds: Array, first: Array, more_bounds: Array, more: Array, starts: Array, restored: Array
) -> None:
    """Write the original filters that match to restored[*], event after event."""
    place = 0
    for e in range(bounds.size - 1):
        place = _written(first[bounds[e] : bounds[e + 1]], starts, restored, place)
        place = _written(more[more_bounds[e] : more_bounds[e + 1]], starts, restored, place)


@inner
def _written(forms: Array, starts: Array, restored: Array, place: int) -> int:
    for f in forms:
        start, size = np.int32(starts[f]), starts[f + 1] - starts[f]
        if size < FEW:
            for k in range(size):
                restored[place + k] = start + np.int32(k)
        else:
            part = restored[place : place + size]
            for k in range(size):  # k is never negative, so the compiler writes many at once
                part[k] = start + np.int32(k)
        place += size
    return place
