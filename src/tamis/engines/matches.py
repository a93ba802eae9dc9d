"""The matches of many events in pieces.

A piece has counts[event], and the handles of all its events one after the other.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Piece = tuple[Array, Array]


def lists_of(counts: Array, found: Array) -> Iterator[Array]:
    """The handles of each event of a piece."""
    handles = found.astype(np.int64)
    ends = np.cumsum(counts)
    for count, end in zip(counts.tolist(), ends.tolist(), strict=True):
        yield handles[end - count : end]


def joined(pieces: Sequence[Piece]) -> Piece:
    """Pieces of consecutive events as one piece."""
    if len(pieces) == 1:
        return pieces[0]
    counts, found = zip(*pieces, strict=True)
    return np.concatenate(counts), np.concatenate(found)


def merged(parts: Sequence[Piece], size: int) -> Piece:
    """The matches of several sets of filters, event by event, in ascending order."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.zeros(size, np.int64), np.zeros(0, np.int64)
    events = np.concatenate([np.repeat(np.arange(size), counts) for counts, _ in parts])
    handles = np.concatenate([found for _, found in parts])
    order = np.lexsort((handles, events))
    total: Array = sum((counts for counts, _ in parts), np.zeros(size, np.int64))
    return total, handles[order]
