"""A broker as protocols use it: topics, publications, subscriptions, questions."""

import asyncio
import threading

import pytest

from brokers import prices, taken, with_broker
from tamis.broker import broker
from tamis.broker.grants import narrowed
from tamis.broker.records import DeliveryOptions, NewEvent
from tamis.errors import (
    Conflict,
    OptionError,
    ParseError,
    TopicExists,
    UnknownSubscription,
    UnknownTopic,
)


def test_events_come_to_subscriptions_that_match(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "cheap", "price < 10")
        cheap = await broker.attach(guest, "quotes", "cheap")
        other = await broker.attach_filter(guest, "quotes", "price >= 10")
        answer = await broker.publish(guest, "quotes", prices(5, 50, 7))
        assert (answer.accepted, answer.offset, list(answer.refused)) == (3, 2, [])
        assert [one.record.offset for one in await cheap.take(1)] == [0]
        assert await taken(broker, cheap) == [(2, 1)]
        assert await taken(broker, other) == [(1, 1)]

    with_broker(tmp_path, use)


def test_bad_events_are_refused_and_good_ones_are_stored(tmp_path):
    async def use(broker, guest):
        bad = [NewEvent(b"nope"), NewEvent(b'{"price": "x"}'), NewEvent(b"[1]")]
        answer = await broker.publish(guest, "quotes", [*prices(1), *bad, *prices(2)])
        assert (answer.accepted, answer.offset) == (2, 1)
        assert [refusal.row for refusal in answer.refused] == [1, 2, 3]
        assert "attribute price expects double" in answer.refused[1].reason
        assert (await broker.publish(guest, "quotes", bad)).offset is None
        twice = await broker.publish(guest, "quotes", [NewEvent(b'{"price": 1, "price": 2}')])
        assert twice.refused[0].reason == "the event names 'price' twice"

    with_broker(tmp_path, use)


def test_an_id_that_comes_again_is_stored_once(tmp_path):
    async def use(broker, guest):
        one = NewEvent(b'{"price": 1}', "a")
        first = await broker.publish(guest, "quotes", [one, *prices(2), one])
        assert (first.accepted, first.offset) == (3, 0)
        again = await broker.publish(guest, "quotes", [one])
        assert (again.accepted, again.offset) == (1, 0)
        assert [record.id for record in await broker.read(guest, "quotes")] == ["a", "1"]

    with_broker(tmp_path, use)
    with_broker(tmp_path, use_again)


async def use_again(broker, guest):
    again = await broker.publish(guest, "quotes", [NewEvent(b'{"price": 1}', "a")])
    assert (again.accepted, again.offset) == (1, 0)


def test_subscriptions_start_now_or_in_the_past(tmp_path):
    async def use(broker, guest):
        await broker.publish(guest, "quotes", prices(*range(20)))
        found = {}
        for start in ("new", "earliest", 5, "1970-01-01", "2100-01-01"):
            await broker.put_subscription(guest, "quotes", str(start), "price < 8", start=start)
            one = await broker.attach(guest, "quotes", str(start))
            found[start] = [offset for offset, _ in await taken(broker, one)]
        assert found == {
            "new": [], "earliest": [*range(8)], 5: [5, 6, 7], "1970-01-01": [*range(8)],
            "2100-01-01": [],
        }  # fmt: skip
        with pytest.raises(OptionError, match="offset 21 does not exist"):
            await broker.attach_filter(guest, "quotes", "TRUE", start=21)
        with pytest.raises(OptionError, match="a subscription starts at"):
            await broker.attach_filter(guest, "quotes", "TRUE", start="yesterday")

    with_broker(tmp_path, use)


def test_a_second_connection_takes_over(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "all", None)
        first = await broker.attach(guest, "quotes", "all")
        await broker.publish(guest, "quotes", prices(1, 2, 3))
        assert await taken(broker, first, 2) == [(0, 1), (1, 1)]
        first.ack(0)
        second = await broker.attach(guest, "quotes", "all")
        assert first.closed_because == "another connection took over"
        assert await first.take(1) == []
        assert await taken(broker, second) == [(1, 2), (2, 1)]

    with_broker(tmp_path, use)


