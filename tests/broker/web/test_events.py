"""Publishing over HTTP in every form, and reading the log."""

import json
import shutil
import subprocess

import pyarrow as pa
import pytest
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

from cases import each
from tamis.broker.protocols import cloud_events
from tamis.broker.protocols.event_bodies import ARROW, LINES

EVENT = {"symbol": "IBM", "price": 9.5, "volume": 100}


def stored(served, topic, **query):
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    return served.ask("GET", f"{topic}/events?{asked}").json["events"]


@each("name, kind, text", [
    ("object", "application/json", json.dumps(EVENT)),
    ("array", "application/json", json.dumps([EVENT, EVENT])),
    ("lines", LINES[0], f"{json.dumps(EVENT)}\n\n{json.dumps(EVENT)}\n"),
    ("untold", "application/x-www-form-urlencoded", json.dumps(EVENT)),
])  # fmt: skip
def test_json_is_published_and_read_back(served, name, kind, text):
    topic = served.topic(f"publish-{name}")
    answer = served.ask("POST", f"{topic}/events", text.encode(), Content_Type=kind)
    count = text.count("IBM")
    assert answer.status == 200
    assert answer.json == {"accepted": count, "offset": count - 1, "refused": []}
    found = stored(served, topic)
    assert [one["event"] for one in found] == [EVENT] * count
    assert [one["offset"] for one in found] == list(range(count))


def test_the_cloudevents_package_publishes_in_both_modes(served):
    topic = served.topic("cloud")
    event = CloudEvent(
        {"id": "a-1", "source": "/tests", "type": "quote", "subject": "Zürich"}, EVENT
    )
    for message in (to_binary_event(event), to_structured_event(event)):
        answer = served.ask("POST", f"{topic}/events", message.body, **message.headers)
        # The same id again is acknowledged again, and stored once.
        assert answer.json == {"accepted": 1, "offset": 0, "refused": []}
    (found,) = stored(served, topic)
    assert (found["event"], found["id"]) == (EVENT, "a-1")
    assert found["headers"] == {
        "ce-source": "/tests", "ce-type": "quote", "ce-subject": "Zürich",
        **{name: value for name, value in found["headers"].items() if name == "ce-time"},
    }  # fmt: skip


