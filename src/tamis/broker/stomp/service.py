"""What all STOMP clients of a broker share."""

import asyncio
import secrets
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from tamis.broker.protocols.stomp.frames import FrameLimits
from tamis.broker.protocols.stomp.header_events import HeaderEvents
from tamis.broker.protocols.stomp.messages import shared_part
from tamis.broker.protocols.stomp.requests import Connect
from tamis.broker.protocols.stomp.session import SessionLimits
from tamis.broker.protocols.stomp.time_limits import TimeSettings
from tamis.broker.records import Record
from tamis.broker.stomp.connection import StompConnection, Wire
from tamis.errors import Conflict, LimitReached
from tamis.schema import Schema

if TYPE_CHECKING:
    from tamis.broker.accounts import Account
    from tamis.broker.broker import Broker

HEAD_BYTES = 1_100_000  # of a frame; a selector is a header, and may be as long as a filter
MOST_HEADERS = 1000
KEPT_PARTS = 1 << 14  # parts of MESSAGE frames that are kept for the next subscriber
KEPT_BYTES = 1 << 25
KEPT_TOPICS = 1024  # whose schemas are kept


class StompService:
    """Makes connections, and keeps what they have in common."""

    def __init__(
        self,
        broker: "Broker",
        *,
        times: TimeSettings | None = None,
        most_connections: int = 50_000,
        most_half_open: int = 1000,
    ) -> None:
        self.broker = broker
        self.times = times or TimeSettings()
        self.connections: set[StompConnection] = set()
        self._open_now = broker.metrics.connections.of("stomp")
        self._most_connections = most_connections
        self._most_half_open = most_half_open
        self._half_open: dict[StompConnection, None] = {}  # no CONNECT yet; the oldest first
        self._shared: dict[str, SharedParts] = {}  # by versions of the protocol
        self._header_events: dict[str, HeaderEvents] = {}

    def connect(self, wire: Wire, peer: str) -> StompConnection:
        """A connection for a wire that was opened."""
        connection = StompConnection(self, wire, peer)
        if len(self._half_open) >= self._most_half_open:
            # Who connects and says nothing must not keep others out.
            oldest = next(iter(self._half_open))
            self.forget(oldest)
            oldest.abort()
        self.connections.add(connection)
        self._open_now.add()
        self._half_open[connection] = None
        if len(self.connections) > self._most_connections:
            most = self._most_connections
            connection.fail(LimitReached(f"the broker has {most:,} connections, and takes no more"))
        return connection

    async def authenticate(self, connection: StompConnection, request: Connect) -> "Account":
        """The account of a client."""
        if request.authorization is None and request.login is not None:
            account = await self.broker.accounts.of_login(request.login, request.passcode or "")
        elif request.authorization is None and request.passcode is not None:
            account = self.broker.accounts.of_token(request.passcode)
        else:
            account = await self.broker.accounts.of_header(request.authorization)
        self._half_open.pop(connection, None)
        return account

    def forget(self, connection: StompConnection) -> None:
        """A connection is gone."""
        if connection in self.connections:
            self.connections.remove(connection)
            self._open_now.add(-1)
        self._half_open.pop(connection, None)

    def end(self, accounts: Container[str]) -> None:
        """Tell clients of some accounts that these have changed, and let them go."""
        for connection in list(self.connections):
            if connection.account is not None and connection.account.name in accounts:
                connection.fail(Conflict("the account has changed: connect again"))

    async def stop(self) -> None:
        """Tell all clients that the broker stops, and wait until they are gone."""
        for connection in list(self.connections):
            connection.stop()
        while self.connections:
            await asyncio.gather(*(one.gone() for one in list(self.connections)))

    def session_limits(self, account: "Account") -> SessionLimits:
        """How much a client of an account may send."""
        frame = FrameLimits(HEAD_BYTES, MOST_HEADERS, account.limits.event_bytes)
        return SessionLimits(frame)

    def new_session_id(self) -> str:
        """A name for a connection that nobody can guess."""
        return secrets.token_hex(8)

    def header_events(self, account: "Account", topic: str) -> HeaderEvents:
        """What makes events of headers, by the schema of a topic."""
        schema = self.broker.schema(account, topic)
        known = self._header_events.get(topic)
        if known is None or known.types != schema:
            if len(self._header_events) >= KEPT_TOPICS:
                self._header_events.clear()
            known = self._header_events[topic] = HeaderEvents(Schema(schema))
        return known

    def shared_parts(self, topic: str, version: str) -> Callable[[Record], bytes]:
        """What makes the part of MESSAGE frames that all subscribers of a topic share."""
        shared = self._shared.setdefault(version, SharedParts(version))
        return lambda record: shared.part(topic, record)


class SharedParts:
    """The shared parts of the last MESSAGE frames, for one version of the protocol."""

    def __init__(self, version: str) -> None:
        self._version = version
        # By the identity of records: those in the table are kept, so no two have the same.
        self._kept: dict[int, tuple[Record, bytes]] = {}
        self._size = 0

    def part(self, topic: str, record: Record) -> bytes:
        """The shared part of the MESSAGE of a topic's record."""
        known = self._kept.get(id(record))
        if known is not None:
            return known[1]
        part = shared_part(topic, record, self._version)
        if len(self._kept) >= KEPT_PARTS or self._size > KEPT_BYTES:
            self._kept.clear()
            self._size = 0
        self._kept[id(record)] = record, part
        self._size += len(part)
        return part
