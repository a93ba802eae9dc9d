"""Events that a peer has sent, on their way into the log of a topic.

Everything that waits is stored together, in order, and the peer is told how far it is safe. A disk
that refuses is asked again: nothing is skipped, and meanwhile the peer sends no more than its
window.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

from tamis.broker.event_rows import PublishRequirements, ReadEvents
from tamis.broker.network.departures import WINDOW, Road
from tamis.broker.network.link_traffic import LinkTraffic
from tamis.broker.network.messages import Events, SentEvent, Stored
from tamis.broker.network.route_headers import arrived
from tamis.broker.network.wanted_filters import WantedFilters
from tamis.broker.records import NewEvent, Published
from tamis.broker.topic import Topic
from tamis.broker.workers import MATCH
from tamis.errors import Busy, RoutingError
from tamis.events.event_reader import Row

RETRY = 1.0  # seconds
MOST_WAITING = 4 * WINDOW  # bytes; a peer that keeps to its window sends less
MOST_EVENTS = 8192  # stored together, about
REQUIREMENTS = PublishRequirements(
    most_bytes=1 << 40
)  # the broker that was published to has checked the limits

logger = logging.getLogger("tamis.broker")


class Arrivals:
    """What one peer sends to one topic, while the link is up."""

    def __init__(
        self, topic: Topic, peer: str, road: Road, traffic: LinkTraffic,
        wants: WantedFilters | None, *, own: str,
    ) -> None:  # fmt: skip
        """With `wants`, events that nobody wants are counted.

        `own` is the prefix of the ids that this broker gives to events without one when it sends
        them on. They may come back after the network has changed, and the log has them without it.
        """
        self._topic = topic
        self._peer = peer
        self._own = own
        self._road = road
        self._traffic = traffic
        self._wants = wants
        self._waiting: deque[Events] = deque()
        self._bytes = 0
        self._came = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"tamis {topic.name} from {peer}")

    def put(self, events: Events) -> None:
        """Store events soon."""
        self._bytes += _size(events)
        if self._bytes > MOST_WAITING:
            raise RoutingError(f"more than {MOST_WAITING:,} bytes of events wait to be stored")
        self._traffic.events_received += len(events.events)
        self._waiting.append(events)
        self._came.set()

    async def close(self) -> None:
        """Stop; what is being stored may be stored, and the peer is not told."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            await self._store_all()
        except Exception:  # the peer sends the events again over the next link
            logger.exception("events of peer %r cannot be stored", self._peer)
            self._road.close("events cannot be stored, its log says why")

    async def _store_all(self) -> None:
        while True:
            while not self._waiting:
                self._came.clear()
                await self._came.wait()
            events: list[SentEvent] = []
            last = -1
            while self._waiting and len(events) < MOST_EVENTS:
                part = self._waiting.popleft()
                self._bytes -= _size(part)
                events += part.events
                last = part.last
            rows = await self._store(events)
            self._road.send(Stored(self._topic.name, last))
            if self._wants is not None and rows:
                run = self._topic.host.workers.run
                found = await run(MATCH, self._wants.unwanted, self._peer, rows)
                self._traffic.false_positives += found

    async def _store(self, events: list[SentEvent]) -> Sequence[Row]:
        """Store events; returns their values."""
        new = [arrived(event, self._peer) for event in events if not event.id.startswith(self._own)]
        while True:
            try:
                # Shielded, so that a batch is either stored before the next link begins, or not.
                storing = asyncio.ensure_future(self._publish(new))
                storing.add_done_callback(_take_error)
                read, answer = await asyncio.shield(storing)
            except Busy as error:
                logger.warning("events of peer %r have to wait: %s", self._peer, error)
                await asyncio.sleep(RETRY)
            else:
                break
        for row, reason in answer.refused:
            logger.error(
                "event %r of peer %r does not fit topic %r: %s",
                new[row].id, self._peer, self._topic.name, reason,
            )  # fmt: skip
        return read.rows

    async def _publish(self, new: list[NewEvent]) -> tuple[ReadEvents, Published]:
        read = await self._topic.read(new, REQUIREMENTS)
        return read, await self._topic.store(read)


def _take_error(storing: "asyncio.Future[Any]") -> None:
    """Take the error of a batch that outlived its link: asyncio would log it as forgotten."""
    if not storing.cancelled():
        storing.exception()


def _size(events: Events) -> int:
    return sum(len(event.body) + len(event.headers) for event in events.events)
