"""A Parquet file of matches, written table by table.

Ids of subscriptions are written as codes of a dictionary, as the matcher finds them: no id is
copied or hashed once per match. Whole numbers that identify events are written as differences,
which are 0 within an event. Tables are gathered into row groups of a few million matches, so that
a reader has few of them and each dictionary is used often.

The file says nothing of dictionaries to a reader: ids are strings or numbers, for Spark, DuckDB and
pandas alike.
"""

from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]

ROWS = 1 << 22  # of a row group; entries of lists count as rows
BYTES = 1 << 26  # of the plain columns of a row group, about
RARE = 4  # ids are written without those that no row has, if there are fewer rows per id than this
DICTIONARY = 1 << 30  # bytes of ids up to which they stay a dictionary


class MatchFile:
    """Writes tables of matches with the same columns to an open file; it must be closed."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self.rows = 0
        self._schema = pa.schema([_stored(field) for field in schema])
        self._waiting: list[pa.Table] = []
        self._size = self._bytes = 0  # of the waiting tables
        self._unique: tuple[pa.Array, pa.Array] | None = None  # ids, and a dictionary of them
        runs = [field.name for field in self._schema if _is_run(field)]
        leaves = [leaf for field in self._schema for leaf in _leaves(field.name, field.type)]
        self._writer = pq.ParquetWriter(
            file, self._schema, store_schema=False, dictionary_pagesize_limit=DICTIONARY,
            use_dictionary=[path for path, _ in leaves if path not in runs],
            column_encoding=dict.fromkeys(runs, "DELTA_BINARY_PACKED"),
            # Those of a dictionary would take longer than writing the codes.
            write_statistics=[path for path, of in leaves if not pa.types.is_dictionary(of)],
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if kind is None:
            self.close()
            return
        with suppress(OSError, pa.ArrowException):  # the file is of no use, whatever its end
            self._writer.close()

    def write(self, table: pa.Table) -> None:
        """Add some matches."""
        self.rows += table.num_rows
        self._waiting.append(table)
        self._size += table.num_rows + sum(map(_entries, table.columns))
        self._bytes += sum(one.nbytes for one in table.columns if not _is_coded(one.type))
        if self._size >= ROWS or self._bytes >= BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        if self._waiting:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        whole = pa.concat_tables(self._waiting)
        self._waiting, self._size, self._bytes = [], 0, 0
        columns = [
            self._ready(column, field.type)
            for column, field in zip(whole.columns, self._schema, strict=True)
        ]
        group = pa.Table.from_arrays(columns, schema=self._schema)
        if group.num_rows:
            self._writer.write_table(group, row_group_size=group.num_rows)

    def _ready(self, column: pa.ChunkedArray, stored: pa.DataType) -> pa.Array | pa.ChunkedArray:
        """A column of a row group, as the file has it."""
        if not _is_coded(column.type):
            return column
        if _is_list(stored):
            whole = column.combine_chunks()
            flat = self._ready(pa.chunked_array([whole.flatten()]), stored.value_type)
            ends = pc.subtract(whole.offsets, whole.offsets[0]).cast(pa.int64())
            return pa.LargeListArray.from_arrays(ends, _joined(flat))
        if not pa.types.is_dictionary(stored):
            return column.cast(stored)
        if not _share_dictionary(column):
            column = column.unify_dictionaries()
        return column if column.null_count else self._coded(column)

    def _coded(self, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Codes of distinct ids; a matcher may know a removed subscription of the same id."""
        if not column.num_chunks:
            return column
        ids = column.chunk(0).dictionary
        codes = [chunk.indices.to_numpy() for chunk in column.chunks]
        if len(column) < RARE * len(ids):
            used = np.zeros(len(ids), bool)
            for part in codes:
                used[part] = True
            places = np.flatnonzero(used)
            encoded = ids.take(pa.array(places)).dictionary_encode()
            new = np.zeros(len(ids), np.int32)
            new[places] = encoded.indices.to_numpy()
            return _recoded(codes, new, encoded.dictionary)
        if self._unique is None or not _are_same(self._unique[0], ids):
            self._unique = ids, ids.dictionary_encode()
        encoded = self._unique[1]
        if len(encoded.dictionary) == len(ids):
            return column
        return _recoded(codes, encoded.indices.to_numpy(), encoded.dictionary)


def _recoded(codes: list[Array], new: Array, dictionary: pa.Array) -> pa.ChunkedArray:
    """Codes of another dictionary; `new` has the new code of each old one."""
    parts = [
        pa.DictionaryArray.from_arrays(pa.array(new[part]), dictionary, safe=False)
        for part in codes
    ]
    return pa.chunked_array(parts)


def _share_dictionary(column: pa.ChunkedArray) -> bool:
    chunks = column.chunks
    return all(_are_same(chunks[0].dictionary, chunk.dictionary) for chunk in chunks[1:])


def _are_same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays are in the same memory."""
    return (one.offset, len(one), *_places(one)) == (other.offset, len(other), *_places(other))


def _places(array: pa.Array) -> list[int]:
    return [0 if buffer is None else buffer.address for buffer in array.buffers()]


def _joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _stored(field: pa.Field) -> pa.Field:
    """A column of the file, for one of the tables."""
    return pa.field(field.name, _stored_type(field.type), nullable=field.nullable)


def _stored_type(of: pa.DataType) -> pa.DataType:
    if not _is_coded(of):
        return of
    if _is_list(of):
        return pa.large_list(_stored_type(of.value_type))
    # Codes of numbers are of no use: Arrow would look every one of them up.
    return of if _is_text(of.value_type) else of.value_type


def _entries(column: pa.ChunkedArray) -> int:
    """How many entries the lists of a column have."""
    if not _is_list(column.type):
        return 0
    return sum(chunk.offsets[-1].as_py() - chunk.offsets[0].as_py() for chunk in column.chunks)


def _is_coded(of: pa.DataType) -> bool:
    """Whether a column has codes, or lists of them."""
    return bool(pa.types.is_dictionary(of.value_type if _is_list(of) else of))


def _leaves(path: str, of: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns that Parquet makes of one, by their paths, with their types."""
    if _is_list(of):
        yield from _leaves(f"{path}.list.element", of.value_type)
    elif pa.types.is_map(of):
        yield from _leaves(f"{path}.key_value.key", of.key_type)
        yield from _leaves(f"{path}.key_value.value", of.item_type)
    elif pa.types.is_struct(of):
        for field in of:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, of


def _is_list(of: pa.DataType) -> bool:
    return bool(pa.types.is_list(of) or pa.types.is_large_list(of))


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))


def _is_run(field: pa.Field) -> bool:
    """Whether a column has runs of equal numbers: the ids of events."""
    of = field.type
    whole = pa.types.is_integer(of) or pa.types.is_temporal(of)
    return field.name == "event_id" and bool(whole) and of.bit_width >= 32
