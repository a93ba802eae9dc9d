"""Published texts as rows for matching; what is not an event of the topic is refused with a reason.

Decoded by msgspec, which is ten times as fast as `json`, but takes the last of two values with the
same name, where `EventReader` refuses the event. An object has at least one colon for each name
that is written: if it has no more than it has different names, then no name comes twice. In all
other cases the strict parser looks.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tamis.broker.records import NewEvent, Refusal
from tamis.errors import EventError
from tamis.events.event_reader import EventReader, Row, exact_number, parse_json_event
from tamis.matcher import Matcher
from tamis.types import Kind

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_decode_exactly = msgspec.json.Decoder(dict[str, Any], float_hook=exact_number).decode


class PublishRequirements(NamedTuple):
    """What the events of one publisher must keep to, beside the schema."""

    most_bytes: int = 16_000_000  # of one event
    allowed: Matcher | None = None  # an event must match its only subscription; None: any may come
    who: str = ""  # for messages
    whole: bool = False  # if one event is refused, all are


class ReadEvents(NamedTuple):
    """Events that were read: the good ones with their rows, and why the others are refused."""

    by: "EventRows"
    given: Sequence[NewEvent]  # all of them
    requirements: PublishRequirements
    events: Sequence[NewEvent]  # the good ones
    rows: Sequence[Row]
    refused: Sequence[Refusal]


class EventRows:
    """Reads the events of one topic, with the schema and semantics of a matcher."""

    def __init__(self, matcher: Matcher) -> None:
        self._reader = EventReader(matcher.schema)
        self._meaning = matcher.meaning
        has_decimals = any(a.type.kind is Kind.DECIMAL for a in matcher.schema.attributes)
        self._decode = _decode_exactly if has_decimals else _decode

    def read(self, events: Sequence[NewEvent], requirements: PublishRequirements) -> ReadEvents:
        """The events that can be stored, and why the others cannot."""
        rows: list[Row] = []
        good: list[int] = []
        refused: list[Refusal] = []
        for number, event in enumerate(events):
            try:
                rows.append(self._row(event, requirements.most_bytes))
            except EventError as error:
                refused.append(Refusal(number, error.problem))
            else:
                good.append(number)
        if requirements.allowed is not None and rows:
            counts = requirements.allowed.match_rows(rows, "counts")["count"].to_numpy()
            who = requirements.who
            problem = f"account {who!r} may not publish this event: its grant does not cover it"
            refused += [Refusal(good[n], problem) for n in np.flatnonzero(counts == 0).tolist()]
            kept = np.flatnonzero(counts).tolist()
            rows, good = [rows[n] for n in kept], [good[n] for n in kept]
            refused.sort()
        if requirements.whole and refused:
            rows, good = [], []
        chosen = events if len(good) == len(events) else [events[n] for n in good]
        return ReadEvents(self, events, requirements, chosen, rows, refused)

    def again(self, read: ReadEvents) -> ReadEvents:
        """The same events, read with the schema of now."""
        return read if read.by is self else self.read(read.given, read.requirements)

    def _row(self, event: NewEvent, most_bytes: int) -> Row:
        """The row of an event; an `EventError` if it is not one of this topic."""
        body = event.body
        _check_text("id", event.id or "")
        for name, value in event.headers.items():
            _check_text("header", name + value)
        if len(body) > most_bytes:
            raise EventError(f"the event has {len(body):,} bytes, the limit is {most_bytes:,}")
        try:
            record: Any = self._decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            _strictly(body)  # has the better messages
            raise EventError(f"the event is not valid JSON: {error}") from None
        if body.count(b":") != len(record):
            record = _strictly(body)
        return self._meaning.prepare(self._reader.row(record))


def _check_text(what: str, text: str) -> None:
    """Refuse half of a character: such a text cannot be stored or sent."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            problem = f"the {what} {text[:50]!r} of the event is not Unicode: {error.reason}"
            raise EventError(problem) from None


def _strictly(body: bytes) -> Any:
    try:
        return parse_json_event(body.decode())
    except UnicodeDecodeError as error:
        problem = f"the event is not valid UTF-8: {error.reason} at byte {error.start}"
        raise EventError(problem) from None
