"""Brokers of a line, each in a process of its own that does what it is told.

A process measures how long its event loop was held: signs of life, and everybody else, wait so
long.
"""

import asyncio
import contextlib
import gc
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tamis.broker.broker import Broker
from tamis.broker.network_settings import NetworkSettings
from tamis.broker.records import NewEvent
from tamis.broker.server import GARBAGE, _links, rehearse
from tamis.broker.settings import Address, Settings

HOST = "127.0.0.1"
TOPIC = "quotes"
AT_ONCE = 2_000  # subscriptions that are put at the same time
LOOK = 0.002  # seconds between two looks at the clock


class LineBroker:
    """A broker in a process of its own."""

    def __init__(self, name: str, folder: Path, schema: dict[str, str]) -> None:
        self.name = name
        self.port = 0
        self._arguments = name, folder / name, schema
        self._context = multiprocessing.get_context("spawn")
        self.start()

    def start(self) -> None:
        """Start the process; it is ready when `told` returns."""
        self._pipe, theirs = self._context.Pipe()
        arguments = theirs, *self._arguments, self.port
        self._process = self._context.Process(target=_run, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def told(self) -> Any:
        """The answer to what was said last; the first one is the port."""
        answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ready(self) -> None:
        """Wait until it listens."""
        self.port = self.told()

    def say(self, *what: Any) -> None:
        """Tell it to do something."""
        self._pipe.send(what)

    def ask(self, *what: Any) -> Any:
        """Tell it to do something, and wait for the answer."""
        self.say(*what)
        return self.told()

    def kill(self) -> None:
        """End the process as a failure of the machine would."""
        self._process.kill()
        self._process.join()


def _run(pipe: Connection, name: str, folder: Path, schema: dict[str, str], port: int) -> None:
    gc.set_threshold(GARBAGE, 10, 10)
    with contextlib.suppress(EOFError):
        asyncio.run(_serve(pipe, name, folder, schema, port))


async def _serve(
    pipe: Connection, name: str, folder: Path, schema: dict[str, str], port: int
) -> None:
    loop = asyncio.get_running_loop()
    rehearse()
    gc.collect()
    gc.freeze()
    network = NetworkSettings(name, Address(HOST, port))
    settings = Settings(folder, Address(HOST, 0), Address(HOST, 0), network=network)
    watch = Watch()
    broker = await Broker.open(settings)
    assert broker.network is not None  # noqa: S101 - the settings name one
    links = _links(broker.network, settings, None)
    found = await links.start(HOST, port)
    commands = Commands(broker, links, watch)
    await broker.create_topic(commands.guest, TOPIC, schema)
    pipe.send(found)
    while True:
        what, *arguments = await loop.run_in_executor(None, pipe.recv)
        try:
            answer = await getattr(commands, what)(*arguments)
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is read
            answer = RuntimeError(f"{name}: {what}: {error!r}")
        pipe.send(answer)


class Watch:
    """How long the event loop was held at most, by the core that its thread used.

    The clock would also count what other processes of a busy machine do meanwhile.
    """

    def __init__(self) -> None:
        self._longest = 0.0
        self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(LOOK)
            now = time.thread_time()
            self._longest = max(self._longest, now - last)
            last = now

    def take(self) -> float:
        """The longest time since the last call."""
        found, self._longest = self._longest, 0.0
        return found


class Commands:
    """What a process can be told."""

    def __init__(self, broker: Broker, links: Any, watch: Watch) -> None:
        self._broker, self._links, self._watch = broker, links, watch
        assert broker.accounts.guest is not None  # noqa: S101 - there are no other accounts
        self.guest = broker.accounts.guest

    async def call(self, peer: str, port: int) -> None:
        """Keep a link to a peer from now on."""
        self._links.call(peer, Address(HOST, port))

    async def put(self, filters: list[str], first: int = 0) -> float:
        """Make durable subscriptions, many at the same time; the seconds that it took."""
        began = time.perf_counter()
        numbers = iter(range(len(filters)))

        async def some() -> None:
            for n in numbers:
                await self._broker.put_subscription(self.guest, TOPIC, f"s{first + n}", filters[n])

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))
        return time.perf_counter() - began

    async def delete(self, first: int, last: int) -> float:
        """Delete subscriptions, many at the same time; the seconds that it took."""
        began = time.perf_counter()
        numbers = iter(range(first, last))

        async def some() -> None:
            for n in numbers:
                await self._broker.delete_subscription(self.guest, TOPIC, f"s{n}")

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))
        return time.perf_counter() - began

    async def publish(self, bodies: list[bytes]) -> None:
        """Publish events."""
        await self._broker.publish(self.guest, TOPIC, [NewEvent(body) for body in bodies])

    async def stored(self) -> int:
        """How many events the topic has."""
        return self._broker.topic(self.guest, TOPIC).next_offset

    async def held(self) -> int:
        """How many filters of peers are held."""
        count = "SELECT count(*) FROM peer_filters WHERE kind = 'subscription'"
        return int(self._broker._catalogue.rows(count)[0][0])  # noqa: SLF001 - nobody else asks

    async def cpu(self) -> float:
        """The seconds of a core that the process has used."""
        return time.process_time()

    async def longest(self) -> float:
        """How long the event loop was held at most since the last question."""
        return self._watch.take()
