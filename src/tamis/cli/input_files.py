"""Input files of commands: small ones read without Spark, others with the types of ``--schema``."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tamis.errors import BulkError, EventError, FileError, SchemaError
from tamis.events.files import FileRecord, read_records
from tamis.events.schema_inference import schema_of_records
from tamis.matcher import Matcher
from tamis.names import Path
from tamis.schema import Schema
from tamis.types import Kind, Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

_SPARK_TYPES = {
    Kind.INT: "long",
    Kind.DOUBLE: "double",
    Kind.STRING: "string",
    Kind.BOOL: "boolean",
    Kind.TIMESTAMP: "timestamp",
}


def read_typed(read: "Callable[..., DataFrame]", settings: Mapping[str, Any]) -> "DataFrame":
    """The events that `read` gives; if they come from text, with the types of the schema.

    Without them Spark would infer the types: it takes 01234 for a number, and one bad value turns a
    whole column into strings. `read` takes the schema for Spark as an argument.
    """
    from tamis.file_tables.input_files import CORRUPT

    found = read()
    schema = settings["schema"]
    if schema is None or CORRUPT not in found.columns:  # the types of other files are certain
        return found
    return read(schema=_typed(found.schema, schema))


def columns_of(schema: Schema) -> "StructType":
    """The columns of events with the attributes of a schema, for Spark; records by their paths."""
    from pyspark.sql.types import StructType

    fields: dict[str, Any] = {}
    for attribute in schema.attributes:
        inner: Any = fields
        for part in attribute.path[:-1]:
            inner = inner.setdefault(part, {})
        inner[attribute.path[-1]] = _spark_type(attribute.type)

    def made(of: Mapping[str, Any]) -> StructType:
        found = StructType()
        for name, kind in of.items():
            found.add(name, made(kind) if isinstance(kind, dict) else kind)
        return found

    return made(fields)


def _spark_type(of: Type) -> "DataType | str":
    """The type of Spark for an attribute's type."""
    from pyspark.sql import types

    if of.kind is Kind.DECIMAL:
        return types.DecimalType(of.digits, of.scale)
    if of.element is None:
        return _SPARK_TYPES[of.kind]
    element = getattr(types, _SPARK_TYPES[of.element.kind].capitalize() + "Type")()
    if of.kind is Kind.MAP:
        return types.MapType(types.StringType(), element)
    return types.ArrayType(element)


def _typed(found: "StructType", schema: Schema, path: Path = ()) -> "StructType":
    """The columns that Spark found, with the types of a schema."""
    from pyspark.sql.types import StructField, StructType

    def kind(field: StructField) -> "DataType | str":
        inner = (*path, field.name)
        known = schema.find(inner)
        is_nested = field.dataType.typeName() in {"struct", "array", "map"}
        if known is not None and (known.type.is_nested or not is_nested):
            return _spark_type(known.type)
        if isinstance(field.dataType, StructType):
            return _typed(field.dataType, schema, inner)
        return field.dataType

    made = StructType()
    for field in found.fields:
        made.add(field.name, kind(field))
    return made


def schema_of_file(records: Iterable[FileRecord], path: str) -> Schema:
    """The schema inferred from the events of a file."""

    def readable() -> Iterable[tuple[Any, bool]]:
        for record in records:
            try:
                yield record.mapping(), record.is_text
            except EventError:
                continue

    schema = schema_of_records(readable())
    if not len(schema):
        raise SchemaError(f"{path} has no readable event to infer a schema from; give --schema")
    return schema


def subscribe_file(matcher: Matcher, path: str) -> int:
    """Subscribe the rows of a file; returns how many of them cannot be used."""
    rows: list[tuple[Any, Any]] = []
    unusable = 0
    for record in read_records(path):
        try:
            mapping = record.mapping()
        except EventError:
            unusable += 1
            continue
        rows.append((mapping.get("id"), mapping.get("filter")))
    if not rows:
        raise FileError(f"{path} has no readable subscription")
    while rows:
        try:
            matcher.subscribe_many(rows)
            break
        except BulkError as error:
            bad = {place for place, _, _ in error.failures}
            if len(bad) == len(rows):
                raise FileError(f"{path} has no usable subscription: {error}") from None
            unusable += len(bad)
            rows = [row for place, row in enumerate(rows) if place not in bad]
    return unusable
