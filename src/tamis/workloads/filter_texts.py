"""Texts of many filters at once, from flat arrays of tokens."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tamis.workloads.random_draws import Array

# Filters made at once: enough to make a numpy call cheap, few enough to stay in the cache. It is
# part of what a seed means.
ROWS = 16_384


def chunks(count: int, rows: int = ROWS) -> Iterator[int]:
    """Sizes of the pieces in which `count` filters are made."""
    for start in range(0, count, rows):
        yield min(rows, count - start)


def join_tokens(dictionary: pa.StringArray, codes: Array, lengths: Array) -> pa.StringArray:
    """One text a row: its `lengths[row]` tokens, given by their codes, without anything between.

    The taken tokens lie side by side in one buffer, so joining them is leaving out offsets.
    """
    tokens = dictionary.take(pa.array(codes))
    offsets = np.frombuffer(tokens.buffers()[1], np.int32, codes.size + 1)
    ends = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return pa.StringArray.from_buffers(
        lengths.size, pa.py_buffer(offsets[ends]), tokens.buffers()[2]
    )


def firsts(lengths: Array) -> Array:
    """Positions in a flat array at which the rows begin; rows are not empty."""
    return np.cumsum(lengths) - lengths
