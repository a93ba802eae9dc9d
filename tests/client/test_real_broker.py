"""The client and the commands with a broker that is not a fake."""

import json
import logging
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pytest

import tamis
from served_broker import SCHEMA, ServedBroker
from tamis.cli import main
from tamis.errors import Conflict, TopicExists, UnknownSubscription, UnknownTopic


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with ServedBroker(tmp_path_factory.mktemp("data")) as broker:
        yield broker


@pytest.fixture
def connection(real, monkeypatch):
    monkeypatch.setenv("TAMIS_URL", f"http://127.0.0.1:{real.port}")
    with tamis.connect(f"http://127.0.0.1:{real.port}") as made:
        yield made


def test_topics(connection):
    made = connection.topics.create("made", "symbol string, price double")
    assert made["schema"] == {"symbol": "string", "price": "double"}
    wider = connection.topics.create("made", SCHEMA, retention={"max_events": 100})
    assert (wider["schema"], wider["retention"]["max_events"]) == (SCHEMA, 100)
    assert "made" in [topic["name"] for topic in connection.topics()]
    with pytest.raises(TopicExists):
        connection.topics.create("made", {"symbol": "int"})
    connection.topics.delete("made")
    with pytest.raises(UnknownTopic):
        connection.topics.get("made")


def test_all_ways_of_publishing_and_reading(connection):
    connection.topics.create("ways", SCHEMA)
    first = connection.publish("ways", {"symbol": "A", "price": 1.0}, id="one")
    assert connection.publish("ways", {"symbol": "A", "price": 1.0}, id="one") == first
    published = connection.publish_many("ways", [{"price": 2.0}, {"price": "dear"}, {"price": 3}])
    assert (published.accepted, [row for row, _ in published.refused]) == (2, [1])
    assert connection.publish_many("ways", pa.table({"price": [4.0, 5.0]})).accepted == 2
    assert connection.publish_many("ways", pd.DataFrame({"volume": [6]})).accepted == 1
    assert connection.publish_many("ways", [{"price": 7.0}], ids=["seven"]).offset == 6
    assert connection.publish_many("ways", [{"price": 7.0}], ids=["seven"]).offset == 6
    with pytest.raises(tamis.EventError, match="expects double"):
        connection.publish("ways", {"price": "dear"})
    read = connection.read("ways", "price > 2", most=2)
    assert [(one["offset"], one["event"]["price"]) for one in read] == [(2, 3), (3, 4.0)]
    assert connection.read("ways", start=6)[0]["id"] == "seven"
    assert connection.read("ways", "price > :least", {"least": 2}, most=2) == read


def test_questions(connection):
    connection.topics.create("asked", SCHEMA)
    connection.publish("asked", {"price": 20.0})
    assert connection.check("asked", "price<10")["attributes"] == ["price"]
    assert not connection.why("asked", filter="price < 10", offset=0)["matched"]
    assert connection.why("asked", filter="price < 10", event={"price": 1.0})["matched"]
    with pytest.raises(tamis.ExpressionError, match="did you mean 'price'") as caught:
        connection.check("asked", "volume > 1\nAND prise < 10")
    assert (caught.value.line, caught.value.column) == (2, 5)


def test_subscriptions_from_anywhere(connection):
    connection.topics.create("starts", SCHEMA)
    connection.publish_many("starts", [{"price": float(n)} for n in range(6)])
    before = datetime(2020, 1, 1, tzinfo=UTC)
    for start, first in (("earliest", 2), (4, 4), (before, 2)):
        with connection.subscribe("starts", "price >= 2", start=start) as found:
            assert next(found).offset == first
    with connection.subscribe("starts") as found:
        connection.publish("starts", {"price": 9.0})
        assert next(found).event == {"price": 9.0}


def test_a_filter_with_parameters(connection):
    connection.topics.create("given", SCHEMA)
    text, values = "price < :limit AND symbol = :symbol", {"limit": 10, "symbol": "it's"}
    assert connection.check("given", text, values)["filter"] == r"price < 10 AND symbol = 'it\'s'"
    with connection.subscribe("given", text, values) as subscription:
        connection.publish_many("given", [{"price": 1, "symbol": one} for one in ("a", "it's")])
        assert next(iter(subscription)).event["symbol"] == "it's"
    with pytest.raises(tamis.OptionError, match="there is none"):
        connection.subscribe("given", None, values)
    with pytest.raises(tamis.ParseError, match="no value for the parameter :symbol"):
        connection.subscribe("given", text, {"limit": 1})


def test_a_durable_subscription_is_taken_over_and_deleted(connection):
    connection.topics.create("taken", SCHEMA)
    connection.publish_many("taken", [{"price": float(n)} for n in range(4)])
    first = connection.subscribe(
        "taken", "price > 0", durable="mine", start="earliest", manual_ack=True
    )
    assert [next(first).offset, next(first).offset] == [1, 2]
    second = connection.subscribe("taken", durable="mine")
    with pytest.raises(Conflict, match="the broker ended the subscription"):
        list(first)
    assert (next(second).offset, second.filter) == (1, "price > 0")
    second.close()
    assert connection.subscription("taken", "mine")["filter"] == "price > 0"
    connection.unsubscribe("taken", "mine")
    with pytest.raises(UnknownSubscription):
        connection.subscription("taken", "mine")


def test_a_durable_subscription_stays_as_it_is_if_nothing_is_said(connection):
    connection.topics.create("kept", SCHEMA)
    connection.subscribe("kept", "price > 1", durable="mine", window=7).close()
    connection.subscribe("kept", durable="mine").close()
    known = connection.subscription("kept", "mine")
    assert (known["filter"], known["window"]) == ("price > 1", 7)
    connection.subscribe("kept", durable="mine", window=9).close()
    known = connection.subscription("kept", "mine")
    assert (known["filter"], known["window"]) == ("price > 1", 9)


def test_subscriptions_live_through_a_restart(tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.ERROR, "tamis.client")
    monkeypatch.setattr("tamis.client.broker_session.FIRST_PAUSE", 0.001)
    with ServedBroker(tmp_path) as broker:
        port = broker.port
        connection = tamis.connect(f"http://127.0.0.1:{port}")
        connection.topics.create("quotes", SCHEMA)
        connection.publish_many("quotes", [{"price": float(n)} for n in range(3)])
        durable = connection.subscribe("quotes", durable="mine", start="earliest")
        passing = connection.subscribe("quotes", start="earliest")
        found = [[next(one).offset for _ in range(3)] for one in (durable, passing)]
    with ServedBroker(tmp_path, port=port), connection:
        connection.publish_many("quotes", [{"price": float(n)} for n in range(3, 5)])
        for one, offsets in zip((durable, passing), found, strict=True):
            offsets += [next(one).offset for _ in range(2)]
    assert found == [[0, 1, 2, 3, 4]] * 2


def test_commands(connection, put, capsys):
    del connection
    assert main(["topic", "create", "commanded", "symbol string, price double"]) == 0
    path = put("events.csv", "symbol,price\nIBM,9.5\nDell,20\n")
    assert main(["publish", "commanded", str(path)]) == 0
    assert main(["subscribe", "commanded", "price < 10", "--from-start", "--count", "1"]) == 0
    *_, accepted, line = capsys.readouterr().out.splitlines()
    assert (accepted, json.loads(line)) == ("2 events accepted", {"symbol": "IBM", "price": 9.5})
