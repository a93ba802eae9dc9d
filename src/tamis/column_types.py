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
    Kind,
    Type,
    array_of,
    decimal_type,
    map_of,
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
            + _decimal_advice(column_type)
            + 'leave it out, or pass unsupported="skip"'
        )


def _decimal_advice(column_type: str) -> str:
    if column_type.startswith("decimal"):
        return "decimals have at most 38 digits; "
    if "decimal" in column_type:
        return "in a schema of your own, elements that are decimals can be double; "
    return ""


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
    return _nested_type(arrow)


def is_list(arrow: pa.DataType) -> bool:
    """Whether a column holds lists, of any of Arrow's layouts."""
    types = pa.types
    return bool(
        types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow)
        or types.is_list_view(arrow) or types.is_large_list_view(arrow)
    )  # fmt: skip


def _nested_type(arrow: pa.DataType) -> Type | None:
    """The type of a column of lists or maps whose values filters can use."""
    if pa.types.is_map(arrow):
        value = attribute_type(arrow.item_type)
        is_text = attribute_type(arrow.key_type) == STRING
        return map_of(value) if is_text and value is not None and _is_element(value) else None
    if not is_list(arrow):
        return None
    element = attribute_type(arrow.value_type)
    return array_of(element) if element is not None and _is_element(element) else None


def _is_element(of: Type) -> bool:
    """Whether arrays and maps of events may hold values of a type."""
    return not of.is_nested and of.kind is not Kind.DECIMAL


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
    if types.is_map(kind):
        return pa.map_(_without_views(kind.key_type), _without_views(kind.item_type))
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
    if name == "map":
        return pa.map_(arrow_of_spark(kind.keyType), arrow_of_spark(kind.valueType))
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
            found = None if "collate" in written else _spark_type(field.dataType)
            yield from _attribute(inner, found, written, unsupported)


def _spark_type(kind: Any) -> Type | None:
    name = kind.typeName()
    if name == "decimal":
        return _decimal(kind.precision, kind.scale)
    if name == "array":
        element = _SPARK.get(kind.elementType.typeName())
        return None if element is None else array_of(element)
    if name == "map":
        value = _SPARK.get(kind.valueType.typeName())
        is_text = _SPARK.get(kind.keyType.typeName()) == STRING
        return map_of(value) if is_text and value is not None else None
    return _SPARK.get(name)
