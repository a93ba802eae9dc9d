"""Subscriptions over connections that are lost, against a broker that loses them on demand."""

import asyncio
import logging

import pytest

import tamis
from cases import each
from tamis.client import subscription as module
from tamis.client.broker_session import Attempts
from tamis.errors import BrokerUnreachable, Conflict, UnknownSubscription

EVENTS = [("k", {"price": float(n)}) for n in range(10)]
SAID = b'data: {"offset": %d, "event": {}, "redelivered": true, "id": "a", "time": "t"}\n\n'


@pytest.fixture(autouse=True)
def _quick(monkeypatch, caplog):
    """No long pauses; warnings about lost connections are expected."""
    monkeypatch.setattr("tamis.client.broker_session.FIRST_PAUSE", 0.001)
    caplog.set_level(logging.ERROR, "tamis.client")


def test_only_the_first_failure_since_an_answer_is_the_first():
    async def tried():
        attempts = Attempts(patience=60)
        assert attempts.is_first
        await attempts.pause(BrokerUnreachable("gone"))
        assert not attempts.is_first
        attempts.begin_again()
        assert attempts.is_first

    asyncio.run(tried())


@each("durable", [None, "mine"])
@each("cuts", [[], [0], [1, 1, 1], [3, 0, 0, 2]])
def test_nothing_is_lost_or_doubled_over_lost_connections(served, durable, cuts):
    broker, url = served
    broker.events["quotes"] = list(EVENTS)
    broker.subscriptions.clear()
    broker.cuts = list(cuts)
    with (
        tamis.connect(url) as connection,
        connection.subscribe("quotes", "price <> 5", durable=durable, start="earliest") as found,
    ):
        offsets = [next(found).offset for _ in range(9)]
    assert offsets == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert set(broker.subscriptions) == ({durable} if durable else set())


def test_a_subscription_that_lost_its_connection_before_the_first_event_misses_none(
    served, connection
):
    broker, _ = served
    broker.events["quotes"] = list(EVENTS[:3])
    broker.cuts = [0]
    found = connection.subscribe("quotes")
    broker.events["quotes"] = list(EVENTS)
    assert [next(found).offset, next(found).offset] == [3, 4]
    assert broker.starts == ["new", 3]


def test_iterating_acknowledges_what_was_given_before(served, connection):
    broker, _ = served
    broker.events["quotes"] = list(EVENTS)
    found = connection.subscribe("quotes", durable="mine", start="earliest")
    for _ in range(3):
        next(found)
    found.close()
    assert broker.subscriptions["mine"]["cursor"] == 2
    again = connection.subscribe("quotes", durable="mine")
    assert next(again).offset == 2
    assert again.filter == "TRUE"


def test_by_hand_only_what_is_acknowledged_counts(served, connection):
    broker, _ = served
    broker.events["quotes"] = list(EVENTS)
    with connection.subscribe("quotes", durable="mine", start="earliest", manual_ack=True) as found:
        deliveries = [next(found) for _ in range(4)]
        deliveries[1].ack()
    assert broker.subscriptions["mine"]["cursor"] == 2


def test_an_acknowledgement_can_be_awaited(served):
    broker, url = served
    broker.events["quotes"] = list(EVENTS)

    async def use():
        async with tamis.aio.connect(url) as connection:
            found = await connection.subscribe("quotes", durable="mine", start="earliest")
            delivery = await anext(found)
            await delivery.ack()
            assert broker.subscriptions["mine"]["cursor"] == 1
            del broker.subscriptions["mine"]
            delivery = await anext(found)

    asyncio.run(use())


def test_a_repetition_of_what_waits_here_is_left_out(served, connection):
    broker, _ = served
    broker.said = [SAID % 3 + SAID % 3 + SAID % 4]  # in one piece: before the first is taken
    with connection.subscribe("quotes", durable="mine", manual_ack=True) as found:
        offsets = [delivery.offset for delivery in found.take()]
        while len(offsets) < 2:
            offsets += [delivery.offset for delivery in found.take()]
    assert offsets == [3, 4]


def test_what_does_not_come_is_counted(served, connection):
    broker, _ = served
    broker.said = [
        b'event: dropped\ndata: {"dropped": 12}\n\n',
        b'event: expired\ndata: {"expired": 3}\n\n',
        SAID % 0,
    ]
    found = connection.subscribe("quotes")
    assert next(found).redelivered
    assert (found.dropped, found.expired) == (12, 3)


def test_another_client_may_take_a_subscription_over(served, connection):
    broker, _ = served
    broker.said = [b'event: closed\ndata: {"reason": "taken over"}\n\n']
    found = connection.subscribe("quotes", durable="mine")
    with pytest.raises(Conflict, match="the broker ended the subscription: taken over"):
        next(found)


def test_a_broker_that_stops_is_waited_for(served, connection):
    broker, _ = served
    broker.said = [b'event: closed\ndata: {"reason": "the broker stops"}\n\n']
    found = connection.subscribe("quotes", durable="mine")
    broker.said = []
    broker.events["quotes"] = list(EVENTS)
    assert next(found).offset == 0


def test_a_deleted_subscription_is_not_made_again(served, connection):
    broker, _ = served
    broker.events["quotes"] = list(EVENTS)
    broker.cuts = [1] + [0] * 1000  # until it is deleted, nothing more comes
    found = connection.subscribe("quotes", durable="mine", start="earliest", manual_ack=True)
    assert next(found).offset == 0
    broker.subscriptions.clear()
    with pytest.raises(UnknownSubscription):
        list(found)


def test_a_reader_that_is_slow_stops_the_connection(served, connection, monkeypatch):
    monkeypatch.setattr(module, "BUFFER", 2)
    broker, _ = served
    broker.events["quotes"] = list(EVENTS)
    found = connection.subscribe("quotes", start="earliest")
    assert [next(found).offset for _ in EVENTS] == list(range(10))


def test_patience_ends(served):
    broker, url = served
    broker.events["quotes"] = list(EVENTS)
    with tamis.connect(url, patience=0) as connection:
        broker.cuts = [1]
        found = connection.subscribe("quotes", start="earliest")
        assert next(found).offset == 0
        with pytest.raises(BrokerUnreachable, match="was lost"):
            next(found)


def test_taking_with_a_time_limit_gives_nothing_after_it(connection):
    with connection.subscribe("quotes") as found:
        assert found.take(timeout=0.001) == []


def test_closing_twice_waits_for_the_last_acknowledgement_each_time(served):
    broker, url = served
    broker.events["quotes"] = list(EVENTS)

    async def use():
        async with tamis.aio.connect(url) as connection:
            found = await connection.subscribe("quotes", durable="mine", start="earliest")
            (await anext(found)).ack()
            first = asyncio.create_task(found.close())
            await asyncio.sleep(0)  # so that the first has begun
            await found.close()
            assert broker.subscriptions["mine"]["cursor"] == 1
            await first

    asyncio.run(use())


def test_closing_ends_the_iteration(connection):
    found = connection.subscribe("quotes")
    connection._loop.loop.call_soon_threadsafe(
        lambda: connection._loop.loop.create_task(found._inner.close())
    )
    assert list(found) == []
