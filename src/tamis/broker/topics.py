"""All topics of a broker: found when it starts, made, widened and deleted while it runs."""

import asyncio
import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.broker.catalogue import (
    Catalogue,
    TopicRow,
    drop_topic,
    put_topic,
    store_progress,
)
from tamis.broker.host import Host
from tamis.broker.log.damage import Damage
from tamis.broker.log.disk import Disk
from tamis.broker.log.file_limits import LogOptions
from tamis.broker.log.topic_log import TopicLog
from tamis.broker.records import DEAD, Retention
from tamis.broker.subscriptions import Subscriptions
from tamis.broker.topic import Topic
from tamis.broker.workers import LOG
from tamis.errors import Conflict, OptionError, SchemaError, TopicExists
from tamis.schema import Schema
from tamis.semantics import Semantics

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")

logger = logging.getLogger("tamis.broker")


@dataclass(frozen=True)
class OpenTopic:
    """A topic, and its subscriptions."""

    topic: Topic
    subscriptions: Subscriptions


class Topics:
    """The topics of a broker, by their names."""

    def __init__(self, host: Host, catalogue: Catalogue, disk: Disk, folder: Path) -> None:
        self.damage: list[Damage] = []  # of what is not a log
        # Called with the subscriptions that each account had on a topic that was deleted.
        self.when_deleted: Callable[[Counter[str]], None] = lambda _: None
        self._host = host
        self._catalogue = catalogue
        self._disk = disk
        self._folder = folder
        self._options = LogOptions()  # one for all: they share what is kept in memory
        self._open: dict[str, OpenTopic] = {}
        self._numbers = itertools.count()
        self._damaged: dict[str, int] = {}  # numbers of topics whose rows are damaged
        self._changing = asyncio.Lock()  # held while a topic is made, changed or deleted

    def __iter__(self) -> Iterator[OpenTopic]:
        return iter(list(self._open.values()))

    def get(self, name: str) -> OpenTopic | None:
        """A topic that is open, or None."""
        return self._open.get(name)

    # --- starting and stopping

    async def open_all(self) -> None:
        """Open what the catalogue has; finish what was being deleted."""
        rows = self._catalogue.topics()
        known = {row.name for row in rows}
        self._find_strays(known)
        numbers = self._catalogue.numbers()
        self._numbers = itertools.count(max(numbers.values(), default=0) + 1)
        self._damaged = {n: number for n, number in numbers.items() if n not in known}
        for row in rows:
            if row.deleted:
                await self._remove(row)
            else:
                await self._open_topic(row)
        self.damage += self._catalogue.damage
        for damage in self.damage:
            logger.error("%s", damage)

    def _find_strays(self, known: set[str]) -> None:
        """Say which folders have events of topics that the catalogue does not have."""
        self._disk.make_folder(self._folder)
        for name in sorted(set(self._disk.names(self._folder)) - known):
            if self._disk.names(self._folder / name):
                reason = "the catalogue has no such topic; create it again to read its events"
                self.damage.append(Damage(name, 0, 0, reason))

    async def _open_topic(self, row: TopicRow) -> OpenTopic:
        log = await self._host.workers.run(LOG, self._open_log, row)
        for damage in log.damage:
            logger.error("topic %r: %s", row.name, damage)
        await self._unsure_after_crash(row, log.next_offset)
        topic = Topic(self._host, row, log)
        found = OpenTopic(topic, Subscriptions(topic, self._catalogue))
        self._open[row.name] = found
        await self._host.network.opened(topic)
        self._host.quenching.change(topic)
        return found

    def _open_log(self, row: TopicRow) -> TopicLog:
        folder = self._folder / row.name
        return TopicLog.open(
            self._disk, folder, Schema(row.schema), options=self._options,
            least_next_offset=row.next_offset,
        )  # fmt: skip

    async def _unsure_after_crash(self, row: TopicRow, end: int) -> None:
        """Mark what may have been sent to those that were listening when the broker died."""
        listened = self._catalogue.attached(row.number)
        if listened:
            unsure = [
                one._replace(progress=one.progress.after_crash(end), attached=False)
                for one in listened
            ]
            await self._host.commits.commit(*map(store_progress, unsure))

    async def close(self) -> None:
        """Write and hand out what waits, and close all topics."""
        for found in self:
            await found.topic.close()
        await self._host.commits.commit(*(put_topic(found.topic.row_now()) for found in self))
        for found in self:
            await self._host.workers.run(LOG, found.topic.log.close)
        self._open.clear()

    # --- changing

    async def create(
        self, name: str, schema: Schema, semantics: str, defaults: Mapping[str, Any] | None,
        retention: Retention | None, births: Sequence[str] = (),
    ) -> OpenTopic:  # fmt: skip
        """Make a topic; one that is there gets the attributes that it lacks.

        It gets the `births` that it has elsewhere in the network, or one of its own.
        """
        check_name(name)
        if not len(schema):
            raise SchemaError(f"topic {name!r} needs at least one attribute")
        Semantics(semantics, schema, defaults)  # refuses what does not fit
        async with self._changing:
            found = self._open.get(name)
            if found is not None:
                await self._change(found.topic, schema, semantics, defaults, retention, births)
                return found
            described = {attribute.name: str(attribute) for attribute in schema.attributes}
            # One whose row was damaged gets its subscriptions back.
            number = self._damaged.pop(name, None) or next(self._numbers)
            row = TopicRow(
                number, name, described, semantics, defaults, retention,
                births=tuple(births) or self._host.network.births(),
            )  # fmt: skip
            await self._host.commits.commit(put_topic(row))
            return await self._open_topic(row)

    async def _change(
        self, topic: Topic, schema: Schema, semantics: str,
        defaults: Mapping[str, Any] | None, retention: Retention | None, births: Sequence[str],
    ) -> None:  # fmt: skip
        if semantics != topic.row.semantics:
            raise TopicExists(
                f"topic {topic.name!r} has semantics {topic.row.semantics!r}, and cannot get "
                f"{semantics!r}: its subscriptions would mean something else"
            )
        wider = _widened(topic, schema)
        if wider == topic.schema and defaults is not None and defaults != topic.row.defaults:
            raise Conflict(f"topic {topic.name!r} has other defaults: {topic.row.defaults}")
        row = topic.row_now()._replace(
            schema={attribute.name: str(attribute) for attribute in wider.attributes},
            defaults=defaults if wider != topic.schema else topic.row.defaults,
            retention=topic.row.retention if retention is None else retention,
            births=tuple(dict.fromkeys([*topic.row.births, *births])),
        )
        if row != topic.row_now():
            await topic.become(row, wider)

    async def delete(self, name: str) -> None:
        """Forget a topic with its events and subscriptions."""
        async with self._changing:
            found = self._open.get(name)
            if found is None:
                return
            row = found.topic.row_now()._replace(deleted=True)
            changes = self._host.network.deletion(found.topic)
            await self._host.commits.commit(put_topic(row), *changes)
            self.when_deleted(found.subscriptions.counts())
            del self._open[name]
            await self._host.network.deleted(found.topic)
            await found.topic.close("the topic was deleted")
            await self._remove(row)
            self._host.metrics.forget_topic(name)

    async def _remove(self, row: TopicRow) -> None:
        log = await self._host.workers.run(LOG, self._open_log, row)
        await self._host.workers.run(LOG, log.remove)
        await self._host.commits.commit(*drop_topic(row.number))

    async def dead_letters_of(self, topic: Topic) -> OpenTopic:
        """The dead-letter topic of a topic, made or widened if need be."""
        row = topic.row
        return await self.create(DEAD + row.name, topic.schema, row.semantics, row.defaults, None)


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a topic."""
    inner = name.removeprefix(DEAD)
    if not _NAME.fullmatch(inner) or not inner.strip("."):
        raise OptionError(
            "the name of a topic has 1 to 200 letters, digits, dots, hyphens and underscores, not "
            f"{name[:60]!r}"
        )


def _widened(topic: Topic, schema: Schema) -> Schema:
    """The schema of a topic that is asked for again: the same, or with more attributes."""
    try:
        wider = topic.schema.with_attributes(schema)
    except SchemaError as error:
        raise TopicExists(f"topic {topic.name!r} is there with another schema: {error}") from None
    missing = [a.name for a in topic.schema.attributes if schema.find(a.path) is None]
    if missing:
        raise TopicExists(
            f"topic {topic.name!r} is there, and has {', '.join(missing[:5])} as well: attributes "
            "can be added, not taken away"
        )
    if wider != topic.schema and topic.row.semantics == "total":
        raise TopicExists(
            f"topic {topic.name!r} has semantics 'total', and its events lack the new attributes"
        )
    return wider
