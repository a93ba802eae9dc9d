"""Subscriptions as resources, and receiving by server-sent events."""

import json

from cases import each


def publish(served, topic, *prices):
    events = [{"symbol": "IBM", "price": price} for price in prices]
    return served.ask("POST", f"{topic}/events", events).json["offset"]


def offsets(messages):
    return [message.content["offset"] for message in messages]


def test_a_subscription_is_made_changed_listed_and_deleted(served):
    topic = served.topic("resources")
    path = f"{topic}/subscriptions/alice"
    made = served.ask("PUT", path, {"filter": "price < 10", "window": 7})
    assert made.status == 200
    assert (made.json["id"], made.json["filter"], made.json["window"]) == ("alice", "price < 10", 7)
    assert made.json["durable"] is True
    assert served.ask("GET", path).json == made.json
    changed = served.ask("PUT", path, {"filter": "price < 20"})
    assert changed.json["filter"] == "price < 20"
    served.subscribe(topic, "bob/ä b", "TRUE")
    listed = served.ask("GET", f"{topic}/subscriptions").json["subscriptions"]
    assert [one["id"] for one in listed] == ["alice", "bob/ä b"]
    more = served.ask("GET", f"{topic}/subscriptions?after=alice&limit=5").json["subscriptions"]
    assert [one["id"] for one in more] == ["bob/ä b"]
    assert served.ask("DELETE", path).status == 204
    for method in ("GET", "DELETE"):
        answer = served.ask(method, path)
        assert (answer.status, answer.json["error"]) == (404, "unknown-subscription")
    assert served.ask("GET", f"{path}/events").status == 404
    assert served.ask("POST", f"{path}/ack", {"offset": 0}).status == 404


@each("filter_text, line, column", [("price <", 1, 8), ("TRUE AND\n  prise > 1", 2, 3)])
def test_a_bad_filter_is_refused_with_its_place(served, filter_text, line, column):
    topic = served.topic("bad-filters")
    for method, path in (("PUT", f"{topic}/subscriptions/x"), ("POST", f"{topic}/check")):
        answer = served.ask(method, path, {"filter": filter_text})
        assert (answer.status, answer.json["error"]) == (400, "bad-filter")
        assert (answer.json["line"], answer.json["column"]) == (line, column)
        assert "^" in answer.json["message"]
    assert served.ask("GET", f"{topic}/subscriptions/x").status == 404


@each("body", [
    {}, {"filter": 5}, {"filter": "TRUE", "start": "yesterday"}, {"filter": "TRUE", "start": -1},
    {"filter": "TRUE", "start": "9" * 5000},
    {"filter": "TRUE", "window": 0}, {"filter": "TRUE", "slow": "wait"},
    {"filter": "TRUE", "durabel": True}, {"filter": "TRUE", "ack_timeout": 0},
])  # fmt: skip
def test_what_is_not_a_subscription_is_refused(served, body):
    topic = served.topic("refused-subscriptions")
    answer = served.ask("PUT", f"{topic}/subscriptions/x", body)
    assert (answer.status, answer.json["error"]) == (400, "bad-option")


def test_events_are_delivered_with_their_offsets(served):
    topic = served.topic("delivered")
    path = served.subscribe(topic, "s", "price < 10")
    publish(served, topic, 5, 50, 6)
    with served.listen(f"{path}/events") as stream:
        assert stream.status == 200
        assert stream.answer.headers["Content-Type"] == "text/event-stream"
        first, second = stream.take(2)
        assert (first.kind, first.id) == ("message", "0")
        assert first.content["event"] == {"symbol": "IBM", "price": 5}
        assert first.content["redelivered"] is False
        assert second.id == "2"
        publish(served, topic, 7)
        assert offsets(stream.take(1)) == [3]


def test_what_was_not_acknowledged_comes_again_and_says_so(served):
    topic = served.topic("again")
    path = served.subscribe(topic, "s", "TRUE")
    publish(served, topic, 1, 2, 3)
    with served.listen(f"{path}/events") as stream:
        assert offsets(stream.take(3)) == [0, 1, 2]
    assert served.ask("POST", f"{path}/ack", {"offset": 0}).status == 204
    with served.listen(f"{path}/events") as stream:
        messages = stream.take(2)
    assert offsets(messages) == [1, 2]
    assert all(message.content["redelivered"] for message in messages)
    assert [message.content["attempt"] for message in messages] == [2, 2]


