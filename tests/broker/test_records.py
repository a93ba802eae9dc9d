"""What goes through a broker, and what its errors are to clients."""

import pytest

from cases import each
from tamis.broker.errors import Busy, UnknownTopic, status_and_code
from tamis.broker.records import Delivery, DeliveryOptions, Record, Retention
from tamis.errors import (
    EventError,
    OptionError,
    ParseError,
    TamisError,
    TopicExists,
    UnknownSubscription,
)


@each(
    "error, status, code",
    [
        (UnknownTopic("no topic 'a'"), 404, "unknown-topic"),
        (TopicExists("another one"), 409, "topic-exists"),
        (Busy("the disk is full"), 503, "busy"),
        (UnknownSubscription("no subscription 'a'"), 404, "unknown-subscription"),
        (ParseError("expected a value", "price <", 7), 400, "bad-filter"),
        (EventError("not an object"), 400, "bad-event"),
        (TamisError("?"), 500, "failed"),
    ],
)
def test_errors_have_a_status_and_a_word(error, status, code):
    assert status_and_code(error) == (status, code)


@each(
    "options, problem",
    [
        ({"window": 0}, "window is a whole number from 1, not 0"),
        ({"most_attempts": True}, "most_attempts is a whole number"),
        ({"ack_timeout": 0}, "ack_timeout is a number of seconds"),
        ({"slow": "wait"}, "unknown treatment of slow subscribers 'wait'"),
    ],
)
def test_options_of_delivery_are_checked(options, problem):
    with pytest.raises(OptionError, match=problem):
        DeliveryOptions(**options)


def test_retention_is_checked():
    with pytest.raises(OptionError, match="max_age is a number above 0 or None, not -1"):
        Retention(max_age=-1)


def test_a_second_attempt_is_a_redelivery():
    record = Record(7, 0, "a", b"", b"{}")
    assert not Delivery(record, 1).redelivered
    assert Delivery(record, 2).redelivered
