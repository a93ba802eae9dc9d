"""The events of files: which columns are attributes, and what workers get of a batch."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.column_types import arrow_attributes, attribute_type
from tamis.dead_letters import DeadLetter
from tamis.errors import SchemaError
from tamis.file_tables.dirty_columns import advice, dirty_columns, suspects
from tamis.file_tables.file_table import FileTable
from tamis.file_tables.input_files import CORRUPT
from tamis.file_tables.type_names import type_name
from tamis.file_tables.unreadable_rows import RowFormat
from tamis.given_events import kept_names
from tamis.names import Path, path_text
from tamis.schema import Schema
from tamis.spark.tables.event_chunks import EventLayout
from tamis.spark.tables.event_table import check_columns, present_attributes
from tamis.types import Kind, Type

_TYPES = {
    Kind.INT: pa.int64(), Kind.DOUBLE: pa.float64(), Kind.STRING: pa.string(),
    Kind.BOOL: pa.bool_(), Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
}  # fmt: skip


def with_types(found: pa.Schema, schema: Schema) -> pa.Schema:
    """The columns that were found in files of text, with the types of a schema."""
    return pa.schema([(field.name, _typed((field.name,), field.type, schema)) for field in found])


def _arrow_type(of: Type) -> pa.DataType:
    if of.kind is Kind.DECIMAL:
        return pa.decimal128(of.digits, of.scale)
    if of.element is None:
        return _TYPES[of.kind]
    inner = _TYPES[of.element.kind]
    return pa.map_(pa.string(), inner) if of.kind is Kind.MAP else pa.list_(inner)


def _typed(path: Path, found: pa.DataType, schema: Schema) -> pa.DataType:
    known = schema.find(path)
    if known is not None and (known.type.is_nested or not pa.types.is_nested(found)):
        return _arrow_type(known.type)
    if pa.types.is_struct(found):
        return pa.struct(
            [(inner.name, _typed((*path, inner.name), inner.type, schema)) for inner in found]
        )
    return found


class EventColumns:
    """The columns of events; without an `event_id`, they are numbered in the order of the files."""

    def __init__(
        self, table: FileTable, event_id: str | None, schema: Schema | None, keep: Sequence[str],
        moment: int,
    ) -> None:  # fmt: skip
        self._table = table
        self._moment = moment  # when all of them arrive
        self.keep = kept_names(keep)
        usable = pa.schema([field for field in table.schema if field.name != CORRUPT])
        self._event_id = event_id
        check_columns(usable.names, event_id, self.keep)
        self.seen = 0  # events that were read by the last pass
        self.skipped = _unusable(usable)
        found = Schema.of_attributes(arrow_attributes(usable, "skip"))
        self.schema = found if schema is None else schema
        if not len(self.schema):
            listed = ", ".join(f"{f.name} ({type_name(f.type)})" for f in usable)
            raise SchemaError(
                "the events have no column that a filter can use; "
                f"they have {listed or 'no columns at all'}"
            )
        self._present = present_attributes(self.schema, found, self.skipped)

    @property
    def id_type(self) -> pa.DataType:
        """The type of the ids of the events."""
        if self._event_id is None:
            return pa.int64()
        return self._table.schema.field(self._event_id).type

    def notes(self, letters: Iterable[DeadLetter] | None) -> list[str]:
        """Why filters cannot use columns of texts, and what to do; `letters` are about filters."""
        if not (self._table.is_text and self._table.is_inferred):
            return []
        paths = suspects(self.schema, letters)
        found = dirty_columns(self._table.batches(), paths) if paths else []
        return list(advice(self.schema, found))

    def kept_fields(self) -> list[pa.Field]:
        """The columns to keep."""
        return [self._table.schema.field(name) for name in self.keep]

    def layout(self, attributes: Iterable[str]) -> EventLayout:
        """Which columns workers get to read some attributes."""
        tree = self._tree(attributes)
        rows = None
        if self._table.is_text:
            rows = RowFormat(self._table.files.format, self._table.inner, self._table.is_inferred)
        return EventLayout(tuple(tree), self.keep, self._table.is_text, rows, self._moment)

    def batches(self, attributes: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """The columns of `layout`."""
        return self._projected(attributes, numbers=False)

    def numbered(self, attributes: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """The columns of `layout`, but with row numbers instead of the columns to keep."""
        return self._projected(attributes, numbers=True)

    def _projected(self, attributes: Iterable[str], *, numbers: bool) -> Iterator[pa.RecordBatch]:
        tree = self._tree(attributes)
        self.seen = first = 0
        for batch in self._table.batches():
            rows = pa.array(np.arange(first, first + batch.num_rows))
            self.seen = first = first + batch.num_rows
            columns = [rows if self._event_id is None else batch.column(self._event_id)]
            columns += [_cut(batch.column(top), inner) for top, inner in tree.items()]
            columns += [rows] if numbers else [batch.column(name) for name in self.keep]
            if self._table.is_text:
                columns.append(batch.column(CORRUPT))
            yield pa.RecordBatch.from_arrays(columns, names=list(map(str, range(len(columns)))))

    def _tree(self, attributes: Iterable[str]) -> dict[str, Any]:
        """The fields that hold some attributes, records within records."""
        wanted = set(attributes)
        tree: dict[str, Any] = {}
        for attribute in self.schema.attributes:
            if attribute.name in wanted and attribute.path in self._present:
                place = tree
                for part in self._present[attribute.path]:
                    place = place.setdefault(part, {})
        return tree


def _cut(column: pa.Array, inner: dict[str, Any]) -> pa.Array:
    """A column, or the record of those of its fields that are needed.

    As Spark makes such a record, it is never null: all of its fields may be.
    """
    if not inner:
        return column
    names = [field.name for field in column.type]
    flat = column.flatten()
    fields = [_cut(flat[names.index(name)], more) for name, more in inner.items()]
    return pa.StructArray.from_arrays(fields, names=list(inner))


def _unusable(fields: Iterable[pa.Field], path: Path = ()) -> dict[str, str]:
    """The columns that no filter can use, and their types."""
    found: dict[str, str] = {}
    for field in fields:
        inner = (*path, field.name)
        if pa.types.is_struct(field.type):
            found |= _unusable(field.type, inner)
        elif attribute_type(field.type) is None:
            found[path_text(inner)] = type_name(field.type)
    return found
