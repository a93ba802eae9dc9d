"""Columns of records, and which of the values do not fit the types of their columns."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.file_tables.text_values import Reader, text_reader
from tamis.names import Path

# Texts that are surely values of a type, for numbers as most files have them.
QUICK = {
    pa.int32(): re.compile(r"-?[0-9]{1,9}"),
    pa.int64(): re.compile(r"-?[0-9]{1,18}"),
    pa.float64(): re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?([eE]-?[0-9]{1,2})?"),
}


class ValueFault(NamedTuple):
    """A value that does not fit the type of its column."""

    path: Path
    value: Any
    kind: pa.DataType


Faults = dict[int, ValueFault]  # by row, the first fault in it


class LeafReader(Protocol):
    """Reads values that are not records.

    Implementers: `TextLeafReader`, `XmlLeafReader`, `JsonLeafReader`.
    """

    def column(self, values: list[Any], kind: pa.DataType) -> pa.Array | None:
        """All values at once; None if they have to be read one by one."""

    def reader(self, kind: pa.DataType) -> Reader:
        """The function that reads one value, or raises a ValueError."""


class TextLeafReader:
    """Values that are texts, as in CSV and XML."""

    def __init__(self, *, is_inferred: bool) -> None:
        self._is_inferred = is_inferred

    def column(self, values: list[Any], kind: pa.DataType) -> pa.Array | None:
        if not {str, type(None)}.issuperset(map(type, values)):
            return None
        if pa.types.is_string(kind):
            return text_column(values)
        pattern = QUICK.get(kind)
        if pattern is None:
            return None
        texts = text_column(values)
        fits = pc.match_substring_regex(texts, f"^(?:{pattern.pattern})$")
        return texts.cast(kind) if pc.all(fits, min_count=0).as_py() else None

    def reader(self, kind: pa.DataType) -> Reader:
        read = text_reader(kind, is_inferred=self._is_inferred)

        def checked(value: Any) -> Any:
            if not isinstance(value, str):
                raise ValueError  # noqa: TRY004 - a record where a value is expected, for callers
            return read(value)

        return checked


def text_column(values: Sequence[str | None]) -> pa.Array:
    """Texts as a column; what is not Unicode becomes a question mark, as in Java."""
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        valid = [None if v is None else v.encode(errors="replace").decode() for v in values]
        return pa.array(valid, pa.string())


def column_of(
    values: list[Any], kind: pa.DataType, path: Path, leaf_reader: LeafReader, faults: Faults
) -> pa.Array:
    """The column of values; a value that does not fit is null, and a fault."""
    if pa.types.is_struct(kind):
        return _records(values, kind, path, leaf_reader, faults)
    if pa.types.is_list(kind):
        return _lists(values, kind, path, leaf_reader, faults)
    if pa.types.is_map(kind):
        return _maps(values, kind, path, leaf_reader, faults)
    column = leaf_reader.column(values, kind)
    if column is not None:
        return column
    read = leaf_reader.reader(kind)
    found: list[Any] = [None] * len(values)
    for row, value in enumerate(values):
        if value is not None:
            try:
                found[row] = read(value)
            except (ValueError, OverflowError):
                faults.setdefault(row, ValueFault(path, value, kind))
    if pa.types.is_timestamp(kind):
        return pa.array(found, pa.int64()).cast(kind)
    return text_column(found) if pa.types.is_string(kind) else pa.array(found, kind)


def _mappings(
    values: list[Any], kind: pa.DataType, path: Path, faults: Faults
) -> tuple[list[Mapping[str, Any]], list[bool]]:
    """The values that are mappings, empty ones in place of others, and which of them are."""
    present = [isinstance(value, Mapping) for value in values]
    for row, value in enumerate(values):
        if value is not None and not present[row]:
            faults.setdefault(row, ValueFault(path, value, kind))
    return [value if there else {} for value, there in zip(values, present, strict=True)], present


def _records(
    values: list[Any], kind: pa.DataType, path: Path, leaf_reader: LeafReader, faults: Faults
) -> pa.Array:
    records, present = _mappings(values, kind, path, faults)
    inner = []
    for field in kind:
        of_field = [record.get(field.name) for record in records]
        inner.append(column_of(of_field, field.type, (*path, field.name), leaf_reader, faults))
    return pa.StructArray.from_arrays(
        inner, fields=list(kind), mask=pa.array(~np.array(present, bool))
    )


def _lists(
    values: list[Any], kind: pa.DataType, path: Path, leaf_reader: LeafReader, faults: Faults
) -> pa.Array:
    flat: list[Any] = []
    rows: list[int] = []
    ends = [0]
    missing = np.zeros(len(values), bool)
    for row, value in enumerate(values):
        if isinstance(value, list):
            flat += value
            rows += [row] * len(value)
        else:
            missing[row] = True
            if value is not None:
                faults.setdefault(row, ValueFault(path, value, kind))
        ends.append(len(flat))
    found: Faults = {}
    items = column_of(flat, kind.value_type, path, leaf_reader, found)
    for place, fault in found.items():
        faults.setdefault(rows[place], fault)
    offsets = pa.array(ends, pa.int32())
    return pa.ListArray.from_arrays(offsets, items, mask=pa.array(missing))


def _maps(
    values: list[Any], kind: pa.DataType, path: Path, leaf_reader: LeafReader, faults: Faults
) -> pa.Array:
    maps, is_map = _mappings(values, kind, path, faults)
    rows = [row for row, value in enumerate(maps) for _ in value]
    found: Faults = {}
    flat = [one for value in maps for one in value.values()]
    items = column_of(flat, kind.item_type, path, leaf_reader, found)
    for place, fault in found.items():
        faults.setdefault(rows[place], fault)
        is_map[rows[place]] = False  # as Spark: the whole map is null
    keys = text_column([key for value in maps for key in value])
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(value) for value in maps], out=ends[1:])
    mask = pa.array(~np.array(is_map, bool))
    return pa.MapArray.from_arrays(pa.array(ends), keys, items, mask=mask)


def type_of_all(
    groups: Iterable[Iterable[Any] | None], shape: Callable[[Any], Any],
    type_of: Callable[[Any], Any], common: Callable[[Any, Any], Any],
) -> tuple[pa.DataType, bool]:  # fmt: skip
    """The type that the records of all groups have in common, and whether a group is None.

    Records of the same `shape` are of the same type.
    """
    known: pa.DataType = pa.struct([])
    seen: set[Any] = set()
    any_bad = False
    for group in groups:
        any_bad = any_bad or group is None
        for record in group or ():
            found = shape(record)
            if found not in seen:  # most records are alike
                seen.add(found)
                known = common(known, type_of(record))
    return known, any_bad


def batch_of(
    records: Sequence[Mapping[str, Any]], schema: pa.Schema, leaf_reader: LeafReader
) -> tuple[list[pa.Array], Faults]:
    """The columns of records, and the first fault of each record."""
    faults: Faults = {}
    columns = [
        column_of(
            [record.get(f.name) for record in records], f.type, (f.name,), leaf_reader, faults
        )
        for f in schema
    ]
    return columns, faults
