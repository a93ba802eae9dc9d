"""CloudEvents 1.0 as events of a topic: the data is the event, the id is its id.

https://github.com/cloudevents/spec: binary mode has the attributes in headers ``ce-...`` and the
data as the body; structured mode has one JSON object with everything, batch mode an array of those.
The other attributes are carried along as headers of the event, under their names in binary mode.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

import msgspec

from tamis.broker.records import NewEvent
from tamis.errors import EventError

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
PREFIX = "ce-"  # of an attribute that is a header
VERSION = "1.0"

_REQUIRED = ("id", "source", "type")
_NAME = re.compile(r"[a-z0-9]+")
_JSON_TYPE = re.compile(r"[\w.+-]+/(?:[\w.+-]+\+)?json", re.IGNORECASE)
_QUOTED_PAIR = re.compile(r"\\(.)", re.DOTALL)

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])
_text = msgspec.json.Decoder(str)
_attribute = msgspec.json.Decoder(str | bool | int | None)


def is_json(content_type: str) -> bool:
    """Whether a content type says JSON: ``application/json``, ``text/json``, ``...+json``."""
    return _JSON_TYPE.fullmatch(content_type.partition(";")[0].strip()) is not None


def of_headers(headers: Mapping[str, str], body: bytes) -> NewEvent:
    """The event of a request in binary mode; the names of the headers are in lower case."""
    attributes = {
        name[len(PREFIX) :]: _decoded(name, value)
        for name, value in headers.items()
        if name.startswith(PREFIX)
    }
    if not body.strip():
        raise EventError("the CloudEvent has no data; the event is a JSON object")
    return _event(attributes, body, headers.get("content-type"))


def of_object(text: bytes | msgspec.Raw) -> NewEvent:
    """The event of one JSON object in structured mode."""
    try:
        members = _members.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EventError(f"the CloudEvent is not a JSON object: {error}") from None
    data, encoded = members.pop("data", None), members.pop("data_base64", None)
    attributes = {
        name: value
        for name, raw in members.items()
        if (value := _attribute_value(name, raw)) is not None
    }
    if encoded is not None:
        if data is not None:
            raise EventError("the CloudEvent has both data and data_base64")
        body = _from_base64(encoded)
    elif data is not None:
        body = bytes(data)
    else:
        raise EventError("the CloudEvent has no data; the event is a JSON object")
    return _event(attributes, body, attributes.pop("datacontenttype", None))


def of_array(text: bytes) -> list[NewEvent | EventError]:
    """The events of a JSON array in batch mode; in place of a bad one, what is wrong with it."""
    found: list[NewEvent | EventError] = []
    for element in elements(text):
        try:
            found.append(of_object(element))
        except EventError as error:
            found.append(error)
    return found


def elements(text: bytes) -> list[msgspec.Raw]:
    """The elements of a JSON array, as they are written."""
    try:
        return _elements.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EventError(f"the body is not a JSON array: {error}") from None


def _event(attributes: dict[str, str], body: bytes, content_type: str | None) -> NewEvent:
    version = attributes.pop("specversion", None)
    if version != VERSION:
        said = "has no specversion" if version is None else f"has the specversion {version!r}"
        raise EventError(f"the CloudEvent {said}; it must be {VERSION!r}")
    for name in _REQUIRED:
        if not attributes.get(name):
            raise EventError(f"the CloudEvent has no {name}")
    for name in attributes:
        if not _NAME.fullmatch(name):
            raise EventError(
                f"the attribute {name!r} of the CloudEvent is not of lower-case letters and digits"
            )
    if content_type is not None and not is_json(content_type):
        raise EventError(
            f"the data of the CloudEvent is {content_type}; the event is a JSON object"
        )
    key = attributes.pop("id")
    return NewEvent(body.strip(), key, {PREFIX + name: v for name, v in attributes.items()})


def _attribute_value(name: str, raw: msgspec.Raw) -> str | None:
    """The text of an attribute in structured mode; one that is null is not there."""
    try:
        value = _attribute.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise EventError(
            f"the attribute {name!r} of the CloudEvent is not a string, a boolean or an integer"
        ) from None
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _from_base64(raw: msgspec.Raw) -> bytes:
    try:
        return base64.b64decode(_text.decode(raw), validate=True)
    except (msgspec.DecodeError, UnicodeError, ValueError, binascii.Error):
        raise EventError("data_base64 of the CloudEvent is not base64") from None


def _decoded(name: str, value: str) -> str:
    """The value of an attribute in a header: without quotes, and with percent signs resolved."""
    text = value.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = _QUOTED_PAIR.sub(r"\1", text[1:-1])
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeError:
        raise EventError(f"the header {name} of the CloudEvent is not valid UTF-8") from None
