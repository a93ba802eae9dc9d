"""Publications: events as bodies of requests, in pieces of a bounded size, and what became of them.

A piece has a key, from which the broker makes the ids of its events: if the answer to it is lost,
it is sent again under the same key, and events that are stored already are not stored twice.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.broker.records import Published, Refusal
from tamis.client.error_answers import RefusedEvents
from tamis.errors import EventError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
BATCH = "application/cloudevents-batch+json"
JSON = "application/json"
LINES = "application/x-ndjson"
KEY = "Event-Id"  # the header with the id of the event, or with what the ids of several begin with

MOST_EVENTS = 5_000  # in one request
MOST_BYTES = 1_000_000  # in one request of texts; one event may be larger
MOST_ROWS = 20_000  # in one request of columns
MOST_TABLE = 16_000_000  # bytes in one request of columns


class Publication(NamedTuple):
    """The body of one request, with its type, its key and its number of events."""

    body: bytes
    kind: str
    key: str
    events: int

    @property
    def headers(self) -> dict[str, str]:
        """What the request says about its body."""
        return {"Content-Type": self.kind, KEY: self.key}


def single(event: Any, key: str | None) -> Publication:
    """One event, whose id is the key."""
    if key is not None and not (key and key.isascii() and key.isprintable()):
        raise OptionError(f"the id of an event is printable ASCII text, not {key!r}")
    return Publication(event_text(event), JSON, key or uuid.uuid4().hex, 1)


def publications(events: Any, ids: Iterable[Any] | None = None) -> Iterator[Publication]:
    """Many events: an Arrow table, a frame of pandas or polars, or an iterable of single ones."""
    table = None if isinstance(events, list | tuple) else as_table(events)
    if table is not None and ids is None:
        yield from _of_table(table)
        return
    rows = events if table is None else table.to_pylist()
    if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise OptionError(
            f"publish_many takes many events, not a {type(rows).__name__}; publish takes one"
        )
    if ids is None:
        yield from _pieces(map(event_text, rows), LINES, (b"", b"\n", b"\n"))
    else:
        texts = (_cloud_event(row, key) for row, key in zip(rows, ids, strict=True))
        yield from _pieces(texts, BATCH, (b"[", b",", b"]"))


def event_text(event: Any) -> bytes:
    """An event as the text of a JSON object on one line."""
    if isinstance(event, str | bytes):
        # A line break is never a part of a value in JSON, only between values.
        text = event.encode() if isinstance(event, str) else event
        return text.strip().replace(b"\r", b" ").replace(b"\n", b" ")
    if not isinstance(event, Mapping):
        raise EventError(
            f"an event is a dict or the text of a JSON object, not a {type(event).__name__}"
        )
    exact: dict[str, str] = {}  # the digits of decimals, by what stands for them

    def plain(value: Any) -> Any:
        return _decimal(value, exact) if isinstance(value, Decimal) else _plain(value)

    try:
        written = json.dumps(
            dict(event), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain
        )
        for mark, digits in exact.items():
            written = written.replace(f'"{mark}"', digits, 1)
        return written.encode()
    except (TypeError, ValueError) as error:  # nan, a set, a text that is not Unicode
        raise EventError(f"the event cannot be written as JSON: {error}") from None


def _decimal(value: Decimal, exact: dict[str, str]) -> str:
    """What stands for a decimal until the text is made: `json` has no numbers but floats."""
    if not value.is_finite():
        raise ValueError(f"{value} is not a number of JSON")
    mark = f"decimal {len(exact)} {uuid.uuid4().hex}"
    exact[mark] = str(value)
    return mark


def _plain(value: Any) -> Any:
    """What JSON has for a value of another type."""
    if isinstance(value, date):  # with its subclass datetime
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a number of numpy
        return value.item()
    raise TypeError(f"a value of the type {type(value).__name__} has no form in JSON")


def _cloud_event(event: Any, key: Any) -> bytes:
    text = event_text(event)
    try:
        json.loads(text)  # one that is not JSON would spoil the others
    except ValueError as error:
        raise EventError(f"the event with the id {key!r} is not valid JSON: {error}") from None
    name = json.dumps(str(key)).encode()
    return b'{"specversion":"1.0","id":%s,"source":"tamis","type":"event","data":%s}' % (name, text)


def _pieces(
    texts: Iterable[bytes], kind: str, marks: tuple[bytes, bytes, bytes]
) -> Iterator[Publication]:
    first, between, last = marks
    waiting: list[bytes] = []
    size = 0
    for text in texts:
        if waiting and (len(waiting) == MOST_EVENTS or size + len(text) > MOST_BYTES):
            yield _piece(first + between.join(waiting) + last, kind, len(waiting))
            waiting, size = [], 0
        waiting.append(text)
        size += len(text)
    if waiting:
        yield _piece(first + between.join(waiting) + last, kind, len(waiting))


def _of_table(table: "pa.Table") -> Iterator[Publication]:
    import pyarrow as pa

    size = max(table.nbytes // max(table.num_rows, 1), 1)  # bytes of a row
    for batch in table.to_batches(max_chunksize=max(1, min(MOST_ROWS, MOST_TABLE // size))):
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield _piece(sink.getvalue().to_pybytes(), ARROW, batch.num_rows)


def _piece(body: bytes, kind: str, events: int) -> Publication:
    return Publication(body, kind, uuid.uuid4().hex, events)


def as_table(events: Any) -> "pa.Table | None":
    """Events as an Arrow table, if they are columns."""
    if not hasattr(events, "columns") and not hasattr(events, "__arrow_c_stream__"):
        return None  # without importing Arrow
    from tamis.events import columns

    return columns.as_table(events)


class Tally:
    """What became of the events of several publications."""

    def __init__(self) -> None:
        self._accepted = 0
        self._offset: int | None = None
        self._refused: list[Refusal] = []
        self._rows = 0

    def add(self, publication: Publication, answer: Mapping[str, Any]) -> None:
        """Count the broker's answer to one publication."""
        self._accepted += answer["accepted"]
        if answer.get("offset") is not None:
            self._offset = answer["offset"]
        self.refuse(publication, [Refusal(**one) for one in answer.get("refused", ())])

    def refuse(self, publication: Publication, refused: Sequence[Refusal]) -> None:
        """Count a publication of which these were refused."""
        self._refused += [Refusal(self._rows + row, reason) for row, reason in refused]
        self._rows += publication.events

    def result(self) -> Published:
        """All of it together; raises an error if every event was refused."""
        if self._refused and not self._accepted:
            raise RefusedEvents(self._refused)
        return Published(self._accepted, self._offset, tuple(self._refused))
