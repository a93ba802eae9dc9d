"""Profiles between brokers: who wants to be told, who is told, and what that means for mergers.

A broker that merges imperfectly asks each peer what is published behind it, and a broker that is
asked asks its other peers in turn. Where nobody asks, nobody looks at events or sends profiles.

What a merger may let through for each filter that it saves is a *price*, a share of the events::

    worth of a filter = entry + bytes per second of announcements / filters that are announced
    cost of an event  = its bytes / (1 - share of the bandwidth that is used)
    price             = worth of a filter / (events per second on that side * cost of an event)

So a merger is made if what it saves on the link is worth more than what it lets through. Without a
bandwidth in the settings nothing is known to be used.
"""

import math
from collections.abc import Callable, Iterable

from tamis.broker.network.departures import Road
from tamis.broker.network.link_traffic import LinkTraffic
from tamis.broker.network.log_parts import EVENT_BYTES
from tamis.broker.network.messages import ProfileWanted, SideProfile
from tamis.broker.network.side_profiles import (
    HALF_LIFE,
    LEAST_AGE,
    MOST_BYTES,
    OURS,
    SideProfiles,
)
from tamis.broker.network_settings import MergingSettings
from tamis.broker.peer_rows import Note
from tamis.broker.topic import Topic
from tamis.diagrams.attribute_orders import profiled_order
from tamis.relations.merging.measures import Profiled
from tamis.routing.savings import amount_of
from tamis.routing.strategies import Odds

PROFILE = "profile"  # the name of what the catalogue keeps


class Rate:
    """How much there is per second; what was a half-life ago counts half."""

    def __init__(self, now: float) -> None:
        self._amount = 0.0
        self._at = self._began = now

    def add(self, amount: float, now: float) -> None:
        """Count something."""
        self._amount = self._amount * 0.5 ** ((now - self._at) / HALF_LIFE) + amount
        self._at = now

    def per_second(self, now: float) -> float:
        """How much there is per second, taking what is known to be typical."""
        self.add(0.0, now)
        age = max(LEAST_AGE, now - self._began)
        seconds = HALF_LIFE / math.log(2) * -math.expm1(-math.log(2) * age / HALF_LIFE)
        return self._amount / seconds


class LinkRates:
    """How much goes over the link to one peer for one topic, and what came over it in all."""

    def __init__(self, traffic: LinkTraffic, now: float) -> None:
        self.filters = Rate(now)  # bytes of announcements
        self._received = Rate(now)
        self._traffic = traffic
        self._seen = traffic.bytes_received

    def received(self, now: float) -> float:
        """Bytes per second that come from the peer."""
        self._received.add(self._traffic.bytes_received - self._seen, now)
        self._seen = self._traffic.bytes_received
        return self._received.per_second(now)


class ProfileExchange:
    """What brokers tell each other about the events of one topic."""

    def __init__(
        self, topic: Topic, settings: MergingSettings, traffic: Callable[[str], LinkTraffic],
        entries: Callable[[str], int], *, is_used: bool,
    ) -> None:  # fmt: skip
        """`entries` is how many filters a peer was told.

        `is_used` if this broker itself makes use of what it is told.
        """
        self._topic = topic
        self._settings = settings
        self._traffic = traffic
        self._entries = entries
        self._is_used = is_used
        self._now = topic.host.monotonic
        self.profiles = SideProfiles(topic, self._now)
        self._roads: dict[str, Road] = {}
        self._asked: set[str] = set()  # peers that were told that we want their profile
        self._asking: dict[str, float] = {}  # peers that want ours, and when they are told next
        self._rates: dict[str, LinkRates] = {}
        self._odds: dict[str, Odds] = {}

    # --- links

    def opened(self, peer: str, road: Road) -> None:
        """The topic is open on the link to a peer."""
        self._roads[peer] = road
        self._ask()

    def closed(self, peer: str) -> None:
        """It is not any more; what the peer has told us stays."""
        self._roads.pop(peer, None)
        self._asked.discard(peer)
        self._asking.pop(peer, None)
        self._ask()

    def forget(self, peer: str) -> None:
        """A peer is gone for good, and all that is behind it."""
        self.profiles.sides.pop(peer, None)
        self._odds.pop(peer, None)

    def _ask(self) -> None:
        for peer, road in self._roads.items():
            is_wanted = self._is_used or any(other != peer for other in self._asking)
            if is_wanted != (peer in self._asked):
                self._asked ^= {peer}
                road.send(ProfileWanted(self._topic.name, is_wanted))

    def take(self, peer: str, message: ProfileWanted | SideProfile) -> None:
        """Take what a peer wants to know, or what it has told."""
        if isinstance(message, SideProfile):
            self.profiles.hear(peer, message.packed)
            self._weigh(peer)
            self._topic.host.commits.store_later(self._note(peer))
        elif peer in self._roads:
            if message.is_wanted:
                self._asking.setdefault(peer, self._now())
            else:
                self._asking.pop(peer, None)
            self._ask()

    @property
    def is_due(self) -> bool:
        """Whether it is time to look at events."""
        return bool(self._asking) and self.profiles.is_due

    async def tick(self) -> None:
        """Look at events, and tell peers what there is, if it is time."""
        if not self.is_due:
            return
        await self.profiles.look()
        now = self._now()
        for peer in [peer for peer, due in self._asking.items() if due <= now]:
            self._asking[peer] = now + self._settings.period
            packed = self.profiles.beyond(peer).pack()
            if peer in self._roads and len(packed) <= MOST_BYTES:
                self._roads[peer].send(SideProfile(self._topic.name, packed))
                self._topic.host.commits.store_later(self._note(OURS))

    # --- mergers

    def announced(self, peer: str, texts: Iterable[str]) -> None:
        """Count filters that a peer is told."""
        self._rates_of(peer).filters.add(amount_of(texts).bytes, self._now())

    def _rates_of(self, peer: str) -> LinkRates:
        if peer not in self._rates:
            self._rates[peer] = LinkRates(self._traffic(peer), self._now())
        return self._rates[peer]

    def odds(self, peer: str) -> Odds | None:
        """What is known of the events behind a peer, if something is."""
        return self._odds.get(peer)

    def _weigh(self, peer: str) -> None:
        side = self.profiles.sides.get(peer)
        if side is None or not side.profile.events:
            return
        positions = self._topic.schema.positions
        names = [attribute.name for attribute in self._topic.schema.attributes]
        order = tuple(names[place] for place in profiled_order(side.profile, positions))
        measure = Profiled(side.profile, may_be_absent=True)
        self._odds[peer] = Odds(measure, self.price(peer), order)

    def price(self, peer: str) -> float:
        """The share of events that is worth a filter."""
        side, rates, now = self.profiles.sides[peer], self._rates_of(peer), self._now()
        bandwidth = self._settings.bandwidth
        used = 0.0 if bandwidth is None else min(1.0, rates.received(now) / bandwidth)
        announcing = rates.filters.per_second(now) / max(1, self._entries(peer))
        worth = self._settings.entry + announcing
        cost = side.rate * (side.size + EVENT_BYTES)
        return worth * (1 - used) / cost if cost else 1.0

    # --- the catalogue

    def load(self, peer: str, packed: bytes) -> None:
        """Take what an earlier run has kept."""
        self.profiles.hear(peer, packed)
        self._weigh(peer)

    def _note(self, peer: str) -> Note:
        """What is to be kept of a side."""
        profiles = self.profiles

        def content() -> bytes:
            side = profiles.ours if peer == OURS else profiles.sides.get(peer)
            return b"" if side is None else side.pack()

        return Note(self._topic.number, peer, PROFILE, content)
