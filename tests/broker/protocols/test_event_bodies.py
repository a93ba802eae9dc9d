"""Which events are in a body, by its type."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.broker.protocols.event_bodies import (
    ARROW,
    JSON,
    LINES,
    EventBatch,
    UnsupportedType,
    events_of,
    media_type,
)
from tamis.broker.records import NewEvent, Published, Refusal
from tamis.errors import BrokerError, EventError


def bodies(kind, text, **headers):
    batch = events_of({"content-type": kind, **headers}, text)
    return [event.body for event in batch.events]


@each("kind, text, expected", [
    (JSON, b'{"a": 1}', [b'{"a": 1}']),
    (JSON + "; charset=UTF-8", b'\xef\xbb\xbf\n {"a": 1}\n', [b'{"a": 1}']),
    ("application/vnd.quotes+json", b"{}", [b"{}"]),
    (JSON, b'[{"a": 1}, {"a":\n2}, 3]', [b'{"a": 1}', b'{"a":\n2}', b"3"]),
    (JSON, b"[]", []),
    (LINES[0], b'{"a": 1}\r\n\n  {"a": 2}  \n{broken', [b'{"a": 1}', b'{"a": 2}', b"{broken"]),
    (LINES[1], b"", []),
    ("", b"{}", [b"{}"]),
    ("application/x-www-form-urlencoded", b"{}", [b"{}"]),
    ("text/plain", b"[{}]", [b"{}"]),
])  # fmt: skip
def test_events_are_cut_out_of_a_body(kind, text, expected):
    assert bodies(kind, text) == expected


@each("kind, text, problem", [
    (JSON, b"", "not a JSON object or a JSON array"),
    (JSON, b"5", "not a JSON object or a JSON array"),
    (JSON, b'[{"a": 1}, {"a":', "not a JSON array"),
    (JSON, b"[" * 100_000, "not a JSON array"),
    ("application/x-www-form-urlencoded", b"a=1", "not a JSON object"),
])  # fmt: skip
def test_a_body_that_cannot_be_cut_is_refused(kind, text, problem):
    with pytest.raises(EventError, match=problem):
        events_of({"content-type": kind}, text)


@each(
    "kind", ["text/html", "application/cloudevents+xml", ARROW, "application/json; charset=utf-16"]
)
def test_a_type_without_events_is_refused(kind):
    with pytest.raises(UnsupportedType):
        events_of({"content-type": kind}, b"{}")


def test_a_type_is_compared_without_case_and_parameters():
    assert media_type({"content-type": 'Application/JSON; charset="UTF-8"; x=y'}) == JSON
    assert media_type({}) == ""


def test_ids_come_from_a_header():
    assert events_of({"event-id": "k"}, b"{}").events == [NewEvent(b"{}", "k")]
    assert events_of({"event-id": "k"}, b"[{},{}]").events == [
        NewEvent(b"{}", "k-0"), NewEvent(b"{}", "k-1"),
    ]  # fmt: skip
    lines = events_of({"event-id": "k", "content-type": LINES[0]}, b"\n{}\n\n{}")
    assert [event.id for event in lines.events] == ["k-0", "k-1"]


@each("key", ["", "\udcff", "a\nb"])
def test_ids_are_texts(key):
    with pytest.raises(EventError, match="event-id"):
        events_of({"event-id": key}, b"{}")


def test_cloud_events_are_found_by_their_type_or_their_headers():
    event = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": {}}
    text = json.dumps(event).encode()
    expected = [NewEvent(b"{}", "1", {"ce-source": "s", "ce-type": "t"})]
    structured = {"content-type": "application/cloudevents+json; charset=utf-8", "event-id": "x"}
    assert events_of(structured, text).events == expected
    batch = {"content-type": "application/cloudevents-batch+json"}
    assert events_of(batch, b"[" + text + b"]").events == expected
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t"}
    assert events_of({**headers, "content-type": JSON}, b"{}").events == expected
    mixed = events_of(batch, b"[5," + text + b"]")
    assert mixed.events == expected
    assert [refusal.row for refusal in mixed.refused] == [0]


def test_rows_of_refusals_count_what_was_sent():
    batch = EventBatch([NewEvent(b"a"), NewEvent(b"b"), NewEvent(b"c")], [Refusal(1, "no")])
    outcome = batch.outcome(Published(2, 7, [Refusal(1, "bad")]))
    assert outcome == Published(2, 7, [Refusal(1, "no"), Refusal(2, "bad")])
    assert EventBatch([]).outcome(Published(0, None)) == Published(0, None)


@given(
    st.sampled_from([JSON, LINES[0], "application/cloudevents-batch+json", "", "x"])
    | st.text(max_size=20),
    st.binary(max_size=100) | st.sampled_from([b"[{}, 1]", b'{"a": [}']),
    st.dictionaries(st.sampled_from(["event-id", "ce-specversion", "ce-id"]), st.text(max_size=5)),
)
def test_any_body_is_events_or_an_error(kind, text, headers):
    with suppress(EventError, BrokerError):
        batch = events_of({"content-type": kind, **headers}, text)
        assert all(isinstance(event.body, bytes) for event in batch.events)