def test_nothing_happens_where_nothing_waits_for_an_answer(tmp_path):
    """Without a durable subscription, and on a connection that another one has taken over."""

    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "all", None)
        listening = await broker.attach_filter(guest, "quotes")
        first = await broker.attach(guest, "quotes", "all")
        await broker.publish(guest, "quotes", prices(1, 2))
        assert await taken(broker, listening) == await taken(broker, first) == [(0, 1), (1, 1)]
        second = await broker.attach(guest, "quotes", "all")
        for one in (listening, first):
            for answer in (one.ack, one.ack_up_to, one.nack, one.nack_up_to):
                answer(1)
        assert await taken(broker, listening) == []
        assert await taken(broker, second) == [(0, 2), (1, 2)]

    with_broker(tmp_path, use)


def test_a_slow_subscriber_loses_the_oldest_or_its_connection(tmp_path):
    async def use(broker, guest):
        options = DeliveryOptions(buffer=3)
        dropping = await broker.attach_filter(guest, "quotes", options=options)
        options = DeliveryOptions(buffer=3, slow="disconnect")
        leaving = await broker.attach_filter(guest, "quotes", options=options)
        for price in range(5):
            await broker.publish(guest, "quotes", prices(price))
        assert await taken(broker, dropping) == [(2, 1), (3, 1), (4, 1)]
        assert (dropping.dropped, dropping.dropped) == (2, 0)
        assert leaving.closed_because == "it is too slow: its buffer is full"
        assert guest.usage.subscriptions == 2
        for _ in range(2):  # the second time, nothing is left to give back
            await leaving.close()
            assert guest.usage.subscriptions == 1

    with_broker(tmp_path, use)


def test_ids_and_headers_that_are_not_unicode_are_refused(tmp_path):
    async def use(broker, guest):
        bad = [
            NewEvent(b'{"price": 1}', "half \ud800"),
            NewEvent(b'{"price": 2}', "é"),
            NewEvent(b'{"price": 3}', None, {"color": "\udfff"}),
        ]
        answer = await broker.publish(guest, "quotes", bad)
        assert (answer.accepted, [row for row, _ in answer.refused]) == (1, [0, 2])
        assert answer.refused[0].reason.startswith("the id 'half \\ud800' of the event is not")

    with_broker(tmp_path, use)


def test_topics_are_made_once_and_widened(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "a", "price > 1")
        one = await broker.attach(guest, "quotes", "a")
        wider = "symbol string, price double, volume int"
        await broker.create_topic(guest, "quotes", wider)
        info = await broker.create_topic(guest, "quotes", wider)
        assert info.schema == {"symbol": "string", "price": "double", "volume": "int"}
        await broker.put_subscription(guest, "quotes", "a", "price > 1 AND volume > 1")
        await broker.publish(guest, "quotes", [NewEvent(b'{"price": 2, "volume": 2}'), *prices(2)])
        assert await taken(broker, one) == [(0, 1)]
        with pytest.raises(TopicExists, match="price is double already"):
            await broker.create_topic(guest, "quotes", {"price": "int"})
        with pytest.raises(TopicExists, match="attributes can be added, not taken away"):
            await broker.create_topic(guest, "quotes", "price double")
        with pytest.raises(TopicExists, match="has semantics 'sql'"):
            await broker.create_topic(guest, "quotes", wider, semantics="strict")
        with pytest.raises(OptionError, match="the name of a topic"):
            await broker.create_topic(guest, "..", "price double")
        for bad in ("", "a\n", "\u202e", "x" * 1_000):
            with pytest.raises(OptionError, match="the id of a subscription has 1 to"):
                await broker.put_subscription(guest, "quotes", bad, "price > 1")

    with_broker(tmp_path, use)


def test_subscriptions_change_while_their_topic_is_widened(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "moving", "price < 10")
        await broker.put_subscription(guest, "quotes", "coming", "price < 10")
        moving = await broker.attach(guest, "quotes", "moving")
        _, _, coming = await asyncio.gather(
            broker.create_topic(guest, "quotes", "symbol string, price double, size int"),
            broker.put_subscription(guest, "quotes", "moving", "price < 20"),
            broker.attach(guest, "quotes", "coming"),
        )
        await broker.publish(guest, "quotes", prices(5, 15, 25))
        assert await taken(broker, moving) == [(0, 1), (1, 1)]
        assert await taken(broker, coming) == [(0, 1)]

    with_broker(tmp_path, use)


