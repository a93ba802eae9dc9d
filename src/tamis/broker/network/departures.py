"""Events on their way to one peer: read from a topic's log, matched with all filters of the peer.

A peer is a durable subscriber with many filters and one place in the log; if the broker floods, it
gets everything. What is before the place was stored by the peer, did not match, or came from it.
The place advances when the peer says Stored, and is written to the catalogue a little later. What
was sent and not stored when the link is lost is sent again, and the peer knows it by its id.

What did not match counts as passed only when the peer has said Stored to something that was sent
afterwards, if need be to no events at all: until then the peer may have lost the link without our
noticing, and have acknowledged subscriptions that we do not know. It is looked at again then.

What is on its way is bounded, so a slow peer costs no memory: its events stay in the log.
"""

import asyncio
import logging
from collections import deque
from typing import NamedTuple, Protocol

from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.network.link_traffic import LinkTraffic
from tamis.broker.network.log_parts import EVENT_BYTES, LogPart, LogParts
from tamis.broker.network.messages import Events, Message, SentEvent
from tamis.broker.network.route_headers import came_from, sent
from tamis.broker.peer_rows import PeerRow, put_peer
from tamis.broker.topic import Topic
from tamis.broker.workers import MATCH
from tamis.matcher import Matcher

WINDOW = 16_000_000  # bytes on their way
PROOF = 1.0  # seconds after which a peer is asked whether it is still linked
PASSED = 100_000  # events after which a place is stored although nothing was sent

logger = logging.getLogger("tamis.broker")


class Road(Protocol):
    """The way to a peer."""

    def send(self, *messages: Message) -> None:
        """Send messages, in this order."""

    async def drained(self) -> None:
        """Return when what was sent is with the operating system."""

    def close(self, reason: str) -> None:
        """End it; somebody calls `Network.left` then."""


class OnWay(NamedTuple):
    """What was sent, and waits for the peer to say Stored."""

    first: int
    last: int
    stop: int  # everything before it was looked at before this was sent
    bytes: int


class Looked(NamedTuple):
    """What was found in a part of the log, up to before `stop`."""

    stop: int
    last: int  # the offset of the last one found
    events: list[SentEvent]


class Departures:
    """What goes to one peer from one topic, while the link is up."""

    def __init__(
        self, topic: Topic, parts: LogParts, row: PeerRow, prefix: str, road: Road,
        traffic: LinkTraffic, filters: Matcher | None,
    ) -> None:  # fmt: skip
        """`filters` are what the peer wants, and may change; without them it gets everything."""
        self.lost = row.lost
        self._topic = topic
        self._parts = parts
        self._peer = row.peer
        self._prefix = prefix
        self._road = road
        self._traffic = traffic
        self._filters = filters
        self.position = row.position  # of the next event to look at
        self._sure = row.position  # before it, nothing has to be looked at again
        self._stored_place = row.position
        self._on_way: deque[OnWay] = deque()
        self._is_proving = self._is_closed = False
        self._bytes = 0
        self._more = asyncio.Event()
        self._has_advanced = asyncio.Event()
        parts.join(self)
        self._task = asyncio.create_task(self._run(), name=f"tamis {topic.name} to {row.peer}")

    @property
    def place(self) -> int:
        """The offset before which the peer has all that it wants."""
        return self._on_way[0].first if self._on_way else self.position

    def row(self) -> PeerRow:
        """What is to be stored."""
        return PeerRow(self._topic.number, self._peer, self._sure, self.lost)

    def catalogue_change(self) -> CatalogueChange:
        """The change that stores the place."""
        self._stored_place = self._sure
        return put_peer(self.row())

    def stored(self, last: int) -> None:
        """Note that everything up to an offset is safe at the peer."""
        if not self._on_way:
            return
        bytes_before = self._bytes
        while self._on_way and self._on_way[0].last <= last:
            done = self._on_way.popleft()
            self._bytes -= done.bytes
            self._sure = done.stop
        if self._bytes < bytes_before or self._sure - self._stored_place >= PASSED:
            self._topic.host.commits.store_later(self)
        self._prove_later()
        self._more.set()
        self._has_advanced.set()

    async def advanced(self) -> None:
        """Return when the place has advanced, or this is closed."""
        self._has_advanced.clear()
        await self._has_advanced.wait()

    def more_came(self) -> None:
        """Note that the log has more."""
        self._more.set()

    async def close(self) -> PeerRow:
        """Stop; returns what is to be stored."""
        self._is_closed = True
        self._parts.leave(self)
        self._task.cancel()
        await asyncio.wait([self._task])
        self._topic.host.commits.forget(self)
        self._has_advanced.set()
        return self.row()

    # --- one part of the log after the other

    async def _run(self) -> None:
        topic = self._topic
        while True:
            self._more.clear()
            if self.position >= topic.dispatched or self._bytes >= WINDOW:
                await self._more.wait()
                continue
            try:
                await self._look()
            except Exception:  # a disk may recover: the same place is read again
                logger.exception("topic %r cannot be read from %d", topic.name, self.position)
                topic.host.later(1.0, self._more.set)
                await self._more.wait()

    async def _look(self) -> None:
        topic, first = self._topic, self._topic.log.first_offset
        if self.position < first:
            self.lost += first - self.position
            logger.warning(
                "%d events of topic %r expired before peer %r got them",
                first - self.position, topic.name, self._peer,
            )  # fmt: skip
            self.position = first
        start = self.position
        part = self._parts.part(start)
        found = Looked(part.stop, part.stop, [])
        if not part.is_all_from(self._peer):
            found = await topic.host.workers.run(MATCH, self._find, part, start)
        self.position = found.stop
        self._parts.let_go()
        if found.events:
            size = sum(len(event.body) + EVENT_BYTES for event in found.events)
            self._on_way.append(OnWay(start, found.last, found.stop, size))
            self._bytes += size
            self._traffic.events_sent += len(found.events)
            self._road.send(Events(topic.name, found.last, found.events))
            await self._road.drained()
            return
        self._has_advanced.set()
        self._prove_later()

    def _prove_later(self) -> None:
        if self._sure < self.position and not self._on_way and not self._is_proving:
            self._is_proving = True
            self._topic.host.later(PROOF, self._prove)

    def _prove(self) -> None:
        """Ask the peer whether it was still linked when it was found not to want some events."""
        self._is_proving = False
        if self._sure < self.position and not self._on_way and not self._is_closed:
            last = self.position - 1
            self._on_way.append(OnWay(self.position, last, self.position, 0))
            self._road.send(Events(self._topic.name, last, []))

    def _find(self, part: LogPart, start: int) -> Looked:
        """In a thread: what the peer wants in a part of the log, from an offset on."""
        part.load()
        stop = max(start, part.stop)  # it may end before, then another one is next
        found = part.matching(self._filters, start)
        records = [record for record in found if came_from(record.headers) != self._peer]
        last = records[-1].offset if records else stop
        return Looked(stop, last, [sent(record, self._prefix) for record in records])
