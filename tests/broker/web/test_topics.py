"""Topics over HTTP."""

from cases import each
from served_broker import SCHEMA


def test_a_topic_is_made_shown_widened_and_deleted(served):
    wanted = {"schema": SCHEMA, "semantics": "sql", "retention": {"max_events": 1000}}
    made = served.ask("PUT", "/topics/made", wanted)
    assert made.status == 200
    assert made.json["name"] == "made"
    assert made.json["schema"] == SCHEMA
    assert made.json["retention"] == {"max_age": None, "max_bytes": None, "max_events": 1000}
    assert (made.json["first_offset"], made.json["next_offset"]) == (0, 0)
    assert served.ask("PUT", "/topics/made", wanted).json == made.json
    assert served.ask("GET", "/topics/made").json == made.json
    assert made.json in served.ask("GET", "/topics").json["topics"]
    wider = {**SCHEMA, "venue": "string"}
    assert served.ask("PUT", "/topics/made", {"schema": wider}).json["schema"] == wider
    assert served.ask("DELETE", "/topics/made").status == 204
    assert served.ask("GET", "/topics/made").status == 404
    assert served.ask("DELETE", "/topics/made").status == 404


def test_a_schema_may_be_a_text(served):
    made = served.ask("PUT", "/topics/text", {"schema": "symbol string, price double"})
    assert made.json["schema"] == {"symbol": "string", "price": "double"}


@each("body, error", [
    ({}, "bad-option"),
    ({"schema": {"a": "integer"}}, "bad-schema"),
    ({"schema": {"a": 5}}, "bad-option"),
    ({"schema": SCHEMA, "semantics": "other"}, "bad-option"),
    ({"schema": SCHEMA, "retension": {}}, "bad-option"),
    ({"schema": SCHEMA, "retention": {"max_events": 0}}, "bad-option"),
    (b"{", "bad-option"),
    (b"\xff", "bad-option"),
    (b"[" * 100_000, "bad-option"),
])  # fmt: skip
def test_what_is_not_a_topic_is_refused(served, body, error):
    answer = served.ask("PUT", "/topics/bad", body)
    assert (answer.status, answer.json["error"]) == (400, error)
    assert answer.json["message"]
    assert served.ask("GET", "/topics/bad").status == 404


def test_another_type_of_an_attribute_is_a_conflict(served):
    served.topic("conflicting")
    answer = served.ask("PUT", "/topics/conflicting", {"schema": {"price": "string"}})
    assert (answer.status, answer.json["error"]) == (409, "topic-exists")


@each("name, status", [("a b", 400), ("a/b", 404), ("x" * 201, 400), ("é", 400), ("..", 404)])
def test_names_of_topics_are_checked(served, name, status):
    from urllib.parse import quote

    assert served.ask("PUT", f"/topics/{quote(name)}", {"schema": SCHEMA}).status in {status, 400}


def test_every_path_of_a_topic_that_is_not_there_says_so(served):
    filter_body, offset = {"filter": "TRUE"}, {"offset": 0}
    for method, path, body in [
        ("GET", "", None), ("DELETE", "", None), ("POST", "/events", {}), ("GET", "/events", None),
        ("GET", "/live", None), ("POST", "/check", filter_body), ("GET", "/subscriptions", None),
        ("POST", "/why", {**filter_body, "event": {}}), ("PUT", "/subscriptions/a", filter_body),
        ("GET", "/subscriptions/a", None), ("DELETE", "/subscriptions/a", None),
        ("GET", "/subscriptions/a/events", None), ("POST", "/subscriptions/a/ack", offset),
    ]:  # fmt: skip
        answer = served.ask(method, f"/topics/absent{path}", body)
        assert (answer.status, answer.json["error"]) == (404, "unknown-topic"), path