def test_a_deleted_topic_is_gone_with_all_that_it_had(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "a", None)
        one = await broker.attach(guest, "quotes", "a")
        await broker.publish(guest, "quotes", prices(1))
        await broker.delete_topic(guest, "quotes")
        assert one.closed_because == "the topic was deleted"
        with pytest.raises(UnknownTopic, match="there is no topic 'quotes'"):
            await broker.publish(guest, "quotes", prices(1))
        info = await broker.create_topic(guest, "quotes", "price int")
        assert (info.next_offset, info.subscriptions) == (0, 0)

    with_broker(tmp_path, use)


def test_questions(tmp_path):
    async def use(broker, guest):
        await broker.publish(guest, "quotes", prices(*range(20)))
        found = await broker.read(guest, "quotes", "price > 3", start=2, most=2)
        assert [record.offset for record in found] == [4, 5]
        assert (await broker.check(guest, "quotes", "price>3")).attributes == ["price"]
        with pytest.raises(ParseError, match="line 1, column 8"):
            await broker.check(guest, "quotes", "price >")
        await broker.put_subscription(guest, "quotes", "a", "price > 3")
        assert not (await broker.why(guest, "quotes", subscription="a", offset=3)).matched
        assert (await broker.why(guest, "quotes", filter="price = 3", offset=3)).matched
        assert (await broker.why(guest, "quotes", subscription="a", event={"price": 4})).matched
        with pytest.raises(OptionError, match="there is no event with offset"):
            await broker.why(guest, "quotes", subscription="a", offset=20)
        with pytest.raises(OptionError, match="one of each"):
            await broker.why(guest, "quotes", subscription="a")

    with_broker(tmp_path, use)


def test_filters_of_questions_are_read_in_threads(tmp_path, monkeypatch):
    readers = []

    def noted(*asked, **options):
        readers.append(threading.get_ident())
        return narrowed(*asked, **options)

    async def use(broker, guest):
        await broker.publish(guest, "quotes", prices(1))
        await broker.read(guest, "quotes", "price > 3")
        await broker.check(guest, "quotes", "price > 3")
        await broker.why(guest, "quotes", filter="price = 3", offset=0)
        assert len(readers) == 4
        assert threading.get_ident() not in readers

    monkeypatch.setattr(broker, "narrowed", noted)
    with_broker(tmp_path, use)


def test_subscriptions_are_listed_and_deleted(tmp_path):
    async def use(broker, guest):
        for id_ in ("a", "b", "c"):
            await broker.put_subscription(guest, "quotes", id_, "price > 1", durable=id_ != "b")
        listed = broker.subscriptions(guest, "quotes", after="a", most=2)
        assert [(one.id, one.durable) for one in listed] == [("b", False), ("c", True)]
        with pytest.raises(Conflict, match="subscription 'b' is not durable"):
            await broker.put_subscription(guest, "quotes", "b", "price > 1")
        one = await broker.attach(guest, "quotes", "a")
        await broker.delete_subscription(guest, "quotes", "a")
        assert one.closed_because == "the subscription was deleted"
        with pytest.raises(UnknownSubscription, match="has no subscription 'a'"):
            broker.subscription(guest, "quotes", "a")
        assert broker.topic(guest, "quotes").subscriptions == 1
        assert guest.usage.subscriptions == 2

    with_broker(tmp_path, use)


def test_whether_somebody_listens_is_told(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "a")
        assert not broker.subscription(guest, "quotes", "a").attached
        one = await broker.attach(guest, "quotes", "a")
        assert broker.subscription(guest, "quotes", "a").attached
        await one.close()
        assert not broker.subscription(guest, "quotes", "a").attached

    with_broker(tmp_path, use)


def test_a_deleted_subscription_stays_deleted_when_who_listened_goes(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "a", durable=False)
        one = await broker.attach(guest, "quotes", "a")
        await broker.delete_subscription(guest, "quotes", "a")
        await one.close()
        assert broker.subscriptions(guest, "quotes") == []

    with_broker(tmp_path, use)
