"""From matches of a compacted table to those of the table that it was made from.

Dimensions: filters of one meaning are one *form*, and originals are numbered such that form f has
those from starts[f] to starts[f + 1]. An event has forms that were found at first, and more of them
that were found at a second look: first[bounds[e]:bounds[e + 1]], more[more_bounds[e]:...].
"""

from typing import Any

import numpy as np

from tamis.kernels.jit import jit

Array = np.ndarray[Any, Any]

FEW = 8  # originals of a form that are faster written one by one


@jit
def find_watched(bounds: Array, places: Array, watched: Array, found: Array) -> None:
    """found[event] becomes whether watched[place] of one of its places."""
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
    """totals[event] becomes the number of originals."""
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
    """restored[*] become the originals, those of an event behind those of the one before."""
    place = 0
    for e in range(bounds.size - 1):
        place = _written(first[bounds[e] : bounds[e + 1]], starts, restored, place)
        place = _written(more[more_bounds[e] : more_bounds[e + 1]], starts, restored, place)


@jit
def _written(forms: Array, starts: Array, restored: Array, place: int) -> int:
    for f in forms:
        start, size = np.int32(starts[f]), starts[f + 1] - starts[f]
        if size < FEW:
            for k in range(size):
                restored[place + k] = start + np.int32(k)
        else:
            part = restored[place : place + size]
            for k in range(size):  # never below 0, as an index: the compiler takes many at once
                part[k] = start + np.int32(k)
        place += size
    return place
