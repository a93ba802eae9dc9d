"""Events in chunks that fit into memory."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from tamis.errors import OptionError
from tamis.events.columns import as_table

ROWS = 1 << 16  # of a table, per chunk
EVENTS = 10_000  # other than tables, per chunk


def event_chunks(events: Any) -> Iterator[Any]:
    """Tables of events, or lists of them; an iterator is read no further than needed."""
    if isinstance(events, pa.RecordBatchReader):
        events = iter(events)
    if not isinstance(events, Iterator):
        table = as_table(events)
        if table is not None:
            # One without rows is a chunk, too: it may have columns of the wrong type.
            for start in range(0, max(1, table.num_rows), ROWS):
                yield table.slice(start, ROWS)
            return
    if isinstance(events, Mapping | str | bytes) or not isinstance(events, Iterable):
        raise OptionError(
            "match_batches takes a table, or an iterable of tables or events, not "
            f"{type(events).__name__}; match takes a single event"
        )
    waiting = iter(events)
    for first in waiting:
        table = None if isinstance(first, Mapping | str | bytes) else as_table(first)
        if table is not None:
            yield from event_chunks(table)
        else:
            yield [first, *islice(waiting, EVENTS - 1)]
