"""The compiled file of a version: all of its subscriptions, on the driver.

A file is made out of the one before it and of changes. If the version has more attributes than the
one before it, all filters are read again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import OptionError
from tamis.matcher import Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.rules_file import RulesFile
from tamis.spark.compile.job import new_file
from tamis.spark.compile.sent_rules import Changes, send_to_executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class BaseFile:
    """The compiled file of a version."""

    version: int
    path: Path
    matcher: Matcher  # of the file, mapped into memory
    attributes: frozenset[str]  # that its filters test
    name: str = ""  # under which workers find it, once it was sent to them

    def __len__(self) -> int:
        return len(self.matcher)

    @property
    def size(self) -> int:
        """How many bytes are compiled."""
        return self.path.stat().st_size

    def held(self, ids: Iterable[str | int]) -> int:
        """How many of the ids are subscribed."""
        return sum(subscription in self.matcher for subscription in ids)

    def sent_to_executors(self, spark: "SparkSession") -> "BaseFile":
        """The file with a name under which all executors find it."""
        return self if self.name else replace(self, name=send_to_executors(spark, self.path))


def open_base(version: int, path: Path, settings: MatcherSettings) -> BaseFile:
    """The base of a version, whose file is at a path; an error if it has other settings."""
    matcher = Matcher.load(path, options=settings.options())
    wanted = settings.meaning()
    # By their texts: a default may be NaN, which is not equal to itself.
    if matcher.semantics != wanted.name or repr(matcher.meaning.defaults) != repr(wanted.defaults):
        raise OptionError(
            f"the checkpoint was made with semantics={matcher.semantics!r}, and this stream has "
            f"{wanted.name!r} or other defaults; start with those of the checkpoint, or with a new "
            "one and a new output folder"
        )
    return BaseFile(version, path, matcher, frozenset(matcher.attributes()))


def subscriptions_of(base: BaseFile) -> pa.Table:
    """The subscriptions of a base as a table of id and filter."""
    found = RulesFile(base.path).read(base.matcher.meaning, _unread).subscriptions.columns()
    if found is None:
        return pa.table({"id": pa.array([], pa.string()), "filter": pa.array([], pa.string())})
    return pa.table({"id": found.ids, "filter": found.texts})


def _unread(text: str) -> Any:
    raise AssertionError(f"the filter {text!r} was read, though only its text is needed")


def changed_base(
    base: BaseFile | None, settings: MatcherSettings, changes: Changes, part: Path | None,
    removed: Iterable[Any], folder: Path,
) -> Path:  # fmt: skip
    """A new file: the subscriptions of a base, then changes, then a compiled part.

    `removed` are the ids that go before the part is added.
    """
    if base is None:
        matcher = settings.matcher()
    elif base.matcher.schema == settings.schema:
        matcher = Matcher.load(base.path, options=settings.options())
    else:
        matcher = settings.matcher()
        matcher.subscribe_many(subscriptions_of(base))
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
    return path
