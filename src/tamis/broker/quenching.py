"""Quenching: publishers are told what anybody wants at all, and may drop the rest at the source.

For each topic of which somebody quenches there is a summary of all filters: of the subscriptions
here, and of the peers, whose filters are those of everybody behind them. It is bounded, and may
match more than is wanted (`tamis.relations.summaries`), never less. A filter that is not covered
widens it at once; what is wanted no more is found out a little later, by looking at all filters
again. Topics of which nobody quenches cost nothing.

A subscription that widens the summary is acknowledged when all publishers know it
(`quench_leases.py`); so is the filter of a peer. docs/decisions/0024 says why that is enough.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.broker.grants import narrowed, publish_grant
from tamis.broker.quench_leases import Leases
from tamis.broker.quench_rows import drop_quenched, local_filters, put_quenched, quenched
from tamis.broker.workers import MATCH
from tamis.errors import Forbidden, LimitReached, OptionError, TamisError
from tamis.language.expression import MATCHES_ALL, Expression, parse
from tamis.language.timeless_filters import timeless
from tamis.relations.covering import covers
from tamis.relations.summaries import one_filter, reading, summary
from tamis.routing.filter_cache import shared_cache
from tamis.semantics import Semantics

if TYPE_CHECKING:
    from tamis.broker.accounts import Account
    from tamis.broker.catalogue import Catalogue
    from tamis.broker.host import Host
    from tamis.broker.topic import Topic
    from tamis.broker.topics import OpenTopic, Topics

LEASE = 5.0  # seconds after which a publisher that does not confirm may not drop any more
LEASE_FOR_PUBLISHERS = 4.0  # what publishers are told that it is: their clocks may be slower
LONGEST_WAIT = 10.0  # seconds for news
LOOK = 0.25  # seconds between looks at the clock while somebody waits
PAUSE = 1.0  # seconds before filters that are gone are taken out of a summary
MOST_SUBSCRIPTIONS = 100_000  # of a topic; the summary of more is TRUE
MOST_PUBLISHERS = 10_000  # of a topic

logger = logging.getLogger("tamis.broker")


class Wanted(NamedTuple):
    """What anybody wants of a topic."""

    version: str
    filter: str
    schema: Mapping[str, str]
    semantics: str  # in which the filter is to be read
    defaults: Mapping[str, Any] | None
    granted: bool = False  # whether the version that was confirmed is the current one
    # For so many seconds, from before it was confirmed, it may be used:
    lease: float = LEASE_FOR_PUBLISHERS


class QuenchedTopic:
    """What is wanted of one topic, and who was told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.leases = Leases()
        self.version = 1
        self.parts: tuple[Expression, ...] | None = None  # None: everything
        self.is_dirty = True  # something is wanted no more, or was never looked at
        self.refreshing: asyncio.Task[None] | None = None
        self.added: list[Expression] = []  # since the refresh has begun
        self.waiting = 0  # publishers that wait for news
        self._epoch = secrets.token_hex(4)  # versions of another run of the broker are others
        self._news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def stamp(self) -> str:
        """The version, as publishers know it."""
        return f"{self._epoch}.{self.version}"

    def put(self, parts: tuple[Expression, ...] | None) -> None:
        """Have another summary."""
        if _texts(parts) != _texts(self.parts):
            self.version += 1
        self.parts = parts
        self.wake_waiters()

    def widen(self, expression: Expression, topic: "Topic") -> None:
        """Let the summary match what a filter matches."""
        expression = timeless(expression)  # publishers do not know when an event will be stored
        if self.refreshing is not None:
            self.added.append(expression)
        if self.parts is None:
            return
        semantics = _reading_semantics(topic)
        known = one_filter(self.parts, topic.schema)
        if not covers(known, expression, semantics=semantics.name, defaults=topic.row.defaults):
            self.put(summary([*self.parts, expression], semantics))

    def wake_waiters(self) -> None:
        """Let all who wait look again."""
        if not self._news.done():
            self._news.set_result(None)
        self._news = self._news.get_loop().create_future()

    async def changed(self, seconds: float) -> None:
        """Return when something has changed, or after some time."""
        await asyncio.wait([self._news], timeout=max(0.0, seconds))


