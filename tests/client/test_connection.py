import asyncio
import gc
import threading

import pytest

import tamis
from cases import each
from tamis.broker.records import Published, Refusal
from tamis.client.broker_session import BrokerSession
from tamis.errors import BrokerUnreachable, Busy, OptionError, UnknownTopic


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("tamis.client.broker_session.FIRST_PAUSE", 0.001)


def test_an_answer_that_is_lost_does_not_double_an_event(served, connection):
    broker, _ = served
    broker.lost_answers = 2
    assert connection.publish("quotes", {"price": 1.0}) == Published(1, 0)
    broker.lost_answers = 1
    assert connection.publish_many("quotes", [{"price": 2.0}, {"price": 3.0}]).accepted == 2
    assert [event["price"] for _, event in broker.events["quotes"]] == [1.0, 2.0, 3.0]


def test_an_own_id_is_the_id_of_the_event(served, connection):
    connection.publish("quotes", {"price": 1.0}, id="mine")
    connection.publish("quotes", {"price": 1.0}, id="mine")
    assert served[0].events["quotes"] == [("mine", {"price": 1.0})]


def test_a_busy_broker_is_asked_again(served, connection):
    served[0].busy = 3
    assert connection.topics.get("quotes")["name"] == "quotes"
    assert [topic["name"] for topic in connection.topics()] == ["quotes"]


def test_refused_events_are_told_by_row(connection):
    published = connection.publish_many("quotes", [{"price": 1.0}, "nonsense", {"price": 2.0}])
    assert published == Published(2, 1, (Refusal(1, "it is not a JSON object"),))
    with pytest.raises(tamis.EventError, match="not a JSON object"):
        connection.publish("quotes", "nonsense")


def test_events_may_come_from_a_subscription_of_the_same_connection(served, connection):
    broker, _ = served
    broker.events["quotes"] = [("a", {"price": 1.0}), ("b", {"price": 2.0})]
    connection.topics.create("copies", {"price": "double"})
    found = connection.subscribe("quotes", start="earliest")
    copies = (next(found).event for _ in range(2))
    assert connection.publish_many("copies", copies).accepted == 2


def test_topics_are_made_of_any_schema(connection):
    made = connection.topics.create(
        "other",
        tamis.Schema({"side": "enum('a', 'b')", "n": "int(1, 5)"}),
        retention={"max_age": 5},
    )
    assert made["schema"] == {"side": "enum('a', 'b')", "n": "int(1, 5)"}
    with pytest.raises(UnknownTopic):
        connection.topics.get("nope")


def test_a_bad_filter_is_an_error_at_once(connection):
    with pytest.raises(tamis.ExpressionError, match=r"unknown attribute 'prise'"):
        connection.subscribe("quotes", "prise < 10")


def test_no_broker():
    with pytest.raises(BrokerUnreachable) as caught:
        tamis.connect("http://127.0.0.1:1")
    assert str(caught.value) == (
        "no broker answers at http://127.0.0.1:1; start one with `tamis serve`"
    )
    assert isinstance(caught.value, ConnectionError)
    assert "tamis-client" not in {thread.name for thread in threading.enumerate()}


@each("url", ["127.0.0.1:8420", "ftp://x", "", "http://"])
def test_addresses_that_are_none(url):
    with pytest.raises(OptionError, match="is not the address of a broker"):
        tamis.connect(url)


def test_the_token_is_sent(served):
    with tamis.connect(served[1], token="secret"):  # noqa: S106 - not a real one
        assert served[0].requests[-1][2]["Authorization"] == "Bearer secret"


def test_patience_with_a_busy_broker_ends(served):
    with tamis.connect(served[1], patience=0) as connection:
        served[0].busy = 1
        with pytest.raises(Busy):
            connection.topics()


def test_a_closed_connection_says_so(served):
    connection = tamis.connect(served[1])
    connection.close()
    connection.close()
    with pytest.raises(BrokerUnreachable, match="closed"):
        connection.topics()


def test_a_connection_that_nobody_uses_is_closed(served):
    tamis.connect(served[1]).subscribe("quotes")
    gc.collect()
    assert "tamis-client" not in {thread.name for thread in threading.enumerate()}


def test_the_same_names_in_asyncio(served):
    broker, url = served
    broker.events["quotes"] = [("a", {"price": 1.0}), ("b", {"price": 2.0})]

    async def use():
        connection = await tamis.aio.connect(url)
        async with connection:
            assert (await connection.publish("quotes", {"price": 3.0})).offset == 2
            assert (await connection.publish_many("quotes", [{"price": 4.0}])).offset == 3
            assert len(await connection.topics()) == 1
            found = []
            async for delivery in connection.subscribe("quotes", "price > 1", start="earliest"):
                found.append(delivery.event["price"])
                if len(found) == 3:
                    break
            async with connection.subscribe("quotes", start=3) as deliveries:
                found.append((await anext(deliveries)).event["price"])
            return found

    assert asyncio.run(use()) == [2.0, 3.0, 4.0, 4.0]


def test_why_takes_one_of_each(connection):
    with pytest.raises(OptionError, match="a subscription or a filter, and an event or an offset"):
        connection.why("quotes", filter="TRUE")


def test_who_is_interrupted_while_connecting_leaves_nothing_open():
    async def main():
        called = asyncio.Event()

        async def say_nothing(_, writer):
            called.set()
            await ended.wait()
            writer.close()

        ended = asyncio.Event()
        server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        session = BrokerSession(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None, 1.0)
        connecting = asyncio.create_task(session.open())
        await called.wait()
        connecting.cancel()
        await asyncio.wait([connecting])
        ended.set()
        assert session._http.closed
        server.close()

    asyncio.run(main())
