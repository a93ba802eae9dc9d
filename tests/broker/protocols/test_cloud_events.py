"""CloudEvents: the three modes, as the `cloudevents` package writes them, and any bytes at all."""

import json
from contextlib import suppress

import pytest
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.broker.protocols import cloud_events
from tamis.broker.records import NewEvent
from tamis.errors import EventError

DATA = {"symbol": "IBM", "price": 9.5}
ATTRIBUTES = {"id": "a-1", "source": "/tests", "type": "quote"}
OBJECT = {"specversion": "1.0", **ATTRIBUTES, "data": DATA}


def binary(**headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", **named}


def test_what_the_package_writes_is_read_in_both_modes():
    event = CloudEvent({**ATTRIBUTES, "subject": 'Zürich "x" 100%', "partitionkey": "p"}, DATA)
    message = to_structured_event(event)
    assert message.headers["content-type"] == cloud_events.STRUCTURED
    structured = cloud_events.of_object(message.body)
    message = to_binary_event(event)
    plain = cloud_events.of_headers(message.headers, message.body)
    for one in (structured, plain):
        assert one.id == "a-1"
        assert json.loads(one.body) == DATA
        assert one.headers["ce-source"] == "/tests"
        assert one.headers["ce-partitionkey"] == "p"
        assert one.headers["ce-subject"] == 'Zürich "x" 100%'
        assert "ce-id" not in one.headers


def test_the_data_stays_as_it_was_written():
    text = b'{"specversion":"1.0","id":"1","source":"s","type":"t","data": {"price" : 1.50}}'
    assert cloud_events.of_object(text) == NewEvent(
        b'{"price" : 1.50}', "1", {"ce-source": "s", "ce-type": "t"}
    )


def test_data_in_base64_and_attributes_that_are_not_texts():
    text = json.dumps(
        {
            "specversion": "1.0", **ATTRIBUTES, "data_base64": "eyJwcmljZSI6MX0=",
            "datacontenttype": "application/json; charset=utf-8", "flag": True, "size": 3,
            "absent": None,
        }
    )  # fmt: skip
    event = cloud_events.of_object(text.encode())
    assert event.body == b'{"price":1}'
    assert event.headers == {
        "ce-source": "/tests", "ce-type": "quote", "ce-flag": "true", "ce-size": "3",
    }  # fmt: skip


def test_headers_are_read_with_quotes_and_percent_signs():
    headers = binary(ce_subject='"a \\"b\\" %E2%82%AC"', ce_other=" %25 ")
    event = cloud_events.of_headers(headers, b" {} \n")
    assert event.headers["ce-subject"] == 'a "b" €'
    assert event.headers["ce-other"] == "%"
    assert event.body == b"{}"


@each("change, problem", [
    ({"specversion": "0.3"}, "specversion '0.3'"),
    ({"specversion": None}, "no specversion"),
    ({"id": ""}, "no id"),
    ({"id": 3.5}, "'id' of the CloudEvent is not a string"),
    ({"source": None}, "no source"),
    ({"type": None}, "no type"),
    ({"Type": "x"}, "lower-case"),
    ({"ext": {"a": 1}}, "'ext' of the CloudEvent is not"),
    ({"datacontenttype": "text/plain"}, "is text/plain"),
    ({"data_base64": "e30="}, "both data and data_base64"),
])  # fmt: skip
def test_what_is_wrong_with_an_object_is_said(change, problem):
    text = json.dumps({**OBJECT, **change}).encode()
    with pytest.raises(EventError, match=problem):
        cloud_events.of_object(text)


@each("text, problem", [
    (b"", "not a JSON object"),
    (b"[]", "not a JSON object"),
    (b'{"specversion":"1.0","id":"1","source":"s","type":"t"}', "no data"),
    (b'{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"%"}', "not base64"),
    (b"[" * 100_000, "not a JSON object"),
    (rb'{"specversion":"1.0","id":"\ud800","source":"s","type":"t","data":{}}', "malformed"),
    (b'{"specversion":"1.0","id":"\xff","source":"s","type":"t","data":{}}', "'id'"),
    (b'{"a":' * 100_000, "not a JSON object"),
])  # fmt: skip
def test_what_is_not_an_object_of_structured_mode_is_refused(text, problem):
    with pytest.raises(EventError, match=problem):
        cloud_events.of_object(text)


@each("headers, body, problem", [
    (binary(ce_specversion="2.0"), b"{}", "specversion '2.0'"),
    (binary(ce_id=""), b"{}", "no id"),
    (binary(ce_subject="%FF"), b"{}", "ce-subject of the CloudEvent is not valid UTF-8"),
    (binary(content_type="text/plain"), b"{}", "is text/plain"),
    (binary(), b"  ", "no data"),
])  # fmt: skip
def test_what_is_wrong_in_binary_mode_is_said(headers, body, problem):
    with pytest.raises(EventError, match=problem):
        cloud_events.of_headers(headers, body)


def test_a_bad_element_of_a_batch_is_an_error_in_its_place():
    text = json.dumps([OBJECT, 5, {**OBJECT, "id": "a-2"}, {**OBJECT, "type": ""}]).encode()
    first, second, third, last = cloud_events.of_array(text)
    assert (first.id, third.id) == ("a-1", "a-2")
    assert isinstance(second, EventError)
    assert str(last) == "the CloudEvent has no type"
    with pytest.raises(EventError, match="not a JSON array"):
        cloud_events.of_array(b"{}")


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode()))
def test_any_bytes_are_events_or_an_error(text):
    for read in (cloud_events.of_object, cloud_events.of_array):
        with suppress(EventError):
            assert isinstance(read(text), NewEvent | list)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from([*OBJECT, "data_base64", "datacontenttype", "x"]), JSON_VALUES)
)
def test_any_objects_are_events_or_an_error(changes):
    text = json.dumps({**OBJECT, **changes}).encode()
    with suppress(EventError):
        event = cloud_events.of_object(text)
        assert isinstance(event.body, bytes)
        assert all(isinstance(value, str) for value in event.headers.values())


@given(
    st.dictionaries(st.sampled_from(["ce-id", "ce-x", "ce-specversion"]), st.text()), st.binary()
)
def test_any_headers_are_an_event_or_an_error(headers, body):
    with suppress(EventError):
        assert cloud_events.of_headers({**binary(), **headers}, body).id
