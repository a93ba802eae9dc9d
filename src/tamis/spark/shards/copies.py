"""Copies of shards: several tasks share the events of a shard that many events meet."""

from collections.abc import Sequence

import numpy as np

from tamis.spark.shards.hashes import Array, mixed


class ShardCopies:
    """All copies of all shards, numbered: those of the first shard, of the second, and so on."""

    def __init__(self, copies: Sequence[int] | Array) -> None:
        self.copies = np.array(copies, np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.copies)[:-1]])
        self.total = int(self.copies.sum())

    def of_events(self, shards: Array, numbers: Array) -> Array:
        """The copies of shards to which events with these numbers are sent."""
        turns = mixed(numbers.astype(np.uint64)) % self.copies[shards].astype(np.uint64)
        found: Array = (self.starts[shards] + turns.astype(np.int64)).astype(np.int32)
        return found

    def anywhere(self, numbers: Array) -> Array:
        """Copies for events that meet no shard, evenly spread."""
        found: Array = mixed(numbers.astype(np.uint64)) % np.uint64(self.total)
        return found.astype(np.int32)


def copies_for(work: Sequence[float], alive: Sequence[bool], tasks: int) -> list[int]:
    """How many copies of each shard, so that about this many tasks have equally much work."""
    total = sum(work) or 1
    return [
        max(1, round(tasks * some / total)) if lives else 0
        for some, lives in zip(work, alive, strict=True)
    ]
