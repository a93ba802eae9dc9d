"""A chunk of a log: some events in columns for matching, their records when they are asked for."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.broker.records import Record

Array = np.ndarray[Any, Any]


class Chunk(NamedTuple):
    """Events that follow each other in a log; where some were lost or removed, there is a gap."""

    offsets: Array  # int64, ascending
    table: pa.Table  # the attributes, and the offsets; for `Matcher.match_batch`
    next_offset: int  # where to read on; beyond `offsets` even if there are none
    take: Callable[[Sequence[int]], list[Record]]  # the records of some rows

    @property
    def records(self) -> list[Record]:
        """The records of all rows."""
        return self.take(range(len(self.offsets)))


def no_events(next_offset: int) -> Chunk:
    """A chunk of which nothing is left but where to read on."""
    return Chunk(np.empty(0, np.int64), pa.table({}), next_offset, lambda _: [])
