"""Vectors: the values of one attribute or term for many events, as arrays of numpy.

Strings are codes of distinct texts. Arrays and maps are the elements of all events one after the
other, and where those of each event begin.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.events.values import MapValue
from tamis.language.functions.decimal_kernels import narrowed
from tamis.predicates.decimal_columns import column_numbers, number_keys
from tamis.predicates.event_batches import Column
from tamis.predicates.keys import double_keys, key_doubles, scaled, unscaled
from tamis.schema import Attribute, Enumeration
from tamis.types import BOOL, DOUBLE, STRING, Kind, Type

Array = np.ndarray[Any, Any]


class Vector(NamedTuple):
    """A value for each event, or one for all; where it is missing, `values` may have anything."""

    present: Array  # bool[event]
    # int64, float64, bool; codes of texts; numbers of decimals (`decimal_kernels`); 0 for arrays
    values: Array
    texts: list[str] | None = None  # the strings of the codes
    # Of an array or map: event e has the values from offsets[e] to offsets[e + 1] of each part. The
    # parts are the elements, or the keys and the values; an event without an array has none.
    offsets: Array | None = None  # int64[event + 1], from 0
    parts: tuple["Vector", ...] = ()


class NoColumn(Exception):
    """Something that is not computed by columns."""


def part_types(of: Type) -> tuple[Type, ...]:
    """The types of the parts of an array or a map."""
    element = of.element or of
    return (STRING, element) if of.kind is Kind.MAP else (element,)


# --- columns


def distinct_texts(vector: Vector) -> tuple[list[str | None], Array]:
    """The distinct strings of a vector, with None, and for each value the place of its string."""
    texts: list[str | None] = [*(vector.texts or ()), None]
    codes = np.where(vector.present, vector.values, len(texts) - 1)
    distinct, places = np.unique(codes, return_inverse=True)
    return [texts[code] for code in distinct.tolist()], places


def vector_of(column: Column, attribute: Attribute) -> Vector:
    """The vector of a column."""
    present = column.present.view(np.bool_)
    if column.offsets is not None:
        return _nested_vector(column, column.offsets, attribute)
    if isinstance(attribute.domain, Enumeration):
        return Vector(present, column.keys, sorted(attribute.domain.values))
    if column.distinct is not None:
        return Vector(present, column.keys, column.distinct.to_pylist() or [""])
    if attribute.type == DOUBLE:
        values = key_doubles(column.keys) if column.doubles is None else column.doubles
        return Vector(present, values)
    if attribute.type == BOOL:
        return Vector(present, column.keys.astype(np.bool_))
    if column.decimals is not None:
        return Vector(present, column_numbers(column.decimals))
    return Vector(present, column.keys)


def _nested_vector(column: Column, offsets: Array, attribute: Attribute) -> Vector:
    """The vector of arrays or maps; a part of a batch has a part of its elements."""
    first, end = int(offsets[0]), int(offsets[-1])
    parts = [
        vector_of(
            part._replace(
                present=part.present[first:end], keys=part.keys[first:end],
                doubles=None if part.doubles is None else part.doubles[first:end],
            ),
            Attribute(attribute.path, of),
        )
        for part, of in zip(column.parts, part_types(attribute.type), strict=True)
    ]  # fmt: skip
    present = column.present.view(np.bool_)
    return Vector(present, column.keys, None, offsets - first, tuple(parts))


def column_of(found: Vector, of: Type, size: int) -> Column:
    """The column of a vector that is not of arrays or maps."""
    present = np.broadcast_to(found.present, size).astype(np.uint8)
    values = np.broadcast_to(found.values, size)
    if found.texts is not None:
        codes = np.where(present, values, 0).astype(np.int64)
        return Column(present, codes, pa.array(found.texts, pa.large_string()))
    if of == DOUBLE:
        values = np.where(present, values, 0.0)
        return Column(present, double_keys(values), None, values)
    if of.kind is Kind.DECIMAL:
        return Column(present, number_keys(np.where(present, values, 0), of), None)
    return Column(present, np.where(present, values, 0).astype(np.int64), None)


# --- values


def constant(value: Any, of: Type) -> Vector:
    """The vector of one value for all events."""
    if of.is_nested:
        raise NoColumn
    there = np.array(value is not None)
    if of == STRING:
        return Vector(there, np.array(0), ["" if value is None else value])
    if of.kind is Kind.DECIMAL:
        number = 0 if value is None else unscaled(value, of.scale)
        return Vector(there, narrowed(np.array(number, object)))
    return Vector(there, np.array(0 if value is None else value, dtype_of(of)))  # -0.0 as well


def dtype_of(of: Type) -> type[np.generic]:
    """The type of numpy for the values of a type, which is not one of strings or decimals."""
    return np.float64 if of == DOUBLE else np.bool_ if of == BOOL else np.int64


def objects_of(vector: Vector, of: Type) -> list[Any]:
    """The values as Python has them, None where they are missing."""
    values: list[Any] = vector.values.tolist()
    if vector.offsets is not None:
        values = _nested_objects(vector, vector.offsets, of)
    elif vector.texts is not None:
        values = [vector.texts[code] for code in values]
    elif of.kind is Kind.DECIMAL:
        values = scaled(values, of.scale)
    if vector.present.all():
        return values
    pairs = zip(values, vector.present.tolist(), strict=True)
    return [value if there else None for value, there in pairs]


def _nested_objects(vector: Vector, offsets: Array, of: Type) -> list[Any]:
    types = part_types(of)
    lists = [objects_of(part, one) for part, one in zip(vector.parts, types, strict=True)]
    ranges = list(itertools.pairwise(offsets.tolist()))
    if of.kind is Kind.MAP:
        keys, values = lists
        return [MapValue(zip(keys[a:b], values[a:b], strict=True)) for a, b in ranges]
    return [tuple(lists[0][a:b]) for a, b in ranges]


def spread(found: list[Any], places: Array, of: Type) -> Vector:
    """The vector in which event e has the value found[places[e]]."""
    if of.is_nested:
        raise NoColumn
    there = np.array([value is not None for value in found], np.bool_)
    if of == STRING:
        texts: dict[str, int] = {"": 0}
        codes = [0 if value is None else texts.setdefault(value, len(texts)) for value in found]
        return Vector(there[places], np.array(codes, np.int64)[places], list(texts))
    if of.kind is Kind.DECIMAL:
        numbers = np.empty(len(found), object)
        numbers[:] = [0 if value is None else unscaled(value, of.scale) for value in found]
        return Vector(there[places], narrowed(numbers)[places])
    values: Array = np.array([0 if value is None else value for value in found], dtype_of(of))
    return Vector(there[places], values[places])


def taken(vector: Vector, places: Array) -> Vector:
    """The vector in which event e has the value that is at places[e]."""
    if vector.offsets is not None:
        raise NoColumn
    present = vector.present if vector.present.ndim == 0 else vector.present[places]
    values = vector.values if vector.values.ndim == 0 else vector.values[places]
    return Vector(present, values, vector.texts)


def comparable(a: Vector, b: Vector, of: Type) -> tuple[Array, Array]:
    """Numbers that are to each other as the values of two vectors of one type are."""
    if a.texts is not None and b.texts is not None:
        order = {text: place for place, text in enumerate(sorted({*a.texts, *b.texts}))}
        x, y = (np.array([order[t] for t in v.texts or ()], np.int64)[v.values] for v in (a, b))
        return x, y
    return _ordered(a, of), _ordered(b, of)


def _ordered(vector: Vector, of: Type) -> Array:
    """Numbers in the order of the values."""
    if of != DOUBLE:
        return vector.values
    return double_keys(np.atleast_1d(vector.values))
