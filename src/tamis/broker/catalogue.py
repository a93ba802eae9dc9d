"""Topics and durable subscriptions on disk: everything of a broker that changes in place.

One SQLite file, written ahead (WAL) and synced at every commit (FULL). All changes of one moment
are one transaction: `GroupCommit` of `group_commit.py` collects them. Each row has a checksum,
because SQLite has none: a bit that flipped on the disk is found when the row is read, and said.
"""

import itertools
import logging
import operator
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from tamis.broker import move_rows, peer_rows, quench_rows
from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.delivery.progress import Progress, decoded, encoded
from tamis.broker.log.damage import Damage
from tamis.broker.records import DeliveryOptions, Retention
from tamis.errors import FileError

T = TypeVar("T")

logger = logging.getLogger("tamis.broker")

VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS topics (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL,
    deleted INTEGER NOT NULL, expired INTEGER NOT NULL, next_offset INTEGER NOT NULL,
    checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS subscriptions (
    topic INTEGER NOT NULL, account TEXT NOT NULL, id TEXT NOT NULL,
    filter TEXT NOT NULL, options TEXT NOT NULL, checksum INTEGER NOT NULL,
    position INTEGER NOT NULL, maybe_sent INTEGER NOT NULL, unacknowledged BLOB NOT NULL,
    expired INTEGER NOT NULL, attached INTEGER NOT NULL, progress_checksum INTEGER NOT NULL,
    PRIMARY KEY (topic, account, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS attached_subscriptions ON subscriptions (topic) WHERE attached = 1;
CREATE INDEX IF NOT EXISTS sleeping_subscriptions ON subscriptions (topic, position)
    WHERE attached = 0;
CREATE TABLE IF NOT EXISTS counts (
    topic INTEGER NOT NULL, account TEXT NOT NULL, subscriptions INTEGER NOT NULL,
    PRIMARY KEY (topic, account)) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS counted_in AFTER INSERT ON subscriptions BEGIN
    INSERT INTO counts VALUES (new.topic, new.account, 1)
    ON CONFLICT DO UPDATE SET subscriptions = subscriptions + 1; END;
CREATE TRIGGER IF NOT EXISTS counted_out AFTER DELETE ON subscriptions BEGIN
    UPDATE counts SET subscriptions = subscriptions - 1
    WHERE topic = old.topic AND account = old.account; END;
"""
_PUT_TOPIC = "INSERT OR REPLACE INTO topics VALUES (?, ?, ?, ?, ?, ?, ?)"
_DROP_TOPIC = "DELETE FROM topics WHERE number = ?"
_DROP_SUBSCRIPTIONS = "DELETE FROM subscriptions WHERE topic = ?"
_DROP_COUNTS = "DELETE FROM counts WHERE topic = ?"
_PUT = """
INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET filter = excluded.filter, options = excluded.options,
    checksum = excluded.checksum, position = excluded.position, maybe_sent = excluded.maybe_sent,
    unacknowledged = excluded.unacknowledged, expired = excluded.expired,
    attached = excluded.attached, progress_checksum = excluded.progress_checksum"""
_STORE_PROGRESS = """
UPDATE subscriptions SET position = ?, maybe_sent = ?, unacknowledged = ?, expired = ?,
    attached = ?, progress_checksum = ? WHERE topic = ? AND account = ? AND id = ?"""
_DROP = "DELETE FROM subscriptions WHERE topic = ? AND account = ? AND id = ?"
_ROWS = "SELECT * FROM subscriptions WHERE "


class TopicRow(NamedTuple):
    """A topic as the catalogue keeps it."""

    number: int  # never used for another topic
    name: str
    schema: Mapping[str, str]
    semantics: str
    defaults: Mapping[str, Any] | None
    retention: Retention | None  # None: what the settings say
    deleted: bool = False  # its files are to be removed, then the row
    expired: int = 0  # events that retention removed
    next_offset: int = 0  # of its log, or less: if the log ends before it, its end was lost
    births: tuple[str, ...] = ()  # in a network: see `network/deletions.py`


class SubscriptionRow(NamedTuple):
    """A durable subscription as the catalogue keeps it: all that a sleeping one is."""

    topic: int
    account: str
    id: str
    filter: str
    options: DeliveryOptions
    progress: Progress
    expired: int = 0  # events removed before they were looked at
    attached: bool = False  # somebody listens: after a crash, nobody knows what was sent


class TopicDescription(msgspec.Struct):
    """What `topics.description` holds, as JSON."""

    schema: dict[str, str]
    semantics: str
    defaults: dict[str, Any] | None
    retention: Retention | None
    births: tuple[str, ...] = ()


class Catalogue:
    """The tables: changed by one thread at a time, read by the event loop.

    Reading has a connection of its own, which sees what is committed and waits for nobody.
    """

    def __init__(
        self, path: Path, connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    ) -> None:
        self.damage: list[Damage] = []
        self._path = path
        try:
            self._tables = connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None
        try:
            self._tables.execute("PRAGMA journal_mode = WAL")
            self._tables.execute("PRAGMA synchronous = FULL")
            (version,) = self._tables.execute("PRAGMA user_version").fetchone()
            if version not in {0, VERSION}:
                raise FileError(
                    f"{path} has version {version} of the catalogue, and this tamis reads version "
                    f"{VERSION}; use the tamis that wrote it"
                )
            self._tables.executescript(
                _TABLES + peer_rows.TABLES + quench_rows.TABLES + move_rows.TABLES
            )
            self._tables.execute(f"PRAGMA user_version = {VERSION}")
            self._reading = connect(path, isolation_level=None)
        except sqlite3.DatabaseError as error:
            self._tables.close()
            raise self._damaged(error) from None
        except FileError:
            self._tables.close()
            raise

    # --- reading

    def topics(self) -> list[TopicRow]:
        """All topics; those whose row is damaged are left out, and in `damage`."""
        return self._intact(_topic, self.rows("SELECT * FROM topics ORDER BY number"))

    def numbers(self) -> dict[str, int]:
        """The numbers of all topics by name, whether their rows are damaged or not."""
        return dict(self.rows("SELECT name, number FROM topics"))

    def subscription(self, topic: int, account: str, id_: str) -> SubscriptionRow | None:
        """A subscription, or None."""
        found = self.rows(_ROWS + "topic = ? AND account = ? AND id = ?", topic, account, id_)
        return _subscription(found[0]) if found else None

    def subscriptions(
        self, topic: int, account: str, after: str | None, most: int
    ) -> list[SubscriptionRow]:
        """Subscriptions of an account, by their ids; the log names those whose row is damaged."""
        found = self.rows(
            _ROWS + "topic = ? AND account = ? AND id > ? ORDER BY id LIMIT ?",
            topic, account, after or "", most,
        )  # fmt: skip
        intact = []
        for row in found:
            try:
                intact.append(_subscription(row))
            except FileError as error:
                logger.error("%s", error)  # noqa: TRY400 - where it was found would not help
        return intact

    def attached(self, topic: int) -> list[SubscriptionRow]:
        """The subscriptions somebody listened to when the broker last wrote; see `topics`."""
        rows = self.rows(_ROWS + "topic = ? AND attached = 1", topic)
        return self._intact(_subscription, rows)

    def sleeping(self, topic: int, most: int) -> Iterator[tuple[str, str, int]]:
        """Account, id and cursor of subscriptions nobody listens to, the farthest behind first."""
        found = self.rows(
            "SELECT account, id, position, unacknowledged FROM subscriptions "
            "WHERE topic = ? AND attached = 0 ORDER BY position LIMIT ?",
            topic, most,
        )  # fmt: skip
        for account, id_, position, unacknowledged in found:
            yield account, id_, min(decoded(unacknowledged), default=position)

    def counts(self) -> list[tuple[int, str, int]]:
        """How many subscriptions each account has in each topic."""
        return self.rows("SELECT * FROM counts")

    def counts_of(self, topic: int) -> dict[str, int]:
        """How many subscriptions each account has in one topic."""
        return dict(self.rows("SELECT account, subscriptions FROM counts WHERE topic = ?", topic))

    def _intact(self, read: Callable[[tuple[Any, ...]], T], rows: list[tuple[Any, ...]]) -> list[T]:
        found = []
        for row in rows:
            try:
                found.append(read(row))
            except FileError as error:
                self.damage.append(Damage(self._path.name, 0, 0, str(error)))
        return found

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a statement finds."""
        try:
            return self._reading.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    # --- changing

    def commit(self, changes: Iterable[CatalogueChange]) -> None:
        """Make changes, all or none; they are safe on disk when this returns."""
        self._tables.execute("BEGIN IMMEDIATE")
        try:
            for statement, alike in itertools.groupby(changes, operator.attrgetter("statement")):
                self._tables.executemany(statement, (change.values for change in alike))
            self._tables.execute("COMMIT")
        except BaseException:  # whatever ends it, all of it is undone
            if self._tables.in_transaction:
                self._tables.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        self._reading.close()
        self._tables.close()

    def _damaged(self, error: sqlite3.DatabaseError) -> FileError:
        return FileError(
            f"the catalogue {self._path} cannot be used: {error}; restore it from a copy, or move "
            "it away to start with the events of the topics and without durable subscriptions"
        )


# --- changes


def put_topic(row: TopicRow) -> CatalogueChange:
    """Add a topic, or replace what is known about it."""
    defaults = None if row.defaults is None else dict(row.defaults)
    described = dict(row.schema), row.semantics, defaults, row.retention, row.births
    description = TopicDescription(*described)
    text = msgspec.json.encode(description).decode()
    values = row.number, row.name, text, int(row.deleted), row.expired, row.next_offset
    return CatalogueChange(_PUT_TOPIC, (*values, _checksum(values)))


def drop_topic(number: int) -> Iterator[CatalogueChange]:
    """Forget a topic and its subscriptions."""
    yield CatalogueChange(_DROP_SUBSCRIPTIONS, (number,))
    yield CatalogueChange(_DROP_COUNTS, (number,))
    yield from peer_rows.drop_topic(number)
    yield from move_rows.drop_topic(number)
    yield CatalogueChange(_DROP_TOPIC, (number,))


def put_subscription(row: SubscriptionRow) -> CatalogueChange:
    """Add a subscription, or replace all that is known about it."""
    options = msgspec.json.encode(row.options).decode()
    head = row.topic, row.account, row.id, row.filter, options
    return CatalogueChange(_PUT, (*head, _checksum(head), *_progress_values(row)))


def store_progress(row: SubscriptionRow) -> CatalogueChange:
    """Store how far a subscription has come; nothing if it is gone."""
    return CatalogueChange(
        _STORE_PROGRESS, (*_progress_values(row), row.topic, row.account, row.id)
    )


def drop_subscription(topic: int, account: str, id_: str) -> CatalogueChange:
    """Forget a subscription."""
    return CatalogueChange(_DROP, (topic, account, id_))


# --- rows


def _progress_values(row: SubscriptionRow) -> tuple[Any, ...]:
    position, maybe_sent, unacknowledged = row.progress
    values = position, maybe_sent, encoded(unacknowledged), row.expired, int(row.attached)
    return *values, _checksum((row.topic, row.account, row.id, *values))


def _topic(row: tuple[Any, ...]) -> TopicRow:
    *values, checksum = row
    number, name, text, deleted, expired, next_offset = values
    if checksum != _checksum(tuple(values)):
        raise FileError(
            f"the row of topic {name!r} is damaged; create the topic again to read its events"
        )
    found = msgspec.json.decode(text, type=TopicDescription)
    described = found.schema, found.semantics, found.defaults, found.retention
    return TopicRow(number, name, *described, bool(deleted), expired, next_offset, found.births)


def _subscription(row: tuple[Any, ...]) -> SubscriptionRow:
    key, (filter_, options, checksum) = row[:3], row[3:6]
    progress_values, progress_checksum = row[6:11], row[11]
    if checksum != _checksum((*key, filter_, options)) or progress_checksum != _checksum(
        (*key, *progress_values)
    ):
        raise FileError(
            f"the row of subscription {key[2]!r} of account {key[1]!r} is damaged; delete the "
            "subscription and make it again"
        )
    position, maybe_sent, unacknowledged, expired, attached = progress_values
    progress = Progress(position, maybe_sent, decoded(unacknowledged))
    chosen = msgspec.json.decode(options, type=DeliveryOptions)
    topic, account, id_ = key
    return SubscriptionRow(topic, account, id_, filter_, chosen, progress, expired, bool(attached))


def _checksum(values: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))
