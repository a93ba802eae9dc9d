"""Parquet files whose schemas may differ, as Spark reads them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from tamis.errors import FileError
from tamis.file_tables.type_names import type_name

_ROWS = 1 << 16  # of a batch


def inferred(name: str, files: Sequence[Path]) -> pa.Schema:
    """The columns of all files; a type that differs is widened, if all values fit."""
    fields: dict[str, pa.Field] = {}
    homes: dict[str, Path] = {}
    for path in files:
        for field in _schema(path):
            known = fields.get(field.name)
            if known is None:
                fields[field.name], homes[field.name] = field, path
                continue
            try:
                kind = _widened(known.type, field.type, field.name)
            except _Conflict as conflict:
                column, one, other = conflict.args
                raise FileError(
                    f"{name}: column {column} is {one} in some files, such as "
                    f"{homes[field.name]}, and {other} in others, such as {path}; convert some of "
                    "them, or read them separately"
                ) from None
            fields[field.name] = pa.field(field.name, kind)
    return pa.schema(list(fields.values()))


def _schema(path: Path) -> pa.Schema:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            found: pa.Schema = file.schema_arrow
            return found.remove_metadata()
    except (pa.ArrowException, OSError) as error:
        raise FileError(f"{path} cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    text = str(error)
    if "magic bytes" in text or "smaller than the minimum" in text or "footer" in text:
        return "is not a Parquet file"
    return getattr(error, "strerror", None) or text


class _Conflict(Exception):
    """A column and its two types."""


def _widened(one: pa.DataType, other: pa.DataType, column: str) -> pa.DataType:
    """int, bigint -> bigint;  float, double -> double;  int, double -> double."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            known = fields.get(field.name, field.type)
            fields[field.name] = _widened(known, field.type, f"{column}.{field.name}")
        return pa.struct(list(fields.items()))
    names = type_name(one), type_name(other)
    if names[0] == names[1]:
        return one
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return one if one.bit_width >= other.bit_width else other
    is_long = any(pa.types.is_integer(kind) and kind.bit_width == 64 for kind in (one, other))
    numeric = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (one, other))
    if numeric and not is_long:
        return pa.float64()
    raise _Conflict(column, *names)


def read(path: Path, schema: pa.Schema) -> Iterator[list[pa.Array]]:
    """Columns of some rows, with the types of the schema."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            there = set(file.schema_arrow.names)
            wanted = [name for name in schema.names if name in there]
            for batch in file.iter_batches(_ROWS, columns=wanted):
                yield [
                    _cast(batch.column(field.name), field.type)
                    if field.name in there
                    else pa.nulls(batch.num_rows, field.type)
                    for field in schema
                ]
    except (pa.ArrowException, OSError) as error:
        raise FileError(f"{path} cannot be read: {_reason(error)}") from None


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type):
        there = {field.name: n for n, field in enumerate(column.type)}
        inner = [
            _cast(column.field(there[field.name]), field.type)
            if field.name in there
            else pa.nulls(len(column), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=column.is_null())
    return column.cast(kind)
