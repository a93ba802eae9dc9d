"""One schema for Parquet files whose own schemas drifted apart.

Spark merges schemas that differ in columns, but not in the types of a column, even where its reader
could read both. Then files are divided into groups that Spark can merge, by halving: files are in
the order of their names, and if types changed once, most halves are groups. The types of the groups
are widened as far as Spark's reader allows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tamis.errors import FileError, TamisError
from tamis.spark.session.failures import shown_path

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_BELOW_BIGINT = _WHOLE[:3]  # these fit into a double, and Spark reads them as one


def merged_schema(
    name: str, files: Sequence[str], read: "Callable[[Sequence[str]], StructType]"
) -> "StructType":
    """A schema with which all files can be read; `read` lets Spark merge the schemas of some."""
    merged: StructType | None = None
    first = ""
    for file, schema in _groups(sorted(files), read):
        if merged is None:
            merged, first = schema, shown_path(file)
            continue
        try:
            merged = _widened_struct(merged, schema, "")
        except _Conflict as conflict:
            column, one, other = conflict.args
            raise FileError(
                f"{name}: column {column} is {one} in some files, such as {first}, and {other} in "
                f"others, such as {shown_path(file)}; convert some of them, or read them separately"
            ) from None
    assert merged is not None  # noqa: S101 - there is at least one file, and so one group
    return merged


class _Conflict(Exception):
    """A column and its two types."""


def _groups(
    files: list[str], read: "Callable[[Sequence[str]], StructType]"
) -> "Iterator[tuple[str, StructType]]":
    """The first file and the schema of each group that Spark can merge."""
    try:
        schema = read(files)
    except TamisError as error:
        if len(files) == 1 or not is_drift(error):
            raise
        half = len(files) // 2
        yield from _groups(files[:half], read)
        yield from _groups(files[half:], read)
    else:
        yield files[0], schema


def is_drift(error: TamisError) -> bool:
    """Whether Spark could not merge schemas."""
    return "merging schemas" in str(error) or "merge incompatible data types" in str(error)


def _widened_struct(one: "StructType", other: "StructType", path: str) -> "StructType":
    from pyspark.sql.types import StructField, StructType

    fields = {field.name: field for field in one}
    for field in other:
        name = f"{path}{field.name}"
        if field.name in fields:
            known = fields[field.name].dataType
            wide = _widened(known, field.dataType, name)
            fields[field.name] = StructField(field.name, wide, nullable=True)
        else:
            fields[field.name] = field
    return StructType(list(fields.values()))


def _widened(one: "DataType", other: "DataType", column: str) -> "DataType":
    """The type that Spark's Parquet reader can read both as.

    int, bigint -> bigint;  float, double -> double;  int, double -> double
    """
    from pyspark.sql.types import DoubleType, StructType

    if one == other:
        return one
    if isinstance(one, StructType) and isinstance(other, StructType):
        return _widened_struct(one, other, f"{column}.")
    names = one.simpleString(), other.simpleString()
    if all(name in _WHOLE for name in names):
        return max(one, other, key=lambda kind: _WHOLE.index(kind.simpleString()))
    if all(name in (*_BELOW_BIGINT, "float", "double") for name in names):
        return DoubleType()
    raise _Conflict(column, *names)
