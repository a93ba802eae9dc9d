"""Many events in columns: for each attribute, keys or codes of distinct strings.

Nothing here loops over rows in Python, except `rows_of_batch`.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import EventError
from tamis.events.column_values import plain_type
from tamis.events.columns import checked_columns
from tamis.events.event_reader import Row
from tamis.events.nested_columns import taken_apart
from tamis.events.values import MapValue
from tamis.predicates.decimal_columns import column_keys
from tamis.predicates.keys import double_keys, has_values, key_values
from tamis.schema import Attribute, Enumeration, Schema
from tamis.semantics import Semantics
from tamis.types import STRING, Kind, Type

Array = np.ndarray[Any, Any]


class Column(NamedTuple):
    """One attribute of all events."""

    present: Array  # uint8[event]
    keys: Array  # int64[event]: keys of the values, or codes of strings; 0 where missing
    distinct: pa.Array | None  # the strings of the codes, None if there are keys
    doubles: Array | None = None  # of a double: the values, where zeros have their signs
    decimals: pa.Array | None = None  # of a decimal that may be too long for its key: the values
    # Of an array or map: event e has the values from offsets[e] to offsets[e + 1] of each part. The
    # parts are the elements, or the keys and the values. The keys above are 0.
    offsets: Array | None = None  # int64[event + 1]
    parts: tuple["Column", ...] = ()


class Batch(NamedTuple):
    """Events that a semantics has prepared."""

    size: int
    columns: tuple[Column, ...]
    schema: Schema  # of the columns


def slice_of(batch: Batch, start: int, end: int) -> Batch:
    """The events of a batch from start to end, with their elements and no more strings than values.

    With those of all events, many slices of one batch would take the square of its size.
    """
    end = min(end, batch.size)
    columns = tuple([_slice(column, start, end) for column in batch.columns])
    return Batch(end - start, columns, batch.schema)


def _slice(column: Column, start: int, end: int) -> Column:
    keys, distinct = column.keys[start:end], column.distinct
    if distinct is not None and len(distinct) > len(keys):
        used, keys = np.unique(keys, return_inverse=True)
        distinct = distinct.take(pa.array(used))
    offsets, parts = column.offsets, column.parts
    if offsets is not None:
        first, after = int(offsets[start]), int(offsets[end])
        offsets = offsets[start : end + 1] - first
        parts = tuple([_slice(part, first, after) for part in parts])
    return Column(
        column.present[start:end], keys, distinct,
        doubles=None if column.doubles is None else column.doubles[start:end],
        decimals=None if column.decimals is None else column.decimals[start:end],
        offsets=offsets, parts=parts,
    )  # fmt: skip


def batch_of_table(table: pa.Table, semantics: Semantics, *, refuse_unknown: bool) -> Batch:
    """The events of a table; errors name the row."""
    schema = semantics.schema
    columns = checked_columns(table, schema, refuse_unknown=refuse_unknown)
    if semantics.name == "total" and table.num_rows:
        _refuse_missing(columns, semantics)
    made = []
    for position, attribute in enumerate(schema.attributes):
        values = columns[position]
        if values is None:
            values = pa.chunked_array([pa.nulls(table.num_rows, plain_type(attribute))])
        if semantics.name == "default" and semantics.defaults[position] is not None:
            default = pa.scalar(semantics.defaults[position], plain_type(attribute))
            fill = pc.coalesce if attribute.type.is_nested else pc.fill_null
            values = fill(values, default)
        made.append(_column(values, attribute))
    return Batch(table.num_rows, tuple(made), schema)


def batch_of_rows(rows: Sequence[Row], schema: Schema) -> Batch:
    """The events of rows that `Semantics.prepare` has prepared."""
    columns = [
        _column(pa.chunked_array([pa.array([row[n] for row in rows], plain_type(a))]), a)
        for n, a in enumerate(schema.attributes)
    ]
    return Batch(len(rows), tuple(columns), schema)


def rows_of_batch(batch: Batch, schema: Schema) -> list[Row]:
    """All events as rows."""
    columns = []
    for column, attribute in zip(batch.columns, schema.attributes, strict=True):
        columns.append(values_of_column(column, attribute))
    return list(zip(*columns, strict=True)) if columns else [()] * batch.size


def values_of_column(column: Column, attribute: Attribute) -> list[Any]:
    """The values of an attribute as rows have them, None where they are missing."""
    values: list[Any]
    if column.offsets is not None:
        values = _nested_values(column, column.offsets, attribute)
    elif column.distinct is not None:
        texts = column.distinct.to_pylist() or [None]
        values = [texts[code] for code in column.keys.tolist()]
    elif column.doubles is not None:
        values = column.doubles.tolist()
    elif column.decimals is not None:
        values = column.decimals.to_pylist()
    else:
        values = key_values(attribute, column.keys)
    if not column.present.all():
        pairs = zip(values, column.present.tolist(), strict=True)
        values = [value if present else None for value, present in pairs]
    return values


def _nested_values(column: Column, offsets: Array, attribute: Attribute) -> list[Any]:
    bounds = offsets.tolist()
    element = attribute.type.element or attribute.type
    types = (STRING, element) if attribute.type.kind is Kind.MAP else (element,)
    lists = [
        values_of_column(part, Attribute(attribute.path, of))
        for part, of in zip(column.parts, types, strict=True)
    ]
    ranges = list(itertools.pairwise(bounds))
    if attribute.type.kind is Kind.MAP:
        keys, values = lists
        return [MapValue(zip(keys[a:b], values[a:b], strict=True)) for a, b in ranges]
    return [tuple(lists[0][a:b]) for a, b in ranges]


def _refuse_missing(columns: list[pa.ChunkedArray | None], semantics: Semantics) -> None:
    """As `Semantics.prepare` does, for the first event that misses an attribute."""
    gaps = [
        0 if column is None else pc.index(pc.is_null(column), value=True).as_py()
        for column in columns
    ]
    first = min((gap for gap in gaps if gap >= 0), default=-1)
    if first < 0:
        return
    row = tuple(
        None if column is None or not column[first].is_valid else True for column in columns
    )
    try:
        semantics.prepare(row)
    except EventError as error:
        raise error.at(first) from None


def _column(values: pa.ChunkedArray, attribute: Attribute) -> Column:
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if attribute.type.element is not None:
        return _nested_column(whole, attribute, attribute.type.element)
    present = np.asarray(whole.is_valid()).astype(np.uint8)
    kind = attribute.type.kind
    if kind is Kind.STRING and not isinstance(attribute.domain, Enumeration):
        encoded = whole.dictionary_encode()
        codes = np.asarray(pc.fill_null(encoded.indices, 0)).astype(np.int64)
        return Column(present, codes, encoded.dictionary)
    if isinstance(attribute.domain, Enumeration):
        places = pc.index_in(whole, value_set=pa.array(sorted(attribute.domain.values), whole.type))
        return Column(present, np.asarray(pc.fill_null(places, 0)).astype(np.int64), None)
    if kind is Kind.DOUBLE:
        doubles = np.array(pc.fill_null(whole, 0.0))
        return Column(present, double_keys(doubles), None, doubles)
    if kind is Kind.BOOL:
        return Column(present, np.asarray(pc.fill_null(whole, False)).astype(np.int64), None)
    if kind is Kind.DECIMAL:
        keys = column_keys(whole, attribute.type)
        return Column(present, keys, None, None, None if has_values(attribute.type) else whole)
    return Column(present, np.asarray(pc.fill_null(whole, 0)).astype(np.int64), None)


def _nested_column(whole: pa.Array, attribute: Attribute, element: Type) -> Column:
    nested = taken_apart(pa.chunked_array([whole]), attribute.type)
    types = (STRING, element) if attribute.type.kind is Kind.MAP else (element,)
    parts = tuple(
        _column(part, Attribute(attribute.path, of))
        for part, of in zip(nested.parts, types, strict=True)
    )
    keys = np.zeros(len(nested.present), np.int64)
    return Column(nested.present.astype(np.uint8), keys, None, offsets=nested.offsets, parts=parts)
