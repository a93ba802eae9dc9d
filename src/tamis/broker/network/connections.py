"""Connections between brokers: sockets and time for `Link`, and who calls whom.

A broker calls the peers of its settings, again and again until it is linked with them, and takes
calls. Two brokers that call each other keep the connection of the one whose name comes first.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tamis.broker.network.link import NONCE, Link, LinkState, Manners
from tamis.broker.network.messages import Message, Reach
from tamis.broker.network.network import Network
from tamis.broker.settings import Address
from tamis.errors import RoutingError, TamisError

READ = 1 << 18  # bytes
FIRST_PAUSE, LONGEST_PAUSE, FINAL_PAUSE = 0.1, 3.0, 15.0  # seconds between calls
CONNECTING = 10.0  # seconds

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

logger = logging.getLogger("tamis.broker")


class PeerConnection:
    """One connection to another broker."""

    def __init__(
        self, network: Network, link: Link, streams: Streams, now: Callable[[], float]
    ) -> None:  # fmt: skip
        self.link = link
        self.ended = asyncio.Event()
        self._network = network
        self._reader, self._writer = streams
        self._now = now
        self._is_introduced = False
        self._is_writing_soon = False
        self._is_joined = False

    @property
    def peer(self) -> str:
        """The name of the other side."""
        return self.link.peer

    # --- for the network

    def send(self, *messages: Message) -> None:
        """Send messages, together with others of this moment."""
        self.link.send(self._now(), *messages)
        if not self._is_writing_soon:
            self._is_writing_soon = True
            asyncio.get_running_loop().call_soon(self._write)

    async def drained(self) -> None:
        """Return when what was sent is with the operating system."""
        self._write()
        with suppress(OSError, EOFError):  # the link is lost: whoever sends is told soon
            await self._writer.drain()

    def close(self, reason: str, *, is_final: bool = False) -> None:
        """Say goodbye, and end."""
        self.link.close(self._now(), reason, is_final=is_final)
        self._write()
        self._stop_reading()

    def _stop_reading(self) -> None:
        """Let `run` come to its end, and clean up."""
        self._reader.set_exception(EOFError("the link is closed"))

    def _write(self) -> None:
        self._is_writing_soon = False
        try:
            data = self.link.take_bytes()
        except RoutingError as error:  # too much for a frame
            self.link.close(self._now(), str(error))
            data = self.link.take_bytes()
            self._stop_reading()
        if data and not self._writer.is_closing():
            self._writer.write(data)

    # --- its life

    async def run(self, beat: float) -> None:
        """Talk until the link ends."""
        ticking = asyncio.create_task(self._tick(beat / 4))
        try:
            self._write()
            await self._read()
        except (OSError, EOFError) as error:
            self.link.close(self._now(), f"the connection is lost: {error}")
        except TamisError as error:
            self.link.close(self._now(), str(error), is_final=not self._is_joined)
        except Exception as error:  # of one link; the others go on
            logger.exception("the link to peer %r failed", self.peer)
            self.link.close(self._now(), f"it failed: {error}")
        finally:
            ticking.cancel()
            self.link.close(self._now(), "the connection has ended")
            self._write()
            if self._is_joined:
                await self._network.left(self, self.link.closed_because or "")
            self._end()
            self.ended.set()

    def _end(self) -> None:
        with suppress(OSError, RuntimeError):
            self._writer.close()
        # What the other side does not take within a moment, it does not get.
        transport = self._writer.transport
        asyncio.get_running_loop().call_later(1.0, transport.abort)

    async def _read(self) -> None:
        while not self.link.is_closed:
            data = await self._reader.read(READ)
            if not data:
                return
            messages = self.link.receive(data, self._now())
            if self.link.state in {LinkState.PROVED, LinkState.UP} and not self._is_introduced:
                self._is_introduced = True
                await self._introduce()
            for message in messages:
                await self._take(message)
                self.link.was_busy(self._now())
            self._write()

    async def _introduce(self) -> None:
        """Tell the other side who is on ours."""
        if await self._is_the_one():
            self.send(Reach(self._network.paths(self.peer)))

    async def _is_the_one(self) -> bool:
        """Whether this is the link to the peer; if there is another one, one of them is closed."""
        before = self._network.linked(self.peer)
        if not isinstance(before, PeerConnection):
            return True
        is_crossing = before.link.is_caller != self.link.is_caller
        if is_crossing and before.link.is_caller == (self._network.name < self.peer):
            self.close("there is a link already")
            return False
        before.close("another connection took over")
        await before.ended.wait()
        return True

    async def _take(self, message: Message) -> None:
        if self.link.is_closed:
            return
        if self._is_joined:
            await self._network.handle(self, message)
        elif isinstance(message, Reach) and await self._is_the_one():
            await self._network.joined(self, message)
            self.link.traffic = self._network.counted(self.peer, self.link.traffic)
            self._is_joined = True

    async def _tick(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            self.link.tick(self._now())
            self._write()
            if self.link.is_closed:
                self._stop_reading()
                return


class Connections:
    """All connections of a broker to others: those that it makes, and those that it takes."""

    def __init__(
        self, network: Network, manners: Manners, now: Callable[[], float],
        random: Callable[[int], bytes], calling_tls: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        self._network = network
        self._manners = manners
        self._now = now
        self._random = random
        self._calling_tls = calling_tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._callers: list[asyncio.Task[None]] = []

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Take calls, and return the port."""
        self._server = await asyncio.start_server(self._called, host, port, ssl=tls, limit=READ)
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    def call(self, peer: str, address: Address) -> None:
        """Keep a link to a peer, from now on."""
        task = asyncio.create_task(self._keep_calling(peer, address), name=f"tamis calls {peer}")
        self._callers.append(task)

    async def stop(self) -> None:
        """End all connections, and make no more."""
        for task in self._callers:
            task.cancel()
        if self._callers:
            await asyncio.wait(self._callers)
        if self._server is not None:
            self._server.close()
        await self._network.stop()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio calls this in a task
        self._tasks.add(task)
        try:
            with suppress(asyncio.CancelledError):
                await self._talk("", reader, writer, is_caller=False)
        finally:
            self._tasks.discard(task)

    async def _talk(
        self, wanted: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *,
        is_caller: bool,
    ) -> Link:  # fmt: skip
        nonce = self._random(NONCE)
        link = Link(self._manners, wanted, nonce, self._now(), is_caller=is_caller)
        connection = PeerConnection(self._network, link, (reader, writer), self._now)
        await connection.run(self._manners.beat)
        return link

    async def _keep_calling(self, peer: str, address: Address) -> None:
        pause, said = FIRST_PAUSE, ""
        while True:
            if self._network.linked(peer) is None:
                began = self._now()
                reason, is_final = await self._call(peer, address)
                if self._now() - began > LONGEST_PAUSE:  # it was linked
                    pause, said = FIRST_PAUSE, ""
                if reason != said:
                    logger.warning("no link to peer %r at %s: %s", peer, address, reason)
                    said = reason
                pause = FINAL_PAUSE if is_final else min(LONGEST_PAUSE, pause * 2)
            else:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)

    async def _call(self, peer: str, address: Address) -> tuple[str, bool]:
        """Call a peer, and talk until the end; why it ended, and whether that is final."""
        try:
            async with asyncio.timeout(CONNECTING):
                reader, writer = await asyncio.open_connection(
                    address.host, address.port, ssl=self._calling_tls, limit=READ
                )
        except TimeoutError:
            return "it does not answer", False
        except OSError as error:  # errors of TLS among them
            return str(error), False
        talking = asyncio.create_task(self._talk(peer, reader, writer, is_caller=True))
        self._tasks.add(talking)
        try:
            link = await asyncio.shield(talking)
        finally:
            talking.add_done_callback(self._tasks.discard)
        return link.closed_because or "", link.is_final
