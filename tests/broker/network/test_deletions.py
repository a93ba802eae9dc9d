"""A topic that is deleted anywhere is deleted everywhere, and only that one."""

import asyncio

import pytest

from linked_brokers import LinkedBroker, line, until
from tamis.broker.other_brokers import NoOtherBrokers
from tamis.broker.peer_rows import put_deletion
from tamis.errors import UnknownTopic


def names(one):
    return {topic.name for topic in one.broker.topics(one.account)}


async def all_have(*brokers, topic="quotes"):
    await until(lambda: all(topic in one.broker.network._shared for one in brokers))


async def nobody_has(*brokers, topic="quotes"):
    await until(lambda: all(topic not in names(one) for one in brokers))


async def delete(one, topic="quotes"):
    await one.broker.delete_topic(one.account, topic)


def run(folder, test, *brokers):
    async def main():
        async with line(folder, *brokers) as found:
            await found[0].create()
            await all_have(*found)
            await test(*found)

    asyncio.run(main())


def test_a_deletion_travels_and_the_name_can_be_used_again(tmp_path):
    async def test(first, middle, last):
        await last.subscribe("all", "TRUE")
        listening = await last.broker.attach(last.account, "quotes", "all")
        await first.publish({"number": 1})
        await listening.take(1)
        await delete(first)
        await nobody_has(first, middle, last)
        assert await listening.take(1) == []
        assert listening.closed_because == "the topic was deleted"
        assert last.account.usage.subscriptions == 0
        await last.create(schema={"number": "string"})
        await all_have(first, middle, last)
        await first.subscribe("all", "TRUE")
        await last.publish({"number": "new"})
        assert await first.take("all", 1) == [{"number": "new"}]
        assert await first.stored() == [{"number": "new"}]

    run(tmp_path, test, "b1", "b2", "b3")


def test_a_broker_that_was_away_hears_of_it_and_does_not_make_the_topic_again(tmp_path):
    async def test(first, middle, last):
        await last.subscribe("all", "TRUE")
        await last.stop()
        await delete(first)
        await nobody_has(first, middle)
        await middle.stop()
        await middle.start()
        await last.start()
        await nobody_has(last)
        await until(lambda: first.linked and last.linked)
        assert not names(first) | names(middle) | names(last)

    run(tmp_path, test, "b1", "b2", "b3")


def test_a_topic_that_was_made_again_meanwhile_stays(tmp_path):
    async def test(first, last):
        await first.subscribe("old", "TRUE")
        await last.stop()
        await delete(first)
        await first.create()
        await first.publish({"number": 2})
        births = first.broker.network._shared["quotes"].topic.row.births
        await last.start()
        await until(
            lambda: (
                (found := last.broker.network._shared.get("quotes")) is not None
                and found.topic.row.births == births
            )
        )
        await last.subscribe("new", "TRUE")
        await first.publish({"number": 3})
        assert await last.take("new", 1) == [{"number": 3}]
        assert await first.stored() == [{"number": 2}, {"number": 3}]

    run(tmp_path, test, "b1", "b2")


def test_a_topic_that_the_deleting_broker_did_not_know_of_stays(tmp_path):
    async def test(first, last):
        stranger = LinkedBroker(tmp_path, "b3", 0, {"b2": last.port})
        await stranger.start_alone()
        await stranger.create()
        await stranger.publish({"number": 7})
        await stranger.stop()
        await delete(first)
        await nobody_has(first, last)
        await stranger.start()
        await all_have(first, last, stranger)  # it is shared now
        assert await stranger.stored() == [{"number": 7}]
        # And is deleted, with both of its births, by one that knows it.
        await delete(first)
        await nobody_has(first, last, stranger)
        await stranger.stop()

    run(tmp_path, test, "b1", "b2")


def test_who_waits_for_a_subscription_is_told(tmp_path):
    async def test(first, last):
        shared = last.broker.network._shared["quotes"]
        await until(lambda: shared.routes.is_ready("b1"))
        shared._open["b1"].road.send = lambda *_: None  # nobody will answer
        subscribing = asyncio.create_task(last.subscribe("all", "TRUE"))
        await until(lambda: shared.is_waited_for)
        await delete(first)
        with pytest.raises(UnknownTopic, match="topic 'quotes' was deleted"):
            await subscribing

    run(tmp_path, test, "b1", "b2")


def test_a_deletion_is_finished_after_a_crash(tmp_path):
    async def test(first, last):
        births = last.broker.network._shared["quotes"].topic.row.births
        assert births == first.broker.network._shared["quotes"].topic.row.births
        await last.broker._host.commits.commit(put_deletion("quotes", births[0]))
        await last.stop()
        await last.start_alone()
        assert not names(last)
        await last.stop()
        await last.start()
        await nobody_has(first)

    run(tmp_path, test, "b1", "b2")


def test_a_topic_that_was_made_without_a_network_can_be_deleted_in_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.broker.network.network.Network.births", NoOtherBrokers.births)

    async def main():
        alone = LinkedBroker(tmp_path, "b1", 0, {})
        await alone.start_alone()
        await alone.create()
        assert alone.broker._topics.get("quotes").topic.row.births == ()
        await alone.stop()
        monkeypatch.undo()
        async with line(tmp_path, "b1", "b2") as (first, last):
            await all_have(first, last)
            await delete(last)
            await nobody_has(first, last)

    asyncio.run(main())


def test_a_topic_that_no_peer_ever_had_leaves_nothing(tmp_path):
    async def main():
        alone = LinkedBroker(tmp_path, "b1", 0, {})
        await alone.start_alone()
        await alone.create()
        await delete(alone)
        assert alone.broker.network._deletions.messages() == []
        await alone.stop()

    asyncio.run(main())
