"""Columns of any Arrow type as columns of one attribute, and the rows whose values do not fit.

Numbers of any width, decimals, dates, timestamps of any unit and zone, texts of timestamps, and
dictionary-encoded columns are converted. What a column cannot give is what a single value could not
give either, and the reason is the same.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.column_types import attribute_type
from tamis.errors import EventError
from tamis.events.nested_columns import fits, put_together, repeated_keys, taken_apart
from tamis.events.values import value_reader
from tamis.schema import Attribute, Enumeration, IntRange
from tamis.timestamps import FIRST, timestamp_from_text
from tamis.types import DOUBLE, INT, INT64_MAX, STRING, TIMESTAMP, Kind, Type

Array = np.ndarray[Any, Any]

_ARROW = {
    Kind.INT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.large_string(),
    Kind.BOOL: pa.bool_(),
    Kind.TIMESTAMP: pa.int64(),  # microseconds
}
_READABLE = _ARROW | {Kind.TIMESTAMP: pa.timestamp("us", "UTC")}
_NONE: Array = np.empty(0, np.int64)

# Microseconds per unit; one of nanoseconds is less than one.
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY = 86_400_000_000
# Texts that Arrow reads as `timestamp_from_text` does; it would also read some that no event has.
_PLAIN_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z?)?$"


class ColumnValues(NamedTuple):
    """The values of an attribute, and the rows, ascending, whose values it cannot have."""

    values: pa.ChunkedArray  # of `plain_type`; anything where the row is bad
    bad: Array
    given: pa.ChunkedArray
    attribute: Attribute

    def reason(self, row: int) -> str:
        """What is wrong with a bad row."""
        name, given = self.attribute.name, self.given[row]
        try:
            value_reader(self.attribute)(given.as_py())
        except UnicodeDecodeError as error:
            return f"column {name} holds invalid UTF-8: {error.reason}"
        except (OverflowError, ValueError):  # a moment beyond Python's calendar
            shown = given.value if hasattr(given, "value") else given
            return (
                f"column {name}: {shown} of the type {given.type} is out of bounds; a timestamp is "
                "a number of microseconds in 64 bits"
            )
        except EventError as error:
            return error.problem
        return f"column {name}: the value does not fit"


def plain_type(attribute: Attribute) -> pa.DataType:
    """The Arrow type of a converted column: a timestamp is a number of microseconds."""
    return _plain(attribute.type)


def readable_type(attribute: Attribute) -> pa.DataType:
    """The same for readers who expect moments where these are numbers."""
    return _plain(attribute.type, _READABLE)


def _plain(kind: Type, scalars: Mapping[Kind, pa.DataType] = _ARROW) -> pa.DataType:
    if kind.kind is Kind.DECIMAL:
        return pa.decimal128(kind.digits, kind.scale)
    if kind.element is None:
        return scalars[kind.kind]
    if kind.kind is Kind.MAP:
        return pa.map_(pa.large_string(), _plain(kind.element, scalars))
    return pa.large_list(_plain(kind.element, scalars))


def check_type(column: pa.ChunkedArray, attribute: Attribute) -> None:
    """Refuse a column of a type that the attribute cannot be read from."""
    if not fits(column.type, attribute.type):
        raise EventError(
            f"column {attribute.name} has the type {column.type}, expected {attribute}"
            + _advice(column.type, attribute.type)
        )


def _advice(found: pa.DataType, wanted: Type) -> str:
    if (attribute_type(found), wanted) == (DOUBLE, INT):
        return "; pandas makes floats of integers with missing values, unless their type is Int64"
    if pa.types.is_struct(found) and wanted.kind is Kind.MAP:
        return "; a record has the same fields in every row: make the column one of Arrow's maps"
    return ""


def values_of(column: pa.ChunkedArray, attribute: Attribute) -> ColumnValues:
    """The values of a column whose type `check_type` has accepted."""
    if attribute.type.element is not None:
        return _nested_values(column, attribute, attribute.type.element)
    given = _decoded(column) if pa.types.is_dictionary(column.type) else column
    wanted = plain_type(attribute)
    if pa.types.is_null(given.type):
        return ColumnValues(given.cast(wanted), _NONE, given, attribute)
    bad = _not_text(given) if attribute_type(given.type) == STRING else _NONE
    if len(bad):  # what is not text is missing from here on, so that the rest can be read
        given = _without(given, bad)
    if attribute.type == TIMESTAMP:
        values, more = _moments(given)
    elif attribute.type.kind is Kind.DECIMAL:
        values, more = _decimals(given, attribute)
    else:
        values, more = _cast(given, wanted)
    for found in (more, _outside(values, attribute)):
        bad = np.union1d(bad, found) if len(found) else bad
    return ColumnValues(values, bad, column, attribute)


def _nested_values(column: pa.ChunkedArray, attribute: Attribute, element: Type) -> ColumnValues:
    """Arrays or maps: a row is bad if one of its elements is."""
    nested = taken_apart(column, attribute.type)
    types = (STRING, element) if attribute.type.kind is Kind.MAP else (element,)
    parts, bad = [], [_NONE]
    for part, of in zip(nested.parts, types, strict=True):
        read = values_of(part, Attribute(attribute.path, of))
        parts.append(read.values if len(part) else pa.chunked_array([pa.array([], _plain(of))]))
        bad.append(np.searchsorted(nested.offsets, read.bad, side="right") - 1)
    if attribute.type.kind is Kind.MAP:
        bad.append(repeated_keys(parts[0], nested.offsets))
        if parts[0].null_count:  # a map of Arrow has no such key; its row is bad
            parts[0] = pc.fill_null(parts[0], "")
    whole = put_together(nested._replace(parts=tuple(parts)), attribute.type)
    return ColumnValues(
        pa.chunked_array([whole]), np.unique(np.concatenate(bad)), column, attribute
    )


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> tuple[pa.ChunkedArray, Array]:
    # Numbers may be rounded when converted to a double, as a single value would be.
    try:
        return column.cast(wanted, safe=wanted != pa.float64()), _NONE
    except pa.ArrowInvalid:  # whole numbers without a sign, of which the large ones wrap around
        values = column.cast(wanted, safe=False)
        return values, _rows(pc.less(values, 0))


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary-encoded column as a plain one; Arrow alone cannot decode all string types."""
    kind = column.type.value_type
    plain = pa.large_string() if attribute_type(kind) == STRING or pa.types.is_null(kind) else kind
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(plain)).cast(plain)
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, plain)


