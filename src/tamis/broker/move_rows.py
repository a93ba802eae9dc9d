"""What the catalogue keeps of subscriptions that move between brokers.

`moves` are those that come here, `moved_events` what they had not got where they were, and
`departing` those that go elsewhere and are not gone yet.
"""

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.peer_rows import RowSource

TABLES = """
CREATE TABLE IF NOT EXISTS moves (
    topic INTEGER NOT NULL, account TEXT NOT NULL, id TEXT NOT NULL, origin TEXT NOT NULL,
    state TEXT NOT NULL, after INTEGER, resume INTEGER NOT NULL, events INTEGER NOT NULL,
    problem TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (topic, account, id))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS moved_events (
    topic INTEGER NOT NULL, account TEXT NOT NULL, id TEXT NOT NULL, number INTEGER NOT NULL,
    time INTEGER NOT NULL, event_id TEXT NOT NULL, headers BLOB NOT NULL, body BLOB NOT NULL,
    attempts INTEGER NOT NULL, is_unsure INTEGER NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (topic, account, id, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS departing (
    topic INTEGER NOT NULL, account TEXT NOT NULL, id TEXT NOT NULL, target TEXT NOT NULL,
    stop INTEGER NOT NULL, PRIMARY KEY (topic, account, id)) WITHOUT ROWID;
"""
ASKING, STORED, DONE = "asking", "stored", "done"
_MOVE = "SELECT * FROM moves WHERE topic = ? AND account = ? AND id = ?"
_MOVED = "SELECT * FROM moved_events WHERE topic = ? AND account = ? AND id = ?"
_IDS = "SELECT event_id FROM moved_events WHERE topic = ? AND account = ? AND id = ?"
_DEPARTING = "SELECT * FROM departing WHERE topic = ? AND account = ? AND id = ?"
_FORGET = (
    "DELETE FROM moves WHERE topic = ? AND account = ? AND id = ?",
    "DELETE FROM moved_events WHERE topic = ? AND account = ? AND id = ?",
    "DELETE FROM departing WHERE topic = ? AND account = ? AND id = ?",
)
_DROP = (
    "DELETE FROM moves WHERE topic = ?",
    "DELETE FROM moved_events WHERE topic = ?",
    "DELETE FROM departing WHERE topic = ?",
)


class SubscriptionKey(NamedTuple):
    """Which subscription."""

    topic: int
    account: str
    id: str


class MoveRow(NamedTuple):
    """A subscription that comes here."""

    topic: int
    account: str
    id: str
    origin: str  # the broker that it comes from
    state: str = ASKING  # then STORED: everything is here; DONE: the origin knows that
    after: int | None = None  # the origin's offset up to which its events are here
    resume: int = 0  # the offset here at which it goes on after them
    events: int = 0  # how many there are
    problem: str = ""  # why the origin gave no more

    @property
    def key(self) -> SubscriptionKey:
        """Which subscription it is."""
        return SubscriptionKey(*self[:3])


class MovedRow(NamedTuple):
    """An event that a subscription had not acknowledged where it was."""

    time: int
    event_id: str
    headers: bytes
    body: bytes
    attempts: int  # how often it was sent there
    is_unsure: bool  # whether it may have been sent, which a crash left open


class Departing(NamedTuple):
    """A subscription that goes elsewhere."""

    topic: int
    account: str
    id: str
    target: str
    stop: int  # the end of what it has to get from the log here


# --- reading


def move(tables: RowSource, key: SubscriptionKey) -> MoveRow | None:
    """How far a subscription has come on its way here; None if it never came from elsewhere."""
    found = tables.rows(_MOVE, *key)
    return _move(found[0]) if found else None


def moves_under_way(tables: RowSource) -> list[MoveRow]:
    """The subscriptions that are on their way here."""
    return [_move(row) for row in tables.rows("SELECT * FROM moves WHERE state <> ?", DONE)]


def moved_events(
    tables: RowSource, key: SubscriptionKey, first: int, most: int
) -> list[tuple[int, MovedRow | None]]:
    """Events that came with a subscription, from a number on; None instead of a damaged one."""
    statement = _MOVED + " AND number >= ? ORDER BY number LIMIT ?"
    found = tables.rows(statement, *key, first, most)
    return [(row[3], _moved(row) if row[-1] == _checksum(row[:-1]) else None) for row in found]


def moving(tables: RowSource, topic: int) -> set[tuple[str, str]]:
    """The accounts and ids of subscriptions that have come here, or go elsewhere."""
    found = tables.rows("SELECT account, id FROM moves WHERE topic = ?", topic)
    found += tables.rows("SELECT account, id FROM departing WHERE topic = ?", topic)
    return {(account, id_) for account, id_ in found}


def moved_ids(tables: RowSource, key: SubscriptionKey) -> list[str]:
    """The ids of all events that came with a subscription."""
    return [id_ for (id_,) in tables.rows(_IDS, *key)]


def departing(tables: RowSource, key: SubscriptionKey) -> Departing | None:
    """Where a subscription goes; None if it stays."""
    found = tables.rows(_DEPARTING, *key)
    return Departing(*found[0]) if found else None


# --- changing


def put_move(row: MoveRow) -> CatalogueChange:
    """Store how far a subscription has come on its way here."""
    statement = "INSERT OR REPLACE INTO moves VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    return CatalogueChange(statement, (*row, _checksum(row)))


def put_moved(key: SubscriptionKey, number: int, event: MovedRow) -> CatalogueChange:
    """Store an event that comes with a subscription."""
    values = (*key, number, *event[:-1], int(event.is_unsure))
    statement = "INSERT OR REPLACE INTO moved_events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    return CatalogueChange(statement, (*values, _checksum(values)))


def put_departing(row: Departing) -> CatalogueChange:
    """Remember that a subscription goes elsewhere."""
    return CatalogueChange("INSERT OR REPLACE INTO departing VALUES (?, ?, ?, ?, ?)", tuple(row))


def forget_moves(key: SubscriptionKey) -> Iterator[CatalogueChange]:
    """Forget everything about moves of a subscription."""
    for statement in _FORGET:
        yield CatalogueChange(statement, tuple(key))


def drop_topic(topic: int) -> Iterator[CatalogueChange]:
    """Forget all moves of a topic."""
    for statement in _DROP:
        yield CatalogueChange(statement, (topic,))


# --- rows


def _move(row: tuple[Any, ...]) -> MoveRow:
    found = MoveRow(*row[:-1])
    if row[-1] == _checksum(found):
        return found
    # From the beginning: what is here already is stored again under the same numbers.
    return MoveRow(*found[:4], resume=0)


def _moved(row: tuple[Any, ...]) -> MovedRow:
    time, event_id, headers, body, attempts, is_unsure = row[4:10]
    return MovedRow(time, event_id, headers, body, attempts, bool(is_unsure))


def _checksum(values: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(tuple(values)).encode("utf-8", "surrogatepass"))
