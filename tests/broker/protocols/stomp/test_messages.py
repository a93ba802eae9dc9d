"""MESSAGE, RECEIPT, CONNECTED and ERROR frames as clients read them."""

import json

import pytest

from cases import each
from tamis import Schema, parse
from tamis.broker.protocols.stomp import replies
from tamis.broker.protocols.stomp.frames import FrameError, FrameLimits, FrameParser
from tamis.broker.protocols.stomp.header_events import HeaderEvents
from tamis.broker.protocols.stomp.header_values import VersionError
from tamis.broker.protocols.stomp.messages import messages, opening, shared_part
from tamis.broker.protocols.stomp.requests import Subscription
from tamis.broker.records import Delivery, Record
from tamis.errors import ParseError

RECORD = Record(17, 1_700_000_000_123_456, "id:1", b'{"ce-type":"a:b","ack":"forged"}', b'{"a":1}')


def frames(data, version="1.2"):
    parser = FrameParser(FrameLimits(10_000, 100, 10_000))
    parser.version = version
    parser.feed(data)
    found = []
    while (frame := parser.next_frame()) is not None:
        found.append(frame)
    assert not parser.inside
    return found


def sent(subscription, deliveries, version="1.2", **options):
    subscription.opening = opening(subscription.key, version)
    made = messages(subscription, deliveries, lambda r: shared_part("t", r, version), **options)
    return frames(b"".join(made), version)


@each("version", ["1.1", "1.2"])
def test_a_message_has_the_event_and_what_is_known_about_it(version):
    subscription = Subscription(3, "my:id", "t", "client")
    (message,) = sent(subscription, [Delivery(RECORD, 1)], version)
    assert message.command == "MESSAGE"
    assert message.body == b'{"a":1}'
    assert message.headers == {
        "subscription": "my:id", "destination": "/topic/t", "message-id": "t@17", "offset": "17",
        "event-id": "id:1", "timestamp": "1700000000123", "content-type": "application/json",
        "content-length": "7", "ce-type": "a:b", "ack": "3-17",
    }  # fmt: skip
    assert subscription.highest == 17


def test_a_message_that_was_sent_before_says_so():
    subscription = Subscription(1, "a", "t", "auto")
    first, again = sent(subscription, [Delivery(RECORD, 1), Delivery(RECORD, 3)], dropped=7)
    assert first.headers["dropped"] == "7"
    assert "dropped" not in again.headers
    assert "redelivered" not in first.headers
    assert (again.headers["redelivered"], again.headers["attempt"]) == ("true", "3")
    assert "ack" not in first.headers


@each("body", [b"hello", b"\xff\0\xfe", "grüße".encode()])
def test_a_body_that_is_not_json_comes_back_as_it_was(body):
    headers = {"destination": "/topic/t", "price": "3.5", "content-type": "image/png", "x": "y"}
    event = HeaderEvents(Schema({"price": "double"})).event(headers, body)
    assert event.body == b'{"price":3.5}'
    record = Record(1, 0, "e", json.dumps(event.headers).encode(), event.body)
    (message,) = sent(Subscription(1, "a", "t", "auto"), [Delivery(record, 1)])
    assert message.body == body
    assert message.headers["content-type"] == "image/png"
    assert (message.headers["price"], message.headers["x"]) == ("3.5", "y")


def test_line_ends_in_headers_do_no_harm_in_the_first_version():
    record = RECORD._replace(id="a\nack:1-1\n\nbody")
    (message,) = sent(Subscription(1, "a", "t", "auto"), [Delivery(record, 1)], "1.0")
    assert message.headers["event-id"] == "a ack:1-1  body"


def test_receipts_are_written_in_one_piece():
    first, second = frames(replies.receipts(["1", "a:b"], "1.2"))
    assert (first.command, first.headers) == ("RECEIPT", {"receipt-id": "1"})
    assert second.headers == {"receipt-id": "a:b"}


def test_connected_tells_the_version_and_the_heart_beats():
    (frame,) = frames(replies.connected("1.2", "s", (1000, 10000)))
    assert frame.command == "CONNECTED"
    assert (frame.headers["version"], frame.headers["heart-beat"]) == ("1.2", "1000,10000")
    assert frame.headers["server"].startswith("tamis/")


def test_an_error_draws_the_place_in_the_filter():
    with pytest.raises(ParseError) as caught:
        parse("price <\n< 10", Schema({"price": "double"}))
    (frame,) = frames(replies.error(caught.value, "r", "1.2"))
    text = frame.body.decode()
    assert text == str(caught.value)
    assert "^" in text
    assert frame.headers["message"] == text.partition("\n")[0]
    assert (frame.headers["line"], frame.headers["column"]) == ("2", "1")
    assert (frame.headers["code"], frame.headers["receipt-id"]) == ("bad-filter", "r")


def test_an_error_about_versions_lists_them():
    (frame,) = frames(replies.error(VersionError("no common version"), None, None))
    assert frame.headers["version"] == "1.0,1.1,1.2"
    assert frame.headers["code"] == "bad-frame"
    (frame,) = frames(replies.error(FrameError("bad\ud800 text"), None, "1.2"))
    assert frame.body == b"bad? text"
