"""Events as a profile reads them: columns of keys and strings, without events that do not fit."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import EventError, OptionError
from tamis.events.chunks import ROWS
from tamis.events.column_values import plain_type, readable_type
from tamis.events.event_reader import EventReader, Row
from tamis.names import Path
from tamis.predicates.event_batches import Batch, Column, batch_of_rows, batch_of_table
from tamis.predicates.keys import key_values
from tamis.profiles.hashes import shortened
from tamis.schema import Attribute, Enumeration, Schema
from tamis.semantics import Semantics
from tamis.types import Kind

Array = np.ndarray[Any, Any]

BYTES = 1 << 26  # of the tables that are read together, if rows are long


class Values(NamedTuple):
    """The values of one attribute in some events."""

    column: Column  # for strings, its `distinct` are the shortened strings
    is_double: bool

    def counted(self) -> tuple[Any, Array, bool]:
        """The distinct values, how often each occurs, and whether they are doubles."""
        present, keys, distinct = self.column[:3]
        keys = keys[present.view(np.bool_)]
        if distinct is None:
            values, counts = np.unique(keys, return_counts=True)
            return values, counts, self.is_double
        counts = np.bincount(keys, minlength=len(distinct))
        some = np.flatnonzero(counts)  # an enumeration has values that no event has
        return distinct.take(pa.array(some)), counts[some], False

    def taken(self, rows: Array) -> pa.Array:
        """The values of some events."""
        present, keys, distinct = self.column[:3]
        missing = present[rows] == 0
        found = pa.array(keys[rows], mask=missing)
        return found if distinct is None else distinct.take(found)


def schema_of(parts: Iterator[Any], events: Any) -> tuple[Schema, Iterator[Any]]:
    """The schema of the first of some tables, and all of them."""
    if isinstance(events, pa.Table | pa.RecordBatchReader):
        return Schema.from_arrow(events.schema, unsupported="skip"), parts
    first = next(parts, None)
    if first is None:
        return Schema({}), parts
    if not isinstance(first, pa.Table):
        raise OptionError("Profile.of needs a schema for events that are not in a table")
    return Schema.from_arrow(first.schema, unsupported="skip"), chain([first], parts)


def columns_of(parts: Iterable[Any], schema: Schema) -> Iterator[tuple[list[Values], int, int]]:
    """The columns of tables or lists of events, how many events fit and how many do not."""
    meaning, reader = Semantics("sql", schema), EventReader(schema)
    for part in _gathered(parts):
        fitting = _fitting(part, meaning) if isinstance(part, pa.Table) else _read(part, reader)
        batches = list(fitting) or [batch_of_rows([], schema)]
        refused = len(part) - sum(batch.size for batch in batches)
        for batch in batches:
            columns = zip(batch.columns, schema.attributes, strict=True)
            yield [_values(column, attribute) for column, attribute in columns], batch.size, refused
            refused = 0


def _gathered(parts: Iterable[Any]) -> Iterator[Any]:
    """The parts, with small tables of one schema concatenated: every table has a fixed cost."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for part in parts:
        is_table = isinstance(part, pa.Table)
        is_enough = rows >= ROWS or size >= BYTES
        if waiting and (is_enough or not is_table or part.schema != waiting[0].schema):
            yield pa.concat_tables(waiting)
            waiting, rows, size = [], 0, 0
        if is_table:
            waiting.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
        else:
            yield part
    if waiting:
        yield pa.concat_tables(waiting)


def _fitting(table: pa.Table, meaning: Semantics) -> Iterator[Batch]:
    """The events that fit the schema; a table with others is halved until they are found."""
    try:
        yield batch_of_table(table, meaning, refuse_unknown=False)
    except EventError:
        batch_of_table(table.slice(0, 0), meaning, refuse_unknown=False)  # a column of another type
        middle = table.num_rows // 2
        if middle:
            yield from _fitting(table.slice(0, middle), meaning)
            yield from _fitting(table.slice(middle), meaning)


def _read(events: list[Any], reader: EventReader) -> Iterator[Batch]:
    rows: list[Row] = []
    for event in events:
        try:
            rows.append(reader.row(event))
        except EventError:
            continue  # the caller counts them
    yield batch_of_rows(rows, reader.schema)


def _values(column: Column, attribute: Attribute) -> Values:
    if column.offsets is not None:  # what is known of arrays and maps is how many values they have
        column = column._replace(keys=np.diff(column.offsets))
    distinct = column.distinct
    if isinstance(attribute.domain, Enumeration):
        distinct = pa.array(sorted(attribute.domain.values), pa.large_string())
    if distinct is not None:
        column = column._replace(distinct=shortened(distinct))
    return Values(column, attribute.type.kind is Kind.DOUBLE)


def together(columns: list[Values], size: int) -> Array:
    """How many events have both attributes, for every pair of attributes."""
    present = [column.column.present for column in columns]
    counts = np.array([int(line.sum()) for line in present], np.int64)
    found = np.minimum(counts[:, None], counts[None, :])  # exact where one is always present
    some = np.flatnonzero(counts < size)
    if len(some):
        lines = np.array([present[n] for n in some], np.float32)  # whole numbers up to 2 ** 24
        found[np.ix_(some, some)] = np.rint(lines @ lines.T).astype(np.int64)
    return found


# --- back to events


def restored(values: pa.Array, attribute: Attribute) -> pa.Array:
    """A column of events, from its keys or strings; arrays and maps are not known, and missing."""
    if attribute.type.is_nested:
        return pa.nulls(len(values), readable_type(attribute))
    kind = attribute.type.kind
    if kind is Kind.STRING:
        return values
    if kind is Kind.TIMESTAMP:
        return values.cast(pa.timestamp("us", "UTC"))
    if kind is Kind.BOOL:
        return values.cast(pa.bool_())
    if kind in {Kind.DOUBLE, Kind.DECIMAL}:
        keys = np.asarray(pc.fill_null(values, 0))
        found = key_values(attribute, keys)  # of a long decimal, the first digits
        return pa.array(found, plain_type(attribute), mask=np.asarray(values.is_null()))
    return values


def nested(values: dict[Path, pa.Array], size: int) -> pa.Table:
    """A table of columns by path, where paths with the same beginning become a record."""
    if not values:  # a table needs a column to know how many rows it has
        return pa.table({"": pa.nulls(size)})
    fields = _fields(values)
    return pa.table(list(fields.values()), names=list(fields))


def _fields(values: dict[Path, pa.Array]) -> dict[str, pa.Array]:
    inside: dict[str, dict[Path, pa.Array]] = {}
    for path, column in values.items():
        inside.setdefault(path[0], {})[path[1:]] = column
    found = {}
    for name, columns in inside.items():
        if () in columns:
            found[name] = columns[()]
        else:
            fields = _fields(columns)
            found[name] = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    return found
