"""What clients of a simulated network were promised, and whether it was kept.

The promise of docs/network.md, as it is checked here: an event that was acknowledged reaches a
durable subscription whose filter it matches if, when it was published,

* the subscription had been acknowledged, and all links between the two brokers carried events while
  it was put; or
* the broker that it was published to stood next to a cut, with the rest of the way as before; or
* every broker on the way held a filter of the next one that the event matches, and that the next
  one did not want to take back.

It has to match all filters that the subscription had from then on until it was delivered. A
subscription that moves is where it was until its client knows that it is elsewhere.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tamis.broker.simulation import onlooker
from tamis.broker.simulation.onlooker import Tree
from tamis.broker.simulation.simulated_broker import SimulatedBroker

Kinds = frozenset[int]


class Filter(NamedTuple):
    """A filter, as its text and as the kinds of events that match it."""

    text: str
    kinds: Kinds


class Event(NamedTuple):
    """An event, as its publisher knows it."""

    topic: str
    publisher: str
    number: int
    kind: int


@dataclass(eq=False)
class Acknowledged:
    """A filter that a subscription has, or had."""

    filter: Filter
    reached: frozenset[str]  # the brokers that were reached all the while it was put


@dataclass(eq=False)
class PromisedSubscription:
    """A durable subscription and what it has got, as its client knows them."""

    topic: str
    id: str
    broker: str
    filters: list[Acknowledged] = field(default_factory=list)  # the last one counts
    possible: list[Filter] = field(default_factory=list)  # it has one of these
    is_gone: bool = False  # or may be
    got: dict[Event, int | None] = field(default_factory=dict)  # where in the log; None: elsewhere
    firm: set[int] = field(default_factory=set)  # offsets that must not come again
    latest: dict[str, int] = field(default_factory=dict)  # the number of each publisher's last one


@dataclass(eq=False)
class Promised:
    """What was promised for an event when it was first published."""

    broker: str
    owed: list[PromisedSubscription] = field(default_factory=list)
    is_acknowledged: bool = False


class Promises:
    """Everything that was promised, and what is wrong."""

    def __init__(self, brokers: Mapping[str, SimulatedBroker], tree: Tree) -> None:
        self.wrong: list[str] = []
        self.subscriptions: list[PromisedSubscription] = []
        self.events: dict[Event, Promised] = {}
        self.acknowledged = self.delivered = self.moves = 0
        self._brokers = brokers
        self._tree = tree

    # --- subscriptions

    def carrying(self, one: PromisedSubscription) -> dict[tuple[str, str], Any]:
        """What carries events over each link now, from each of its ends."""
        found = {}
        for name, peers in self._tree.items():
            for peer in peers:
                found[name, peer] = onlooker.departures(self._brokers[name], one.topic, peer)
        return found

    def put(
        self, one: PromisedSubscription, filter_: Filter, carried: dict[tuple[str, str], Any]
    ) -> None:
        """A filter was acknowledged; `carried` is what carried events when it was put."""
        one.filters.append(Acknowledged(filter_, self._reached(one, carried)))
        one.possible = [filter_]
        if one not in self.subscriptions:
            self.subscriptions.append(one)

    def moved(
        self, one: PromisedSubscription, broker: str, carried: dict[tuple[str, str], Any]
    ) -> None:
        """A subscription is at another broker; what was acknowledged may come once more there."""
        self.moves += 1
        one.broker = broker
        one.filters = [Acknowledged(one.filters[-1].filter, self._reached(one, carried))]
        one.firm.clear()
        one.got = dict.fromkeys(one.got)

    def _reached(
        self, one: PromisedSubscription, carried: dict[tuple[str, str], Any]
    ) -> frozenset[str]:
        """The brokers to which all links carried events without a break."""
        now = self.carrying(one)
        whole = {link for link, way in carried.items() if way is not None and now[link] is way}
        return frozenset(
            name
            for name in self._tree
            if all(
                (here, there) in whole and (there, here) in whole
                for here, there in _links(onlooker.path(self._tree, one.broker, name))
            )
        )

    # --- events

    def publishing(self, broker: str, event: Event) -> None:
        """An event is published for the first time."""
        owed = [
            one
            for one in self.subscriptions
            if one.topic == event.topic and not one.is_gone and self._is_owed(one, broker, event)
        ]
        self.events[event] = Promised(broker, owed)

    def _is_owed(self, one: PromisedSubscription, broker: str, event: Event) -> bool:
        if not all(event.kind in filter_.kinds for filter_ in one.possible):
            return False
        way = onlooker.path(self._tree, broker, one.broker)
        if len(way) == 1 or self._is_held(way, event):
            return True
        is_next_to_cut = not self._is_whole(event.topic, *way[:2])
        for known in reversed(one.filters):
            if event.kind not in known.filter.kinds:
                return False
            if broker in known.reached or (is_next_to_cut and way[1] in known.reached):
                return True
        return False

    def _is_whole(self, topic: str, *ends: str) -> bool:
        """Whether a link carries events, as both of its ends see it."""
        one, other = (self._brokers[name] for name in ends)
        carries = onlooker.departures
        return None not in {carries(one, topic, other.name), carries(other, topic, one.name)}

    def _is_held(self, way: list[str], event: Event) -> bool:
        brokers = self._brokers
        return all(
            onlooker.is_sent(brokers[here], brokers[there], event.topic, event.kind)
            for here, there in _links(way)
        )

    def published(self, event: Event) -> None:
        """An event was acknowledged."""
        self.acknowledged += 1
        self.events[event].is_acknowledged = True

    def changing(self, one: PromisedSubscription, filter_: Filter) -> None:
        """A subscription may get another filter from now on: nothing else is owed any more."""
        one.possible.append(filter_)
        for event, promised in self.events.items():
            if one in promised.owed and event not in one.got and event.kind not in filter_.kinds:
                promised.owed.remove(one)

    def leaving(self, one: PromisedSubscription) -> None:
        """A subscription may be gone from now on."""
        one.is_gone = True

    def deliver(self, one: PromisedSubscription, event: Event, offset: int, attempt: int) -> None:
        """A subscriber got an event."""
        what = f"{one.id} at {one.broker} got {event} (offset {offset}, attempt {attempt})"
        self.delivered += 1
        if event not in self.events:
            self.wrong.append(f"{what}, which nobody has published")
        if not any(event.kind in filter_.kinds for filter_ in one.possible):
            self.wrong.append(f"{what}, which does not match {one.possible}")
        if offset in one.firm:
            self.wrong.append(f"{what} again, after it was acknowledged")
        if event in one.got:
            if one.got[event] not in (offset, None):
                self.wrong.append(f"{what}, which was at offset {one.got[event]}")
            if attempt == 1 and one.got[event] is not None:
                self.wrong.append(f"{what} twice, as if it were new")
            one.got[event] = offset
        else:
            # What was published before the subscription may come too, and then late.
            is_owed = event in self.events and one in self.events[event].owed
            if is_owed and one.latest.get(event.publisher, -1) > event.number:
                self.wrong.append(f"{what} after number {one.latest[event.publisher]}")
            one.got[event] = offset
            one.latest[event.publisher] = max(event.number, one.latest.get(event.publisher, -1))

    def missing(self) -> list[str]:
        """Events that were promised and did not arrive."""
        return [
            f"{event}, published at {promised.broker}, is missing at {one.id} of {one.broker}"
            for event, promised in self.events.items()
            if promised.is_acknowledged
            for one in promised.owed
            if not one.is_gone and event not in one.got
        ]


def _links(way: list[str]) -> list[tuple[str, str]]:
    return list(itertools.pairwise(way))
