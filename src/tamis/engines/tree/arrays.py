"""Arrays that grow by doubling."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def grown(array: Array, rows: int, fill: int = 0) -> Array:
    """The array with room for so many rows, at least twice as many as before if it had not."""
    have = len(array)
    if rows <= have:
        return array
    larger = np.full((max(rows, 2 * have), *array.shape[1:]), fill, array.dtype)
    larger[:have] = array
    return larger
