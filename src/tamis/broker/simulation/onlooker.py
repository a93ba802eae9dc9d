"""What can be seen of simulated brokers from outside of time: links, tables and logs.

It looks into them without a call, so nothing happens because somebody looks.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tamis.broker.network.shared_topic import SharedTopic
from tamis.broker.simulation.simulated_broker import SimulatedBroker
from tamis.matcher import Matcher
from tamis.routing.announcements import AnnouncementState
from tamis.routing.kinds import FilterKind

KINDS = 8  # of events

_matching: dict[str, frozenset[int]] = {}

Tree = Mapping[str, Sequence[str]]  # the neighbours of each broker


def matches(text: str, kind: int) -> bool:
    """Whether events of a kind match a filter, as brokers print it."""
    if text not in _matching:
        matcher = Matcher({"kind": "int"}, engine="naive")
        matcher.subscribe(0, text)
        _matching[text] = frozenset(n for n in range(KINDS) if matcher.match({"kind": n}))
    return kind in _matching[text]


def path(tree: Tree, start: str, end: str) -> list[str]:
    """The brokers from one to another, both among them."""
    before = {start: start}
    ahead = [start]
    for name in ahead:
        for other in tree[name]:
            if other not in before:
                before[other] = name
                ahead.append(other)
    found = [end]
    while found[-1] != start:
        found.append(before[found[-1]])
    return found[::-1]


def behind(tree: Tree, here: str, peer: str) -> set[str]:
    """The brokers that `here` reaches through a peer."""
    return {name for name in tree if name != here and path(tree, here, name)[1] == peer}


def has_topic(one: SimulatedBroker, topic: str) -> bool:
    """Whether a broker has a topic now."""
    return one.broker is not None and one.broker._topics.get(topic) is not None


def shared_topic(one: SimulatedBroker, topic: str) -> SharedTopic | None:
    """A topic in the network, as a broker sees it; None if it is not there now."""
    if one.broker is None or one.broker.network is None:
        return None
    return one.broker.network._shared.get(topic)


def departures(one: SimulatedBroker, topic: str, peer: str) -> Any:
    """What sends events to a peer, None while nothing does."""
    shared = shared_topic(one, topic)
    found = None if shared is None else shared._open.get(peer)
    return None if found is None else found.departures


def held(one: SimulatedBroker, topic: str, peer: str) -> dict[str, str] | None:
    """The filters that a peer wants events for, None if the broker is not there now."""
    shared = shared_topic(one, topic)
    if shared is None or peer not in shared.routes.peers:
        return None
    return shared.routes.filters_of(peer, FilterKind.SUBSCRIPTION)


def is_sent(here: SimulatedBroker, there: SimulatedBroker, topic: str, kind: int) -> bool:
    """Whether a broker sends events of a kind to another one, which does not take that back."""
    held_here, shared = held(here, topic, there.name), shared_topic(there, topic)
    if held_here is None or shared is None:
        return False
    known = {id_: text for id_, text in held_here.items() if matches(text, kind)}
    strategies = (one.settings.network.strategy for one in (here, there) if one.settings.network)
    if "flooding" in strategies:
        return False  # there are no filters that could tell
    if here.name not in shared._open:  # it tells all of its filters when it is linked again
        return bool(known)
    announcer = shared.routes.peers[here.name].announcers[FilterKind.SUBSCRIPTION]
    announced = {
        one.id
        for text, one in announcer._announced.items()
        if text in announcer.roots and one.state is AnnouncementState.LIVE
    }
    return any(id_ in announced for id_ in known)


def stored_filters(one: SimulatedBroker, topic: str, peer: str) -> dict[str, str]:
    """The filters of a peer that the catalogue has."""
    rows = one.storage.tables.rows(
        "SELECT f.id, f.filter FROM peer_filters f JOIN topics t ON t.number = f.topic"
        " WHERE t.name = ? AND f.peer = ? AND f.kind = ?",
        topic, peer, FilterKind.SUBSCRIPTION.value,
    )  # fmt: skip
    return dict(rows)


def is_calm(one: SimulatedBroker, topic: str, neighbours: Sequence[str]) -> bool:
    """Whether a broker has nothing to send, and waits for nobody's answer."""
    shared = shared_topic(one, topic)
    if shared is None or shared.is_waited_for:
        return False
    return all(departures(one, topic, p) is not None and shared.lag(p) == 0 for p in neighbours)


def bodies(one: SimulatedBroker, topic: str) -> Iterator[bytes]:
    """The events of a log."""
    found = None if one.broker is None else one.broker._topics.get(topic)
    if found is None:
        return
    log, at = found.topic.log, 0
    while True:
        chunk = log.read(at)
        if not len(chunk.offsets):
            return
        for record in chunk.records:
            yield record.body
        at = chunk.next_offset
