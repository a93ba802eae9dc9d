"""Bodies of publications as events: JSON, JSON arrays, JSON lines, CloudEvents.

Texts are cut, not read: whether an event is valid is for its topic to say. A body that cannot be
cut is refused as a whole; a bad element is refused by its row, and the others go on.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tamis.broker.protocols import cloud_events
from tamis.broker.records import NewEvent, Published, Refusal
from tamis.errors import BrokerError, EventError

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
LINES = (
    "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
    "application/json-lines",
)  # fmt: skip
# What curl and others send when nobody told them a type. A form never begins like JSON.
UNTOLD = ("", "application/x-www-form-urlencoded", "text/plain", "application/octet-stream")
EVENT_ID = "event-id"  # the header with the id of the event, or what the ids of several begin with

_BOM = b"\xef\xbb\xbf"


class UnsupportedType(BrokerError):
    """A body of a type in which the broker finds no events."""

    status = 415
    code = "unsupported-type"


class EventBatch(NamedTuple):
    """Events of one body, in their order, and the elements that are not events."""

    events: Sequence[NewEvent]
    refused: Sequence[Refusal] = ()

    def outcome(self, published: Published) -> Published:
        """What became of the whole body, when this became of its events: rows count elements."""
        if not self.refused:
            return published
        bad = {refusal.row for refusal in self.refused}
        rows = [row for row in range(len(self.events) + len(bad)) if row not in bad]
        later = [Refusal(rows[row], reason) for row, reason in published.refused]
        return published._replace(refused=sorted([*self.refused, *later]))


def events_of(headers: Mapping[str, str], body: bytes) -> EventBatch:
    """The events of a body; the names of the headers are in lower case.

    The header ``event-id`` gives the id of a single event; of several, each one gets it with its
    row. So a request that is sent again with the same header stores nothing twice.
    """
    kind = media_type(headers)
    body = body.removeprefix(_BOM)
    if kind == cloud_events.BATCH:
        return _sorted_out(cloud_events.of_array(body))
    if kind == cloud_events.STRUCTURED:
        return EventBatch([cloud_events.of_object(body)])
    if "ce-specversion" in headers:
        return EventBatch([cloud_events.of_headers(headers, body)])
    return EventBatch(_with_ids(_texts(kind, body), event_key(headers)))


def media_type(headers: Mapping[str, str]) -> str:
    """The type of a body without its parameters, which may only say that it is UTF-8."""
    kind, *parameters = headers.get("content-type", "").split(";")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in {"utf-8", "utf8", "us-ascii"}:
            raise UnsupportedType(f"the body is in the charset {charset!r}; send UTF-8")
    return kind.strip().lower()


def event_key(headers: Mapping[str, str]) -> str | None:
    """What the header ``event-id`` says; None if there is none."""
    key = headers.get(EVENT_ID)
    if key is None:
        return None
    if not key or not key.isprintable():  # bytes that are not UTF-8 are not printable, either
        raise EventError(f"the header {EVENT_ID} is {key[:40]!r}; it must be a text in UTF-8")
    return key


def _texts(kind: str, body: bytes) -> list[bytes] | bytes:
    """The text of one event, or the texts of several."""
    if kind in LINES:
        return [text for line in body.split(b"\n") if (text := line.strip())]
    if kind not in UNTOLD and not cloud_events.is_json(kind):
        raise UnsupportedType(
            f"no events are read from {kind!r}; send {JSON}, {LINES[0]}, "
            f"{cloud_events.STRUCTURED}, {cloud_events.BATCH}, a CloudEvent in binary mode, or "
            f"{ARROW}"
        )
    text = body.strip()
    if text.startswith(b"["):
        return [bytes(element) for element in cloud_events.elements(text)]
    if not text.startswith(b"{"):
        raise EventError(
            f"the body is not a JSON object or a JSON array of objects; for one object on each "
            f"line, send it as {LINES[0]}"
        )
    return text


def _with_ids(texts: list[bytes] | bytes, key: str | None) -> list[NewEvent]:
    if isinstance(texts, bytes):
        return [NewEvent(texts, key)]
    if key is None:
        return [NewEvent(text) for text in texts]
    return [NewEvent(text, f"{key}-{row}") for row, text in enumerate(texts)]


def _sorted_out(found: Sequence[NewEvent | EventError]) -> EventBatch:
    events = [one for one in found if isinstance(one, NewEvent)]
    refused = [
        Refusal(row, str(one)) for row, one in enumerate(found) if isinstance(one, EventError)
    ]
    return EventBatch(events, refused)
