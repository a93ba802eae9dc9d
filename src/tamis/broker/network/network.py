"""The network as one broker sees it: which links are up, and what comes over them.

`link.py` and `frames.py` know how to talk, `connections.py` carries the bytes, and here is what is
said. Each topic is a `SharedTopic`, which does the rest.
"""

import asyncio
import itertools
import logging
import secrets
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Protocol

from tamis.broker import peer_rows
from tamis.broker.accounts import Account
from tamis.broker.catalogue import put_topic
from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.host import Host
from tamis.broker.network.deletions import Deletions
from tamis.broker.network.departures import Road
from tamis.broker.network.detours import Detours, Way
from tamis.broker.network.link import Paths, cycle
from tamis.broker.network.link_traffic import LinkTraffic
from tamis.broker.network.messages import (
    Declined,
    Deleted,
    Established,
    Events,
    Filters,
    Message,
    Move,
    Moved,
    Offer,
    Part,
    ProfileWanted,
    Reach,
    Relayed,
    SideProfile,
    Stored,
)
from tamis.broker.network.moves import Moves
from tamis.broker.network.peer_states import PeerState
from tamis.broker.network.routes import USUAL
from tamis.broker.network.shared_topic import SharedTopic, SharedTopicContext
from tamis.broker.network_settings import MergingSettings
from tamis.broker.peer_rows import RowSource, drop_peer, put_identity
from tamis.broker.records import DEAD
from tamis.broker.topic import Topic
from tamis.broker.topics import Topics
from tamis.broker.workers import MATCH
from tamis.errors import Busy, Conflict, OptionError, RoutingError, TamisError, TopicExists
from tamis.language.expression import Expression
from tamis.routing.savings import Savings
from tamis.routing.strategies import Strategy
from tamis.schema import Schema

logger = logging.getLogger("tamis.broker")


class PeerLink(Road, Protocol):
    """A link that is up."""

    @property
    def peer(self) -> str:
        """The name of the other side."""


