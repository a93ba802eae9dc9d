"""A topic that peers have, too: its filters, its events on their way, and how far each peer is."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tamis.broker import peer_rows
from tamis.broker.accounts import Account
from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.grants import narrowed
from tamis.broker.network.advertisements import Advertisements
from tamis.broker.network.arrivals import Arrivals
from tamis.broker.network.departures import Departures, Road
from tamis.broker.network.link_traffic import LinkTraffic
from tamis.broker.network.log_parts import LogParts
from tamis.broker.network.messages import (
    Established,
    Events,
    Filters,
    Offer,
    Part,
    ProfileWanted,
    SideProfile,
    Stored,
)
from tamis.broker.network.own_filters import OwnFilters
from tamis.broker.network.profile_exchange import PROFILE, ProfileExchange
from tamis.broker.network.routes import Routes
from tamis.broker.network.topic_mergers import TopicMergers
from tamis.broker.network.wanted_filters import WantedFilters
from tamis.broker.network_settings import MergingSettings
from tamis.broker.peer_rows import PeerRow, RowSource, put_peer
from tamis.broker.topic import Topic
from tamis.errors import TamisError, UnknownTopic
from tamis.language.expression import MATCHES_ALL, Expression
from tamis.language.timeless_filters import timeless
from tamis.matcher import Matcher
from tamis.routing.filter_cache import shared_cache
from tamis.routing.kinds import FilterKind
from tamis.routing.strategies import Strategy

Said = Established | Events | Stored | ProfileWanted | SideProfile
AT_ONCE = 200  # filters, until others have their turn
TOLD_AT_ONCE = 500  # the same for what a peer is told: they are one message
STORED_AT_ONCE = 1_000  # filters of a transaction

T = TypeVar("T")

logger = logging.getLogger("tamis.broker")


@dataclass(frozen=True)
class SharedTopicContext:
    """What all shared topics of a broker have in common."""

    identity: str  # of this data, among that of all brokers
    new_id: Callable[[], str]
    accounts: Mapping[str, Account]
    strategy: Strategy
    merging: MergingSettings
    traffic: Mapping[str, LinkTraffic] = field(default_factory=lambda: defaultdict(LinkTraffic))


@dataclass(eq=False)
class OpenPeer:
    """A peer on whose link the topic is open."""

    road: Road
    arrivals: Arrivals
    departures: Departures | None = None
    # The ids of all its filters, while it tells them in parts:
    ids_heard: dict[FilterKind, set[str]] = field(default_factory=lambda: defaultdict(set))


class SharedTopic:
    """One topic in the network."""

    def __init__(self, topic: Topic, context: SharedTopicContext) -> None:
        self.topic = topic
        self.rows: dict[str, PeerRow] = {}
        self._context = context
        self.prefix = f"tamis:{context.identity}:{topic.number}:"
        self._own = OwnFilters(self.tell)
        self._filters: dict[str, Matcher] = {}  # what peers want, unless they get everything
        self._is_telling_soon = False
        self._open: dict[str, OpenPeer] = {}
        self._declined: set[str] = set()  # linked peers that do not share the topic
        self._parts = LogParts(topic)
        self._begin_routes()
        self._own.use(self.routes)

    def _begin_routes(self) -> None:
        """Begin without filters of clients and peers, with the schema that the topic has now."""
        row, context = self.topic.row, self._context
        strategy = context.strategy
        # Peers are told filters without now(); should one have it nevertheless, it counts as TRUE.
        self.cache = shared_cache(self.topic.schema.without_clock(), row.semantics, row.defaults)
        uses = strategy.merging and context.merging.probabilities == "traffic"
        self._profiles = ProfileExchange(
            self.topic, context.merging, context.traffic.__getitem__,
            self._announced_count, is_used=uses,
        )  # fmt: skip
        may_get_unwanted = strategy.flooding or strategy.imperfect
        self._wants = WantedFilters(self.topic.new_matcher) if may_get_unwanted else None
        self.routes = Routes(
            self.cache, context.new_id, self._own.established, strategy,
            context.merging.merging(self._profiles.odds), self._wants,
        )  # fmt: skip
        self._advertisements = Advertisements(self.topic.name, self.cache, self.routes)
        for text in self._advertisements.missing(context.accounts.values()):
            self._advertisements.put(context.new_id(), text)
        self.mergers = TopicMergers(self.topic, self.routes, self._profiles, self.tell)

    def _announced_count(self, peer: str) -> int:
        """How many filters a peer was told."""
        return self.routes.announced(peer) if peer in self.routes.peers else 0

    def advertise(self, accounts: Iterable[Account]) -> list[asyncio.Future[None]]:
        """Announce what accounts will be allowed to publish, beside what they may publish now.

        Each future is done when that is established as far as the network is reached: then what
        others want of it is known here.
        """
        waiting = []
        for text in self._advertisements.missing(accounts):
            id_ = self._context.new_id()
            waiting.append(self._own.expect(id_))
            self._advertisements.put(id_, text)
        self.tell()
        return waiting

    def change_accounts(self, tables: RowSource, changed: Container[str]) -> None:
        """Note that accounts may do something else now, which `advertise` has announced."""
        self._advertisements.keep(self._context.accounts.values())
        for account, id_, text in peer_rows.local_filters(tables, self.topic.number):
            if account in changed:
                expression = self._narrowed(account, text)
                if expression is None:
                    self.unwant(f"{account}/{id_}")
                else:
                    self._own.put(f"{account}/{id_}", expression)
        self.tell()

    async def load(self, tables: RowSource, peers: Iterable[str]) -> None:
        """Restore what the catalogue has; `peers` are those that it may not know yet."""
        number = self.topic.number
        for row in peer_rows.peers(tables, number):
            self.rows[row.peer] = row
        await self._meet(*peers)
        for name in self.rows:
            self.routes.meet(name)
        for peer, packed in peer_rows.notes(tables, number, PROFILE).items():
            self._profiles.load(peer, packed)
        held: dict[tuple[str, FilterKind], dict[str, str]] = defaultdict(dict)
        for one in peer_rows.peer_filters(tables, number):
            if one.peer in self.rows:
                held[one.peer, FilterKind(one.kind)][one.id] = self._text(one.filter)
        for (peer, kind), filters in held.items():
            self._restore(peer, kind, filters)
        for account, id_, text in peer_rows.local_filters(tables, number):
            expression = self._narrowed(account, text)
            if expression is not None:
                self._own.load(f"{account}/{id_}", str(expression))
        self.mergers.load(tables)

    def _restore(self, peer: str, kind: FilterKind, filters: Mapping[str, str]) -> None:
        self.routes.hold(peer, kind, filters)
        self._match_with(peer, kind, filters)

    def _match_with(self, peer: str, kind: FilterKind, filters: Mapping[str, str]) -> None:
        """Have filters of a peer, for all events that were not looked at yet."""
        if kind is FilterKind.SUBSCRIPTION and not self._context.strategy.flooding:
            self._matcher(peer).subscribe_many(filters)

    def _matcher(self, peer: str) -> Matcher:
        if peer not in self._filters:
            self._filters[peer] = self.topic.new_matcher()
        return self._filters[peer]

    def _narrowed(self, account: str, text: str) -> Expression | None:
        row, known = self.topic.row, self._context.accounts.get(account)
        try:
            asked = self.topic.filters.parse(text)
            if known is not None:
                asked = narrowed(
                    known, row.name, self.topic.schema, row.semantics, asked, defaults=row.defaults
                )
            return timeless(asked)
        except TamisError as error:
            logger.warning("a subscription of %r is not passed on: %s", account, error)
            return None

    def _text(self, text: str) -> str:
        """A filter of a peer; TRUE for one that cannot be read, so that nothing is lost."""
        try:
            self.cache.parse(text)
        except TamisError as error:
            logger.warning("a filter for topic %r is taken as TRUE: %s", self.topic.name, error)
            return MATCHES_ALL
        return text

    def rebuild(self) -> None:
        """Begin again with another schema; no link is open."""
        self._own.finish_advertisements()  # advertisements, of the old schema
        before = self.routes
        self.mergers.stop()
        self._parts = LogParts(self.topic)  # others, with more attributes
        self._begin_routes()
        self._filters.clear()
        for name in self.rows:
            self.routes.meet(name)
            for kind in FilterKind:
                held = {n: self._text(t) for n, t in before.filters_of(name, kind).items()}
                self._restore(name, kind, held)
        self._own.use(self.routes)

    async def _meet(self, *peers: str) -> None:
        """Give peers a place in the log, from which on they get everything that they will want."""
        end = self.topic.dispatched
        new = [PeerRow(self.topic.number, name, end) for name in peers if name not in self.rows]
        await self.topic.host.commits.commit(*map(put_peer, new))
        for row in new:
            self.rows.setdefault(row.peer, row)
            self.routes.meet(row.peer)

    # --- clients here

    async def want(self, id_: str, expression: Expression) -> None:
        """Return when a client's filter is established, as far as the network is reached.

        Others do not know when an event will be stored here; they are told a filter that covers it
        at any time.
        """
        await self._own.want(id_, timeless(expression))

    def unwant(self, id_: str) -> None:
        """Forget a client's filter."""
        self._own.unwant(id_)

    @property
    def is_waited_for(self) -> bool:
        """Whether a client waits for its filter to be established."""
        return self._own.is_waited_for

    def wanted(self) -> list[str]:
        """The filters of all peers; with flooding, what they want is not known."""
        if self._context.strategy.flooding:
            return [MATCHES_ALL] if self.rows else []
        known = (
            self.routes.filters_of(peer.name, FilterKind.SUBSCRIPTION) for peer in self.routes.peers
        )
        return [text for filters in known for text in filters.values()]

    # --- peers

    def offer(self) -> Offer:
        """What peers are told of the topic."""
        row = self.topic.row
        return Offer(row.name, dict(row.schema), row.semantics, row.defaults, row.births)

    def expect(self, peer: str) -> None:
        """The link to a peer is up: filters are established when it has said what it shares."""
        self.routes.meet(peer)
        self.routes.expect(peer)

    async def open(self, peer: str, road: Road) -> None:
        """A peer has the topic, too: tell it all, and listen."""
        if peer in self._open or peer in self._declined:
            return
        await self._meet(peer)
        self._open[peer] = OpenPeer(road, self.arrivals_from(peer, road, self._wants))
        self.routes.open(peer)
        self._profiles.opened(peer, road)
        self.tell()

    async def decline(self, peer: str) -> None:
        """A peer does not share the topic, as long as the link is up."""
        self._declined.add(peer)
        await self._close(peer)

    async def left(self, peer: str) -> None:
        """The link to a peer is gone: what was sent and not stored stays in the log for it."""
        self._declined.discard(peer)
        await self._close(peer)

    async def _close(self, peer: str) -> None:
        one = self._open.pop(peer, None)
        self._profiles.closed(peer)
        if peer in self.routes.peers:
            self.routes.close(peer)
        if one is not None:
            await one.arrivals.close()
            if one.departures is not None:
                self.rows[peer] = await one.departures.close()
        self.tell()
        if peer in self.rows:
            await self.topic.host.commits.commit(put_peer(self.rows[peer]))

    async def end(self) -> None:
        """The topic is deleted: nothing comes or goes any more, and whoever waits is told."""
        self._own.fail(UnknownTopic(f"topic {self.topic.name!r} was deleted"))
        self.mergers.stop()
        while self._open:
            _, one = self._open.popitem()
            await one.arrivals.close()
            if one.departures is not None:
                await one.departures.close()

    def forget(self, peer: str) -> None:
        """A peer is gone for good."""
        self.rows.pop(peer, None)
        self._profiles.forget(peer)
        self._filters.pop(peer, None)
        if peer in self.routes.peers:
            self.routes.forget(peer)
            self.topic.host.quenching.narrow(self.topic.name)
        self.tell()

    def has_passed(self, peer: str, end: int) -> bool:
        """Whether a peer has all that it wants of the log before an offset, and all filters."""
        one = self._open.get(peer)
        if one is None or one.departures is None:
            return False
        return one.departures.place >= end and self.routes.has_told_all(peer)

    def lag(self, peer: str) -> int:
        """How many events a peer may still have to get."""
        one = self._open.get(peer)
        if one is not None and one.departures is not None:
            return self.topic.dispatched - one.departures.place
        return self.topic.dispatched - self.rows[peer].position

    async def hold(self, peer: str, filters: Filters | Part) -> None:
        """Take filters of a peer: first into the catalogue, then they count.

        What the catalogue has of a peer is always held here, too: no step between the two.
        """
        one, kind = self._open.get(peer), FilterKind(filters.kind)
        if one is None:
            return
        is_full = isinstance(filters, Part) or filters.is_full
        removed = () if isinstance(filters, Part) else filters.removed
        self._context.traffic[peer].filters_received += len(filters.added) + len(removed)
        if is_full:
            one.ids_heard[kind].update(filters.added)
        for part in _parts(list(filters.added.items()), STORED_AT_ONCE):
            added = {id_: self._text(text) for id_, text in part}
            await self._commit(peer_rows.put_filters(*self._key(peer, kind), added))
            await self._take_up(peer, kind, added)
            if self._open.get(peer) is not one:
                return  # the link was lost; the next one begins with all filters again
        await self._let_go(peer, kind, list(removed), answered=True)
        if is_full and not isinstance(filters, Part):
            unheard = self.routes.unheard(peer, kind, one.ids_heard[kind])
            await self._let_go(peer, kind, unheard, answered=False)
            if self._open.get(peer) is one:
                self.routes.heard_all(peer, kind)
                one.ids_heard[kind].clear()
        self.tell()

    async def _take_up(self, peer: str, kind: FilterKind, added: Mapping[str, str]) -> None:
        """Let filters of a peer count that are stored."""
        if peer not in self.rows:
            return
        # Before anybody can be told that they are established:
        self._match_with(peer, kind, added)
        for part in _parts(list(added.items()), AT_ONCE):
            if peer in self.rows:
                self.routes.hold(peer, kind, dict(part))
                if kind is FilterKind.SUBSCRIPTION:
                    self.topic.host.quenching.widen(self.topic.name, dict(part).values())
                self.tell()
            await asyncio.sleep(0)  # signs of life have to be given meanwhile

    async def _let_go(
        self, peer: str, kind: FilterKind, ids: Sequence[str], *, answered: bool
    ) -> None:
        """Forget filters of a peer, which is told so if it is `answered`."""
        for stored in _parts(ids, STORED_AT_ONCE):
            await self._commit(peer_rows.drop_filters(*self._key(peer, kind), stored))
            for part in _parts(stored, AT_ONCE):
                if peer in self.rows:
                    drop = self.routes.drop if answered else self.routes.discard
                    drop(peer, kind, part)
                    self.tell()
                await asyncio.sleep(0)
            known = self._filters.get(peer)
            if known is not None and kind is FilterKind.SUBSCRIPTION:
                known.unsubscribe_many([id_ for id_ in stored if id_ in known])
        if ids and kind is FilterKind.SUBSCRIPTION:
            self.topic.host.quenching.narrow(self.topic.name)

    def _key(self, peer: str, kind: FilterKind) -> tuple[int, str, str]:
        return self.topic.number, peer, kind.value

    async def _commit(self, changes: Iterable[CatalogueChange]) -> None:
        await self.topic.host.commits.commit(*changes)

    def take(self, peer: str, message: Said) -> None:
        """Take what a peer says about filters, events and profiles."""
        one = self._open.get(peer)
        if one is None:
            return
        match message:
            case Established(_, ids):
                self.routes.acknowledge(peer, ids)
                self.tell()
            case Events():
                one.arrivals.put(message)
            case Stored(_, last):
                if one.departures is not None:
                    one.departures.stored(last)
            case ProfileWanted() | SideProfile():
                self._profiles.take(peer, message)

    def _say_established(self, peer: str, one: OpenPeer, ids: Sequence[str]) -> None:
        """Tell a peer that its filters are known, when publishers here drop nothing of them."""

        def say() -> None:
            if self._open.get(peer) is one:
                one.road.send(Established(self.topic.name, ids))

        self.topic.host.quenching.when_told(self.topic.name, say)

    def tell(self) -> None:
        """Tell peers what is new for them, and begin to send events to those that are ready."""
        name = self.topic.name
        for peer, one in self._open.items():
            for news in self.routes.news(peer, TOLD_AT_ONCE):
                if news.kind is None:
                    self._say_established(peer, one, news.established)
                else:
                    kind = news.kind.value
                    self._context.traffic[peer].filters_sent += len(news.added) + len(news.removed)
                    self._profiles.announced(peer, news.added.values())
                    if news.follows:
                        one.road.send(Part(name, kind, news.added))
                    else:
                        one.road.send(Filters(name, kind, news.is_full, news.added, news.removed))
            if self.routes.has_news(peer):
                self._tell_soon()
            if one.departures is None and self.routes.is_ready(peer):
                one.departures = self.departures_to(peer, one.road)

    def has_heard(self, peer: str) -> bool:
        """Whether a peer has ever told what it wants."""
        return self._context.strategy.flooding or self.routes.held(peer) > 0

    def departures_to(self, peer: str, road: Road) -> Departures:
        """What sends a peer the events that it wants and does not have."""
        floods = self._context.strategy.flooding
        wanted = None if floods else self._matcher(peer)
        traffic = self._context.traffic[peer]
        return Departures(
            self.topic, self._parts, self.rows[peer], self.prefix, road, traffic, wanted
        )

    async def departed(self, peer: str, departures: Departures) -> None:
        """End departures, and store how far the peer is."""
        row = await departures.close()
        if peer in self.rows:
            self.rows[peer] = row
            await self.topic.host.commits.commit(put_peer(row))

    def arrivals_from(self, peer: str, road: Road, wants: WantedFilters | None = None) -> Arrivals:
        """What stores the events of a peer."""
        traffic = self._context.traffic[peer]
        return Arrivals(self.topic, peer, road, traffic, wants, own=self.prefix)

    def _tell_soon(self) -> None:
        """Tell peers the rest after others had their turn."""
        if not self._is_telling_soon:
            self._is_telling_soon = True
            asyncio.get_running_loop().call_soon(self._tell_rest)

    def _tell_rest(self) -> None:
        self._is_telling_soon = False
        self.tell()


def _parts(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    return (items[start : start + most] for start in range(0, len(items), most))
