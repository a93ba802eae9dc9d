"""The subscriptions of a topic: rows of the catalogue, and those that live as long as the process.

What changes one subscription is done alone: whoever comes meanwhile waits for that one only.
"""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from tamis.broker.attachment import Attachment, Interest
from tamis.broker.catalogue import (
    Catalogue,
    SubscriptionRow,
    drop_subscription,
    put_subscription,
    store_progress,
)
from tamis.broker.delivery.buffer import Buffer
from tamis.broker.delivery.progress import starting_at
from tamis.broker.delivery.window import Window
from tamis.broker.grants import narrowed, subscribe_grant
from tamis.broker.records import DEAD, DeliveryOptions, SubscriptionInfo
from tamis.broker.subscription_moves import SubscriptionMoves
from tamis.broker.topic import Topic
from tamis.broker.workers import MATCH
from tamis.errors import Busy, Conflict, FileError, OptionError, UnknownSubscription
from tamis.language.expression import MATCHES_ALL, parse

if TYPE_CHECKING:
    from tamis.broker.accounts import Account

LONG_FILTER = 2_000  # characters from which a filter is read in a thread
LONGEST_ID = 500
FOREVER = 1 << 60  # attempts

logger = logging.getLogger("tamis.broker")


class Subscriptions:
    """The subscriptions of one topic."""

    def __init__(self, topic: Topic, catalogue: Catalogue) -> None:
        self._topic = topic
        self._catalogue = catalogue
        self._not_durable: dict[tuple[str, str], SubscriptionRow] = {}
        self._unnamed = itertools.count()
        self.moves = SubscriptionMoves(self, topic, catalogue)
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    # --- looking

    def info(self, account: str, id_: str) -> SubscriptionInfo:
        """What is known about a subscription."""
        return self._info(self.row(account, id_))

    def infos(self, account: str, after: str | None, most: int) -> list[SubscriptionInfo]:
        """Subscriptions of an account, by their ids."""
        rows = self._catalogue.subscriptions(self._topic.number, account, after, most)
        not_durable = [
            row
            for (who, id_), row in self._not_durable.items()
            if who == account and id_ > (after or "")
        ]
        found = sorted([*rows, *not_durable], key=lambda row: row.id)[:most]
        return [self._info(row) for row in found]

    def counts(self) -> Counter[str]:
        """How many subscriptions each account has here, by the names of the accounts."""
        found = Counter(self._catalogue.counts_of(self._topic.number))
        found.update(who for who, _ in self._not_durable)
        return found

    def _info(self, row: SubscriptionRow) -> SubscriptionInfo:
        one = self._topic.attached(row.account, row.id)
        now = row if one is None else one.row(attached=True)
        return SubscriptionInfo(
            self._topic.name, row.id, row.account, now.filter, self.is_durable(row),
            now.progress.cursor, now.options, one is not None, now.expired,
            self.moves.words(row.account, row.id),
        )  # fmt: skip

    def row(self, account: str, id_: str) -> SubscriptionRow:
        """A subscription as it is stored."""
        row = self._find(account, id_)
        if row is None:
            raise UnknownSubscription(f"topic {self._topic.name!r} has no subscription {id_!r}")
        return row

    def _find(self, account: str, id_: str) -> SubscriptionRow | None:
        row = self._not_durable.get((account, id_))
        try:
            return row or self._catalogue.subscription(self._topic.number, account, id_)
        except FileError as error:  # its owner can mend it, by making it again
            raise Conflict(str(error)) from None

    def is_durable(self, row: SubscriptionRow) -> bool:
        """Whether a subscription is kept while nobody listens."""
        return (row.account, row.id) not in self._not_durable

    @asynccontextmanager
    async def alone(self, account: str, id_: str) -> AsyncIterator[None]:
        """Change a subscription while nobody else does."""
        lock = self._locks.get((account, id_))
        if lock is None:
            lock = self._locks[account, id_] = asyncio.Lock()
        async with lock:
            yield

    # --- changing

    async def put(
        self, account: "Account", id_: str, text: str, options: DeliveryOptions, *,
        durable: bool, start: int,
    ) -> SubscriptionInfo:  # fmt: skip
        """Make a subscription, or give one another filter and options: it keeps its place."""
        _check_id(id_)
        interest = await self.interest(account, id_, text)
        async with self.alone(account.name, id_):
            self.moves.check_here(account.name, id_)
            known = self._find(account.name, id_)
            if known is None:
                account.usage.subscribe()
                row = SubscriptionRow(
                    self._topic.number, account.name, id_, text, options, starting_at(start)
                )
            elif self.is_durable(known) != durable:
                kind = "durable" if self.is_durable(known) else "not durable"
                raise Conflict(f"subscription {id_!r} is {kind}; delete it first to change that")
            else:
                one = self._topic.attached(account.name, id_)
                now = known if one is None else one.row(attached=True)
                row = now._replace(filter=text, options=options)
            if not durable:
                self._not_durable[account.name, id_] = row
            elif row != known:
                try:
                    await self._topic.host.commits.commit(put_subscription(row))
                except Busy:
                    if known is None:
                        account.usage.unsubscribe()
                    raise
            self._change_attached(interest, options)
            await self.want(account.name, id_, interest)
        return self._info(row)

    async def want(self, account: str, id_: str, interest: Interest) -> None:
        """Return when events that are published elsewhere come here, too."""
        await self._want_everywhere(f"{account}/{id_}", interest)

    async def _want_everywhere(self, name: str, interest: Interest) -> None:
        topic = self._topic
        wanted = topic.widened(interest).filter
        topic.host.quenching.widen(topic.name, [wanted])
        await topic.host.network.want(topic.name, name, wanted)
        await topic.host.quenching.told(topic.name)

    def _unwant(self, name: str) -> None:
        self._topic.host.network.unwant(self._topic.name, name)
        self._topic.host.quenching.narrow(self._topic.name)

    def not_durable(self) -> list[tuple[str, str]]:
        """The filters of subscriptions that are not durable, each with its account."""
        return [(account, row.filter) for (account, _), row in self._not_durable.items()]

    def _change_attached(self, interest: Interest, options: DeliveryOptions) -> None:
        one = self._topic.attached(interest.account, interest.id or "")
        if one is None:
            return
        one.outbox.options = self._options(options)
        if one.interest != interest:
            self._topic.change(one, interest)

    async def delete(self, account: "Account", id_: str) -> None:
        """Forget a subscription."""
        async with self.alone(account.name, id_):
            if self._not_durable.pop((account.name, id_), None) is None:
                with suppress(Conflict):  # a row that is damaged is dropped as well
                    self.row(account.name, id_)
                change = drop_subscription(self._topic.number, account.name, id_)
                forget = self.moves.forgetting(account.name, id_)
                await self._topic.host.commits.commit(change, *forget)
                self.moves.forgot(account.name, id_)
            account.usage.unsubscribe()
            self._unwant(f"{account.name}/{id_}")
            one = self._topic.attached(account.name, id_)
            if one is not None:
                self._topic.remove(one, "the subscription was deleted")

    async def ack(self, account: "Account", id_: str, offset: int) -> None:
        """Acknowledge everything up to an offset, whether somebody listens or not."""
        async with self.alone(account.name, id_):
            self.moves.check_here(account.name, id_)
            row = self.row(account.name, id_)
            one = self._topic.attached(account.name, id_)
            if one is not None:
                one.ack_up_to(offset)
                return
            if offset >= self._topic.dispatched:
                raise OptionError(
                    f"offset {offset} does not exist yet: the next event of topic "
                    f"{self._topic.name!r} gets offset {self._topic.dispatched}"
                )
            sent, row = (
                row.progress.unacknowledged,
                row._replace(progress=row.progress.acknowledged_up_to(offset)),
            )
            if self.is_durable(row):
                await self._topic.host.commits.commit(store_progress(row))
                self._topic.count_acks(len(sent) - len(row.progress.unacknowledged))
            else:
                self._not_durable[account.name, id_] = row

    # --- listening

    async def attach(self, account: "Account", id_: str) -> Attachment:
        """Listen to a subscription; whoever listened to it before is told that it ended."""
        async with self.alone(account.name, id_):
            self.moves.check_here(account.name, id_)
            row = self.row(account.name, id_)
            moved = self.moves.backlog(account.name, id_)
            interest = await self.interest(account, id_, row.filter)
            durable = self.is_durable(row)
            before = self._topic.attached(account.name, id_)
            if before is not None:
                row = before.row(attached=True)
                self._topic.remove(before, "another connection took over")
            elif durable:
                if row.attached:  # how far it had come could not be written
                    row = row._replace(progress=row.progress.after_crash(self._topic.dispatched))
                row = row._replace(attached=True)
                await self._topic.host.commits.commit(store_progress(row))
            options = self._options(row.options)
            outbox = Window(options, row.progress) if durable else Buffer(options)
            one = self._topic.attach(interest, outbox, row.progress.cursor, self.detach, moved)
            one.lost = row.expired
            return one

    async def attach_filter(
        self, account: "Account", text: str | None, start: int, options: DeliveryOptions
    ) -> Attachment:
        """Listen with a filter, without a subscription that has a name."""
        interest = await self.interest(account, None, MATCHES_ALL if text is None else text)
        account.usage.subscribe()
        name = f"/{next(self._unnamed)}"  # no account has an empty name
        counted = [account.usage]

        async def detach(one: Attachment, because: str) -> None:
            self._topic.remove(one, because)  # the topic may have done so: it is too slow
            self._unwant(name)
            while counted:
                counted.pop().unsubscribe()

        one = self._topic.attach(interest, Buffer(options), start, detach)
        try:
            await self._want_everywhere(name, interest)
        except BaseException:  # whatever ends it, nobody is left attached
            await one.close()
            raise
        return one

    async def detach(self, one: Attachment, because: str) -> None:
        """Listen no more; a durable subscription keeps its place."""
        account, id_ = one.interest.account, one.interest.id or ""
        async with self.alone(account, id_):
            if not self._topic.remove(one, because):
                return
            row = one.row(attached=False)
            if not one.durable:
                self._not_durable[account, id_] = row
                return
            try:
                await self._topic.host.commits.commit(store_progress(row))
            except Busy:
                logger.warning("subscription %r keeps its last known place", id_)

    async def interest(self, account: "Account", id_: str | None, text: str) -> Interest:
        """What an account listens to if it asks with a filter."""
        topic = self._topic
        run, schema, semantics = topic.host.workers.run, topic.schema, topic.row.semantics
        if len(text) < LONG_FILTER:
            asked = topic.filters.parse(text)
        else:
            asked = await run(MATCH, parse, text, schema)
        grants = partial(narrowed, defaults=topic.row.defaults)
        if subscribe_grant(account, topic.name, schema) is None:
            found = grants(account, topic.name, schema, semantics, asked)
        else:  # whether one filter covers another can take long
            found = await run(MATCH, grants, account, topic.name, schema, semantics, asked)
        return Interest(account.name, id_, text, found)

    def _options(self, options: DeliveryOptions) -> DeliveryOptions:
        """The options; a dead-letter topic has no dead letters of its own."""
        if self._topic.name.startswith(DEAD):
            return replace(options, most_attempts=FOREVER)
        return options


def _check_id(id_: str) -> None:
    if not id_ or len(id_) > LONGEST_ID or not id_.isprintable():
        raise OptionError(
            f"the id of a subscription has 1 to {LONGEST_ID} characters that can be printed, "
            f"not {id_[:50]!r}"
        )
