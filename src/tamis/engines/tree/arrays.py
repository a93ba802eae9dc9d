"""Arrays that grow by doubling."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def grown(array: Array, rows: int, fill: int = 0) -> Array:
    """The array if it has enough rows, else a copy with at least twice as many as before."""
    have = len(array)
    if rows <= have:
        return array
    larger = np.full((max(rows, 2 * have), *array.shape[1:]), fill, array.dtype)
    larger[:have] = array
    return larger
