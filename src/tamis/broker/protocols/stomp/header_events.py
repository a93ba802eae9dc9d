"""The event of a SEND frame: its JSON body, or else its headers, read by the topic's schema.

A body that is not JSON (a text, a picture) cannot be matched, but is what the sender wants
delivered: it is carried along in the record's headers, and a STOMP subscriber gets it back as the
body. Everybody else gets the event.
"""

import base64
import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from tamis.broker.records import NO_HEADERS, NewEvent
from tamis.errors import EventError
from tamis.events.event_reader import parse_json
from tamis.events.values import Reader, text_reader, value_reader
from tamis.schema import Attribute, Schema
from tamis.types import Kind

EVENT_ID = "event-id"  # the header with which a sender names an event: the same id, the same event
# Headers of records that carry a body that is not JSON: as text, or in Base64.
TEXT_BODY, BINARY_BODY = "stomp.body", "stomp.body64"

_OBJECT = re.compile(rb"[ \t\r\n]*\{")
# Headers of SEND that are about the frame, and not carried along.
_OF_THE_FRAME = frozenset(
    {"destination", "receipt", "transaction", "content-length", EVENT_ID, TEXT_BODY, BINARY_BODY}
)
_OF_JSON = _OF_THE_FRAME | {"content-type"}


def is_json(headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a body is an event: it begins like a JSON object, or its content-type is JSON."""
    return _OBJECT.match(body) is not None or "json" in headers.get("content-type", "")


def json_event(headers: Mapping[str, str], body: bytes) -> NewEvent:
    """The event that a JSON body is."""
    if headers.keys() <= _OF_JSON:
        return NewEvent(body, headers.get(EVENT_ID))
    carried = {name: value for name, value in headers.items() if name not in _OF_JSON}
    return NewEvent(body, headers.get(EVENT_ID), carried)


class HeaderEvents:
    """Makes events of headers, for one schema."""

    def __init__(self, schema: Schema) -> None:
        self.types = {name: str(attribute) for name, attribute in schema.items()}
        self._readers = {
            ".".join(attribute.path): (attribute, _reader(attribute))
            for attribute in schema.attributes
        }

    def event(self, headers: Mapping[str, str], body: bytes) -> NewEvent:
        """The event whose values are in headers; raises an `EventError` for a wrong value."""
        record: dict[str, Any] = {}
        for name, (attribute, read) in self._readers.items():
            text = headers.get(name)
            value = None if text is None else read(text)
            if value is None:
                continue
            if attribute.type.is_nested:
                value = json.loads(text or "")  # as it was written, and just read
            elif attribute.type.kind is Kind.TIMESTAMP:
                value = text  # JSON has no timestamps; their text is read again as it was here
            elif isinstance(value, float) and not isfinite(value):
                raise EventError(f"attribute {attribute.name}: JSON has no number {text}")
            inside = record
            for part in attribute.path[:-1]:
                inside = inside.setdefault(part, {})
            inside[attribute.path[-1]] = value
        carried = {name: value for name, value in headers.items() if name not in _OF_THE_FRAME}
        if body:
            carried.update(_carried_body(body))
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        return NewEvent(text.encode(), headers.get(EVENT_ID), carried or NO_HEADERS)


def _reader(attribute: Attribute) -> Reader:
    """How a header is read; arrays and maps are JSON."""
    if not attribute.type.is_nested:
        return text_reader(attribute)
    read = value_reader(attribute)

    def of_json(text: str) -> Any:
        try:
            return read(parse_json(text))
        except (ValueError, RecursionError):
            raise EventError(f"attribute {attribute.name}: {text[:60]!r} is not JSON") from None

    return of_json


def _carried_body(body: bytes) -> dict[str, str]:
    try:
        return {TEXT_BODY: body.decode()}
    except UnicodeDecodeError:
        return {BINARY_BODY: base64.b64encode(body).decode()}


def carried_body(carried: dict[str, str]) -> bytes | None:
    """Takes the body that is not JSON out of a record's headers; None if there is none."""
    text = carried.pop(TEXT_BODY, None)
    if text is not None:
        return text.encode()
    binary = carried.pop(BINARY_BODY, None)
    return None if binary is None else base64.b64decode(binary)
