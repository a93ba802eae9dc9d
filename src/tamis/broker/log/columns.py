"""The columns of a log: one for each attribute, and five of its own.

An attribute has the column of its name; attributes of nested records are fields of structs, as
Spark and Arrow read ``address.city``. The log's own columns are ``_offset``, ``_time``, ``_id``,
``_headers`` and ``_body``. Should an attribute have one of these names, all five have one more
underscore.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.schema import Attribute, Schema
from tamis.types import Kind, Type

MOMENT = pa.timestamp("us", "UTC")
# Of `events.column_values.plain_type`, except that a moment is one for other readers, too.
_TYPES = {
    Kind.INT: pa.int64(), Kind.DOUBLE: pa.float64(), Kind.STRING: pa.large_string(),
    Kind.BOOL: pa.bool_(), Kind.TIMESTAMP: MOMENT,
}  # fmt: skip


class OwnNames(NamedTuple):
    """The names of the log's own columns."""

    offset: str
    time: str
    id: str
    headers: str
    body: str


def own_names(schema: Schema) -> OwnNames:
    """The names of the log's own columns beside the attributes of a schema."""
    # Spark and DuckDB do not tell upper from lower case.
    taken = {attribute.path[0].casefold() for attribute in schema.attributes}
    prefix = "_"
    while not taken.isdisjoint(f"{prefix}{field}" for field in OwnNames._fields):
        prefix += "_"
    return OwnNames(*(f"{prefix}{field}" for field in OwnNames._fields))


def column_type(attribute: Attribute) -> pa.DataType:
    """The Arrow type of the column of an attribute."""
    return _column_type(attribute.type)


def _column_type(of: Type) -> pa.DataType:
    if of.kind is Kind.DECIMAL:
        return pa.decimal128(of.digits, of.scale)
    if of.element is None:
        return _TYPES[of.kind]
    inner = _column_type(of.element)
    return pa.map_(pa.large_string(), inner) if of.kind is Kind.MAP else pa.large_list(inner)


def attribute_columns(schema: Schema, arrays: Sequence[pa.Array], size: int) -> dict[str, pa.Array]:
    """The columns of a table by name, from the values of each attribute; records are structs."""
    tree: dict[str, Any] = {}
    for attribute, array in zip(schema.attributes, arrays, strict=True):
        record = tree
        for part in attribute.path[:-1]:
            record = record.setdefault(part, {})
        record[attribute.path[-1]] = array
    return {name: _column(branch, size) for name, branch in tree.items()}


def _column(branch: Any, size: int) -> pa.Array:
    if not isinstance(branch, dict):
        return branch
    fields = [_column(inner, size) for inner in branch.values()]
    return pa.StructArray.from_arrays(fields, names=list(branch))


def column_names(schema: Schema) -> list[str]:
    """The names of the columns of the attributes."""
    return list(dict.fromkeys(attribute.path[0] for attribute in schema.attributes))


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a sealed segment."""
    empty = [pa.array([], column_type(attribute)) for attribute in schema.attributes]
    own = own_names(schema)
    return pa.schema(
        [
            (own.offset, pa.int64()),
            (own.time, MOMENT),
            (own.id, pa.large_string()),
            (own.headers, pa.large_string()),
            (own.body, pa.large_string()),
            *((name, one.type) for name, one in attribute_columns(schema, empty, 0).items()),
        ]
    )
