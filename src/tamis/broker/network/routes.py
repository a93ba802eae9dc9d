"""The filters of one topic in the network: what each side has, and what each peer is told.

It is pure: changes in, news out. The tables, covering, and the rule that a filter is withdrawn only
after what replaces it is established, are those of `tamis.routing`; what is different is that
nothing is forgotten when a link is lost. The filters of a peer stay (the catalogue has them), so
events for it are still sent this way, and wait here.

When a topic is open on a link again, each side tells the other all of its advertisements, and in
answer to them all of its subscriptions: what the other side held before is replaced at once. That
keeps the promise, because all that was ever acknowledged is in the catalogue of the one who tells.

From when a link is up until the other side has told its advertisements, it is not known what
concerns it. Whatever is to be established meanwhile waits for that: nobody is told that a filter
is established everywhere while a link is being opened.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from tamis.broker.network.wanted_filters import PRETENDED
from tamis.language.expression import MATCHES_ALL
from tamis.routing.announcements import Announcer
from tamis.routing.filter_cache import FilterCache
from tamis.routing.forwarding import Forwarding
from tamis.routing.hop_filters import HopFilters
from tamis.routing.kinds import ADDING, REMOVING, FilterKind
from tamis.routing.reductions import KnownMerger, Search
from tamis.routing.requests import Request
from tamis.routing.savings import Savings, savings_of
from tamis.routing.strategies import Merging, Strategy, strategy_of

LOCAL = ""  # the hop of this broker's own clients
USUAL = strategy_of("advertisements+covering")


class PeerNews(NamedTuple):
    """What a peer is to be told: filters of one kind, or which of its own are established."""

    kind: FilterKind | None = None
    is_full: bool = False
    added: Mapping[str, str] = {}
    removed: Sequence[str] = ()
    established: Sequence[str] = ()
    follows: bool = False  # if it is full: more of the same follow


@dataclass(eq=False)
class RoutePeer:
    """A broker next to this one."""

    name: str
    announcers: dict[FilterKind, Announcer] = field(default_factory=dict)
    is_up: bool = False  # the link is, and the peer does not decline the topic: requests wait
    is_open: bool = False  # the topic is open on the link
    told: set[FilterKind] = field(default_factory=set)  # of which kinds it was told all, since then
    heard: set[FilterKind] = field(default_factory=set)  # of which kinds it has told us all
    established: list[str] = field(default_factory=list)  # of its filters, to be said
    is_ready: bool = False  # events may be sent to it: what it wants is known


class RoutePeers:
    """The brokers next to this one."""

    def __init__(self) -> None:
        self._by_name: dict[str, RoutePeer] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> RoutePeer:
        return self._by_name[name]

    def __iter__(self) -> Iterator[RoutePeer]:
        return iter(self._by_name.values())

    def others(self, hop: str) -> list[RoutePeer]:
        """All peers, except `hop` if it is one."""
        return [peer for peer in self if peer.name != hop]

    def put(self, peer: RoutePeer) -> None:
        """Add a peer."""
        self._by_name[peer.name] = peer

    def take(self, name: str) -> None:
        """Forget a peer."""
        del self._by_name[name]


class Routes:
    """The filters of one topic, by the side they came from."""

    def __init__(
        self, cache: FilterCache, new_id: Callable[[], str], done: Callable[[str], None],
        strategy: Strategy = USUAL, merging: Merging | None = None,
        subscriptions: HopFilters | None = None,
    ) -> None:  # fmt: skip
        """`done` is called with the id of a local filter when it is established.

        That an advertisement is established means that what others want of it is known here.
        """
        self.peers = RoutePeers()
        self._cache = cache
        self._done = done
        self._forwarding = Forwarding(
            self.peers, replace(strategy, mixed=True), merging or Merging(), cache, self._answer,
            HopFilters() if subscriptions is None else subscriptions, new_id,
        )  # fmt: skip
        for kind in FilterKind:
            if not strategy.tells(kind):
                self._put(LOCAL, kind, PRETENDED, MATCHES_ALL)

    def _answer(self, request: Request) -> None:
        if request.hop == LOCAL:
            self._done(request.id)
        else:
            self.peers[request.hop].established.append(request.id)

    # --- this broker's own

    def want(self, id_: str, text: str) -> None:
        """A client here subscribes; `done` is called when that is established."""
        if self._cache.prepare(text) is not None:
            self._put(LOCAL, FilterKind.SUBSCRIPTION, id_, text)
        else:
            self._take(LOCAL, FilterKind.SUBSCRIPTION, id_)  # what it wanted before, if anything
            self._done(id_)

    def unwant(self, id_: str) -> None:
        """A client here does not want a filter any more."""
        self._take(LOCAL, FilterKind.SUBSCRIPTION, id_)

    def advertise(self, id_: str, text: str) -> None:
        """Clients here may publish what matches a filter."""
        self._put(LOCAL, FilterKind.ADVERTISEMENT, id_, text)

    def unadvertise(self, id_: str) -> None:
        """Clients here may no longer publish what matches a filter."""
        self._take(LOCAL, FilterKind.ADVERTISEMENT, id_)

    # --- peers

    def meet(self, name: str) -> None:
        """Add a peer, which has no filters yet and cannot be reached."""
        if name not in self.peers:
            self.peers.put(RoutePeer(name, self._forwarding.announcers_for(name)))

    def expect(self, name: str) -> None:
        """A peer can be reached, and is yet to say whether it has the topic."""
        self.close(name)
        peer = self.peers[name]
        peer.is_up = True
        peer.announcers[FilterKind.SUBSCRIPTION].expect_interests()

    def open(self, name: str) -> None:
        """A peer can be reached, and has the topic: both sides begin again."""
        if not self.peers[name].is_up:
            self.expect(name)
        self.peers[name].is_open = True

    def close(self, name: str) -> None:
        """A peer cannot be reached: nobody waits for it, and what it has told us stays."""
        peer = self.peers[name]
        peer.is_up = peer.is_open = peer.is_ready = False
        self._forwarding.requests.forget(name)
        peer.established.clear()
        peer.told.clear()
        peer.heard.clear()
        for announcer in peer.announcers.values():
            announcer.forget()

    def forget(self, name: str) -> None:
        """A peer is gone for good, and its filters with it."""
        self.close(name)
        self._forwarding.forget(name)
        self.peers.take(name)

    def filters_of(self, name: str, kind: FilterKind) -> dict[str, str]:
        """What a peer has told us, by the ids."""
        return dict(self._forwarding.table(kind).of(name))

    def held(self, name: str) -> int:
        """How many filters of a peer are held here."""
        return sum(len(self._forwarding.table(kind).of(name)) for kind in FilterKind)

    def announced(self, name: str) -> int:
        """How many filters a peer was told."""
        return sum(len(one.announced()) for one in self.peers[name].announcers.values())

    def hold(self, name: str, kind: FilterKind, added: Mapping[str, str]) -> None:
        """Take filters that a peer has announced; they are safe in the catalogue."""
        for id_, text in added.items():
            self._put(name, kind, id_, text)

    def drop(self, name: str, kind: FilterKind, ids: Sequence[str]) -> None:
        """Let filters go that a peer has withdrawn."""
        for id_ in ids:
            self._take(name, kind, id_)

    def unheard(self, name: str, kind: FilterKind, heard: Container[str]) -> list[str]:
        """The ids of a peer's filters that are held here, and that it has not told this time."""
        return [id_ for id_ in self._forwarding.table(kind).of(name) if id_ not in heard]

    def discard(self, name: str, kind: FilterKind, ids: Sequence[str]) -> None:
        """Let filters go that a peer did not tell again."""
        for id_ in ids:
            self._forwarding.discard(name, kind, id_)

    def heard_all(self, name: str, kind: FilterKind) -> None:
        """Note that a peer has told all of its filters, and that nothing else is held."""
        peer = self.peers[name]
        peer.heard.add(kind)
        if kind is FilterKind.ADVERTISEMENT:
            peer.announcers[FilterKind.SUBSCRIPTION].know_interests()

    def acknowledge(self, name: str, ids: Sequence[str]) -> None:
        """A peer has established what it was told."""
        for announcer in self.peers[name].announcers.values():
            for id_ in ids:
                announcer.acknowledge(id_)

    def _put(self, hop: str, kind: FilterKind, id_: str, text: str) -> None:
        self._forwarding.accept(hop, ADDING[kind](hop, id_, text), text)

    def _take(self, hop: str, kind: FilterKind, id_: str) -> None:
        message = REMOVING[kind](hop, id_)
        if id_ in self._forwarding.table(kind).of(hop):
            self._forwarding.accept(hop, message)
        elif hop != LOCAL:
            self.peers[hop].established.append(id_)

    # --- what is to be told

    def reduce(self, now: float) -> None:
        """Look for mergers where the policy says that it is time."""
        for peer in self.peers:
            for announcer in peer.announcers.values():
                announcer.reduce(now, passed=True)

    def searches(self, now: float) -> list[tuple[str, Announcer, Search]]:
        """The same in two steps: functions that threads may call, for `Announcer.adopt`."""
        found = []
        for peer in self.peers:
            for announcer in peer.announcers.values():
                search = announcer.reduction.search(now)
                if search is not None:
                    found.append((peer.name, announcer, search))
        return found

    def savings(self, name: str) -> Callable[[], Savings]:
        """What covering and merging save of the subscriptions that a peer is told.

        Returns a function that a thread may call: it takes long if they are many.
        """
        announcer = self.peers[name].announcers[FilterKind.SUBSCRIPTION]
        mergers = len(announcer.reduction.mergers())
        wanted, announced = list(announcer.wanted), list(announcer.announced())
        return partial(savings_of, wanted, announced, mergers, self._cache)

    def mergers(self, name: str) -> dict[str, list[KnownMerger]]:
        """The mergers that a peer was told, by the kind of their filters."""
        announcers = self.peers[name].announcers.items()
        return {kind.value: announcer.reduction.mergers() for kind, announcer in announcers}

    def restore(self, name: str, mergers: Mapping[str, list[KnownMerger]]) -> None:
        """Make mergers that were made before a restart."""
        for kind, announcer in self.peers[name].announcers.items():
            announcer.consider()
            announcer.restore(mergers.get(kind.value, []))

    def news(self, name: str, most: int | None = None) -> list[PeerNews]:
        """What a peer is to be told now; it counts as told.

        With `most`, no more filters than that of each kind; the others when it is asked again.
        """
        peer = self.peers[name]
        if not peer.is_open:
            return []
        found = []
        for kind in (FilterKind.ADVERTISEMENT, FilterKind.SUBSCRIPTION):
            if kind is FilterKind.SUBSCRIPTION and FilterKind.ADVERTISEMENT not in peer.heard:
                break  # what it wants to know depends on what it advertises
            announcer = peer.announcers[kind]
            updates = announcer.take_updates(most)
            is_first = kind not in peer.told
            follows = is_first and announcer.has_news
            if is_first and not follows:
                peer.told.add(kind)
            if updates or (is_first and not follows):
                added = {one.id: one.filter for one in updates if one.filter is not None}
                removed = [one.id for one in updates if one.filter is None]
                found.append(PeerNews(kind, is_first, added, removed, follows=follows))
        if peer.established:
            found.append(PeerNews(established=peer.established))
            peer.established = []
        return found

    def has_told_all(self, name: str) -> bool:
        """Whether a peer knows all subscriptions that concern it, and all beyond do."""
        peer = self.peers[name]
        announced = peer.announcers[FilterKind.SUBSCRIPTION]
        return peer.is_open and FilterKind.SUBSCRIPTION in peer.told and announced.is_settled

    def has_news(self, name: str) -> bool:
        """Whether there is more to tell a peer."""
        peer = self.peers[name]
        kinds = (
            FilterKind if FilterKind.ADVERTISEMENT in peer.heard else (FilterKind.ADVERTISEMENT,)
        )
        return peer.is_open and any(peer.announcers[kind].has_news for kind in kinds)

    def is_ready(self, name: str) -> bool:
        """Whether events may be sent to a peer: it knows all that is published on this side.

        Then all subscriptions that concern that are here, as far as the network can be reached.
        """
        peer = self.peers[name]
        if peer.is_open and not peer.is_ready:
            settled = (
                FilterKind.ADVERTISEMENT in peer.told
                and peer.announcers[FilterKind.ADVERTISEMENT].is_settled
            )
            peer.is_ready = settled and FilterKind.SUBSCRIPTION in peer.heard
        return peer.is_ready
