"""Publications that wait to be written: bounded in bytes, so that publishers wait for the disk."""

import asyncio
from collections import deque
from typing import NamedTuple

from tamis.broker.event_rows import ReadEvents
from tamis.broker.records import Published
from tamis.errors import Busy

MOST_BYTES = 64_000_000  # that wait; the next publisher waits for the disk
LONGEST_WAIT = 10.0  # seconds
BATCH_EVENTS = 8192  # written, synced and matched together
BATCH_BYTES = 8_000_000
EVENT_BYTES = 200  # that an event takes beside its body, about


class Publication(NamedTuple):
    """Events of one publisher, checked and ready to be written."""

    read: ReadEvents
    size: int
    done: "asyncio.Future[Published]"


class Publications:
    """A queue of publications."""

    def __init__(self) -> None:
        self._waiting: deque[Publication] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._room: deque[asyncio.Future[None]] = deque()  # publishers that wait, oldest first
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def put(self, read: ReadEvents) -> Publication:
        """Queue events; waits for room, and raises `Busy` if there is none for long."""
        size = sum(len(event.body) + EVENT_BYTES for event in read.events)
        self._check_open()
        # Whoever comes later waits after those who wait, so that a large one gets its turn.
        if self._room or (self._bytes and self._bytes + size > MOST_BYTES):
            await self._turn()
            self._check_open()
        publication = Publication(read, size, asyncio.get_running_loop().create_future())
        self._waiting.append(publication)
        self._bytes += size
        self._arrived.set()
        self._let_in()
        return publication

    async def _turn(self) -> None:
        """Wait until there is room, after those who wait already."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room.append(turn)
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                await turn
        except BaseException as error:
            if turn in self._room:
                self._room.remove(turn)
            else:  # it was given room at this very moment: the next one gets it
                self._let_in()
            if isinstance(error, TimeoutError):
                raise Busy(
                    "the disk is behind: the publication waited "
                    f"{LONGEST_WAIT:g} seconds for its turn; try again"
                ) from None
            raise

    def close(self) -> None:
        """Take no more; what waits here is written, and publishers that wait for room are told."""
        self._closed = True
        while self._room:
            turn = self._room.popleft()
            if not turn.done():
                turn.set_result(None)

    def _check_open(self) -> None:
        if self._closed:
            raise Busy("the topic is being closed; nothing was stored, try again later")

    async def take(self) -> list[Publication]:
        """The next batch, as soon as there is one: everything that waits, up to a size."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        batch = [self._waiting.popleft()]
        events, size = len(batch[0].read.events), batch[0].size
        while self._waiting:
            events += len(self._waiting[0].read.events)
            size += self._waiting[0].size
            if events > BATCH_EVENTS or size > BATCH_BYTES:
                break
            batch.append(self._waiting.popleft())
        self._bytes -= sum(publication.size for publication in batch)
        self._let_in()
        return batch

    def _let_in(self) -> None:
        while self._room and (self._bytes < MOST_BYTES or not self._waiting):
            turn = self._room.popleft()
            if not turn.done():
                turn.set_result(None)
                return  # it comes back here when it is in
