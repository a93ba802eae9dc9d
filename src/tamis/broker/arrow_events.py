"""Rows of Arrow tables as events: texts of JSON objects."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from tamis.broker.records import NewEvent, Refusal
from tamis.errors import EventError, OptionError
from tamis.events.columns import as_table

_encode = msgspec.json.Encoder(decimal_format="number").encode


def events_of_table(table: Any) -> tuple[list[tuple[int, NewEvent]], list[Refusal]]:
    """The rows of a table as events with their numbers, and why some cannot be events."""
    columns = as_table(table)
    if columns is None:
        raise OptionError(f"expected an Arrow table or a frame, got {type(table).__name__}")
    events, refused = [], []
    for row, record in enumerate(columns.to_pylist()):
        try:
            events.append((row, NewEvent(event_text(record))))
        except EventError as error:
            refused.append(Refusal(row, error.problem))
    return events, refused


def event_text(record: Mapping[str, Any]) -> bytes:
    """The text of an event; an `EventError` if JSON has no form for one of its values."""
    for name, value in record.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise EventError(f"the column {name!r} has {value}, for which JSON has no number")
    try:
        return _encode(record)
    except (TypeError, ValueError, RecursionError) as error:
        raise EventError(f"the row has a value without a form in JSON: {error}") from None