def test_a_batch_of_cloud_events_is_published_row_by_row(served):
    topic = served.topic("batch")
    one = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": EVENT}
    rows = [one, {**one, "id": "2", "data": {"price": "high"}}, 5, {**one, "id": "3"}]
    answer = served.ask("POST", f"{topic}/events", rows, Content_Type=cloud_events.BATCH)
    assert answer.status == 200
    assert (answer.json["accepted"], answer.json["offset"]) == (2, 1)
    assert [refused["row"] for refused in answer.json["refused"]] == [1, 2]
    assert "price" in answer.json["refused"][0]["reason"]
    assert [one["id"] for one in stored(served, topic)] == ["1", "3"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_publishes_and_listens(served):
    topic = served.topic("curl")
    url = f"http://127.0.0.1:{served.port}{topic}"

    def curl(*arguments):
        answer = subprocess.run(
            ["curl", "-sS", "--fail-with-body", *arguments],  # noqa: S607 - curl of the system
            capture_output=True, check=True,
        )  # fmt: skip
        return answer.stdout

    lines = f"{json.dumps(EVENT)}\n{json.dumps({**EVENT, 'price': 20})}\n"
    said = curl("-H", f"Content-Type: {LINES[0]}", "--data-binary", lines, f"{url}/events")
    assert json.loads(said)["accepted"] == 2
    assert json.loads(curl("-d", json.dumps(EVENT), f"{url}/events"))["offset"] == 2
    curl(
        "-X", "PUT", "-d", '{"filter": "price < 10", "start": "earliest"}', f"{url}/subscriptions/c"
    )
    with subprocess.Popen(
        ["curl", "-sSN", f"{url}/subscriptions/c/events"],  # noqa: S607 - curl of the system
        stdout=subprocess.PIPE,
    ) as listening:
        lines = (line.decode() for line in listening.stdout)
        data = (line[6:] for line in lines if line.startswith("data: "))
        found = [json.loads(next(data))["offset"] for _ in range(2)]
        listening.terminate()
    assert found == [0, 2]


def test_an_arrow_stream_is_published(served):
    topic = served.topic("arrow")
    table = pa.table({"symbol": ["IBM", None, "Dell"], "price": [1.5, 2.0, 3.0]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    for _ in range(2):
        answer = served.ask("POST", f"{topic}/events", body, Content_Type=ARROW, Event_Id="key")
        assert answer.json == {"accepted": 3, "offset": 2, "refused": []}
    found = stored(served, topic)
    assert [one["event"].get("symbol") for one in found] == ["IBM", None, "Dell"]
    assert [one["id"] for one in found] == ["key-0", "key-1", "key-2"]
    for broken in (b"", b"ARROW1", body[: len(body) // 2]):
        answer = served.ask("POST", f"{topic}/events", broken, Content_Type=ARROW)
        assert (answer.status, answer.json["error"]) == (400, "bad-event")


def test_bad_events_are_refused_by_row_and_the_others_are_stored(served):
    topic = served.topic("mixed")
    answer = served.ask("POST", f"{topic}/events", [{"price": "x"}, EVENT, 5])
    assert (answer.status, answer.json["accepted"]) == (200, 1)
    assert [refused["row"] for refused in answer.json["refused"]] == [0, 2]
    assert [one["event"] for one in stored(served, topic)] == [EVENT]


def test_if_all_are_bad_nothing_is_stored_and_it_is_an_error(served):
    topic = served.topic("all-bad")
    answer = served.ask("POST", f"{topic}/events", [{"price": "x"}, 5])
    assert answer.status == 400
    assert answer.json["error"] == "bad-event"
    assert "price" in answer.json["message"]
    assert [refused["row"] for refused in answer.json["refused"]] == [0, 1]
    assert stored(served, topic) == []


@each("kind, body, status", [
    ("application/json", b"", 400),
    ("application/json", b"5", 400),
    ("application/json", b'[{"price": 1}, {"price":', 400),
    ("application/json", b'{"price": 1', 400),
    ("application/json", b'{"price": 1, "price": 2}', 400),
    ("text/html", b"{}", 415),
    ("application/json; charset=latin1", b"{}", 415),
    (cloud_events.STRUCTURED, b"{}", 400),
])  # fmt: skip
def test_bodies_without_events_are_refused(served, kind, body, status):
    topic = served.topic("refused")
    answer = served.ask("POST", f"{topic}/events", body, Content_Type=kind)
    assert (answer.status, bool(answer.json["message"])) == (status, True)
    assert stored(served, topic) == []


def test_an_empty_batch_is_not_an_error(served):
    topic = served.topic("empty")
    for kind, body in (("application/json", b"[]"), (LINES[0], b"\n")):
        answer = served.ask("POST", f"{topic}/events", body, Content_Type=kind)
        assert answer.json == {"accepted": 0, "offset": None, "refused": []}


def test_the_log_is_read_by_filter_place_and_number(served):
    topic = served.topic("log")
    events = [{"symbol": "IBM", "price": n} for n in range(10)]
    assert served.ask("POST", f"{topic}/events", events).json["accepted"] == 10
    found = served.ask(
        "GET", f"{topic}/events?filter=price%20%3E%3D%205&from=earliest&limit=3"
    ).json
    assert [one["event"]["price"] for one in found["events"]] == [5, 6, 7]
    assert found["next"] == 8
    found = served.ask("GET", f"{topic}/events?from={found['next']}").json
    assert [one["offset"] for one in found["events"]] == [8, 9]
    assert served.ask("GET", f"{topic}/events?filter=price%20%3E%20100").json == {
        "events": [], "next": 10,
    }  # fmt: skip
    assert served.ask("GET", f"{topic}/events?from=2020-01-01T00:00:00Z&limit=1").json["next"] == 1


def test_a_large_answer_comes_whole(served):
    topic = served.topic("large")
    events = [{"symbol": "x" * 100_000, "volume": n} for n in range(30)]
    assert served.ask("POST", f"{topic}/events", events).json["accepted"] == 30
    assert [one["event"] for one in stored(served, topic)] == events


@each("query, error", [
    ("filter=price%20%3C", "bad-filter"), ("from=yesterday", "bad-option"),
    ("from=99", "bad-option"), ("limit=0", "bad-option"), ("limit=x", "bad-option"),
    ("limit=99999999999999999999999", "bad-option"), (f"from={'9' * 5000}", "bad-option"),
])  # fmt: skip
def test_a_wrong_question_about_the_log_is_refused(served, query, error):
    topic = served.topic("log-refused")
    answer = served.ask("GET", f"{topic}/events?{query}")
    assert (answer.status, answer.json["error"]) == (400, error)
