"""Columns of a stream of files that not every file has.

Spark fixes the columns of a stream when it is started. Those that the files of today have may be
too few, and their types too narrow: the files of today may have only whole numbers.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def with_known(found: "StructType", known: "StructType", file_format: str) -> "StructType":
    """The columns that files have, and those that are known to come.

    In text a column has the type that is known. Parquet files have types of their own. The columns
    of CSV files are read by their places, so that all of them have to be there, and no others.
    """
    return _joined(found, known, is_text=file_format != "parquet", is_csv=file_format == "csv")


def _joined(
    found: "StructType", known: "StructType", *, is_text: bool, is_csv: bool = False
) -> "StructType":
    from pyspark.sql.types import StructField, StructType

    others = {field.name: field for field in known}
    fields = []
    for field in found:
        other = others.pop(field.name, None)
        kind: DataType = field.dataType
        if other is not None and isinstance(kind, StructType):
            if isinstance(other.dataType, StructType):
                kind = _joined(kind, other.dataType, is_text=is_text)
        elif other is not None and is_text and other.dataType.typeName() not in _NESTED:
            kind = other.dataType if kind.typeName() not in _NESTED else kind
        fields.append(StructField(field.name, kind, metadata=field.metadata))
    return StructType(fields if is_csv else [*fields, *others.values()])


_NESTED = {"struct", "array", "map"}
