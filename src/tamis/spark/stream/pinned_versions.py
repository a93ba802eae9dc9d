"""The subscriptions of a stream, on the driver: each micro-batch is pinned to a version of them.

If the changes of a version are few, each worker makes them on its own. If they are many, the
executors compile them, and they are joined with the last compiled file. A version whose filters can
test more attributes than before has a compiled file of its own as well.
"""

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.container import fingerprint_of
from tamis.dead_letters import DeadLetter, listing
from tamis.language.arrival import present_moment
from tamis.language.expression import parse
from tamis.matcher_settings import MatcherSettings
from tamis.names import path_text
from tamis.schema import Schema
from tamis.spark.compile.job import compile_subscriptions, new_file
from tamis.spark.compile.sent_rules import Changes, SentRules, folder_for_files
from tamis.spark.shards.budget import Sharding
from tamis.spark.shards.job import ShardedRules
from tamis.spark.stream import new_changes
from tamis.spark.stream.base_files import BaseFile, changed_base, open_base
from tamis.spark.stream.base_shards import (
    BaseShards,
    open_shards,
    subscription_frame,
    write_shards,
    write_table,
)
from tamis.spark.stream.changelogs import Changelog
from tamis.spark.stream.changes import changes_of
from tamis.spark.stream.new_changes import NewChanges
from tamis.spark.stream.stream_schema import (
    StreamSchema,
    as_texts,
    listed,
    merged,
    settings_for,
)
from tamis.spark.stream.versions import Pin, Version, Versions
from tamis.spark.tables.event_table import attributes_to_read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The changes since a base are sent with every task. Unless they are few, they are
SHARE = 10  # at most a tenth of its subscriptions,
MOST = 100_000  # and never more than this many.
CHAIN = 100  # versions since a file, each of which is read when a stream is started again

logger = logging.getLogger("tamis")


class PinnedVersion(NamedTuple):
    """The subscriptions of a micro-batch."""

    version: int
    moment: int  # when its events arrive, in microseconds since 1970
    settings: MatcherSettings
    rules: SentRules | ShardedRules
    attributes: set[str]  # that workers read
    id_type: str | None  # for Spark; None if there has been no subscription yet
    subscriptions: int  # how many there are
    letters: tuple[DeadLetter, ...]  # about bad changes since the last micro-batch
    bad: int  # changes


class _Known(NamedTuple):
    """A version as it was last pinned: reading the log again would take longer every time."""

    version: Version
    base: int
    changes: Changes  # since the base
    tested: set[str]  # attributes, by the changes


