"""The matches of a chunk of events as tables and as record batches, in the workers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.language.arrival import each_arriving
from tamis.matcher import Matcher
from tamis.spark.tables.event_chunks import EventChunk
from tamis.spark.tables.match_schema import FOUND, arrow_type

Array = np.ndarray[Any, Any]

PAIRS = 1 << 18  # rows of a batch that goes back to Spark
BYTES = 1 << 26  # of such a batch, about: kept columns of an event are repeated for each match


def match_tables(matcher: Matcher, chunk: EventChunk, output: str) -> Iterator[pa.Table]:
    """The matches of some events; texts are codes of dictionaries, lists in ascending order."""
    if not chunk.events.num_rows:
        return
    ids = _coded(chunk.ids.combine_chunks())
    kept = {name: _coded(chunk.kept[name].combine_chunks()) for name in chunk.kept_names}
    size = (chunk.ids.nbytes + chunk.kept.nbytes) // len(ids) + 1
    is_direct = output == "pairs" and not kept and pa.types.is_int64(ids.type)
    # Ids that are numbers take the place of the numbers of events: so they need no look-up.
    numbers = ids.to_numpy() if is_direct else np.arange(len(ids))
    found = matcher.match_chunk(chunk.events, output, numbers)
    for table in each_arriving(chunk.moment, found):
        if is_direct:
            yield table.rename_columns(["event_id", FOUND[output]])
            continue
        listed = _list_size(table["subscriptions"]) if output == "lists" else 0
        step = max(1, BYTES // (size + listed))
        for start in range(0, table.num_rows, step):
            yield _named(table.slice(start, step), ids, kept, output)


def match_chunk(matcher: Matcher, chunk: EventChunk, output: str) -> Iterator[pa.RecordBatch]:
    """The matches of some events, as batches for Spark, which knows no dictionaries."""
    for table in match_tables(matcher, chunk, output):
        yield from spark_batches(table)


def spark_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table as batches for Spark, which knows no dictionaries."""
    for start in range(0, table.num_rows, PAIRS):
        part = table.slice(start, PAIRS)
        columns = [_decoded(column) for column in part.columns]
        yield from pa.Table.from_arrays(columns, names=part.column_names).to_batches()


def empty_rows(chunk: EventChunk, output: str, id_type: str, rows: int) -> pa.RecordBatch:
    """Rows of matches in which everything is null."""
    fields = [("event_id", chunk.ids.type), (FOUND[output], arrow_type(output, id_type))]
    fields += [(name, chunk.kept.schema.field(name).type) for name in chunk.kept_names]
    return pa.record_batch({name: pa.nulls(rows, of) for name, of in fields})


def _named(matches: pa.Table, ids: pa.Array, kept: dict[str, pa.Array], output: str) -> pa.Table:
    """Matches with the ids of events instead of their numbers, and with the columns to keep."""
    events = matches["event"]
    found = matches[FOUND[output]]
    if output == "lists":
        found = pa.chunked_array([sorted_lists(one) for one in found.chunks], found.type)
    columns = {"event_id": ids.take(events), FOUND[output]: found}
    return pa.table(columns | {name: column.take(events) for name, column in kept.items()})


def sorted_lists(lists: pa.LargeListArray) -> pa.LargeListArray:
    """Lists of ids, each in ascending order: that of Spark, by their bytes."""
    flat = lists.flatten()
    ids, codes = flat.dictionary, flat.indices.to_numpy()
    order = pc.array_sort_indices(ids).to_numpy()
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.arange(len(ids))
    ends = lists.offsets.to_numpy() - lists.offsets[0].as_py()
    keys = np.repeat(np.arange(len(lists)) * len(ids), np.diff(ends)) + ranks[codes]
    if (keys[1:] >= keys[:-1]).all():
        return lists
    keys.sort()  # lists follow each other, and the ranks within a list
    found = pa.array(order[keys % len(ids)].astype(np.int32))
    coded = pa.DictionaryArray.from_arrays(found, ids, safe=False)
    return pa.LargeListArray.from_arrays(pa.array(ends), coded)


def _list_size(column: pa.ChunkedArray) -> int:
    """About how many bytes a list of ids takes."""
    flat = column.combine_chunks().flatten()
    ids = flat.dictionary
    return len(flat) * int(ids.nbytes) // (max(1, len(ids)) * max(1, len(column)))


def _coded(column: pa.Array) -> pa.Array:
    """A column whose texts are codes, so that repeating them copies no text."""
    return column.dictionary_encode() if _is_text(column.type) else column


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_large_list(column.type):
        return pa.chunked_array([_plain_lists(one) for one in column.chunks])
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.type.value_type
    return column.cast(pa.string() if pa.types.is_large_string(values) else values)


def _plain_lists(lists: pa.LargeListArray) -> pa.ListArray:
    plain = _decoded(pa.chunked_array([lists.flatten()])).combine_chunks()
    offsets = pc.cast(pc.subtract(lists.offsets, lists.offsets[0]), pa.int32())
    return pa.ListArray.from_arrays(offsets, plain)


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))
