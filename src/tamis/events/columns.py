"""Events in columns: Arrow tables, and what converts to them, as rows in the order of a schema.

Columns belong to attributes by name, struct fields by path. A column of a type that does not fit
its attribute is an error, and so is a value that does not fit (`column_values`).
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import EventError, OptionError, unknown_attribute
from tamis.events.column_values import check_type, values_of
from tamis.events.values import MapValue
from tamis.names import Path, path_text
from tamis.schema import Attribute, Schema
from tamis.types import Kind


def as_table(events: Any) -> pa.Table | None:
    """The events as an Arrow table, or None if they are not in columns."""
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    _refuse_unread(events)
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
            f"the {type(events).__name__} cannot be read as a table: {reason}"
        ) from None


def _refuse_unread(events: Any) -> None:
    """Say how to get the rows of what has columns, but no rows in this process yet."""
    module, name = type(events).__module__.split(".")[0], type(events).__name__
    if (module, name) == ("polars", "LazyFrame"):
        raise OptionError("a LazyFrame has no rows yet; call collect() on it first")
    if module == "pyspark":
        raise OptionError(
            f"a {name} of Spark is matched by tamis.spark.match; its toArrow() makes a table"
        )
    if module == "pyarrow" and hasattr(events, "scanner"):
        raise OptionError(
            f"a {name} has no rows yet; to_table() reads all of them, and match_batches takes "
            "to_batches(), which reads some at a time"
        )


def table_rows(table: pa.Table, schema: Schema, *, refuse_unknown: bool) -> list[tuple[Any, ...]]:
    """The rows of a table, in the order of the schema."""
    found = checked_columns(table, schema, refuse_unknown=refuse_unknown)
    columns = [
        column_values(column, table.num_rows, attribute)
        for column, attribute in zip(found, schema.attributes, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def checked_columns(
    table: pa.Table, schema: Schema, *, refuse_unknown: bool
) -> list[pa.ChunkedArray | None]:
    """The checked and converted column of each attribute, None if the table has none."""
    check_names(table, schema, refuse_unknown=refuse_unknown)
    return [_checked(find_column(table, attribute), attribute) for attribute in schema.attributes]


def check_names(table: pa.Table, schema: Schema, *, refuse_unknown: bool) -> None:
    """Refuse a table with two columns of one name or, if asked to, with unknown attributes."""
    if len(set(table.column_names)) < len(table.column_names):
        twice = next(n for n in table.column_names if table.column_names.count(n) > 1)
        raise EventError(f"the events have two columns named {twice!r}")
    if refuse_unknown:
        _refuse_unknown(table, schema)


def _checked(column: pa.ChunkedArray | None, attribute: Attribute) -> pa.ChunkedArray | None:
    if column is None:
        return None
    found = values_of(column, attribute)
    if len(found.bad):
        row = int(found.bad[0])
        raise EventError(found.reason(row), row)
    return found.values


def column_values(column: pa.ChunkedArray | None, size: int, attribute: Attribute) -> list[Any]:
    """The values of one attribute, None where it is missing."""
    if column is None:
        return [None] * size
    values: list[Any] = column.to_pylist()
    if attribute.type.is_nested:
        made = MapValue if attribute.type.kind is Kind.MAP else tuple
        values = [None if value is None else made(value) for value in values]
    return values


def find_column(table: pa.Table, attribute: Attribute) -> pa.ChunkedArray | None:
    """The column of an attribute, of a type that can be read; None if the table has none."""
    column, flat = _column_at(table, attribute.path), None
    if len(attribute.path) > 1:  # a table without records may have a column address.city
        index = table.schema.get_field_index(".".join(attribute.path))
        flat = table.column(index) if index >= 0 else None
    if column is not None and flat is not None:
        raise EventError(
            f"the events have {attribute.name} twice: in the record {path_text(attribute.path[:1])}"
            f" and as a column named {'.'.join(attribute.path)!r}"
        )
    column = flat if column is None else column
    if column is not None:
        check_type(column, attribute)
    return column


def _column_at(table: pa.Table, path: Path) -> pa.ChunkedArray | None:
    """The column at a path of records."""
    index = table.schema.get_field_index(path[0])
    if index < 0:
        return None
    column = table.column(index)
    for depth, part in enumerate(path[1:], start=1):
        if pa.types.is_null(column.type):
            return None
        name = path_text(path[:depth])
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
    return column


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
