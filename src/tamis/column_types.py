"""Column types of Arrow and Spark as attributes: schemas that come with a table."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tamis.errors import SchemaError, choose
from tamis.names import Path, path_text
from tamis.schema import Attribute
from tamis.types import (
    BOOL,
    DOUBLE,
    INT,
    MAX_DECIMAL_DIGITS,
    STRING,
    TIMESTAMP,
    Type,
    decimal_type,
)


def arrow_attributes(schema: pa.Schema, unsupported: str) -> Iterator[Attribute]:
    """The attributes of an Arrow schema."""
    choose("treatment of unsupported columns", unsupported, ("refuse", "skip"))
    for field in schema:
        yield from _field_attributes((field.name,), field.type, unsupported)


def _field_attributes(path: Path, arrow: pa.DataType, unsupported: str) -> Iterator[Attribute]:
    if pa.types.is_struct(arrow):
        for index in range(arrow.num_fields):
            field = arrow.field(index)
            yield from _field_attributes((*path, field.name), field.type, unsupported)
        return
    yield from _attribute(path, attribute_type(arrow), str(arrow), unsupported)


def _attribute(
    path: Path, found: Type | None, column_type: str, unsupported: str
) -> Iterator[Attribute]:
    if found is not None:
        yield Attribute(path, found)
    elif unsupported == "refuse":
        raise SchemaError(
            f"column {path_text(path)} has the type {column_type}, which no filter can use; "
            + ("decimals have at most 38 digits; " if column_type.startswith("decimal") else "")
            + 'leave it out, or pass unsupported="skip"'
        )


def attribute_type(arrow: pa.DataType) -> Type | None:
    """The attribute type for a column type, or None if no filter can use such a column."""
    types = pa.types
    if types.is_dictionary(arrow):
        return attribute_type(arrow.value_type)
    if types.is_integer(arrow):
        return INT
    if types.is_floating(arrow):
        return DOUBLE
    if types.is_decimal(arrow):
        return _decimal(arrow.precision, arrow.scale)
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return STRING
    if types.is_boolean(arrow):
        return BOOL
    if types.is_timestamp(arrow) or types.is_date(arrow):
        return TIMESTAMP
    return None


def _decimal(digits: int, scale: int) -> Type | None:
    """The type of a decimal column; a negative scale means zeros before the point."""
    digits, scale = (digits, scale) if scale >= 0 else (digits - scale, 0)
    digits = max(digits, scale)
    return decimal_type(digits, scale) if digits <= MAX_DECIMAL_DIGITS else None


def without_views(table: pa.Table) -> pa.Table:
    """The table with plain strings and lists instead of views, which Arrow cannot take rows of."""
    kinds = [_without_views(field.type) for field in table.schema]
    if all(kind == field.type for kind, field in zip(kinds, table.schema, strict=True)):
        return table
    columns = [
        column.cast(kind) if column.type != kind else column
        for column, kind in zip(table.columns, kinds, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _without_views(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_list(kind) or types.is_list_view(kind):
        return pa.list_(_without_views(kind.value_type))
    if types.is_large_list(kind) or types.is_large_list_view(kind):
        return pa.large_list(_without_views(kind.value_type))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    return kind


# By the names of Spark's types, so that PySpark need not be imported.
_SPARK = {
    "byte": INT, "short": INT, "integer": INT, "long": INT,
    "float": DOUBLE, "double": DOUBLE,
    "string": STRING, "char": STRING, "varchar": STRING,
    "boolean": BOOL, "timestamp": TIMESTAMP, "timestamp_ntz": TIMESTAMP, "date": TIMESTAMP,
}  # fmt: skip


_ARROW = {
    "byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip


def arrow_of_spark(kind: Any) -> pa.DataType:
    """The Arrow type of a Spark type that text formats can have; other types are strings."""
    name = kind.typeName()
    if name == "struct":
        return pa.struct([(field.name, arrow_of_spark(field.dataType)) for field in kind.fields])
    if name == "array":
        return pa.list_(arrow_of_spark(kind.elementType))
    if name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    return _ARROW.get(name, pa.string())


def spark_attributes(schema: Any, unsupported: str, path: Path = ()) -> Iterator[Attribute]:
    """The attributes of a Spark schema."""
    choose("treatment of unsupported columns", unsupported, ("refuse", "skip"))
    for field in schema.fields:
        inner, kind = (*path, field.name), field.dataType.typeName()
        if kind == "struct":
            yield from spark_attributes(field.dataType, unsupported, inner)
        else:
            written = field.dataType.simpleString()
            # A collation compares strings differently than filters do.
            found = None if "collate" in written else _SPARK.get(kind)
            if kind == "decimal":
                found = _decimal(field.dataType.precision, field.dataType.scale)
            yield from _attribute(inner, found, written, unsupported)