def test_the_last_event_id_counts_as_acknowledged(served):
    topic = served.topic("resumed")
    path = served.subscribe(topic, "s", "TRUE")
    publish(served, topic, 1, 2, 3)
    with served.listen(f"{path}/events") as stream:
        stream.take(3)
    with served.listen(f"{path}/events", Last_Event_ID="1") as stream:
        assert offsets(stream.take(1)) == [2]
        assert served.ask("GET", path).json["cursor"] == 2
    answer = served.ask("GET", f"{path}/events", Last_Event_ID="x")
    assert (answer.status, answer.json["error"]) == (400, "bad-option")


def test_a_subscription_that_is_not_durable_resumes_after_the_last_event_id(served):
    topic = served.topic("passing")
    path = served.subscribe(topic, "s", "price < 10", durable=False)
    publish(served, topic, 1, 20, 2)
    with served.listen(f"{path}/events", Last_Event_ID="0") as stream:
        assert offsets(stream.take(1)) == [2]


def test_acknowledging_the_future_is_refused(served):
    topic = served.topic("future")
    path = served.subscribe(topic, "s", "TRUE")
    for body in ({"offset": 5}, {"offset": -(2**62) - 1}, {"offset": "1"}, {}):
        assert served.ask("POST", f"{path}/ack", body).status == 400, body


def test_a_second_listener_takes_over_and_the_first_is_told(served):
    topic = served.topic("taken-over")
    path = served.subscribe(topic, "s", "TRUE")
    with served.listen(f"{path}/events") as first:
        with served.listen(f"{path}/events") as second:
            publish(served, topic, 1)
            assert offsets(second.take(1)) == [0]
        (told,) = list(first)
        assert told.kind == "closed"
        assert told.content["reason"]


def test_live_events_need_no_subscription(served):
    topic = served.topic("live")
    publish(served, topic, 1, 2)
    with served.listen(f"{topic}/live?filter=price%20%3E%201&from=earliest") as stream:
        assert offsets(stream.take(1)) == [1]
        publish(served, topic, 0, 3)
        assert offsets(stream.take(1)) == [3]
    with served.listen(f"{topic}/live", Last_Event_ID="2") as stream:
        assert offsets(stream.take(1)) == [3]
    assert served.ask("GET", f"{topic}/live?filter=price%20%3C").json["error"] == "bad-filter"


def test_check_says_how_a_filter_is_understood(served):
    topic = served.topic("checked")
    answer = served.ask("POST", f"{topic}/check", {"filter": "price<10 and symbol = 'IBM'"})
    assert answer.status == 200
    assert answer.json["attributes"] == ["price", "symbol"]
    assert answer.json["narrowed"] is None


def test_why_answers_for_subscriptions_filters_events_and_offsets(served):
    topic = served.topic("why")
    served.subscribe(topic, "s", "price < 10 AND symbol = 'IBM'")
    publish(served, topic, 5, 50)
    for question, matched in [
        ({"subscription": "s", "offset": 0}, True),
        ({"subscription": "s", "offset": 1}, False),
        ({"filter": "price > 10", "offset": 1}, True),
        ({"filter": "price > 10", "event": {"price": 1}}, False),
    ]:
        answer = served.ask("POST", f"{topic}/why", question)
        assert answer.status == 200
        assert answer.json["matched"] is matched, question
        assert json.dumps(answer.json["root"])


@each("question, status", [
    ({}, 400), ({"filter": "TRUE"}, 400), ({"offset": 0}, 400),
    ({"filter": "TRUE", "subscription": "s", "offset": 0}, 400),
    ({"filter": "TRUE", "offset": 99}, 400), ({"subscription": "absent", "event": {}}, 404),
    ({"filter": "TRUE", "event": {"price": "x"}}, 400), ({"filter": "price <", "event": {}}, 400),
])  # fmt: skip
def test_a_question_that_cannot_be_answered_is_refused(served, question, status):
    topic = served.topic("why-not")
    assert served.ask("POST", f"{topic}/why", question).status == status
