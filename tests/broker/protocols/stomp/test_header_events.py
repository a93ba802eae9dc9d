"""Events of SEND frames: a JSON body, or headers that the schema reads."""

import json

import pytest

from cases import each
from tamis import EventError, Schema
from tamis.broker.protocols.stomp.header_events import HeaderEvents, is_json, json_event
from tamis.events.event_reader import EventReader

SCHEMA = Schema({
    "symbol": "string", "price": "double", "volume": "int", "open": "bool", "at": "timestamp",
    "address.city": "string", "side": "enum('buy', 'sell')",
})  # fmt: skip


@each(
    ("headers", "body", "is_event"),
    [
        ({}, b'{"a": 1}', True),
        ({}, b' \r\n\t{"a": 1}', True),
        ({}, b"{broken", True),
        ({"content-type": "application/json"}, b"[1]", True),
        ({"content-type": "application/cloudevents+json"}, b"1", True),
        ({"content-type": "text/plain"}, b"text", False),
        ({}, b"[1]", False),
        ({}, b"", False),
    ],
)
def test_a_body_that_looks_like_an_object_or_says_so_is_json(headers, body, is_event):
    assert is_json(headers, body) is is_event


def test_a_json_event_keeps_its_id_and_the_senders_own_headers():
    frame = {"destination": "/topic/t", "receipt": "1", "content-length": "2", "content-type": "x"}
    assert json_event(frame, b"{}") == (b"{}", None, {})
    assert json_event({**frame, "event-id": "7", "mine": "yes"}, b"{}") == (
        b"{}", "7", {"mine": "yes"},
    )  # fmt: skip


def test_headers_are_read_by_the_schema():
    headers = {
        "destination": "/topic/t", "symbol": "IBM", "price": "12.50", "volume": "3", "open": "true",
        "at": "2024-01-31 12:30:00", "address.city": "Bern", "side": "buy", "other": "x",
        "event-id": "e",
    }  # fmt: skip
    event = HeaderEvents(SCHEMA).event(headers, b"")
    assert json.loads(event.body) == {
        "symbol": "IBM", "price": 12.5, "volume": 3, "open": True, "at": "2024-01-31 12:30:00",
        "address": {"city": "Bern"}, "side": "buy",
    }  # fmt: skip
    assert event.id == "e"
    assert event.headers["other"] == "x"
    reader = EventReader(SCHEMA)
    flat = {name: headers[name] for name in ("symbol", "price", "volume", "open", "at", "side")}
    assert reader.row(event.body) == reader.row_of_texts({**flat, "address": {"city": "Bern"}})


def test_missing_and_empty_headers_are_missing_values():
    event = HeaderEvents(SCHEMA).event({"price": "", "symbol": ""}, b"")
    assert event.body == b'{"symbol":""}'


@each(
    ("name", "text"),
    [("price", "cheap"), ("volume", "1.5"), ("side", "hold"), ("price", "NaN"), ("open", "maybe")],
)
def test_a_header_with_a_wrong_value_is_an_error(name, text):
    with pytest.raises(EventError, match=name):
        HeaderEvents(SCHEMA).event({name: text}, b"")


def test_arrays_and_maps_in_headers_are_json():
    events = HeaderEvents(Schema({"tags": "array<string>", "at": "array<timestamp>"}))
    made = events.event({"tags": '["a", null]', "at": '["2024-01-31"]'}, b"")
    assert json.loads(made.body) == {"tags": ["a", None], "at": ["2024-01-31"]}
    for text, problem in (("a", "'a' is not JSON"), ("[1]", "element 0 is 1")):
        with pytest.raises(EventError, match=problem):
            events.event({"tags": text}, b"")
