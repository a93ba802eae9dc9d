"""Events that are JSON texts, decoded into Arrow columns.

Events are decoded straight into objects with one slot for each attribute, many of them by one call:
eight times as fast as reading them one by one with `EventReader`, which gives the same values. The
texts must be events that this reader has accepted; should one not be, the events are read one by
one, and the bad ones are named.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from tamis.broker.log.columns import attribute_columns, column_type
from tamis.errors import EventError
from tamis.events.column_values import plain_type, values_of
from tamis.events.event_reader import EventReader, Row
from tamis.names import Path
from tamis.schema import Attribute, Schema
from tamis.types import Kind

_JSON_TYPES: dict[Kind, Any] = {
    Kind.INT: int, Kind.DOUBLE: float, Kind.STRING: str, Kind.BOOL: bool, Kind.TIMESTAMP: str,
    Kind.DECIMAL: Decimal,
}  # fmt: skip


class Decoded(NamedTuple):
    """Events in columns; `bad` are the numbers of those that are in no column, ascending."""

    columns: dict[str, pa.Array]
    bad: Sequence[int]


class EventDecoder:
    """Decodes events of one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._reader = EventReader(schema)
        event = _EventType(schema)
        self._getters = event.getters
        self._decoder: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[event.type])  # type: ignore[name-defined]  # a class made at run time

    def decode(self, joined: bytes, count: int, texts: Callable[[], Sequence[bytes]]) -> Decoded:
        """The columns of `count` events; `joined` has their texts with commas between them.

        `texts` gives them one by one, for the case that they cannot be decoded together.
        """
        try:
            events = self._decoder.decode(b"[" + joined + b"]")
            if len(events) == count:
                return Decoded(self._columns(events), ())
        except (msgspec.DecodeError, EventError, ValueError, OverflowError):
            pass  # the reader below says which one it is, if any
        return self._one_by_one(texts())

    def _columns(self, events: list[Any]) -> dict[str, pa.Array]:
        arrays = []
        for attribute, get in zip(self.schema.attributes, self._getters, strict=True):
            texts = _with_texts(attribute)  # JSON has moments as texts
            values = pa.array(get(events), texts or column_type(attribute))
            arrays.append(values if texts is None else _moments(values, attribute))
        return attribute_columns(self.schema, arrays, len(events))

    def _one_by_one(self, texts: Sequence[bytes]) -> Decoded:
        rows: list[Row] = []
        bad = []
        for number, text in enumerate(texts):
            try:
                rows.append(self._reader.row(text))
            except EventError:
                bad.append(number)
        columns = zip(*rows, strict=True) if rows else [()] * len(self.schema)
        arrays = [
            pa.array(values, plain_type(attribute)).cast(column_type(attribute))
            for values, attribute in zip(columns, self.schema.attributes, strict=True)
        ]
        return Decoded(attribute_columns(self.schema, arrays, len(rows)), bad)


def _with_texts(attribute: Attribute) -> pa.DataType | None:
    """The type of a column of moments as JSON has them, None for other columns."""
    of = attribute.type.element or attribute.type
    if of.kind is not Kind.TIMESTAMP:
        return None
    text = pa.large_string()
    if attribute.type.kind is Kind.MAP:
        return pa.map_(text, text)
    return pa.large_list(text) if attribute.type.is_nested else text


def _moments(texts: pa.Array, attribute: Attribute) -> pa.Array:
    found = values_of(pa.chunked_array([texts]), attribute)
    if len(found.bad):
        raise EventError(found.reason(int(found.bad[0])))
    return found.values.combine_chunks().cast(column_type(attribute))


def _getter(slots: Sequence[str], flat: str | None) -> Callable[[list[Any]], list[Any]]:
    """A function that gives the values of one attribute: through records, or of a flat name."""
    if len(slots) == 1:
        get = attrgetter(slots[0])
        return lambda events: list(map(get, events))

    def values(events: list[Any]) -> list[Any]:
        found = []
        for event in events:
            value = event
            for slot in slots:
                value = getattr(value, slot, None)  # a record may be missing
            if flat is not None and value is None:
                value = getattr(event, flat)
            found.append(value)
        return found

    return values


class _EventType:
    """A class with a slot for each attribute, and how to get at the values."""

    def __init__(self, schema: Schema) -> None:
        self.paths: dict[Path, tuple[str, ...]] = {}
        fields = self._fields(schema.attributes, (), ())
        # Tables without records use the whole path as a name: address.city.
        nested = [attribute for attribute in schema.attributes if len(attribute.path) > 1]
        flat = {attribute.path: f"flat{number}" for number, attribute in enumerate(nested)}
        fields += [_field(flat[a.path], _value_type(a), ".".join(a.path)) for a in nested]
        self.type = msgspec.defstruct("Event", fields, gc=False)
        self.getters = [
            _getter(self.paths[attribute.path], flat.get(attribute.path))
            for attribute in schema.attributes
        ]

    def _fields(
        self, attributes: Sequence[Attribute], path: Path, slots: tuple[str, ...]
    ) -> list[tuple[str, Any, Any]]:
        inside: dict[str, list[Attribute]] = {}
        for attribute in attributes:
            inside.setdefault(attribute.path[len(path)], []).append(attribute)
        fields = []
        for number, (name, members) in enumerate(inside.items()):
            inner, slot = (*path, name), f"slot{number}"
            if members[0].path == inner:
                self.paths[inner] = (*slots, slot)
                kind = _value_type(members[0])
            else:
                record = self._fields(members, inner, (*slots, slot))
                kind = msgspec.defstruct("Record", record, gc=False)
            fields.append(_field(slot, kind, name))
        return fields


def _value_type(attribute: Attribute) -> Any:
    element = attribute.type.element
    if element is None:
        return _JSON_TYPES[attribute.type.kind]
    inner = _JSON_TYPES[element.kind] | None
    return dict[str, inner] if attribute.type.kind is Kind.MAP else list[inner]  # type: ignore[valid-type]  # made at run time


def _field(slot: str, kind: Any, name: str) -> tuple[str, Any, Any]:
    return slot, kind | None, msgspec.field(default=None, name=name)
