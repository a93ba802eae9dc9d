"""Detours: what waits for a peer that is not linked any more, and is reached another way.

A broker that leaves its neighbour and is linked to another one announces its filters there, and
new events come to it that way. What its former neighbour has in its log for it, and what is still
on its way to that neighbour, would be left behind. So the former neighbours go on as if they were
linked, with the filters and the place that each has for the other in its catalogue: their Events
and Stored travel inside of `Relayed`, from broker to broker along the path that Reach has told.
Nobody on the way stores them. The broker that gets them passes them on to all of its peers, for
they come from another side than before. A broker that gets an event twice knows it by its id.

A message that is lost on the way was lost with a link, and that changes the Reach: then the detour
begins again with what was not stored. It ends for good when a peer is forgotten.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from tamis.broker.network.arrivals import Arrivals
from tamis.broker.network.departures import Departures, Road
from tamis.broker.network.messages import Events, Message, Relayed, Stored
from tamis.broker.network.shared_topic import SharedTopic
from tamis.errors import Busy, Conflict

logger = logging.getLogger("tamis.broker")


@dataclass(frozen=True)
class Way:
    """How a broker is reached: over a link, by a path."""

    link: Road
    path: tuple[str, ...]


class Ways(Protocol):
    """Somebody who knows the ways."""

    def way(self, name: str) -> Way | None:
        """The way to a broker that is not a linked peer; None if there is none."""


class DetourRoad:
    """The road to a broker that is some links away."""

    def __init__(self, sender: str, to: str, link: Road) -> None:
        self._sender, self._to, self._link = sender, to, link

    def send(self, *messages: Message) -> None:
        """Send events, or how far they are stored."""
        self._link.send(
            *(
                Relayed(self._to, self._sender, message)
                for message in messages
                if isinstance(message, Events | Stored)
            )
        )

    async def drained(self) -> None:
        """Return when what was sent has left this broker."""
        await self._link.drained()

    def close(self, reason: str) -> None:
        """End the link that it goes over: then everything begins again."""
        self._link.close(reason)


@dataclass(eq=False)
class Detour:
    """What goes to one former peer, of one topic."""

    shared: SharedTopic
    way: Way
    departures: Departures


class Detours:
    """All detours that begin or end at one broker."""

    def __init__(self, name: str, shared: Mapping[str, SharedTopic], ways: Ways) -> None:
        self._name = name
        self._shared = shared
        self._ways = ways
        self._open: dict[tuple[str, str], Detour] = {}  # by peer and topic
        self._arrivals: dict[tuple[str, str], tuple[Way, Arrivals]] = {}  # by sender and topic
        self._updating = asyncio.Lock()

    async def update(self) -> None:
        """Begin and end detours, after the links or topics here or elsewhere have changed."""
        async with self._updating:
            wanted = self._wanted(self._shared)
            for key, one in list(self._open.items()):
                way = wanted.get(key)
                if way != one.way or self._shared.get(key[1]) is not one.shared:
                    await self._end(key)
            for (sender, topic), (way, arrivals) in list(self._arrivals.items()):
                if self._ways.way(sender) != way:
                    del self._arrivals[sender, topic]
                    await arrivals.close()
            self._begin_all(wanted)

    async def opened(self, topic: str) -> None:
        """Begin the detours of a topic that has come."""
        async with self._updating:
            if topic in self._shared:
                self._begin_all(self._wanted([topic]))

    def _wanted(self, topics: Iterable[str]) -> dict[tuple[str, str], Way]:
        found = {}
        for topic in topics:
            shared = self._shared[topic]
            for peer in shared.rows:
                way = self._ways.way(peer)
                if way is not None and shared.has_heard(peer):
                    found[peer, topic] = way
        return found

    def _begin_all(self, wanted: Mapping[tuple[str, str], Way]) -> None:
        for key, way in wanted.items():
            # Topics may have been deleted while other detours ended.
            if key not in self._open and key[1] in self._shared:
                self._begin(key, way)

    def _begin(self, key: tuple[str, str], way: Way) -> None:
        peer, topic = key
        shared = self._shared[topic]
        road = DetourRoad(self._name, peer, way.link)
        self._open[key] = Detour(shared, way, shared.departures_to(peer, road))
        logger.info("peer %r gets topic %r by way of %s", peer, topic, " - ".join(way.path))

    async def _end(self, key: tuple[str, str]) -> None:
        one = self._open.pop(key)
        try:
            await one.shared.departed(key[0], one.departures)
        except Busy as error:
            logger.warning("the place of peer %r keeps its last value: %s", key[0], error)

    def take(self, message: Relayed) -> None:
        """Take what came to this broker over a detour."""
        sender, content = message.sender, message.content
        key = sender, content.topic
        if isinstance(content, Stored):
            if key in self._open:
                self._open[key].departures.stored(content.last)
            return
        way, shared = self._ways.way(sender), self._shared.get(content.topic)
        if way is None or shared is None:
            return  # it is sent again when there is one
        if key not in self._arrivals:
            road = DetourRoad(self._name, sender, way.link)
            self._arrivals[key] = way, shared.arrivals_from(sender, road)
        self._arrivals[key][1].put(content)

    def lag(self, peer: str, topic: str) -> int | None:
        """How many events of a topic a peer may still have to get; None without a detour."""
        one = self._open.get((peer, topic))
        return None if one is None else one.shared.topic.dispatched - one.departures.place

    @asynccontextmanager
    async def ending(self, peer: str) -> AsyncIterator[None]:
        """Wait until a peer has everything that is in the logs now; none of its detours is open.

        Raises a `Conflict` if the way to it is lost before.
        """
        for key, one in [(key, one) for key, one in self._open.items() if key[0] == peer]:
            end = one.shared.topic.dispatched
            while self._open.get(key) is one and one.departures.place < end:
                await one.departures.advanced()
            if self._open.get(key) is not one:
                raise Conflict(f"the way to peer {peer!r} was lost; try again when it is back")
        async with self._updating:
            for key in [key for key in self._open if key[0] == peer]:
                await self._end(key)
            yield

    async def close(self, topic: str | None = None) -> None:
        """End the detours of a topic, or all of them."""
        async with self._updating:
            for key in [key for key in self._open if topic in {None, key[1]}]:
                await self._end(key)
            for key in [key for key in self._arrivals if topic in {None, key[1]}]:
                await self._arrivals.pop(key)[1].close()
