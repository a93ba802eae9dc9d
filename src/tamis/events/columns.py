"""Events in columns: Arrow tables, and what converts to them, as rows in the order of a schema.

Columns belong to attributes by name, struct fields by path. Numbers of any width, decimals,
dates, timestamps of any unit and zone, and dictionary-encoded strings are converted; a column of a
type that does not fit its attribute is an error, and so is a value that does not fit its domain.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.column_types import attribute_type
from tamis.errors import EventError, unknown_attribute
from tamis.events.values import check_domain
from tamis.names import Path, path_text
from tamis.schema import Attribute, Enumeration, IntRange, Schema
from tamis.types import DOUBLE, INT, STRING, TIMESTAMP, Kind, Type

_ARROW = {
    Kind.INT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.large_string(),
    Kind.BOOL: pa.bool_(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
}


def as_table(events: Any) -> pa.Table | None:
    """The events as an Arrow table, or None if they are not in columns."""
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    is_frame = hasattr(events, "columns")
    if not is_frame and not hasattr(events, "__arrow_c_stream__"):
        return None
    try:
        if is_frame and type(events).__module__.split(".")[0] == "pandas":
            return pa.Table.from_pandas(events, preserve_index=False)
        return pa.table(events)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(part) for part in error.args)
        raise EventError(
            f"the {type(events).__name__} cannot be read as a table of events: {reason}"
        ) from None


def table_rows(table: pa.Table, schema: Schema, *, refuse_unknown: bool) -> list[tuple[Any, ...]]:
    """The rows of a table, in the order of the schema."""
    found = checked_columns(table, schema, refuse_unknown=refuse_unknown)
    columns = [column_values(column, table.num_rows) for column in found]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def checked_columns(
    table: pa.Table, schema: Schema, *, refuse_unknown: bool
) -> list[pa.ChunkedArray | None]:
    """The checked and converted column of each attribute, None if the table has none."""
    if len(set(table.column_names)) < len(table.column_names):
        twice = next(n for n in table.column_names if table.column_names.count(n) > 1)
        raise EventError(f"the events have two columns named {twice!r}")
    if refuse_unknown:
        _refuse_unknown(table, schema)
    return [_checked(table, attribute) for attribute in schema.attributes]


def _checked(table: pa.Table, attribute: Attribute) -> pa.ChunkedArray | None:
    column = find_column(table, attribute)
    if column is None:
        return None
    if attribute.type.kind is Kind.TIMESTAMP:
        column = column.cast(pa.int64())
    if attribute.type.kind is Kind.STRING:
        _check_text(column, attribute)
    if attribute.domain is not None:
        _check_domain(column, attribute)
    return column


def _check_text(column: pa.ChunkedArray, attribute: Attribute) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        try:
            column.to_pylist()
        except UnicodeDecodeError as error:
            raise EventError(
                f"column {attribute.name} holds invalid UTF-8: {error.reason}"
            ) from None
        raise


def plain_type(attribute: Attribute) -> pa.DataType:
    """The Arrow type of a checked column: a timestamp is a number of microseconds."""
    kind = attribute.type.kind
    return pa.int64() if kind is Kind.TIMESTAMP else _ARROW[kind]


def column_values(column: pa.ChunkedArray | None, size: int) -> list[Any]:
    """The values of one attribute, None where it is missing."""
    if column is None:
        return [None] * size
    values: list[Any] = column.to_pylist()
    return values


def find_column(table: pa.Table, attribute: Attribute) -> pa.ChunkedArray | None:
    """The column of an attribute, converted to its Arrow type; None if the table has none."""
    first, *rest = attribute.path
    index = table.schema.get_field_index(first)
    if index < 0:  # a table without records may have a column address.city
        index = table.schema.get_field_index(".".join(attribute.path))
        return _converted(table.column(index), attribute) if index >= 0 else None
    column = table.column(index)
    for depth, part in enumerate(rest, start=1):
        if pa.types.is_null(column.type):
            return None
        name = path_text(attribute.path[:depth])
        if not pa.types.is_struct(column.type):
            raise EventError(
                f"column {name} has the type {column.type}, expected a record with {part!r}"
            )
        fields = [column.type.field(i).name for i in range(column.type.num_fields)]
        if fields.count(part) > 1:
            raise EventError(f"the record {name} has two fields named {part!r}")
        if part not in fields:
            return None
        column = pc.struct_field(column, part)
    return _converted(column, attribute)


def _converted(column: pa.ChunkedArray, attribute: Attribute) -> pa.ChunkedArray:
    wanted = _ARROW[attribute.type.kind]
    if pa.types.is_dictionary(column.type):
        column = _decoded(column)
    if column.type == wanted or pa.types.is_null(column.type):
        return column.cast(wanted)
    found = attribute_type(column.type)
    if found != attribute.type and not (found == INT and attribute.type == DOUBLE):
        raise EventError(
            f"column {attribute.name} has the type {column.type}, expected {attribute}"
            + _advice(found, attribute.type)
        )
    try:
        if attribute.type == TIMESTAMP:
            return _as_timestamps(column).cast(wanted)
        # Numbers may be rounded when converted to a double, as a single value would be.
        return column.cast(wanted, safe=attribute.type != DOUBLE)
    except pa.ArrowInvalid as error:
        raise EventError(f"column {attribute.name}: {error}") from None


def _advice(found: Type | None, wanted: Type) -> str:
    if (found, wanted) == (DOUBLE, INT):
        return "; pandas makes floats of integers with missing values, unless their type is Int64"
    if (found, wanted) == (STRING, TIMESTAMP):
        return "; convert the column to timestamps first"
    return ""


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary-encoded column as a plain one; Arrow alone cannot decode all string types."""
    kind = column.type.value_type
    plain = pa.large_string() if attribute_type(kind) == STRING or pa.types.is_null(kind) else kind
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(plain)).cast(plain)
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, plain)


def _as_timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and timestamps in a unit that a safe cast can convert to microseconds."""
    if pa.types.is_date(column.type):
        return column.cast(pa.timestamp("s"))
    if column.type.unit == "ns":
        return pc.floor_temporal(column, unit="microsecond")
    return column


def outside_domain(column: pa.ChunkedArray, attribute: Attribute) -> pa.ChunkedArray | None:
    """Whether each value is outside the domain, null where missing; None if there is no domain."""
    match attribute.domain:
        case IntRange(low, high):
            return pc.or_(pc.less(column, low), pc.greater(column, high))
        case Enumeration(values):
            known = pc.is_in(column, value_set=pa.array(values, column.type))
            return pc.and_(pc.invert(known), pc.is_valid(column))
    return None


def _check_domain(column: pa.ChunkedArray, attribute: Attribute) -> None:
    outside = outside_domain(column, attribute)
    row = -1 if outside is None else pc.index(outside, value=True).as_py()
    if row >= 0:
        try:
            check_domain(attribute, column[row].as_py())
        except EventError as error:
            raise error.at(row) from None


def _refuse_unknown(table: pa.Table, schema: Schema) -> None:
    flat = {".".join(path) for path in schema.positions}
    for path in _leaf_paths(table.schema, ()):
        if path not in schema.positions and not (len(path) == 1 and path[0] in flat):
            raise EventError(unknown_attribute(path_text(path), schema))


def _leaf_paths(fields: Any, path: Path) -> Iterator[Path]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _leaf_paths(field.type, (*path, field.name))
        else:
            yield (*path, field.name)