class Network:
    """The brokers next to this one; the topics call it `OtherBrokers`."""

    def __init__(
        self, name: str, peers: Iterable[str], accounts: Iterable[Account], tables: RowSource,
        strategy: Strategy = USUAL, merging: MergingSettings | None = None,
        random: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:  # fmt: skip
        self.name = name
        self._configured = tuple(peers)
        self._accounts = {account.name: account for account in accounts}
        self._tables = tables
        self._strategy = strategy
        self._merging = merging or MergingSettings()
        self._random = random
        self._context = SharedTopicContext("", str, {}, strategy, self._merging)
        self._host: Host | None = None
        self._topics: Topics | None = None
        self._shared: dict[str, SharedTopic] = {}
        self._links: dict[str, PeerLink] = {}
        self._reach: dict[str, Paths] = {}  # the brokers beyond each link that is up
        self._detours = Detours(name, self._shared, self)
        self._deletions = Deletions(tables)
        self._is_stopping = False
        self.moves = Moves(self, tables)
        self._ended = asyncio.Event()
        self._ended.set()

    async def start(self, host: Host, topics: Topics) -> None:
        """Find out, or decide, who we are; called before any topic is opened."""
        self._host, self._topics = host, topics
        known = peer_rows.identity(self._tables)
        identity, starts = (self._random(8).hex(), 0) if known is None else known
        await host.commits.commit(put_identity(identity, starts + 1))
        numbers = itertools.count()
        self._context = SharedTopicContext(
            identity, lambda: f"{starts}.{next(numbers)}", self._accounts, self._strategy,
            self._merging,
        )  # fmt: skip

    async def stop(self) -> None:
        """Close all links, and store how far the peers are; no more come up."""
        self._is_stopping = True
        await self.moves.stop()
        for link in list(self._links.values()):
            link.close("the broker stops")
        await self._ended.wait()
        for shared in self._shared.values():
            shared.mergers.stop()

    # --- what topics ask

    async def opened(self, topic: Topic) -> None:
        if topic.name.startswith(DEAD):
            return
        if not topic.row.births:  # it was made without a network
            topic.row = topic.row._replace(births=self.births())
            await topic.host.commits.commit(put_topic(topic.row_now()))
        shared = SharedTopic(topic, self._context)
        known = {name for (name,) in self._tables.rows("SELECT DISTINCT peer FROM peers")}
        await shared.load(self._tables, {*self._configured, *known, *self._links})
        self._shared[topic.name] = shared
        for peer, link in self._links.items():
            shared.expect(peer)
            link.send(shared.offer())
        await self._detours.opened(topic.name)

    def changed(self, topic: Topic) -> None:
        shared = self._shared.get(topic.name)
        if shared is not None:
            shared.rebuild()
            for link in list(self._links.values()):
                link.close(f"topic {topic.name!r} has more attributes now")

    def births(self) -> tuple[str, ...]:
        return (f"{self._context.identity}.{self._context.new_id()}",)

    def deletion(self, topic: Topic) -> list[CatalogueChange]:
        shared = self._shared.get(topic.name)
        if shared is None or not shared.rows:
            return []  # no peer has ever had it
        return self._deletions.changes(topic.name, topic.row.births)

    async def deleted(self, topic: Topic) -> None:
        shared = self._shared.pop(topic.name, None)
        if shared is None:
            return
        await self._detours.close(topic.name)
        await shared.end()
        if shared.rows:
            self._tell_deleted(topic.name, topic.row.births)

    async def finish_deletions(self) -> None:
        """Delete what others have deleted, if a crash came between; topics are open."""
        assert self._topics is not None  # noqa: S101 - it was started
        for name, shared in list(self._shared.items()):
            if self._deletions.has_all(name, shared.topic.row.births):
                await self._topics.delete(name)

    def _tell_deleted(self, topic: str, births: Iterable[str], but: str = "") -> None:
        """Note that a topic was deleted, and tell the peers, unless it was known."""
        new = self._deletions.new(topic, births)
        self._deletions.add(topic, new)
        for peer, link in self._links.items():
            if new and peer != but:
                link.send(Deleted(topic, new))

    async def _delete(self, peer: str, message: Deleted) -> None:
        """Delete a topic that a peer has deleted, and remember that."""
        assert self._topics is not None  # noqa: S101 - links come up after `start`
        assert self._host is not None  # noqa: S101 - links come up after `start`
        topic, births = message.topic, message.births
        await self._host.commits.commit(*self._deletions.changes(topic, births))
        self._tell_deleted(topic, births, but=peer)
        shared = self._shared.get(topic)
        if shared is not None and self._deletions.has_all(topic, shared.topic.row.births):
            logger.warning("topic %r is deleted, as peer %r says", topic, peer)
            await self._topics.delete(topic)

    async def want(self, topic: str, id_: str, expression: Expression) -> None:
        if topic in self._shared:
            await self._shared[topic].want(id_, expression)

    def unwant(self, topic: str, id_: str) -> None:
        if topic in self._shared:
            self._shared[topic].unwant(id_)

    def tick(self) -> None:
        for shared in self._shared.values():
            shared.mergers.tick()

    def prefix(self, topic: str) -> str:
        shared = self._shared.get(topic)
        return "" if shared is None else shared.prefix

    def wanted(self, topic: str) -> list[str]:
        shared = self._shared.get(topic)
        return [] if shared is None else shared.wanted()

    async def change_accounts(
        self, accounts: Sequence[Account], switch: Callable[[], Container[str]]
    ) -> None:
        """Change what accounts may do; `switch` does it here, and says for whom.

        What they will be allowed to publish is announced before `switch` is called, and what they
        may not publish any more is withdrawn after it: so whatever is published was announced.
        """
        while waiting := [
            one for shared in self._shared.values() for one in shared.advertise(accounts)
        ]:
            await asyncio.gather(*waiting, return_exceptions=True)  # a topic may be deleted
        changed = switch()
        self._accounts.clear()
        self._accounts.update({account.name: account for account in accounts})
        for shared in self._shared.values():
            shared.change_accounts(self._tables, changed)

    # --- links

    def counted(self, peer: str, traffic: LinkTraffic) -> LinkTraffic:
        """Where the traffic with a peer is counted, after what a new link has counted so far."""
        found = self._context.traffic[peer]
        found.add(traffic)
        return found

    def paths(self, without: str) -> Paths:
        """All brokers that are reached without one of the peers, each with the path to it."""
        found = {self.name: [self.name]}
        for peer, behind in self._reach.items():
            if peer != without:
                found |= {name: [self.name, *path] for name, path in behind.items()}
        return found

    def towards(self, broker: str) -> PeerLink | None:
        """The link that leads to a broker, if it is reached."""
        for peer, behind in self._reach.items():
            if broker in behind:
                return self._links.get(peer)
        return None

    def passed_check(self, topic: str, peer: str) -> Callable[[], bool]:
        """A function: whether a peer has all events that are stored now, and knows all filters."""
        shared = self._shared.get(topic)
        if shared is None:
            raise RoutingError(f"there is no topic {topic!r} here")
        end = shared.topic.dispatched
        return lambda: shared.has_passed(peer, end)

    def linked(self, peer: str) -> PeerLink | None:
        """The link to a peer, if it is up."""
        return self._links.get(peer)

    async def joined(self, link: PeerLink, reach: Reach) -> None:
        """A link is up; raises a `RoutingError` if it closes a cycle."""
        if self._is_stopping:
            link.close("the broker stops")
            return
        self._take_reach(link.peer, reach)
        self._links[link.peer] = link
        for shared in self._shared.values():
            shared.expect(link.peer)
        self._ended.clear()
        logger.info("linked", extra={"peer": link.peer})
        # To this peer, too: other links may have come up since it was greeted.
        self._tell_reach()
        await self._detours.update()
        # First what was deleted, so that nobody offers it, or takes it for what is there now.
        link.send(*self._deletions.messages())
        link.send(*(shared.offer() for shared in self._shared.values()))

    async def left(self, link: PeerLink, reason: str) -> None:
        """A link is gone."""
        if self._links.get(link.peer) is not link:
            return
        for shared in list(self._shared.values()):
            try:
                await shared.left(link.peer)
            except Busy as error:
                logger.warning("the place of peer %r keeps its last value: %s", link.peer, error)
        del self._links[link.peer]
        self._reach.pop(link.peer, None)
        logger.warning("unlinked", extra={"peer": link.peer, "reason": reason})
        self._tell_reach(but=link.peer)
        await self._detours.update()
        if not self._links:
            self._ended.set()

    def _take_reach(self, peer: str, reach: Reach) -> None:
        found = cycle(self.paths(peer), reach.paths)
        if found is not None:
            raise RoutingError(
                f"the link of {self.name!r} and {peer!r} would close a cycle: {' - '.join(found)}"
            )
        self._reach[peer] = reach.paths

    def _tell_reach(self, but: str = "") -> None:
        for peer, link in self._links.items():
            if peer != but:
                link.send(Reach(self.paths(peer)))

    async def handle(self, link: PeerLink, message: Message) -> None:
        """Do what a peer says; raises a `TamisError` if the link has to be closed."""
        match message:
            case Reach():
                self._take_reach(link.peer, message)
                self._tell_reach(but=link.peer)
                await self._detours.update()
            case Relayed(to):
                self._relay(to, message)
            case Deleted():
                await self._delete(link.peer, message)
            case Offer(topic, births=births):
                # One that was deleted is offered by a peer that is yet to hear of it.
                if not self._deletions.has_all(topic, births):
                    await self._offered(link, message)
            case Declined(topic, reason):
                logger.error("peer %r does not share topic %r: %s", link.peer, topic, reason)
                if topic in self._shared:
                    await self._shared[topic].decline(link.peer)
            case Filters(topic) | Part(topic):
                if topic in self._shared:
                    await self._shared[topic].hold(link.peer, message)
            case (
                Established(topic) | Events(topic) | Stored(topic) | ProfileWanted(topic)
                | SideProfile(topic)
            ):  # fmt: skip
                if topic in self._shared:
                    self._shared[topic].take(link.peer, message)
            case Move() | Moved():
                self.moves.take(message)
            case _:
                raise RoutingError(f"{type(message).__name__} is not expected here")

    def _relay(self, to: str, message: Relayed) -> None:
        """Take what is for this broker; pass on what is for another, or lose it with a link."""
        if to == self.name:
            self._detours.take(message)
            return
        link = self._links.get(to)
        way = self.way(to)
        if link is not None:
            link.send(message)
        elif way is not None:
            way.link.send(message)

    def way(self, name: str) -> Way | None:
        """The way to a broker that is not a linked peer; None if there is none."""
        if name in self._links:
            return None
        for peer, link in self._links.items():
            path = self._reach.get(peer, {}).get(name)
            if path is not None:
                return Way(link, tuple(path))
        return None

    async def _offered(self, link: PeerLink, offer: Offer) -> None:
        assert self._topics is not None  # noqa: S101 - links come up after `start`
        before = self._shared.get(offer.topic)
        known = None if before is None else before.topic.row.births
        try:
            await self._share(self._topics, offer)
        except Busy:
            raise
        except TamisError as error:
            # The reason says all; where it was found would not help.
            logger.error("topic %r of peer %r is not shared: %s", offer.topic, link.peer, error)  # noqa: TRY400
            link.send(Declined(offer.topic, str(error)))
            if before is not None:
                await before.decline(link.peer)
            return
        shared = self._shared.get(offer.topic)
        if shared is None or self._links.get(link.peer) is not link:
            return  # the topic was deleted meanwhile, or the link is gone
        await shared.open(link.peer, link)
        if known and known != shared.topic.row.births:  # others have to know all births
            for peer, other in self._links.items():
                if peer != link.peer:
                    other.send(shared.offer())

    async def _share(self, topics: Topics, offer: Offer) -> None:
        """Have a topic that a peer has, with all attributes of both."""
        schema, defaults = Schema(offer.schema), offer.defaults
        if offer.topic.startswith(DEAD):
            raise OptionError("dead letters stay where they are")
        found = topics.get(offer.topic)
        if found is None:
            await topics.create(offer.topic, schema, offer.semantics, defaults, None, offer.births)
            return
        row = found.topic.row
        if offer.semantics != row.semantics:
            raise TopicExists(f"it has semantics {row.semantics!r} here, not {offer.semantics!r}")
        common = {n: v for n, v in (defaults or {}).items() if n in (row.defaults or {})}
        if any((row.defaults or {})[name] != value for name, value in common.items()):
            raise Conflict(f"it has other defaults here: {row.defaults}")
        wider = found.topic.schema.with_attributes(schema)
        if wider == found.topic.schema and set(offer.births) <= set(row.births):
            return
        both = None if defaults is None else {**defaults, **(row.defaults or {})}
        await topics.create(offer.topic, wider, offer.semantics, both, None, offer.births)

    # --- peers

    def peers(self) -> list[PeerState]:
        """The peers, by their names."""
        names = {*self._configured, *self._links}
        names |= {name for shared in self._shared.values() for name in shared.rows}
        found = []
        for name in sorted(names):
            holding = [shared for shared in self._shared.values() if name in shared.rows]
            lag = sum(self._lag(name, shared) for shared in holding)
            lost = sum(shared.rows[name].lost for shared in holding)
            held = sum(shared.routes.held(name) for shared in holding)
            announced = sum(shared.routes.announced(name) for shared in holding)
            traffic = self._context.traffic[name]
            found.append(PeerState(name, name in self._links, lag, lost, held, announced, traffic))
        return found

    def _lag(self, peer: str, shared: SharedTopic) -> int:
        found = self._detours.lag(peer, shared.topic.name)
        return shared.lag(peer) if found is None else found

    async def savings(self, peer: str) -> dict[str, Savings]:
        """What covering and merging save of the filters that a peer is told, by topic."""
        assert self._host is not None  # noqa: S101 - nobody asks before `start`
        found = {}
        for name, shared in list(self._shared.items()):
            if peer in shared.routes.peers:
                found[name] = await self._host.workers.run(MATCH, shared.routes.savings(peer))
        return found

    async def forget(self, peer: str) -> None:
        """Forget a peer that is gone for good: its filters, and what waits for it.

        If it is reached another way, it first gets what is in the logs for it now.
        """
        assert self._host is not None  # noqa: S101 - nobody asks before `start`
        if peer in self._links:
            raise Conflict(f"peer {peer!r} is linked; stop it first")
        if peer in self._configured:
            raise Conflict(f"peer {peer!r} is in the settings; remove it there first")
        async with self._detours.ending(peer):
            await self._host.commits.commit(*drop_peer(peer))
            for shared in self._shared.values():
                shared.forget(peer)
