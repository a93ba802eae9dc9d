"""Deliveries as JSON, and as server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html: a message is lines of ``field:
value`` and an empty line. JSON has line breaks only between values, where spaces do as well, so the
data of a message is always one line.
"""

import functools
from datetime import UTC, datetime, timedelta

import msgspec

from tamis.broker.records import Delivery, Record
from tamis.errors import OptionError

CONTENT_TYPE = "text/event-stream"
LAST_EVENT_ID = "Last-Event-ID"
COMMENT = b":\n\n"  # says that the connection is alive

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_encode = msgspec.json.Encoder().encode


def message(delivery: Delivery) -> bytes:
    """A delivery as one message, whose id is its offset."""
    return b"id: %d\ndata: %b\n\n" % (delivery.record.offset, _one_line(delivery_json(delivery)))


def named(kind: str, content: object) -> bytes:
    """A message of another kind than deliveries."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode(content))


def delivery_json(delivery: Delivery) -> bytes:
    """A delivery as the text of a JSON object; the event is in it as it was published."""
    record, attempt = delivery
    redelivered = b'true,"attempt":%d' % attempt if attempt > 1 else b"false"
    return b'{"offset":%d,"event":%b,"redelivered":%b,%b}' % (
        record.offset, record.body, redelivered, _about(record),
    )  # fmt: skip


def record_json(record: Record) -> bytes:
    """A record of the log as the text of a JSON object."""
    return b'{"offset":%d,"event":%b,%b}' % (record.offset, record.body, _about(record))


def last_event_id(header: str | None) -> int | None:
    """The offset that ``Last-Event-ID`` names, None if there is no such header."""
    if header is None or not header.strip():
        return None
    text = header.strip()
    digits = text.removeprefix("-")  # below 0: it came with a subscription that moved
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise OptionError(f"{LAST_EVENT_ID} is an offset of the topic, not {text[:40]!r}")
    return int(text)


def time_text(microseconds: int) -> str:
    """A time as ISO 8601 in UTC."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")


def _about(record: Record) -> bytes:
    headers = b',"headers":' + record.headers if record.headers else b""
    return b'"id":%b,"time":%b%b' % (_encode(record.id), _time(record.time), headers)


@functools.lru_cache(maxsize=1_000)  # the events of a batch came at the same time
def _time(microseconds: int) -> bytes:
    return _encode(time_text(microseconds))


def _one_line(text: bytes) -> bytes:
    return text.translate(_BREAKS)
