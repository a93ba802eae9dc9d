"""A linear scan of conjunctions: what an engine has to beat that shares anything at all."""

from typing import Any

import numpy as np

from tamis.kernels.jit import jit

Array = np.ndarray[Any, Any]


@jit
def scan_conjunctions(
    values: Array, attributes: Array, lows: Array, highs: Array, starts: Array, found: Array
) -> int:
    """Write the conjunctions that are true to found[*]; returns how many there are.

    Conjunction c tests attributes[starts[c]:starts[c + 1]]: each value must be at least lows[*] and
    at most highs[*]; if the low end is above the high one, one of the two is enough. A missing
    value is NaN, of which neither is true. The first test that fails ends a conjunction. found[*]
    must be as long as there are conjunctions.
    """
    count = 0
    for c in range(starts.size - 1):
        holds = True
        for k in range(starts[c], starts[c + 1]):
            low, high, value = lows[k], highs[k], values[attributes[k]]
            above, below = value >= low, value <= high
            holds = (above and below) if low <= high else (above or below)
            if not holds:
                break
        if holds:
            found[count] = c
            count += 1
    return count
