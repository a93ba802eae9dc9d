"""Types of texts, as Spark infers them from CSV and XML; and the types that columns have in common.

The types are tried one after the other: whole numbers, decimals that are whole but too long for 64
bits, doubles, dates, timestamps, booleans. What is none of them is a string, and so is a column
whose values have no type in common.
"""

import re
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa

from tamis.file_tables.text_values import (
    INT32,
    INT64,
    as_date,
    as_double,
    as_whole,
    timestamp_of_pattern,
)

NULL, INT, LONG, DOUBLE = pa.null(), pa.int32(), pa.int64(), pa.float64()
BOOL, STRING, DATE, TIMESTAMP = (
    pa.bool_(), pa.string(), pa.date32(), pa.timestamp("us", "UTC"),
)  # fmt: skip
MOST_DIGITS = 38  # of a decimal

_SHORT = re.compile(r"-?[0-9]{1,9}")


def type_of_text(text: str | None, *, whole: pa.DataType = INT) -> pa.DataType:
    """The type of one text; `whole` is the type of small whole numbers: int for CSV, long for XML.

    A missing or empty text has the type null, which goes with every other.
    """
    if not text:
        return NULL
    if _SHORT.fullmatch(text):
        return whole
    for kind in (_number, _date, _timestamp, _truth):
        found = kind(text, whole)
        if found is not None:
            return found
    return STRING


def _number(text: str, whole: pa.DataType) -> pa.DataType | None:
    try:
        value = as_whole(text.removesuffix("."))
    except ValueError:
        pass
    else:
        if text.endswith("."):  # it has no digits after the point, so it is a decimal
            return decimal_of(Decimal(value))
        if INT32[0] <= value <= INT32[1]:
            return whole
        if INT64[0] <= value <= INT64[1]:
            return LONG
        return decimal_of(Decimal(value))
    try:
        as_double(text)
    except ValueError:
        return None
    return DOUBLE


def decimal_of(value: Decimal) -> pa.DataType:
    """The type of a number with too many digits for 64 bits."""
    digits = len(value.as_tuple().digits)
    return pa.decimal128(digits, 0) if digits <= MOST_DIGITS else DOUBLE


def _date(text: str, _: pa.DataType) -> pa.DataType | None:
    try:
        as_date(text)
    except ValueError:
        return None
    return DATE


def _timestamp(text: str, _: pa.DataType) -> pa.DataType | None:
    return None if timestamp_of_pattern(text) is None else TIMESTAMP


def _truth(text: str, _: pa.DataType) -> pa.DataType | None:
    return BOOL if text.lower() in {"true", "false"} else None


def type_of_texts(
    texts: Iterable[str | None], known: pa.DataType = NULL, *, whole: pa.DataType = INT
) -> pa.DataType:
    """The type that texts have in common with each other and with `known`."""
    for text in texts:
        if known == STRING:
            break
        known = common_type(known, type_of_text(text, whole=whole))
    return known


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type of a column that has values of two types; a string if they have none in common."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return common_struct(one, other)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(common_type(one.value_type, other.value_type))
    numbers = {_rank(one), _rank(other)}
    if None in numbers:
        return STRING
    if "decimal" not in numbers:
        return DOUBLE if "double" in numbers else LONG
    return DOUBLE if "double" in numbers else _wider_decimal(one, other)


def _rank(kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_decimal(kind):
        return "decimal"
    return "double" if pa.types.is_floating(kind) else None


def _wider_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    precisions = [
        kind.precision if pa.types.is_decimal(kind) else (10 if kind == INT else 20)
        for kind in (one, other)
    ]
    return pa.decimal128(max(precisions), 0)


def common_struct(one: pa.StructType, other: pa.StructType) -> pa.StructType:
    """The record with the fields of both, in the order of their names."""
    fields = {field.name: field.type for field in one}
    for field in other:
        known = fields.get(field.name, NULL)
        fields[field.name] = common_type(known, field.type)
    return pa.struct(sorted(fields.items()))


def settled(kind: pa.DataType) -> pa.DataType | None:
    """The type without what is not known of it; None for a record without fields.

    What was always missing is a string.
    """
    if pa.types.is_null(kind):
        return STRING
    if pa.types.is_struct(kind):
        fields = [(field.name, settled(field.type)) for field in kind]
        left = [(name, inner) for name, inner in fields if inner is not None]
        return pa.struct(left) if left else None
    if pa.types.is_list(kind):
        inner = settled(kind.value_type)
        return None if inner is None else pa.list_(inner)
    return kind
