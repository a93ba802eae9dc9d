"""The subscriptions of a stream, on the driver: each micro-batch is pinned to a version of them.

If the changes of a version are few, each worker makes them on its own. If they are many, the
executors compile them, and they are joined with the last compiled file.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.dead_letters import DeadLetter, listing
from tamis.errors import OptionError, SubscriptionError
from tamis.language.expression import parse
from tamis.matcher import Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.names import path_text
from tamis.schema import Schema
from tamis.spark.compile.job import join_files, new_file
from tamis.spark.compile.published_rules import (
    Changes,
    PublishedRules,
    folder_for_files,
    publish,
)
from tamis.spark.compile.task_reports import (
    REPORT,
    read_counts,
    read_file_reports,
    read_texts,
    write_files,
)
from tamis.spark.stream.changelogs import Changelog
from tamis.spark.stream.changes import changes_of
from tamis.spark.stream.versions import Version, Versions
from tamis.spark.stream.worker import CompileChangesTask
from tamis.spark.tables.event_table import attributes_to_read
from tamis.spark.tables.subscription_table import TableSize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW = 5000  # changes that each worker makes on its own; more of them are compiled
SHARE = 10  # the changes since a file are at most this part of its subscriptions


class PinnedVersion(NamedTuple):
    """The subscriptions of a micro-batch."""

    version: int
    rules: PublishedRules
    attributes: set[str]  # that workers read
    id_type: str  # for Spark
    letters: tuple[DeadLetter, ...]  # about bad changes since the last micro-batch
    bad: int  # changes


class BaseFile(NamedTuple):
    """The compiled file of a version."""

    version: int
    path: Path
    subscriptions: int
    attributes: frozenset[str]  # that its filters test
    name: str = ""  # under which workers find it, once it is published


@dataclass
class StreamSubscriptions:
    """The subscriptions of a stream, and their versions.

    With Spark Connect this runs in a process of the server, to which it is sent before it is used:
    so it must not refer to a session.
    """

    settings: MatcherSettings
    log: Changelog
    checkpoint: str
    _base: BaseFile | None = field(default=None, repr=False)

    def pin(self, spark: "SparkSession", batch: int) -> PinnedVersion:
        """The subscriptions of a micro-batch; the same as before if it is repeated."""
        versions = Versions(self.checkpoint)
        number = versions.pinned(batch)
        if number is None:
            number = self._advance(spark, versions)
            versions.pin(batch, number)
        base_number, changes = versions.since_base(number)
        base = self._open(spark, versions, base_number)
        tested = base.attributes | attributes_of(changes, self.settings.schema)
        # A query that died may have left a version that no micro-batch was pinned to.
        new = [versions.get(n) for n in range((versions.pinned(batch - 1) or 0) + 1, number + 1)]
        return PinnedVersion(
            number, PublishedRules(base.name, changes),
            attributes_to_read(self.settings.schema, tested, self.settings.semantics),
            versions.get(number).ids,
            tuple(letter for version in new for letter in version.letters),
            sum(version.bad for version in new),
        )  # fmt: skip

    def _advance(self, spark: "SparkSession", versions: Versions) -> int:
        """Look for new changes; returns the number of the newest version."""
        number = versions.newest()
        before = versions.get(number) if number else None
        position, news = self.log.news(spark, before.position if before else None)
        if news is None:
            if before is None:
                raise SubscriptionError(
                    "there are no subscriptions yet; put the first ones into the changelog"
                )
            return number
        ids = before.ids if before else _id_type(news)
        news = news.select(news["id"].try_cast(ids).alias("id"), "filter", "op", "place")
        few = news.orderBy("place").limit(FEW + 1).toArrow()
        if before is not None and few.num_rows <= FEW:
            rows = zip(*(few[name].to_pylist() for name in ("id", "filter", "op")), strict=True)
            changes, letters = changes_of(rows, self.settings)
            base_number, since = versions.since_base(number)
            base = self._open(spark, versions, base_number)
            if len(since | changes) <= max(FEW, base.subscriptions // SHARE):
                versions.add(
                    Version(number + 1, position, False, changes, tuple(letters), len(letters), ids)
                )
                return number + 1
        self._compile(versions, number + 1, position, news, ids)
        return number + 1

    def _compile(
        self, versions: Versions, number: int, position: Any, news: "DataFrame", ids: str
    ) -> None:
        """Add a version with its own file: the last base, the changes since, and the new ones."""
        folder = folder_for_files()
        tasks = TableSize(news.count(), 0).tasks
        spread = news.repartition(tasks, "id").sortWithinPartitions("place")
        from pyspark.sql import functions as f

        rows = spread.select("id", "filter", f.col("place.row").alias("row"), "op")
        found = rows.mapInArrow(CompileChangesTask(self.settings), REPORT).toArrow()
        counts, letters = read_counts(found)
        reports = read_file_reports(found).values()
        removed = [one for text in read_texts(found, "removed") for one in json.loads(text)]
        parts = write_files(found, folder)
        del found
        if number == 1 and not parts:
            raise SubscriptionError(f"no subscription can be used: {listing(letters, counts.bad)}")
        path = join_files(parts, folder, self.settings) if parts else None
        if number > 1 or path is None:
            base = self._on_top(versions, number, path, removed, folder)
        else:
            attributes = {name for one in reports for name in one.attributes}
            subscriptions = sum(one.subscriptions for one in reports)
            base = BaseFile(number, path, subscriptions, frozenset(attributes))
        version = Version(number, position, True, {}, tuple(letters), counts.bad, ids)
        versions.add(version, base.path)
        self._base = base

    def _on_top(
        self, versions: Versions, number: int, part: Path | None, removed: Iterable[Any],
        folder: Path,
    ) -> BaseFile:  # fmt: skip
        """The file of a version: the subscriptions of the version before it, and its changes."""
        base_number, changes = versions.since_base(number - 1)
        matcher = self._fetch(versions, base_number, folder / "before.tamis")
        goes = [subscription for subscription, text in changes.items() if text is None]
        for subscription in (*goes, *removed):
            if subscription in matcher:
                matcher.unsubscribe(subscription)
        gone = set(removed)
        matcher.subscribe_many(
            [(s, text) for s, text in changes.items() if text is not None and s not in gone]
        )
        if part is not None:
            matcher.absorb(part)
        path = new_file(folder)
        matcher.save(path)
        return BaseFile(number, path, len(matcher), frozenset(matcher.attributes()))

    def _open(self, spark: "SparkSession", versions: Versions, number: int) -> BaseFile:
        """The file of a base, published to the executors."""
        base = self._base
        if base is None or base.version != number:  # another run of the query compiled it
            path = new_file(folder_for_files())
            matcher = self._fetch(versions, number, path)
            base = BaseFile(number, path, len(matcher), frozenset(matcher.attributes()))
        if not base.name:
            base = base._replace(name=publish(spark, base.path))
        self._base = base
        return base

    def _fetch(self, versions: Versions, number: int, path: Path) -> Matcher:
        """The matcher of a base, whose file is copied to a path."""
        versions.fetch_rules(number, path)
        matcher = Matcher.load(path, options=self.settings.options())
        if (matcher.schema, matcher.semantics) != (self.settings.schema, self.settings.semantics):
            raise OptionError(
                f"the checkpoint {self.checkpoint} was made with another schema or semantics; "
                "start with a new one"
            )
        return matcher


def attributes_of(changes: Changes, schema: Schema) -> set[str]:
    """The attributes that changed filters test."""
    return {
        path_text(path)
        for text in changes.values()
        if text is not None
        for path in parse(text, schema).attributes
    }


def _id_type(news: "DataFrame") -> str:
    kind = news.schema["id"].dataType.typeName()
    return "bigint" if kind in {"byte", "short", "integer", "long"} else "string"
