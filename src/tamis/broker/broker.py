"""The broker: topics, publications, subscriptions; what every protocol and every client comes to.

Each call says who asks: an `Account`, whose grants and limits are kept here. Everything belongs to
one event loop.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from tamis.broker.accounts import Account, free_account
from tamis.broker.attachment import Attachment
from tamis.broker.catalogue import Catalogue
from tamis.broker.dead_letter_writer import DeadLetterWriter
from tamis.broker.event_rows import PublishRequirements
from tamis.broker.grants import narrowed, publish_matcher
from tamis.broker.group_commit import GroupCommit
from tamis.broker.host import Host
from tamis.broker.log.damage import Damage
from tamis.broker.metrics import MOST_LABELS, Metrics
from tamis.broker.move_rows import MoveRow
from tamis.broker.network.peer_metrics import show_peers
from tamis.broker.network.route_headers import without_route
from tamis.broker.other_brokers import NoOtherBrokers
from tamis.broker.quenching import Quenching, Wanted
from tamis.broker.questions import check, read_log, why
from tamis.broker.records import (
    CheckAnswer,
    DeliveryOptions,
    NewEvent,
    Published,
    Record,
    Refusal,
    Retention,
    Start,
    SubscriptionInfo,
    TopicInfo,
)
from tamis.broker.schema_text import schema_of
from tamis.broker.settings import Settings
from tamis.broker.start_offsets import EARLIEST, NEW, offset_of
from tamis.broker.storage import LocalStorage, Storage
from tamis.broker.topic import Topic
from tamis.broker.topics import OpenTopic, Topics
from tamis.broker.upkeep import Upkeep
from tamis.broker.workers import MATCH, Workers
from tamis.errors import (
    EventError,
    Forbidden,
    OptionError,
    UnknownPeer,
    UnknownTopic,
    did_you_mean,
)
from tamis.explanation import Explanation
from tamis.language.expression import MATCHES_ALL, Expression
from tamis.matcher import Matcher
from tamis.routing.strategies import strategy_of
from tamis.schema import Schema

if TYPE_CHECKING:
    from tamis.broker.network.network import Network
    from tamis.broker.network.peer_states import PeerState
    from tamis.routing.savings import Savings

DEFAULTS = DeliveryOptions()

logger = logging.getLogger("tamis.broker")


class Broker:
    """Topics and subscriptions in a data folder, for many clients."""

    def __init__(self, settings: Settings, storage: Storage, catalogue: Catalogue, host: Host,
                 topics: Topics) -> None:  # fmt: skip
        self.settings = settings
        self.metrics = host.metrics
        self.accounts = settings.new_accounts()
        self.network: Network | None = None  # with other brokers, if there are any
        self._storage = storage
        self._catalogue = catalogue
        self._host = host
        self._topics = topics
        topics.when_deleted = self._give_back
        self._allowed: dict[tuple[str, int, Schema], Matcher | None] = {}
        self._changing_accounts = asyncio.Lock()
        self._dead_letter_tasks: set[asyncio.Task[None]] = set()
        self._upkeep = Upkeep(host, topics, settings)

    @classmethod
    async def open(
        cls, settings: Settings, *, clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic, storage: Storage | None = None,
        workers: Workers | None = None, random: Callable[[int], bytes] = secrets.token_bytes,
    ) -> Self:  # fmt: skip
        """A broker with what its data folder has; what is damaged there is in `damage`."""
        storage = LocalStorage(settings.data) if storage is None else storage
        catalogue = storage.open_catalogue()
        workers = Workers() if workers is None else workers
        dead_letters = DeadLetterWriter()
        network = None if settings.network is None else _network(settings, catalogue, random)
        quenching = Quenching(settings.accounts)
        host = Host(
            workers, GroupCommit(catalogue, workers), Metrics(), dead_letters.bury, clock,
            monotonic, network=network or NoOtherBrokers(), quenching=quenching,
            sync=settings.durability == "sync",
        )  # fmt: skip
        topics = dead_letters.topics = Topics(
            host, catalogue, storage.disk, settings.data / "topics"
        )
        if network is not None:
            await network.start(host, topics)
        quenching.start(host, topics, catalogue)
        await topics.open_all()
        if network is not None:
            await network.finish_deletions()
        broker = cls(settings, storage, catalogue, host, topics)
        broker.network, broker._dead_letter_tasks = network, dead_letters.tasks
        if network is not None:
            network.moves.start(topics, broker.accounts)
        await broker._start()
        return broker

    async def _start(self) -> None:
        self._count_subscriptions()
        for name, described in self.settings.topics.items():
            if described.schema is not None:
                await self._topics.create(
                    name, schema_of(described.schema), described.semantics, described.defaults,
                    described.retention,
                )  # fmt: skip
        self.metrics.ask_when_shown(
            "subscription_lag", "Events after the cursor of a durable subscription.",
            ("topic", "account", "subscription"), self._lags,
        )  # fmt: skip
        if self.network is not None:
            show_peers(self.metrics, self.network.peers)
        self._upkeep.start()

    def _count_subscriptions(self) -> None:
        """Let accounts that are new have the subscriptions that the catalogue has of them."""
        counted: Counter[str] = Counter()
        for _, account, count in self._catalogue.counts():
            counted[account] += count
        for one in self.accounts:
            if not one.usage.subscriptions:
                one.usage.subscriptions = counted[one.name]

    async def close(self) -> None:
        """Stop: what was accepted is written, and how far subscriptions have come is stored."""
        await self._upkeep.stop()
        if self._dead_letter_tasks:
            await asyncio.wait(self._dead_letter_tasks)
        await self._host.quenching.stop()
        if self.network is not None:
            await self.network.moves.stop()
        await self._topics.close()
        await self._host.commits.close()
        self._catalogue.close()
        self._host.workers.close()
        self.accounts.close()
        self._storage.release()

    async def change_accounts(self, settings: Settings) -> set[str]:
        """Let accounts, grants and limits be those of other settings, and nothing else.

        Returns the names of the accounts that have changed or are gone: whoever listens for them is
        told to connect again. In a network, it waits until others know what may be published.
        """
        async with self._changing_accounts:
            settings.new_accounts().close()  # refuses what cannot be
            self.accounts.check_change(settings.accounts)
            changed: set[str] = set()

            def switch() -> set[str]:
                changed.update(self.accounts.become(settings.accounts, settings.limits))
                self._allowed.clear()
                self._count_subscriptions()
                self._host.quenching.change_accounts(settings.accounts)
                return changed

            accounts = settings.accounts or (free_account(limits=settings.limits),)
            if self.network is None:
                switch()
            else:
                await self.network.change_accounts(accounts, switch)
            self.settings = replace(
                self.settings, accounts=settings.accounts, limits=settings.limits
            )
        for one in self._topics:
            for attachment in list(one.topic.listeners()):
                if attachment.interest.account in changed:
                    await attachment.close("its account has changed: connect again")
        return changed

    @property
    def damage(self) -> list[Damage]:
        """What is wrong with files of the data folder."""
        logs = [damage for found in self._topics for damage in found.topic.log.damage]
        return [*self._topics.damage, *logs]

    async def tick(self) -> None:
        """Do what is due by now: redeliveries, retention. It is called from time to time."""
        await self._upkeep.tick()

    # --- topics

    async def create_topic(
        self, account: Account, name: str, schema: Mapping[str, str] | str, *,
        semantics: str = "sql", defaults: Mapping[str, Any] | None = None,
        retention: Retention | None = None,
    ) -> TopicInfo:  # fmt: skip
        """Make a topic. Once more with the same schema it changes nothing; attributes are added."""
        account.require_managing(name)
        found = await self._topics.create(name, schema_of(schema), semantics, defaults, retention)
        return self._info(found)

    async def delete_topic(self, account: Account, name: str) -> None:
        """Forget a topic with its events and subscriptions, in the whole network."""
        account.require_managing(name)
        self._find(account, name)
        await self._topics.delete(name)

    def _give_back(self, held: Counter[str]) -> None:
        for one in self.accounts:
            one.usage.subscriptions -= held[one.name]

    def topic(self, account: Account, name: str) -> TopicInfo:
        """What is known about a topic."""
        return self._info(self._find(account, name))

    def schema(self, account: Account, topic: str) -> Mapping[str, str]:
        """The attributes of a topic and their types; faster than all that `topic` tells."""
        return self._find(account, topic).topic.row.schema

    def topics(self, account: Account) -> list[TopicInfo]:
        """The topics that an account may know of, by their names."""
        seen = [found for found in self._topics if account.sees(found.topic.name)]
        return [self._info(found) for found in sorted(seen, key=lambda one: one.topic.name)]

    def _info(self, found: OpenTopic) -> TopicInfo:
        topic, row = found.topic, found.topic.row
        counted = sum(self._catalogue.counts_of(row.number).values())
        retention = row.retention or self.settings.retention_of(row.name)
        return TopicInfo(
            row.name, row.schema, row.semantics, row.defaults, retention, topic.log.first_offset,
            topic.log.synced_offset, counted, topic.expired, sum(d.lost for d in topic.log.damage),
        )  # fmt: skip

    def _find(self, account: Account, name: str) -> OpenTopic:
        """A topic, if the account may know of it."""
        found = self._topics.get(name)
        if found is None or not account.sees(name):
            known = (one.topic.name for one in self._topics if account.sees(one.topic.name))
            hint = did_you_mean(name, known)
            raise UnknownTopic(f"there is no topic {name!r}" + (f"; {hint}" if hint else ""))
        return found

    # --- publishing

    async def publish(self, account: Account, topic: str, events: Sequence[NewEvent]) -> Published:
        """Store events; returns when those that are good are safe on disk."""
        found = self._find(account, topic).topic
        events = without_route(events)
        allowed = self._allowed_events(account, found)
        account.usage.publish(len(events), self._host.monotonic())
        began = self._host.monotonic()
        answer = await found.publish(
            events, PublishRequirements(account.limits.event_bytes, allowed, account.name)
        )
        self.metrics.publish_seconds.observe(self._host.monotonic() - began)
        return answer

    async def publish_together(
        self, account: Account, events: Mapping[str, Sequence[NewEvent]]
    ) -> None:
        """Store events of several topics, or none if one is refused: that raises an `EventError`.

        The events of one topic are one piece of its log, and survive a crash together. Each topic
        has its own log, so a crash can come between two; then nobody was told that they are safe.
        """
        read = []
        for name, some in events.items():
            found = self._find(account, name).topic
            allowed = self._allowed_events(account, found)
            requirements = PublishRequirements(
                account.limits.event_bytes, allowed, account.name, whole=True
            )
            read.append((found, await found.read(without_route(some), requirements)))
            _raise_refusal(name, read[-1][1].refused)
        account.usage.publish(sum(map(len, events.values())), self._host.monotonic())
        stored = await asyncio.gather(*(topic.store(one) for topic, one in read))
        for (topic, _), published in zip(read, stored, strict=True):
            # Attributes may have been added since the events were read.
            _raise_refusal(topic.name, published.refused)

    def _allowed_events(self, account: Account, topic: Topic) -> Matcher | None:
        key = account.name, topic.number, topic.schema
        if key not in self._allowed:
            row = topic.row
            found = publish_matcher(
                account, row.name, topic.schema, row.semantics, defaults=row.defaults
            )
            self._allowed[key] = found
        return self._allowed[key]

    # --- subscriptions

    async def put_subscription(
        self, account: Account, topic: str, id: str, filter: str | None = None, *,
        durable: bool = True, start: Start = NEW, options: DeliveryOptions = DEFAULTS,
    ) -> SubscriptionInfo:  # fmt: skip
        """Make a subscription; one that is there gets filter and options, and keeps its place."""
        found = self._find(account, topic)
        text = MATCHES_ALL if filter is None else filter
        at = self._offset(found.topic, start)
        return await found.subscriptions.put(account, id, text, options, durable=durable, start=at)

    def subscription(self, account: Account, topic: str, id: str) -> SubscriptionInfo:
        """What is known about a subscription."""
        return self._find(account, topic).subscriptions.info(account.name, id)

    def subscriptions(
        self, account: Account, topic: str, after: str | None = None, most: int = 100
    ) -> list[SubscriptionInfo]:
        """Subscriptions of an account, by their ids: the first ones after an id."""
        return self._find(account, topic).subscriptions.infos(account.name, after, most)

    async def delete_subscription(self, account: Account, topic: str, id: str) -> None:
        """Forget a subscription."""
        await self._find(account, topic).subscriptions.delete(account, id)

    async def move_subscription(
        self, account: Account, topic: str, id: str, origin: str, filter: str | None = None, *,
        options: DeliveryOptions | None = None, wait: float = 10.0,
    ) -> MoveRow:  # fmt: skip
        """Fetch a durable subscription from another broker, with all that it has not got there.

        Without a filter, or options, it keeps those that it has.
        """
        found = self._find(account, topic)
        if self.network is None:
            raise OptionError("this broker is not in a network: nothing can move here")
        return await self.network.moves.fetch(
            account, found, id, origin, text=filter, options=options, wait=wait
        )

    async def attach(self, account: Account, topic: str, id: str) -> Attachment:
        """Listen to a subscription; whoever listened to it before is told that it ended."""
        return await self._find(account, topic).subscriptions.attach(account, id)

    async def attach_filter(
        self, account: Account, topic: str, filter: str | None = None, *,
        start: Start = NEW, options: DeliveryOptions = DEFAULTS,
    ) -> Attachment:  # fmt: skip
        """Listen with a filter: at most once, and nothing is left when it is closed."""
        found = self._find(account, topic)
        at = self._offset(found.topic, start)
        return await found.subscriptions.attach_filter(account, filter, at, options)

    async def ack(self, account: Account, topic: str, id: str, offset: int) -> None:
        """Acknowledge everything up to an offset, whether somebody listens or not."""
        await self._find(account, topic).subscriptions.ack(account, id, offset)

    def _offset(self, topic: Topic, start: Start) -> int:
        return offset_of(start, topic.log, topic.log.synced_offset)

    def _lags(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """How far behind durable subscriptions are, those that are the farthest first."""
        found = []
        for topic in (one.topic for one in self._topics):
            cursors = [
                (one.interest.account, one.interest.id or "", one.cursor)
                for one in topic.listeners()
                if one.durable
            ]
            cursors += self._catalogue.sleeping(topic.number, MOST_LABELS)
            found += [
                ((topic.name, account, id_), float(topic.dispatched - cursor))
                for account, id_, cursor in cursors
            ]
        yield from sorted(found, key=lambda sample: -sample[1])

    # --- asking

    async def read(
        self, account: Account, topic: str, filter: str | None = None,
        start: Start = EARLIEST, most: int = 100,
    ) -> list[Record]:  # fmt: skip
        """The first events of the log from a start on that match a filter."""
        if most < 1:
            raise OptionError(f"most is a whole number from 1, not {most}")
        found = self._find(account, topic).topic
        wanted = await self._narrowed(account, found, filter)
        return await read_log(found, wanted, self._offset(found, start), most)

    async def check(self, account: Account, topic: str, filter: str) -> CheckAnswer:
        """How a filter is understood; raises the error if it is wrong."""
        found = self._find(account, topic).topic
        wanted = await self._narrowed(account, found, filter)
        return await self._host.workers.run(MATCH, check, filter, wanted)

    async def why(
        self, account: Account, topic: str, *, subscription: str | None = None,
        filter: str | None = None,
        event: Mapping[str, Any] | str | bytes | None = None, offset: int | None = None,
    ) -> Explanation:  # fmt: skip
        """Why an event, given or of the log, does or does not match a subscription or a filter."""
        if (subscription is None) == (filter is None) or (event is None) == (offset is None):
            raise OptionError("say subscription or filter, and event or offset: one of each")
        found = self._find(account, topic)
        text = filter
        if subscription is not None:
            text = found.subscriptions.info(account.name, subscription).filter
        wanted = await self._narrowed(account, found.topic, text)
        about: Any = offset if event is None else event
        visible = await self._narrowed(account, found.topic, None)
        return await why(found.topic, subscription or "filter", wanted, about, visible)

    async def _narrowed(self, account: Account, topic: Topic, text: str | None) -> Expression:
        """What an account gets if it asks with a filter; a long one takes seconds to read."""
        row = topic.row
        found = partial(narrowed, defaults=row.defaults)
        return await self._host.workers.run(
            MATCH, found, account, row.name, topic.schema, row.semantics, text
        )

    # --- quenching

    async def wanted(self, account: Account, topic: str) -> Wanted:
        """What anybody wants of a topic, of that which the account may publish."""
        return await self._host.quenching.look(account, self._find(account, topic))

    async def quench(
        self, account: Account, topic: str, publisher: str, version: str | None, wait: float
    ) -> Wanted:
        """Tell a publisher what anybody wants; if it confirms the last version, it may drop."""
        found = self._find(account, topic)
        return await self._host.quenching.confirm(account, found, publisher, version, wait)

    def quench_no_more(self, account: Account, topic: str, publisher: str) -> None:
        """Note that a publisher drops nothing any more."""
        self._host.quenching.end(account, self._find(account, topic).topic.name, publisher)

    # --- the network

    def peers(self, account: Account) -> "list[PeerState]":
        """The brokers next to this one, by their names."""
        if not account.metrics:
            raise Forbidden(f"account {account.name!r} may not see the network: metrics = true")
        return [] if self.network is None else self.network.peers()

    async def savings(self, account: Account, peer: str) -> "tuple[PeerState, dict[str, Savings]]":
        """A peer, and what covering and merging save of the filters that it is told, by topic."""
        for one in self.peers(account):
            if one.name == peer and self.network is not None:
                return one, await self.network.savings(peer)
        raise UnknownPeer(f"there is no peer {peer!r}")

    async def forget_peer(self, account: Account, name: str) -> None:
        """Forget a peer that is gone for good, with its filters and what waits for it."""
        if account.topics.find("") is None:
            raise Forbidden(f"account {account.name!r} may not manage all topics, and so no peers")
        if self.network is None or all(one.name != name for one in self.network.peers()):
            raise UnknownPeer(f"there is no peer {name!r}")
        await self.network.forget(name)


def _network(settings: Settings, catalogue: Catalogue, random: Callable[[int], bytes]) -> "Network":
    from tamis.broker.network.network import Network

    known = settings.network
    assert known is not None  # noqa: S101 - the caller knows
    accounts = settings.accounts or (free_account(),)
    strategy = strategy_of(known.strategy)
    return Network(
        known.name, known.peers, accounts, catalogue, strategy, known.merging, random=random
    )


def _raise_refusal(topic: str, refused: Sequence[Refusal]) -> None:
    for row, reason in refused:
        raise EventError(f"topic {topic!r}: {reason}", row)
