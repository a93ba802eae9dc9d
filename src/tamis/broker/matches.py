"""Pairs of an event and a subscription, and how they are handed out."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Matched(NamedTuple):
    """The matches of a batch: row by row, which event and which key of a subscription."""

    events: Array
    keys: Array


def by_subscription(matched: Matched) -> Iterator[tuple[int, list[int]]]:
    """Each key with its events, in their order; the work depends on the matches only."""
    if not len(matched.keys):
        return
    order = np.argsort(matched.keys, kind="stable")
    keys = matched.keys[order]
    events = matched.events[order].tolist()
    starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    ends = [*starts[1:].tolist(), len(events)]
    for key, start, end in zip(keys[starts].tolist(), starts.tolist(), ends, strict=True):
        yield key, events[start:end]
