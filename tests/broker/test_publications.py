"""Publications that wait to be written: bounded, in turn, and told when it is over."""

import asyncio

import pytest

from tamis.broker import publications
from tamis.broker.event_rows import EventRows, PublishRequirements
from tamis.broker.publications import Publications
from tamis.broker.records import NewEvent
from tamis.errors import Busy
from tamis.matcher import Matcher

ROWS = EventRows(Matcher({"price": "double"}))


def read(count):
    return ROWS.read([NewEvent(b'{"price": 1}')] * count, PublishRequirements())


def test_publishers_wait_in_turn_when_too_much_waits(monkeypatch):
    monkeypatch.setattr(publications, "MOST_BYTES", 1000)

    async def run() -> None:
        queue = Publications()
        await queue.put(read(4))
        waiting = [asyncio.create_task(queue.put(read(count))) for count in (3, 2, 1)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        sizes = []
        while len(sizes) < 4:
            sizes += [len(one.read.events) for one in await queue.take()]
        assert sizes == [4, 3, 2, 1]

    asyncio.run(run())


def test_a_publisher_that_waits_too_long_is_told_to_try_again(monkeypatch):
    monkeypatch.setattr(publications, "MOST_BYTES", 1000)
    monkeypatch.setattr(publications, "LONGEST_WAIT", 0.0)

    async def run() -> None:
        queue = Publications()
        await queue.put(read(4))
        with pytest.raises(Busy, match="the disk is behind"):
            await queue.put(read(4))
        assert len(queue) == 1

    asyncio.run(run())


def test_a_closed_queue_takes_no_more(monkeypatch):
    monkeypatch.setattr(publications, "MOST_BYTES", 1000)

    async def run() -> None:
        queue = Publications()
        await queue.put(read(4))
        waiting = asyncio.create_task(queue.put(read(4)))
        await asyncio.sleep(0)
        queue.close()
        for late in (waiting, queue.put(read(1))):
            with pytest.raises(Busy, match="the topic is being closed"):
                await late
        assert len(queue) == 1

    asyncio.run(run())


def test_room_that_is_given_to_a_publisher_who_leaves_goes_to_the_next(monkeypatch):
    monkeypatch.setattr(publications, "MOST_BYTES", 1000)

    async def run() -> None:
        queue = Publications()
        await queue.put(read(4))
        leaving, staying = (asyncio.create_task(queue.put(read(n))) for n in (4, 3))
        await asyncio.sleep(0)
        await queue.take()  # the first one that waits is let in,
        leaving.cancel()  # and is gone before it comes in
        await asyncio.wait([leaving])
        await asyncio.sleep(0)
        assert staying.done()
        assert [len(one.read.events) for one in await queue.take()] == [3]

    asyncio.run(run())


def test_all_publishers_for_whom_there_is_room_come_in_at_once(monkeypatch):
    monkeypatch.setattr(publications, "MOST_BYTES", 1000)

    async def run() -> None:
        queue = Publications()
        await queue.put(read(4))
        waiting = [asyncio.create_task(queue.put(read(1))) for _ in range(3)]
        await asyncio.sleep(0)
        assert len(queue) == 1
        await queue.take()
        for _ in range(10):  # each lets the next one in
            await asyncio.sleep(0)
        assert all(task.done() for task in waiting)
        assert [len(one.read.events) for one in await queue.take()] == [1, 1, 1]

    asyncio.run(run())
