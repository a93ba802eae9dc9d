"""Columns of lists and maps, taken apart: where each row begins, and the values of all rows.

Lists come in five layouts, sliced, with nulls, and with values under nulls; maps also as lists of
records with a key and a value, which is how some frames write them. From here on a row has the
values from offsets[row] to offsets[row + 1], and a null has none.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.column_types import attribute_type, is_list
from tamis.types import STRING, Kind, Type, reads_as

Array = np.ndarray[Any, Any]


class NestedColumn(NamedTuple):
    """The rows of a column of arrays or maps."""

    present: Array  # bool[row]
    offsets: Array  # int64[row + 1]
    parts: tuple[pa.ChunkedArray, ...]  # the elements, or the keys and the values of maps


def taken_apart(column: pa.ChunkedArray, wanted: Type) -> NestedColumn:
    """A column of lists or maps, whose type `fits`."""
    if pa.types.is_dictionary(column.type):
        chunks = [chunk.dictionary.take(chunk.indices) for chunk in column.chunks]
        column = pa.chunked_array(chunks, column.type.value_type)
    kind = column.type
    if pa.types.is_null(kind):
        element = _entries(pa.null(), pa.null()) if wanted.kind is Kind.MAP else pa.null()
        column = column.cast(pa.large_list(element))
    elif pa.types.is_map(kind):
        column = column.cast(pa.large_list(_entries(kind.key_type, kind.item_type)))
    present, sizes, inside = [np.empty(0, np.bool_)], [np.empty(0, np.int64)], []
    for chunk in column.chunks:  # not cast to one layout: Arrow loses elements of views
        present.append(np.asarray(chunk.is_valid()).astype(np.bool_))
        length = pc.fill_null(pc.list_value_length(chunk), 0)
        sizes.append(np.asarray(length).astype(np.int64))
        inside.append(chunk.flatten())
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(np.concatenate(sizes), out=offsets[1:])
    whole = pa.chunked_array(inside, column.type.value_type)
    parts = (whole,) if wanted.kind is Kind.ARRAY else tuple(_two_fields(whole))
    return NestedColumn(np.concatenate(present), offsets, parts)


def put_together(column: NestedColumn, wanted: Type) -> pa.Array:
    """The column of lists or maps that was taken apart."""
    mask = None if column.present.all() else pa.array(~column.present)
    parts = [pa.concat_arrays(part.chunks) for part in column.parts]
    if wanted.kind is Kind.ARRAY:
        return pa.LargeListArray.from_arrays(pa.array(column.offsets), *parts, mask=mask)
    offsets = pa.array(column.offsets).cast(pa.int32())
    return pa.MapArray.from_arrays(offsets, *parts, mask=mask)


def fits(kind: pa.DataType, wanted: Type) -> bool:
    """Whether an attribute of some type can be read from a column of some type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return True
    if wanted.element is None:
        found = attribute_type(kind)
        if found is None:  # a decimal may have more digits than attributes have
            return pa.types.is_decimal(kind) and wanted.kind in {Kind.DECIMAL, Kind.DOUBLE}
        return reads_as(found, wanted)
    if wanted.kind is Kind.ARRAY:
        return is_list(kind) and fits(kind.value_type, wanted.element)
    if pa.types.is_map(kind):
        return fits(kind.key_type, STRING) and fits(kind.item_type, wanted.element)
    entry = kind.value_type if is_list(kind) else pa.null()
    return (
        pa.types.is_struct(entry)
        and entry.num_fields == 2
        and [entry.field(n).name for n in range(2)] == ["key", "value"]
        and fits(entry.field(0).type, STRING)
        and fits(entry.field(1).type, wanted.element)
    )


def repeated_keys(keys: pa.ChunkedArray, offsets: Array) -> Array:
    """The rows of maps that have a key twice, or one that is null, ascending."""
    whole = pa.concat_arrays(keys.chunks).dictionary_encode()
    codes = np.asarray(pc.fill_null(whole.indices, -1)).astype(np.int64)
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((codes, rows))
    codes, rows = codes[order], rows[order]
    twice = (rows[1:] == rows[:-1]) & (codes[1:] == codes[:-1])
    found: Array = np.unique(np.concatenate([rows[1:][twice], rows[codes < 0]]))
    return found


def _entries(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    return pa.struct([("key", key), ("value", value)])


def _two_fields(entries: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    if pa.types.is_null(entries.type):
        return [entries, entries]
    found: list[pa.ChunkedArray] = entries.flatten()
    return found
