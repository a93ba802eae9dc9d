import json
import pickle

import pytest

import tamis
from cases import each
from tamis.broker.errors import status_and_code
from tamis.broker.records import Refusal
from tamis.client.error_answers import RefusedEvents, error_of
from tamis.errors import (
    BrokerError,
    Busy,
    Conflict,
    Forbidden,
    LimitReached,
    OptionError,
    SchemaError,
    SubscriptionError,
    TopicExists,
    Unauthenticated,
    UnknownPeer,
    UnknownSubscription,
    UnknownTopic,
)


@each(
    "kind",
    [
        Busy, Conflict, Forbidden, LimitReached, OptionError, SchemaError, SubscriptionError,
        TopicExists, Unauthenticated, UnknownPeer, UnknownSubscription, UnknownTopic,
    ],
)  # fmt: skip
def test_an_error_of_the_broker_is_the_same_error_at_the_client(kind):
    status, code = status_and_code(kind("why"))
    found = error_of(status, json.dumps({"error": code, "message": "why"}).encode())
    assert type(found) is kind
    assert str(found) == "why"


@each("text", ["price <! 10", "price < 10\n  AND prise > 3", "x" * 300])
def test_the_place_in_a_filter_is_drawn_again(text):
    with pytest.raises(tamis.ExpressionError) as caught:
        tamis.parse(text, tamis.Schema({"price": "double"}))
    error = caught.value
    answer = {"error": "bad-filter", "message": str(error)}
    answer |= {"line": error.line, "column": error.column}
    found = error_of(400, json.dumps(answer).encode(), text)
    assert isinstance(found, tamis.ExpressionError)
    assert (found.line, found.column, str(found)) == (error.line, error.column, str(error))


def test_events_that_were_all_refused():
    answer = {"error": "bad-event", "message": "bad", "refused": [{"row": 0, "reason": "bad"}]}
    found = error_of(400, json.dumps(answer).encode())
    assert isinstance(found, RefusedEvents)
    assert found.refused == [Refusal(0, "bad")]
    assert str(found) == "bad"
    assert str(RefusedEvents([Refusal(2, "bad"), Refusal(3, "worse")])) == (
        "event 2: bad (and 1 more events)"
    )
    assert str(pickle.loads(pickle.dumps(found))) == "bad"


@each(
    ("status", "body", "kind", "text"),
    [
        (404, b"not found", BrokerError, "the broker answered 404: not found"),
        (502, b"", BrokerError, "the broker answered 502"),
        (503, b"<html>", Busy, "the broker answered 503: <html>"),
        (413, b'{"error": "body-too-large", "message": "too large"}', BrokerError, "too large"),
        (401, b'{"message": "who?"}', Unauthenticated, "who?"),
    ],
)
def test_answers_that_say_less(status, body, kind, text):
    found = error_of(status, body)
    assert type(found) is kind
    assert (str(found), found.status) == (text, status)
