"""What is removed from a topic, and who is told; what is given up, and where it goes."""

import asyncio
import errno
import json

import pytest

from brokers import Clock, open_broker, prices, settled, taken, with_broker
from tamis.broker.broker import Broker
from tamis.broker.log.disk import LocalDisk
from tamis.broker.records import DeliveryOptions, NewEvent, Retention
from tamis.broker.settings import Settings
from tamis.broker.storage import LocalStorage
from tamis.errors import Busy, FileError


def test_a_subscriber_is_told_what_was_removed_before_it_came(tmp_path):
    async def use() -> None:
        clock = Clock()
        broker = await open_broker(tmp_path, clock)
        guest = broker.accounts.guest
        retention = Retention(max_age=3600.0)
        await broker.create_topic(guest, "quotes", "price double", retention=retention)
        await broker.put_subscription(guest, "quotes", "a", "price > 0", start="earliest")
        await broker.publish(guest, "quotes", prices(1, 2, 3))
        clock.seconds += 4000
        await broker.tick()
        await broker.publish(guest, "quotes", prices(4))
        info = broker.topic(guest, "quotes")
        assert (info.first_offset, info.next_offset, info.expired) == (3, 4, 3)
        one = await broker.attach(guest, "quotes", "a")
        assert await taken(broker, one) == [(3, 1)]
        assert (one.expired, one.expired) == (3, 0)
        assert broker.subscription(guest, "quotes", "a").expired == 3
        await broker.close()
        broker = await open_broker(tmp_path, clock)
        assert broker.topic(guest, "quotes").expired == 3
        await broker.close()

    asyncio.run(use())


def test_an_event_that_nobody_can_handle_goes_to_the_dead_letters(tmp_path):
    async def use(broker, guest):
        options = DeliveryOptions(most_attempts=2)
        await broker.put_subscription(guest, "quotes", "a", "price > 1", options=options)
        one = await broker.attach(guest, "quotes", "a")
        event = NewEvent(b'{"price": 2}', "e1", {"source": "here"})
        await broker.publish(guest, "quotes", [event, *prices(3)])
        assert await taken(broker, one, 1) == [(0, 1)]
        one.nack(0)
        assert await taken(broker, one, 1) == [(0, 2)]
        one.nack(0)
        await asyncio.wait(broker._dead_letter_tasks)
        assert await taken(broker, one) == [(1, 1)]
        assert broker.subscription(guest, "quotes", "a").cursor == 1
        [letter] = await broker.read(guest, "dead.quotes", "price = 2")
        headers = json.loads(letter.headers)
        assert (letter.body, letter.id) == (event.body, "guest/a/0")
        assert headers["source"] == "here"
        assert headers["tamis-reason"] == "it was not acknowledged after 2 attempts"
        assert headers["tamis-event-id"] == "e1"

    with_broker(tmp_path, use)


def test_dead_letters_have_no_dead_letters(tmp_path):
    async def use(broker, guest):
        await broker.create_topic(guest, "dead.quotes", "price double")
        options = DeliveryOptions(most_attempts=1)
        await broker.put_subscription(guest, "dead.quotes", "a", None, options=options)
        one = await broker.attach(guest, "dead.quotes", "a")
        await broker.publish(guest, "dead.quotes", prices(1))
        for attempt in (1, 2, 3):
            assert await taken(broker, one) == [(0, attempt)]
            one.nack(0)
        assert [info.name for info in broker.topics(guest)] == ["dead.quotes", "quotes"]

    with_broker(tmp_path, use)


class FullDisk(LocalDisk):
    """A disk that can be full."""

    is_full = False

    def write(self, path, position, data):
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        super().write(path, position, data)


def test_a_full_disk_refuses_publications_and_recovers(tmp_path):
    async def use() -> None:
        disk = FullDisk()
        broker = await Broker.open(Settings(data=tmp_path), storage=LocalStorage(tmp_path, disk))
        guest = broker.accounts.guest
        await broker.create_topic(guest, "quotes", "price double")
        one = await broker.attach_filter(guest, "quotes")
        await broker.publish(guest, "quotes", prices(1))
        disk.is_full = True
        with pytest.raises(Busy, match="nothing was stored, try again"):
            await broker.publish(guest, "quotes", prices(2))
        later = await broker.attach_filter(guest, "quotes")
        disk.is_full = False
        answer = await broker.publish(guest, "quotes", prices(3))
        found = [offset for offset, _ in await taken(broker, one)]
        assert found == [0, answer.offset]
        assert await taken(broker, later) == [(answer.offset, 1)]
        await settled(broker)
        await broker.close()

    asyncio.run(use())


def test_one_broker_per_folder(tmp_path):
    async def use(_broker, _guest):
        with pytest.raises(FileError, match="another broker uses the data folder"):
            await open_broker(tmp_path)

    with_broker(tmp_path, use)