class Quenching:
    """The topics of a broker of which publishers drop events at the source."""

    def __init__(self, accounts: "Iterable[Account]") -> None:
        self._accounts = {account.name: account for account in accounts}
        self._quenched: dict[str, QuenchedTopic] = {}
        self._changing = asyncio.Lock()  # held while a topic comes or goes
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._host: Host
        self._topics: Topics
        self._tables: Catalogue

    def start(self, host: "Host", topics: "Topics", tables: "Catalogue") -> None:
        """Restore the leases of publishers that may still be dropping events since the last run."""
        self._host, self._topics, self._tables = host, topics, tables
        now = host.monotonic()
        for name, lease in quenched(tables).items():
            one = self._quenched[name] = QuenchedTopic(name)
            one.leases.confirm(None, 0, now + lease)
            self._look_later(one)

    async def stop(self) -> None:
        """Let nobody wait any more."""
        self._stopping = True
        for one in self._quenched.values():
            one.wake_waiters()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- subscribers

    def widen(self, topic: str, filters: Iterable[Expression | str]) -> None:
        """Filters have come that are not acknowledged yet."""
        one = self._quenched.get(topic)
        found = None if one is None else self._topics.get(topic)
        if one is None or found is None:
            return
        schema = found.topic.schema
        for filter_ in filters:
            one.widen(parse(filter_, schema) if isinstance(filter_, str) else filter_, found.topic)

    def narrow(self, topic: str) -> None:
        """Somebody wants less of a topic than before."""
        one = self._quenched.get(topic)
        if one is not None:
            one.is_dirty = True
            self._refresh_later(one)

    def change(self, topic: "Topic") -> None:
        """A topic has more attributes, or is another one of the same name."""
        one = self._quenched.get(topic.name)
        if one is not None:
            one.parts, one.is_dirty = None, True
            one.version += 1
            one.wake_waiters()
            self._refresh_later(one)

    def change_accounts(self, accounts: "Iterable[Account]") -> None:
        """Accounts may receive something else now: everything is summed up again."""
        self._accounts = {account.name: account for account in accounts}
        for name in self._quenched:
            found = self._topics.get(name)
            if found is not None:
                self.change(found.topic)

    async def told(self, topic: str) -> None:
        """Return when no publisher drops anything that is wanted now."""
        one = self._quenched.get(topic)
        if one is not None:
            await self._told(one)

    def when_told(self, topic: str, call: Callable[[], None]) -> None:
        """Call a function when all publishers know what is wanted now; at once if they do."""
        one = self._quenched.get(topic)
        if one is None or one.leases.waits_until(one.version, self._host.monotonic()) is None:
            call()
            return

        async def wait() -> None:
            await self._told(one)
            if not self._stopping:
                call()

        self._spawn(wait())

    async def _told(self, one: QuenchedTopic) -> None:
        """Return when no publisher can drop by an earlier version than the current one."""
        version = one.version
        while not self._stopping:
            now = self._host.monotonic()
            until = one.leases.waits_until(version, now)
            if until is None:
                return
            await one.changed(min(LOOK, until - now))

    # --- publishers

    async def look(self, account: "Account", found: "OpenTopic") -> Wanted:
        """What is wanted now, for somebody who drops nothing because of it."""
        self._check(account, found.topic)
        one = self._quenched.get(found.topic.name)
        if one is None or one.parts is None:
            one = QuenchedTopic(found.topic.name)
            await self._refresh(one)
        return self._wanted(one, account, found.topic)

    async def confirm(
        self, account: "Account", found: "OpenTopic", publisher: str, version: str | None,
        wait: float,
    ) -> Wanted:  # fmt: skip
        """Tell a publisher what is wanted; if it confirms the current version it may drop by it.

        Then the answer comes when there is another version, or after `wait` seconds.
        """
        topic = found.topic
        self._check(account, topic)
        if not publisher or len(publisher) > 200 or not publisher.isprintable():
            raise OptionError("a publisher is named by 1 to 200 characters that can be printed")
        if not 0 <= wait <= LONGEST_WAIT:
            raise OptionError(f"wait is a number of seconds from 0 to {LONGEST_WAIT:g}")
        one = await self._active(topic.name)
        key = account.name, publisher
        if len(one.leases) >= MOST_PUBLISHERS and key not in one.leases:
            raise LimitReached(f"{MOST_PUBLISHERS:,} publishers quench topic {topic.name!r}")
        granted = version == one.stamp and not self._stopping
        if granted:
            one.leases.confirm(key, one.version, self._host.monotonic() + LEASE)
            one.wake_waiters()
            await self._await_news(one, wait)
        return self._wanted(one, account, topic)._replace(granted=granted)

    async def _await_news(self, one: QuenchedTopic, wait: float) -> None:
        version, until = one.version, self._host.monotonic() + wait
        one.waiting += 1
        try:
            while one.version == version and not self._stopping:
                left = until - self._host.monotonic()
                if left <= 0:
                    return
                await one.changed(left)
        finally:
            one.waiting -= 1

    def end(self, account: "Account", topic: str, publisher: str) -> None:
        """A publisher drops nothing any more."""
        one = self._quenched.get(topic)
        if one is not None:
            one.leases.end((account.name, publisher))
            one.wake_waiters()

    def _check(self, account: "Account", topic: "Topic") -> None:
        publish_grant(account, topic.name, topic.schema)
        if not account.quench:
            raise Forbidden(
                f"account {account.name!r} may not know what others want: quench = true"
            )

    def _wanted(self, one: QuenchedTopic, account: "Account", topic: "Topic") -> Wanted:
        """What an account is told: what is wanted of that which it may publish."""
        row, semantics = topic.row, _reading_semantics(topic)
        text = MATCHES_ALL
        if one.parts is not None:
            grant = publish_grant(account, topic.name, topic.schema)
            parts: Sequence[Expression] = one.parts
            if grant is not None:
                cache = shared_cache(topic.schema, semantics.name, row.defaults)
                limit = str(grant)
                parts = [part for part in parts if cache.may_intersect(str(part), limit)]
            text = str(one_filter(parts, topic.schema))
        return Wanted(one.stamp, text, row.schema, semantics.name, row.defaults)

    # --- topics of which somebody quenches

    async def _active(self, name: str) -> QuenchedTopic:
        async with self._changing:
            one = self._quenched.get(name)
            if one is None:
                # Before the first publisher may drop: the next run of the broker has to know.
                await self._host.commits.commit(put_quenched(name, LEASE))
                one = self._quenched[name] = QuenchedTopic(name)
                self._look_later(one)
        if one.parts is None and one.is_dirty:
            self._refresh_now(one)
        if one.parts is None and one.refreshing is not None:
            await asyncio.wait([one.refreshing])
        return one

    def _look_later(self, one: QuenchedTopic) -> None:
        self._host.later(2 * LEASE, lambda: self._spawn(self._look_after(one)))

    async def _look_after(self, one: QuenchedTopic) -> None:
        """Forget a topic of which nobody quenches any more."""
        async with self._changing:
            if self._stopping:
                return
            one.leases.expire(self._host.monotonic())
            if not one.leases and not one.waiting:
                try:
                    await self._host.commits.commit(drop_quenched(one.name))
                except TamisError as error:
                    logger.warning("topic %r still counts as quenched: %s", one.name, error)
                else:
                    if not one.leases:
                        del self._quenched[one.name]
                        return
                    await self._host.commits.commit(put_quenched(one.name, LEASE))
        self._look_later(one)

    def _refresh_later(self, one: QuenchedTopic) -> None:
        if one.refreshing is None:
            self._host.later(PAUSE, lambda: self._refresh_now(one))

    def _refresh_now(self, one: QuenchedTopic) -> None:
        if one.refreshing is None and one.is_dirty and not self._stopping:
            one.refreshing = self._spawn(self._refresh(one))

    async def _refresh(self, one: QuenchedTopic) -> None:
        """Make the summary of a topic of all filters that are there."""
        found = self._topics.get(one.name)
        if found is None:
            one.refreshing = None
            return
        schema, semantics = found.topic.schema, _reading_semantics(found.topic)
        one.is_dirty, one.added = False, []
        try:
            parts = await self._host.workers.run(
                MATCH, self._summed, *self._filters(found), semantics
            )
            if parts is not None:
                parts = summary([*parts, *one.added], semantics)
        except Exception:  # a summary of everything is always right
            logger.exception("what is wanted of topic %r cannot be summed up", one.name)
            parts = None
        one.refreshing = None
        if found.topic.schema is schema:
            one.put(parts)
        if one.is_dirty:
            self._refresh_later(one)

    def _filters(self, found: "OpenTopic") -> "tuple[Topic, list[tuple[str, str]] | None]":
        """All filters that count, with their accounts, or with "" if they count as they are."""
        topic, number = found.topic, found.topic.number
        held = sum(self._tables.counts_of(number).values())
        if held > MOST_SUBSCRIPTIONS:
            return topic, None
        not_durable = found.subscriptions.not_durable()
        unnamed = [("", str(one.interest.filter)) for one in topic.listeners()]
        peers = [("", text) for text in self._host.network.wanted(topic.name)]
        rows = [*local_filters(self._tables, number), *not_durable, *unnamed, *peers]
        return topic, list(dict.fromkeys(rows))

    def _summed(
        self, topic: "Topic", rows: list[tuple[str, str]] | None, semantics: Semantics
    ) -> tuple[Expression, ...] | None:
        """In a thread: the summary of filters; None if there are too many."""
        if rows is None or len(rows) > MOST_SUBSCRIPTIONS:
            return None
        wanted = (timeless(self._narrowed(topic, account, text)) for account, text in rows)
        return summary(wanted, semantics)

    def _narrowed(self, topic: "Topic", account: str, text: str) -> Expression:
        """What a filter matches of that which its account may receive, or more."""
        row, known = topic.row, self._accounts.get(account)
        try:
            asked = parse(text, topic.schema)
        except TamisError as error:
            logger.warning("a filter for topic %r is taken as TRUE: %s", topic.name, error)
            return parse(MATCHES_ALL, topic.schema)
        if known is None:
            return asked
        try:
            return narrowed(
                known, topic.name, topic.schema, row.semantics, asked, defaults=row.defaults
            )
        except TamisError:  # what it gets by other grants is not known
            return asked

    def _spawn(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _reading_semantics(topic: "Topic") -> Semantics:
    return reading(Semantics(topic.row.semantics, topic.schema, topic.row.defaults))


def _texts(parts: tuple[Expression, ...] | None) -> list[str] | None:
    return None if parts is None else [str(part) for part in parts]
