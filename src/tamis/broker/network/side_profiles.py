"""What is published on each side of a broker, as profiles: by its clients, and behind each peer.

A broker that merges filters imperfectly has to know what it would let through. It cannot see that
itself: what it does not ask for does not come. So each broker looks at samples of what its own
clients publish, and tells those peers that want to know what there is on this side of the link: its
own, and what its other peers have told it. In a tree nothing is counted twice.

Every event counts as `UNITS`, and half as much after `HALF_LIFE`: so the events of a profile are
also a rate, and profiles of different brokers can be merged. A look takes a bounded sample, once in
a while, in a thread; what it costs does not depend on how many events there are.
"""

import logging
import math
import random
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import msgspec

from tamis.broker.network.route_headers import came_from
from tamis.broker.topic import Topic
from tamis.broker.workers import MATCH
from tamis.profiles import Profile
from tamis.profiles.profile import ProfileLimits

UNITS = 1000  # that an event counts when it is new, so that fractions of it can be kept
HALF_LIFE = 600.0  # seconds
LEAST_AGE = 10.0  # seconds that a first burst is taken to last
LIMITS = ProfileLimits(top=16, sample=256, seed=1)
LOOKED_AT = 256  # events of a look
LOOK_BYTES = 1_000_000
PAUSE = 1.0  # seconds between looks
MOST_TIME = 0.01  # of one core that looks may take
MOST_BYTES = 1_000_000  # of a profile that is told or kept
DISTINCT = 64  # values of an attribute, beyond which nobody has to know how many there are
OURS = ""  # the side of this broker's own clients

logger = logging.getLogger("tamis.broker")


class Side(NamedTuple):
    """What is published on one side."""

    profile: Profile
    size: float = 0.0  # bytes of an event, on average

    @property
    def rate(self) -> float:
        """Events per second, over the last half-lives."""
        return self.profile.events / UNITS * math.log(2) / HALF_LIFE

    def faded(self, seconds: float) -> "Side":
        """The same, some time later."""
        return self._replace(profile=self.profile.weighted(0.5 ** (seconds / HALF_LIFE)))

    def pack(self) -> bytes:
        """The side as bytes; that there are many distinct values is enough to know."""
        summaries = tuple(s._replace(minima=s.minima[:DISTINCT]) for s in self.profile.summaries)
        content = replace(self.profile, summaries=summaries).to_bytes()
        return msgspec.msgpack.encode((self.size, zlib.compress(content, 1)))


def joined(sides: Iterable[Side], nothing: Profile) -> Side:
    """What is published on any of some sides."""
    profile, total = nothing, 0.0
    for side in sides:
        total += side.size * side.profile.events
        profile = profile.merge(side.profile)
    return Side(profile, total / max(1, profile.events))


class SideProfiles:
    """The sides of a broker, for one topic."""

    def __init__(self, topic: Topic, now: Callable[[], float]) -> None:
        self._topic = topic
        self._now = now
        self._nothing = Profile.empty(topic.schema, LIMITS)
        self.sides: dict[str, Side] = {}  # of the peers
        self._ours = Side(self._nothing)
        self._age = 0.0  # seconds since the first look
        self._place = topic.dispatched  # the first event that was not looked at
        self._looked = now()
        self._due = now()
        self._looks = 0
        self._chance = random.Random(topic.number)  # noqa: S311 - it chooses a sample

    @property
    def ours(self) -> Side:
        """What clients publish here; before the first look, it is taken to have been the same."""
        missed = 0.5 ** (max(self._age, LEAST_AGE) / HALF_LIFE)  # of all that would count
        return self._ours._replace(profile=self._ours.profile.weighted(1 / (1 - missed)))

    def beyond(self, peer: str) -> Side:
        """What is published on this side of the link to a peer."""
        others = (side for name, side in self.sides.items() if name != peer)
        return joined((self.ours, *others), self._nothing)

    def hear(self, peer: str, packed: bytes) -> None:
        """Take what a peer, or an earlier run of this broker, has packed; damage is ignored."""
        try:
            size, content = msgspec.msgpack.decode(packed, type=tuple[float, bytes])
            profile = self._nothing.with_bytes(zlib.decompress(content))
        except Exception as error:  # noqa: BLE001 - of whatever library; less is known, not more
            logger.warning("the profile of side %r is not used: %s", peer, error)
            return
        if peer == OURS:
            self._ours, self._age = Side(profile, size), math.inf
        else:
            self.sides[peer] = Side(profile, size)

    @property
    def is_due(self) -> bool:
        """Whether it is time to look."""
        return self._now() >= self._due

    async def look(self) -> None:
        """Look at a sample of what clients have published here."""
        now = self._now()
        self._due = math.inf  # until this look is done
        start, end = self._place, self._topic.dispatched
        self._place = end
        try:
            found = None
            if start < end:
                found = await self._topic.host.workers.run(MATCH, self._sample, start, end)
        finally:
            took = self._now() - now
            self._due = now + max(PAUSE, took / MOST_TIME)
        self._ours = self._ours.faded(now - self._looked)
        self._age += now - self._looked
        self._looked = now
        if found is not None:
            self._ours = joined((self._ours, found), self._nothing)

    def _sample(self, start: int, end: int) -> Side | None:
        """In a thread: a part of the log, counted for all that clients have published in it."""
        first = start + self._chance.randrange(max(1, end - start - LOOKED_AT + 1))
        chunk = self._topic.log.read(first, min(LOOKED_AT, end - first), LOOK_BYTES)
        records = chunk.records
        ours = [row for row, record in enumerate(records) if came_from(record.headers) is None]
        if not ours:
            return None
        self._looks += 1
        profile = self._nothing.grown([chunk.table.take(ours)], self._looks)
        size = sum(len(records[row].body) + len(records[row].headers) for row in ours)
        all_of_them = (end - start) * len(ours) / len(records)
        return Side(profile.weighted(all_of_them * UNITS / len(ours)), size / len(ours))
