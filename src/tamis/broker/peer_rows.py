"""What the catalogue keeps for the network: the peers' places in logs, their filters, who we are.

A peer that cannot be reached is these rows and nothing else.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tamis.broker.catalogue_change import CatalogueChange
from tamis.language.expression import MATCHES_ALL

TABLES = """
CREATE TABLE IF NOT EXISTS peers (
    topic INTEGER NOT NULL, peer TEXT NOT NULL, position INTEGER NOT NULL, lost INTEGER NOT NULL,
    checksum INTEGER NOT NULL, PRIMARY KEY (topic, peer)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS peer_filters (
    topic INTEGER NOT NULL, peer TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
    filter TEXT NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (topic, peer, kind, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS peer_notes (
    topic INTEGER NOT NULL, peer TEXT NOT NULL, what TEXT NOT NULL, content BLOB NOT NULL,
    checksum INTEGER NOT NULL, PRIMARY KEY (topic, peer, what)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS identity (
    name TEXT PRIMARY KEY, id TEXT NOT NULL, starts INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS deletions (
    topic TEXT NOT NULL, birth TEXT NOT NULL, PRIMARY KEY (topic, birth)) WITHOUT ROWID;
"""


class RowSource(Protocol):
    """Somebody who reads tables."""

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a statement finds."""


class PeerRow(NamedTuple):
    """How far a peer has come in the log of a topic."""

    topic: int
    peer: str
    position: int  # of the first event that it may not have
    lost: int = 0  # events that were removed before they could be sent


class PeerFilter(NamedTuple):
    """A filter that a peer has announced."""

    topic: int
    peer: str
    kind: str
    id: str
    filter: str


@dataclass(frozen=True)
class Note:
    """Something that is good to know after a restart, and costs nothing but time if it is lost."""

    topic: int
    peer: str
    what: str
    content: Callable[[], bytes] = field(compare=False)

    def catalogue_change(self) -> CatalogueChange:
        """The change that stores what it is now."""
        content = self.content()
        return CatalogueChange(
            "INSERT OR REPLACE INTO peer_notes VALUES (?, ?, ?, ?, ?)",
            (self.topic, self.peer, self.what, content, zlib.crc32(content)),
        )


# --- reading


def peers(tables: RowSource, topic: int) -> list[PeerRow]:
    """The peers of a topic; one whose row is damaged begins at 0, and gets everything again."""
    found = tables.rows("SELECT * FROM peers WHERE topic = ?", topic)
    return [
        PeerRow(*row[:-1]) if row[-1] == _checksum(row[:-1]) else PeerRow(topic, row[1], 0)
        for row in found
    ]


def peer_filters(tables: RowSource, topic: int) -> list[PeerFilter]:
    """The filters that all peers have announced for a topic; a damaged one is taken as TRUE."""
    found = tables.rows("SELECT * FROM peer_filters WHERE topic = ?", topic)
    return [
        PeerFilter(*row[:-1])
        if row[-1] == _checksum(row[:-1])
        else PeerFilter(topic, row[1], row[2], row[3], MATCHES_ALL)
        for row in found
    ]


def local_filters(tables: RowSource, topic: int) -> list[tuple[str, str, str]]:
    """The durable subscriptions of a topic: account, id, filter."""
    return [
        (account, id_, text)
        for account, id_, text in tables.rows(
            "SELECT account, id, filter FROM subscriptions WHERE topic = ?", topic
        )
    ]


def notes(tables: RowSource, topic: int, what: str) -> dict[str, bytes]:
    """What was noted of the peers of a topic; what is damaged is left out."""
    found = tables.rows(
        "SELECT peer, content, checksum FROM peer_notes WHERE topic = ? AND what = ?", topic, what
    )
    return {peer: content for peer, content, check in found if zlib.crc32(content) == check}


def identity(tables: RowSource) -> tuple[str, int] | None:
    """What tells this data from that of any other broker, and how often it was started."""
    found = tables.rows("SELECT id, starts FROM identity WHERE name = 'broker'")
    return (found[0][0], found[0][1]) if found else None


def deletions(tables: RowSource) -> list[tuple[str, str]]:
    """The topics that were deleted, each with a birth of it."""
    return [(topic, birth) for topic, birth in tables.rows("SELECT topic, birth FROM deletions")]


# --- changing


def put_deletion(topic: str, birth: str) -> CatalogueChange:
    """Remember that a topic was deleted."""
    return CatalogueChange("INSERT OR REPLACE INTO deletions VALUES (?, ?)", (topic, birth))


def put_identity(id_: str, starts: int) -> CatalogueChange:
    """Remember who we are."""
    return CatalogueChange("INSERT OR REPLACE INTO identity VALUES ('broker', ?, ?)", (id_, starts))


def put_peer(row: PeerRow) -> CatalogueChange:
    """Store how far a peer has come."""
    return CatalogueChange(
        "INSERT OR REPLACE INTO peers VALUES (?, ?, ?, ?, ?)", (*row, _checksum(row))
    )


def put_filters(
    topic: int, peer: str, kind: str, added: Mapping[str, str]
) -> Iterator[CatalogueChange]:
    """Store filters that a peer has announced."""
    statement = "INSERT OR REPLACE INTO peer_filters VALUES (?, ?, ?, ?, ?, ?)"
    for id_, text in added.items():
        row = topic, peer, kind, id_, text
        yield CatalogueChange(statement, (*row, _checksum(row)))


def drop_filters(topic: int, peer: str, kind: str, ids: Iterable[str]) -> Iterator[CatalogueChange]:
    """Forget filters that a peer has withdrawn."""
    statement = "DELETE FROM peer_filters WHERE topic = ? AND peer = ? AND kind = ? AND id = ?"
    for id_ in ids:
        yield CatalogueChange(statement, (topic, peer, kind, id_))


def drop_peer(peer: str) -> Iterator[CatalogueChange]:
    """Forget a peer that is gone for good."""
    yield CatalogueChange("DELETE FROM peers WHERE peer = ?", (peer,))
    yield CatalogueChange("DELETE FROM peer_filters WHERE peer = ?", (peer,))
    yield CatalogueChange("DELETE FROM peer_notes WHERE peer = ?", (peer,))


def drop_topic(topic: int) -> Iterator[CatalogueChange]:
    """Forget all peers of a topic."""
    yield CatalogueChange("DELETE FROM peers WHERE topic = ?", (topic,))
    yield CatalogueChange("DELETE FROM peer_filters WHERE topic = ?", (topic,))
    yield CatalogueChange("DELETE FROM peer_notes WHERE topic = ?", (topic,))


def _checksum(values: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(tuple(values)).encode("utf-8", "surrogatepass"))
