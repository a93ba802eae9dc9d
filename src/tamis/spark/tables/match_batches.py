"""The matches of a chunk of events as record batches, in the workers."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tamis.matcher import Matcher
from tamis.spark.tables.event_chunks import EventChunk
from tamis.spark.tables.match_schema import FOUND, arrow_type

PAIRS = 1 << 18  # rows of a batch that goes back to Spark
BYTES = 1 << 26  # of such a batch, about: kept columns of an event are repeated for each match


def match_chunk(matcher: Matcher, chunk: EventChunk, output: str) -> Iterator[pa.RecordBatch]:
    """The matches of some events, as batches for Spark."""
    if not chunk.events.num_rows:
        return
    ids = chunk.ids.combine_chunks()
    kept = chunk.kept.combine_chunks().select(chunk.kept_names)
    size = (ids.nbytes + chunk.kept.nbytes) // len(ids) + 1
    for table in matcher.match_batches(chunk.events, output):
        listed = _list_size(table["subscriptions"]) if output == "lists" else 0
        step = max(1, min(PAIRS, BYTES // (size + listed)))
        for start in range(0, table.num_rows, step):
            yield from _named(table.slice(start, step), ids, kept, output).to_batches()


def empty_rows(chunk: EventChunk, output: str, id_type: str, rows: int) -> pa.RecordBatch:
    """Rows of matches in which everything is null."""
    fields = [("event_id", chunk.ids.type), (FOUND[output], arrow_type(output, id_type))]
    fields += [(name, chunk.kept.schema.field(name).type) for name in chunk.kept_names]
    return pa.record_batch({name: pa.nulls(rows, of) for name, of in fields})


def _named(matches: pa.Table, ids: pa.Array, kept: pa.Table, output: str) -> pa.Table:
    """Matches with the ids of events instead of their numbers, and with the columns to keep."""
    events = matches["event"]
    found = matches[FOUND[output]]
    if output == "pairs":
        found = _decoded(found)
    elif output == "lists":
        found = _lists(found)
    columns = {"event_id": ids.take(events), FOUND[output]: found}
    return pa.table(columns | {name: kept[name].take(events) for name in kept.column_names})


def _list_size(column: pa.ChunkedArray) -> int:
    """About how many bytes a list of ids takes."""
    flat = column.combine_chunks().flatten()
    ids = flat.dictionary
    return len(flat) * int(ids.nbytes) // (max(1, len(ids)) * max(1, len(column)))


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = column.type.value_type
    return column.cast(pa.string() if pa.types.is_large_string(values) else values)


def _lists(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = []
    for chunk in column.chunks:
        plain = _decoded(pa.chunked_array([chunk.flatten()])).combine_chunks()
        offsets = pc.cast(pc.subtract(chunk.offsets, chunk.offsets[0]), pa.int32())
        chunks.append(pa.ListArray.from_arrays(offsets, plain))
    return pa.chunked_array(chunks, chunks[0].type if chunks else None)
