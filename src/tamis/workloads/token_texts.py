"""The texts of many filters at once, from flat arrays of tokens."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tamis.workloads.random_draws import Array

# Filters that are made at once: enough to make a numpy call cheap, few enough to stay in the cache.
# It must not change: the filters of a seed depend on it.
ROWS = 16_384


def chunks(count: int, rows: int = ROWS) -> Iterator[int]:
    """The sizes of the chunks in which `count` filters are made."""
    for start in range(0, count, rows):
        yield min(rows, count - start)


def join_tokens(dictionary: pa.StringArray, codes: Array, lengths: Array) -> pa.StringArray:
    """One text per row: its `lengths[row]` tokens, given by their codes, joined.

    Arrow puts the tokens side by side into one buffer, so joining them means leaving out offsets.
    """
    tokens = dictionary.take(pa.array(codes))
    offsets = np.frombuffer(tokens.buffers()[1], np.int32, codes.size + 1)
    ends = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return pa.StringArray.from_buffers(
        lengths.size, pa.py_buffer(offsets[ends]), tokens.buffers()[2]
    )


def firsts(lengths: Array) -> Array:
    """The positions in a flat array where the rows begin; rows are not empty."""
    return np.cumsum(lengths) - lengths
