"""Publishers that drop at the source what nobody wants."""

import json

import pyarrow as pa
import pytest

import tamis
from served_broker import SCHEMA, ServedBroker
from tamis.cli import main
from tamis.client.quench_filter import QuenchFilter, now
from tamis.errors import EventError, UnknownTopic


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with ServedBroker(tmp_path_factory.mktemp("data")) as broker:
        yield broker


@pytest.fixture
def connection(real, monkeypatch):
    monkeypatch.setenv("TAMIS_URL", f"http://127.0.0.1:{real.port}")
    with tamis.connect(f"http://127.0.0.1:{real.port}") as made:
        made.topics.create("quotes", SCHEMA)
        yield made
        made.topics.delete("quotes")


def stored(connection):
    return [one["event"] for one in connection.read("quotes")]


def test_what_nobody_wants_is_dropped_and_said(connection):
    with connection.publisher("quotes", quench=True) as publisher:
        answer = publisher.publish({"price": 1.0})
        assert (answer.accepted, answer.offset, answer.dropped) == (0, None, 1)
        with connection.subscribe("quotes", "price < 5", durable="cheap") as deliveries:
            # It was acknowledged, so from now on nothing is dropped that it matches.
            assert publisher.publish({"price": 1.0}).accepted == 1
            assert publisher.publish({"price": 9.0}).dropped == 1
            (delivery,) = deliveries.take(1)
            assert delivery.event == {"price": 1.0}
        assert publisher.wanted == "price < 5"
        assert publisher.publish({"price": 2.0}).accepted == 1  # durable, though nobody listens
        assert publisher.dropped == 2
    assert connection.wanted("quotes")["filter"] == "price < 5"
    assert [event["price"] for event in stored(connection)] == [1.0, 2.0]


def test_many_events_and_their_rows(connection):
    connection.subscribe("quotes", "price < 5", durable="cheap").close()
    with connection.publisher("quotes", quench=True) as publisher:
        events = [{"price": 9.0}, {"price": 1.0}, {"price": "dear"}, {"price": 8.0}, {"price": 2}]
        answer = publisher.publish_many(iter(events))
        assert (answer.accepted, answer.dropped) == (2, 2)
        assert [row for row, _ in answer.refused] == [2]
        answer = publisher.publish_many(pa.table({"price": [9.0, 3.0, 7.0, 4.0]}))
        assert (answer.accepted, answer.dropped) == (2, 2)
        answer = publisher.publish_many([{"price": 9.0}, {"price": 0.0}], ids=["a", "b"])
        assert (answer.accepted, answer.dropped) == (1, 1)
        with pytest.raises(EventError, match="expects double"):
            publisher.publish_many([{"price": "dear"}])
        assert publisher.dropped == 5
    assert [event["price"] for event in stored(connection)] == [1.0, 2, 3.0, 4.0, 0.0]


def test_without_quenching_everything_is_published(connection):
    with connection.publisher("quotes") as publisher:
        assert publisher.publish({"price": 1.0}).accepted == 1
        assert publisher.publish_many([{"price": 1.0}] * 3).accepted == 3
        assert (publisher.wanted, publisher.dropped, publisher.topic) == (None, 0, "quotes")


def test_a_topic_that_is_not_there_is_said_at_once(connection):
    with pytest.raises(UnknownTopic):
        connection.publisher("nothing", quench=True)


def test_a_broker_that_is_away_ends_all_dropping(tmp_path):
    with ServedBroker(tmp_path) as first:
        first.topic("quotes")
        connection = tamis.connect(f"http://127.0.0.1:{first.port}", patience=0)
        publisher = connection.publisher("quotes", quench=True)
        assert publisher.publish({"price": 1.0}).dropped == 1
        known = publisher._inner._wanted
    known.valid_until = now()  # as it will be soon
    with pytest.raises(tamis.TamisError):
        publisher.publish({"price": 1.0})
    connection.close()


def test_the_command_says_how_many_were_dropped(connection, tmp_path, capsys):
    connection.subscribe("quotes", "price < 5", durable="cheap").close()
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(json.dumps({"price": n}) for n in range(10)))
    assert main(["publish", "quotes", str(path), "--quench"]) == 0
    assert capsys.readouterr().out == "5 events accepted, 5 dropped: nobody wants them\n"
    assert main(["publish", "quotes", str(path), "--quench", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dropped"] == 5


ANSWER = {"version": "1", "filter": "price < 5", "schema": SCHEMA, "semantics": "sql",
          "defaults": None, "granted": False, "lease": 4.0}  # fmt: skip


def test_a_filter_is_used_while_its_lease_is_valid():
    known = QuenchFilter()
    bodies = [b'{"price": 9}', b'{"price": 1}', b'{"price": "dear"}', b"nonsense"]
    assert known.wants(bodies, 0.0) == [True] * 4
    known.answered(ANSWER, 10.0)
    assert known.wants(bodies, 11.0) == [True] * 4  # the broker does not know yet that we know
    known.answered(ANSWER | {"granted": True}, 11.0)
    assert known.wants(bodies, 14.9) == [False, True, True, True]
    assert known.wants(bodies, 15.0) == [True] * 4
    known.answered(ANSWER | {"version": "2", "filter": "price > 8"}, 12.0)
    assert known.wants(bodies, 14.9) == [True, False, True, True]
    known.forget()
    assert known.wants(bodies, 12.0) == [True] * 4