@dataclass
class StreamSubscriptions:
    """The subscriptions of a stream, and their versions.

    With Spark Connect this runs in a process of the server, to which it is sent before it is used:
    so it must not refer to a session.
    """

    settings: MatcherSettings  # with all attributes that filters can test, now and later
    schema: StreamSchema
    log: Changelog
    checkpoint: str
    sharding: Sharding
    first_ids: str | None = None  # the type of the ids before there are any
    _base: BaseFile | BaseShards | None = field(default=None, repr=False)
    _known: _Known | None = field(default=None, repr=False)
    _changed: tuple[int, ShardedRules] | None = field(default=None, repr=False)

    def pin(self, spark: "SparkSession", batch: int) -> PinnedVersion:
        """The subscriptions of a micro-batch; the same as before if it is repeated."""
        versions = Versions(self.checkpoint)
        pin = versions.pinned(batch)
        if pin is None:
            pin = Pin(self._advance(spark, versions), present_moment())
            versions.pin(batch, pin)
        number = pin.version
        known = self._look_up(versions, number)
        version, settings = known.version, self._settings(known.version.schema)
        base = self._open(spark, versions, known.base)
        self._base = base = base.sent_to_executors(spark) if isinstance(base, BaseFile) else base
        # A query that died may have left a version that no micro-batch was pinned to.
        last = versions.pinned(batch - 1)
        before = 0 if last is None else last.version
        new = [versions.get(one) for one in range(before + 1, number + 1)]
        return PinnedVersion(
            number, pin.moment, settings, self._rules(base, known),
            attributes_to_read(
                settings.schema, base.attributes | known.tested, settings.semantics
            ),
            version.ids, version.subscriptions,
            tuple(letter for one in new for letter in one.letters),
            sum(one.bad for one in new),
        )  # fmt: skip

    def _rules(self, base: "BaseFile | BaseShards", known: _Known) -> SentRules | ShardedRules:
        """The rules of a base with the changes since."""
        if isinstance(base, BaseFile):
            return SentRules(base.name, known.changes, fingerprint_of(base.path))
        if self._changed is None or self._changed[0] != known.version.number:
            rules = base.rules.changed(known.changes) if known.changes else base.rules
            self._changed = known.version.number, rules
        return self._changed[1]

    def _settings(self, schema: Any) -> MatcherSettings:
        return settings_for(self.settings, Schema(schema))

    def _look_up(self, versions: Versions, number: int) -> _Known:
        """A version, and what has changed since its base."""
        known = self._known
        if known is not None and known.version.number == number:
            return known
        version = versions.get(number)
        schema = Schema(version.schema)
        if version.is_base:
            found = _Known(version, number, {}, set())
        elif known is not None and known.version.number == number - 1:
            changes = dict(known.changes)
            for subscription, text in version.changes.items():
                changes.pop(subscription, None)  # a later change goes to the end
                changes[subscription] = text
            tested = known.tested | attributes_of(version.changes, schema)
            found = _Known(version, known.base, changes, tested)
        else:
            base, changes = versions.since_base(number)
            found = _Known(version, base, changes, attributes_of(changes, schema))
        self._known = found
        return found

    def _advance(self, spark: "SparkSession", versions: Versions) -> int:
        """Look for new changes; returns the number of the newest version."""
        number = versions.newest()
        before = versions.get(number) if number else Version(0, None, is_base=False)
        news = self.log.news(spark, before.position)
        now = self._schema_now(before)
        is_new = news.changes is not None or news.problems or as_texts(now.schema) != before.schema
        if number and not is_new:
            return number
        for problem in news.problems:
            logger.warning("changes: %s", problem)
        some = NewChanges.read(news, before.ids)
        asked = some.names(now)
        if asked:
            new = listed(column for column in now.columns if column.name in asked)
            logger.warning("new attributes, since filters name them: %s", new)
        draft = replace(
            before, number=number + 1, position=news.position, is_base=False,
            is_sharded=False, changes={}, schema=as_texts(now.grown(asked)),
            letters=tuple(DeadLetter("subscriptions", 0, None, one) for one in news.problems),
            bad=len(news.problems),
        )  # fmt: skip
        made = self._with_few(spark, versions, before, draft, some)
        if made is None:
            made = self._with_base(spark, versions, before, draft, some)
        ids = some.ids if made.subscriptions else before.ids or self.first_ids
        base = self._base
        rules = base.path if made.is_base and isinstance(base, BaseFile) else None
        versions.add(replace(made, ids=ids), rules)
        if not made.subscriptions:
            why = listing(list(made.letters), made.bad) if made.bad else "none has come yet"
            logger.warning("there are no subscriptions, so nothing matches: %s", why)
        return made.number

    def _schema_now(self, before: Version) -> StreamSchema:
        """The attributes of the version before and of the settings, and the columns left."""
        if not before.number:
            return self.schema
        schema = merged(Schema(before.schema), self.schema.schema)
        left = tuple(one for one in self.schema.columns if one.path not in schema.positions)
        return StreamSchema(schema, left)

    def _with_few(
        self, spark: "SparkSession", versions: Versions, before: Version, draft: Version,
        some: NewChanges,
    ) -> Version | None:  # fmt: skip
        """The version with changes that workers make; None if it has to be compiled."""
        if not before.number or draft.schema != before.schema or some.few is None:
            return None
        rows = zip(*(some.few[name].to_pylist() for name in ("id", "filter", "op")), strict=True)
        changes, letters = changes_of(rows, self._settings(draft.schema))
        known = self._look_up(versions, before.number)
        base = self._base = self._open(spark, versions, known.base)
        most = max(new_changes.FEW, min(MOST, len(base) // SHARE))
        too_many = len(known.changes | changes) > most
        if too_many or draft.number - known.base > CHAIN:
            return None
        there = sum(known.changes.get(one) is not None for one in changes)
        there += base.held(one for one in changes if one not in known.changes)
        added = sum(text is not None for text in changes.values())
        return replace(
            draft, changes=changes, letters=(*draft.letters, *letters),
            bad=draft.bad + len(letters), subscriptions=before.subscriptions + added - there,
        )  # fmt: skip

    def _with_base(
        self, spark: "SparkSession", versions: Versions, before: Version, draft: Version,
        some: NewChanges,
    ) -> Version:  # fmt: skip
        """The version with all subscriptions compiled: the last base, and all changes since."""
        base, changes = None, Changes()
        if before.number:
            known = self._look_up(versions, before.number)
            base, changes = self._open(spark, versions, known.base), known.changes
        size = (0 if base is None else base.size) + some.size.compiled
        is_sharded, _ = self.sharding.choice(lambda: size)
        if is_sharded or isinstance(base, BaseShards):
            return self._with_shards(spark, versions, draft, base, changes, some)
        folder, settings = folder_for_files(), self._settings(draft.schema)
        part = some.compiled(settings, folder)
        path = part.path
        if base is not None or path is None:
            path = changed_base(base, settings, changes, part.path, part.removed, folder)
        return self._file_version(draft, path, part.letters, part.bad)

    def _file_version(
        self, draft: Version, path: Path, letters: tuple[DeadLetter, ...], bad: int
    ) -> Version:
        base = self._base = open_base(draft.number, path, self._settings(draft.schema))
        return replace(
            draft, is_base=True, is_sharded=False, letters=(*draft.letters, *letters),
            bad=draft.bad + bad, subscriptions=len(base),
        )  # fmt: skip

    def _with_shards(
        self, spark: "SparkSession", versions: Versions, draft: Version,
        base: "BaseFile | BaseShards | None", changes: Changes, some: NewChanges,
    ) -> Version:  # fmt: skip
        """The version as a table of subscriptions, compiled in shards if they are still many."""
        number, settings = draft.number, self._settings(draft.schema)
        texts = some.texts(spark, settings)
        try:
            table = write_table(
                versions, number, subscription_frame(spark, versions, base), changes, texts.rows
            )
        finally:
            texts.release()
        if not table.size.rows:
            path = changed_base(None, settings, {}, None, (), folder_for_files())
            return self._file_version(draft, path, texts.letters, texts.bad)
        if not self.sharding.choice(lambda: table.size.compiled)[0]:
            found = compile_subscriptions(table, settings, "last", folder_for_files())
            return self._file_version(draft, found.path, texts.letters, texts.bad)
        write_shards(versions, number, table, settings, self.sharding)
        made = self._base = open_shards(spark, versions, number, settings)
        return replace(
            draft, is_base=True, is_sharded=True, letters=(*draft.letters, *texts.letters),
            bad=draft.bad + texts.bad, subscriptions=len(made),
        )  # fmt: skip

    def _open(
        self, spark: "SparkSession", versions: Versions, number: int
    ) -> "BaseFile | BaseShards":
        """What was compiled for a base."""
        base = self._base
        if base is not None and base.version == number:
            return base
        version = versions.get(number)  # another run of the query compiled it
        settings = self._settings(version.schema)
        if version.is_sharded:
            return open_shards(spark, versions, number, settings)
        path = new_file(folder_for_files())
        versions.fetch_rules(number, path)
        return open_base(number, path, settings)


def attributes_of(changes: Changes, schema: Schema) -> set[str]:
    """The attributes that changed filters test."""
    return {
        path_text(path)
        for text in changes.values()
        if text is not None
        for path in parse(text, schema).attributes
    }