# --- decimals


def _decimals(column: pa.ChunkedArray, attribute: Attribute) -> tuple[pa.ChunkedArray, Array]:
    """Numbers and texts as decimals; those that have more digits are bad."""
    wanted = plain_type(attribute)
    if not (pa.types.is_floating(column.type) or attribute_type(column.type) == STRING):
        try:
            return column.cast(wanted), _NONE
        except pa.ArrowInvalid:
            pass  # which ones do not fit, is found below
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    read = value_reader(attribute)
    encoded = column.combine_chunks().dictionary_encode()
    found: list[Decimal | None] = []
    for value in encoded.dictionary.to_pylist():
        try:
            found.append(read(value))
        except EventError:
            found.append(None)
    values = pa.array(found, wanted).take(encoded.indices)
    lost = pc.and_(values.is_null(), encoded.indices.is_valid())
    return pa.chunked_array([values]), _rows(lost)


# --- text


def _not_text(column: pa.ChunkedArray) -> Array:
    """The rows whose bytes are not UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        binary = column.cast(pa.large_binary())
        rows = [row for row, value in enumerate(binary.to_pylist()) if not _is_text(value)]
        if not rows:
            raise  # it is damaged in another way
        return np.array(rows, np.int64)
    return _NONE


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def _without(column: pa.ChunkedArray, rows: Array) -> pa.ChunkedArray:
    mask = np.ones(len(column), bool)
    mask[rows] = False
    return pc.if_else(pa.array(mask), column, pa.scalar(None, column.type))


# --- moments


def _moments(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Array]:
    """Dates, timestamps and texts as microseconds since 1970 in UTC."""
    kind = column.type
    if attribute_type(kind) == STRING:
        return _moments_of_texts(column)
    if pa.types.is_date(kind):
        days = pa.types.is_date32(kind)
        return _scaled(column.cast(pa.int32() if days else pa.int64()), _DAY if days else 1_000)
    whole = column.cast(pa.int64())
    if kind.unit != "ns":
        return _scaled(whole, _UNITS[kind.unit])
    missing = whole.is_null().to_numpy() if whole.null_count else None
    numbers = pc.fill_null(whole, 0).to_numpy() // 1000  # towards the past, as for single values
    return pa.chunked_array([pa.array(numbers, mask=missing)]), _NONE


def _scaled(column: pa.ChunkedArray, by: int) -> tuple[pa.ChunkedArray, Array]:
    column = column.cast(pa.int64())
    if by == 1:
        return column, _NONE
    try:
        return pc.multiply_checked(column, by), _NONE
    except pa.ArrowInvalid:
        most = INT64_MAX // by
        outside = pc.or_(pc.greater(column, most), pc.less(column, -most))
        return pc.multiply(column, by), _rows(outside)


def _moments_of_texts(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Array]:
    texts = column.cast(pa.large_string())
    if pc.all(pc.match_substring_regex(texts, _PLAIN_MOMENT)).as_py() is not False:
        try:
            found = pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us")).cast(pa.int64())
            return found, _rows(pc.less(found, FIRST))  # a year 0000
        except pa.ArrowInvalid:
            pass  # a day that is in no calendar: which one, is found below
    encoded = texts.combine_chunks().dictionary_encode()
    moments = pa.array([timestamp_from_text(t) for t in encoded.dictionary.to_pylist()], pa.int64())
    found = moments.take(encoded.indices)
    lost = pc.and_(found.is_null(), encoded.indices.is_valid())
    return pa.chunked_array([found]), _rows(lost)


# --- domains


def _outside(column: pa.ChunkedArray, attribute: Attribute) -> Array:
    """The rows whose values are outside the domain."""
    match attribute.domain:
        case IntRange(low, high):
            return _rows(pc.or_(pc.less(column, low), pc.greater(column, high)))
        case Enumeration(values):
            known = pc.is_in(column, value_set=pa.array(values, column.type))
            return _rows(pc.and_(pc.invert(known), pc.is_valid(column)))
    return _NONE


def _rows(mask: pa.ChunkedArray | pa.Array) -> Array:
    """Where a mask is true."""
    if not pc.any(mask).as_py():
        return _NONE
    found: Array = np.flatnonzero(np.asarray(pc.fill_null(mask, False)))
    return found
