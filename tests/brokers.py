"""Brokers for tests: in a folder, with time that the test moves."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tamis.broker.broker import Broker
from tamis.broker.records import NewEvent
from tamis.broker.settings import Settings

QUOTES = "symbol string, price double"


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


async def open_broker(folder: Path, clock: Clock | None = None, **settings: Any) -> Broker:
    """A broker in a folder."""
    clock = Clock() if clock is None else clock
    return await Broker.open(Settings(data=folder, **settings), clock=clock, monotonic=clock)


def with_broker(folder: Path, use: Callable[[Broker, Any], Awaitable[Any]], **settings: Any) -> Any:
    """What a coroutine does with a broker and its free account; the topic ``quotes`` is there."""

    async def run() -> Any:
        broker = await open_broker(folder, **settings)
        try:
            guest = broker.accounts.guest
            await broker.create_topic(guest, "quotes", QUOTES)
            return await use(broker, guest)
        finally:
            await broker.close()

    return asyncio.run(run())


def prices(*values: float) -> list[NewEvent]:
    """Events with these prices."""
    return [NewEvent(b'{"symbol": "A", "price": %a}' % value) for value in values]


async def settled(broker: Broker) -> None:
    """Return when everything that was published has come to everybody who listens."""
    for found in broker._topics:
        async with found.topic.writer.lock:
            pass
        await found.topic.sweep.settled()


async def taken(broker: Broker, attachment: Any, most: int = 1000) -> list[tuple[int, int]]:
    """Offsets and attempts of what can be taken now."""
    await settled(broker)
    return [(one.record.offset, one.attempt) for one in attachment.take_nowait(most)]
