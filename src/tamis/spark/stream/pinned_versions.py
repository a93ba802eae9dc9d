"""The subscriptions of a stream: which version a micro-batch is matched with, and its files.

The changes of a version are few, and workers make them on their own, or many: then they are
compiled by the executors and joined with the file that was there.
"""

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import OptionError, SubscriptionError
from tamis.language.expression import parse
from tamis.matcher import Matcher
from tamis.names import path_text
from tamis.plan import asked_attributes
from tamis.schema import Schema
from tamis.spark.batch.event_frames import needed
from tamis.spark.compile.compilation import (
    OUTCOME,
    Meaning,
    Size,
    folder_for_files,
    join,
    publish,
    read_counts,
    tasks_for,
    write_parts,
)
from tamis.spark.dead_letters.letters import Letter, listing
from tamis.spark.stream.changelogs import ChangeCompiling, Changelog, changes_of
from tamis.spark.stream.versions import Changes, Version, Versions
from tamis.spark.stream.worker import Live

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW = 5000  # changes that workers make on their own; more of them are compiled
SHARE = 10  # the changes since a file are at most this part of its subscriptions


class Pinned(NamedTuple):
    """The subscriptions of a micro-batch."""

    version: int
    rules: Live
    asked: set[str]  # attributes
    ids: str  # the type of the ids, for Spark
    letters: tuple[Letter, ...]  # changes since the micro-batch before that cannot be used
    bad: int


class Base(NamedTuple):
    """A compiled file that workers can open."""

    version: int
    name: str
    path: Path
    size: int
    asked: frozenset[str]


@dataclass
class LiveRules:
    """The subscriptions of a stream, on the side of the driver.

    With Spark Connect this runs in a process of the server, to which it is sent before it is used:
    so nothing of a session is in it.
    """

    meaning: Meaning
    log: Changelog
    checkpoint: str
    _base: Base | None = field(default=None, repr=False)

    def pin(self, spark: "SparkSession", batch: int) -> Pinned:
        """The subscriptions of a micro-batch: those of before if it comes again."""
        versions = Versions(self.checkpoint)
        number = versions.pinned(batch)
        if number is None:
            number = self._advance(spark, versions)
            versions.pin(batch, number)
        base_number, changes = versions.since_base(number)
        base = self._open(spark, versions, base_number)
        asked = base.asked | attributes_of(changes, self.meaning.schema)
        # A query that died may have left a version that no micro-batch was pinned to.
        new = [versions.get(n) for n in range((versions.pinned(batch - 1) or 0) + 1, number + 1)]
        return Pinned(
            number, Live(base.name, changes),
            needed(self.meaning.schema, asked, self.meaning.semantics), versions.get(number).ids,
            tuple(letter for version in new for letter in version.letters),
            sum(version.bad for version in new),
        )  # fmt: skip

    def _advance(self, spark: "SparkSession", versions: Versions) -> int:
        """Look for changes; the newest version."""
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
            changes, letters = changes_of(rows, self.meaning)
            base_number, since = versions.since_base(number)
            base = self._open(spark, versions, base_number)
            if len(since | changes) <= max(FEW, base.size // SHARE):
                versions.add(
                    Version(number + 1, position, False, changes, tuple(letters), len(letters), ids)
                )
                return number + 1
        self._compile(versions, number + 1, position, news, ids)
        return number + 1

    def _compile(
        self, versions: Versions, number: int, position: Any, news: "DataFrame", ids: str
    ) -> None:
        """A version with a file of its own: the base before, the changes since, and new ones."""
        folder = folder_for_files()
        size = Size(news.count(), 0)
        spread = news.repartition(tasks_for(size), "id").sortWithinPartitions("place")
        from pyspark.sql import functions as f

        rows = spread.select("id", "filter", f.col("place.row").alias("row"), "op")
        found = rows.mapInArrow(ChangeCompiling(self.meaning), OUTCOME).toArrow()
        counts, letters = read_counts(found)
        removed = [
            one
            for kind, text in zip(found["kind"].to_pylist(), found["text"].to_pylist(), strict=True)
            if kind == "removed"
            for one in json.loads(text)
        ]
        parts = write_parts(found, folder)
        if number == 1 and not parts:
            raise SubscriptionError(f"no subscription can be used: {listing(letters, counts.bad)}")
        path = join(parts, folder, self.meaning.profile) if parts else None
        if number > 1:
            path = self._on_top(versions, number - 1, path, removed, folder)
        if path is None:
            raise AssertionError("the first version has parts, the others have a base")
        versions.add(Version(number, position, True, {}, tuple(letters), counts.bad, ids), path)

    def _on_top(
        self, versions: Versions, number: int, part: Path | None, removed: Iterable[Any],
        folder: Path,
    ) -> Path:  # fmt: skip
        """A file of a version and of what changed after it."""
        base_number, changes = versions.since_base(number)
        before = folder / "before.tamis"
        versions.fetch_rules(base_number, before)
        profile = self.meaning.profile
        matcher = Matcher.load(before, options=None if profile is None else {"profile": profile})
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
        path = folder / f"rules-{uuid.uuid4().hex}.tamis"
        matcher.save(path)
        return path

    def _open(self, spark: "SparkSession", versions: Versions, number: int) -> Base:
        """The file of a base, published to the executors."""
        if self._base is None or self._base.version != number:
            path = folder_for_files() / f"rules-{uuid.uuid4().hex}.tamis"
            versions.fetch_rules(number, path)
            matcher = Matcher.load(path)
            if (matcher.schema, matcher.semantics) != (self.meaning.schema, self.meaning.semantics):
                raise OptionError(
                    f"the checkpoint {self.checkpoint} was made with another schema or semantics; "
                    "start with a new one"
                )
            asked = asked_attributes(matcher._engine, matcher.schema)  # noqa: SLF001 - ours
            self._base = Base(number, publish(spark, path), path, len(matcher), frozenset(asked))
        return self._base


def attributes_of(changes: Changes, schema: Schema) -> set[str]:
    """The attributes that changed filters ask for."""
    return {
        path_text(path)
        for text in changes.values()
        if text is not None
        for path in parse(text, schema).attributes
    }


def _id_type(news: "DataFrame") -> str:
    kind = news.schema["id"].dataType.typeName()
    return "bigint" if kind in {"byte", "short", "integer", "long"} else "string"
