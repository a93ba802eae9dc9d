"""Accounts at their limits, at a broker."""

import asyncio

import pytest

from brokers import Clock, open_broker
from tamis.broker.limits import AccountLimits
from tamis.broker.records import NewEvent
from tamis.errors import LimitReached

EVENT = NewEvent(b'{"price": 1}')


def test_subscriptions_count_until_they_are_gone(tmp_path):
    async def run():
        for _ in range(2):  # the second time, those of the first are in the catalogue
            broker = await open_broker(tmp_path, limits=AccountLimits(subscriptions=3))
            guest = broker.accounts.guest
            await broker.create_topic(guest, "t", "price double")
            await broker.put_subscription(guest, "t", "kept", "price < 10")
            await broker.put_subscription(guest, "t", "kept", "price < 20")  # the same one
            await broker.put_subscription(guest, "t", "passing", "price < 10", durable=False)
            listening = await broker.attach_filter(guest, "t", "price < 10")
            with pytest.raises(LimitReached, match="'guest' has 3 subscriptions"):
                await broker.put_subscription(guest, "t", "more", "price < 10")
            with pytest.raises(LimitReached):
                await broker.attach_filter(guest, "t", "price < 10")
            await listening.close()
            await broker.put_subscription(guest, "t", "more", "price < 10")
            await broker.delete_subscription(guest, "t", "more")
            assert guest.usage.subscriptions == 2
            await broker.close()
        broker = await open_broker(tmp_path, limits=AccountLimits(subscriptions=3))
        guest = broker.accounts.guest
        await broker.put_subscription(guest, "t", "passing", "price < 10", durable=False)
        assert guest.usage.subscriptions == 2
        await broker.delete_topic(guest, "t")
        assert guest.usage.subscriptions == 0
        await broker.close()

    asyncio.run(run())


def test_a_rate_is_kept_in_the_brokers_time(tmp_path):
    async def run():
        clock = Clock()
        broker = await open_broker(tmp_path, clock, limits=AccountLimits(events_per_second=2))
        guest = broker.accounts.guest
        await broker.create_topic(guest, "t", "price double")
        await broker.publish(guest, "t", [EVENT] * 4)
        with pytest.raises(LimitReached) as reached:
            await broker.publish(guest, "t", [EVENT])
        clock.seconds += reached.value.retry_after
        await broker.publish(guest, "t", [EVENT])
        assert broker.topic(guest, "t").next_offset == 5
        await broker.close()

    asyncio.run(run())


def test_an_event_that_is_too_large_is_refused_and_the_others_are_stored(tmp_path):
    async def run():
        broker = await open_broker(tmp_path, limits=AccountLimits(event_bytes=20))
        guest = broker.accounts.guest
        await broker.create_topic(guest, "t", "price double")
        answer = await broker.publish(guest, "t", [EVENT, NewEvent(b'{"price": 1.00000000000}')])
        assert answer.accepted == 1
        assert [refusal.row for refusal in answer.refused] == [1]
        await broker.close()

    asyncio.run(run())
