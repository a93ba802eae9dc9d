"""Deliveries as JSON and as server-sent events, read back as the specification says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.broker.protocols import sse
from tamis.broker.records import Delivery, Record
from tamis.errors import OptionError

RECORD = Record(7, 1_700_000_000_123_456, "key", b"", b'{"price": 1.50}')


def messages(stream):
    """The messages of a stream, by the algorithm of the specification."""
    found, current = [], {}
    text = stream.decode().replace("\r\n", "\n").replace("\r", "\n")
    for line in text.split("\n")[:-1]:
        if not line:
            if "data" in current:
                found.append({**current, "data": "\n".join(current["data"])})
            current = {}
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            current.setdefault("data", []).append(value)
        elif field:
            current[field] = value
    return found


def test_a_delivery_is_a_message_with_its_offset():
    (found,) = messages(sse.COMMENT + sse.message(Delivery(RECORD, 1)))
    assert found["id"] == "7"
    assert json.loads(found["data"]) == {
        "offset": 7, "event": {"price": 1.5}, "redelivered": False, "id": "key",
        "time": "2023-11-14T22:13:20.123456Z",
    }  # fmt: skip
    assert '"event":{"price": 1.50}' in found["data"]


def test_a_redelivery_says_how_often_it_was_tried():
    content = json.loads(sse.delivery_json(Delivery(RECORD, 3)))
    assert (content["redelivered"], content["attempt"]) == (True, 3)


def test_headers_are_carried_along():
    record = RECORD._replace(headers=b'{"ce-type":"quote"}')
    for text in (sse.delivery_json(Delivery(record, 1)), sse.record_json(record)):
        assert json.loads(text)["headers"] == {"ce-type": "quote"}
    assert "headers" not in json.loads(sse.record_json(RECORD))


def test_other_messages_have_a_name():
    assert messages(sse.named("dropped", {"dropped": 3})) == [
        {"event": "dropped", "data": '{"dropped":3}'}
    ]


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(), max_size=3),
    st.sampled_from([None, 1, "\t"]),
    st.sampled_from(["\n", "\r", "\r\n", " "]),
    st.text(max_size=5),
)
def test_any_event_written_in_any_way_stays_the_same_event(event, indent, gap, key):
    body = json.dumps(event, indent=indent).replace("\n", gap).encode()
    record = RECORD._replace(body=body, id=key)
    stream = sse.message(Delivery(record, 1)) + sse.message(Delivery(RECORD, 1))
    first, second = messages(stream)
    assert json.loads(first["data"])["event"] == event
    assert json.loads(first["data"])["id"] == key
    assert second["id"] == "7"


@each("header, offset", [(None, None), ("", None), ("  ", None), ("0", 0), (" 41 ", 41)])
def test_the_last_event_id_is_an_offset(header, offset):
    assert sse.last_event_id(header) == offset


@each("header", ["x", "-", "--1", "1.5", "²", "٣", "9" * 19])
def test_another_last_event_id_is_an_error(header):
    with pytest.raises(OptionError, match="Last-Event-ID is an offset"):
        sse.last_event_id(header)
