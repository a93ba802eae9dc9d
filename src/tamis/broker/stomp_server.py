"""STOMP on TCP, with TLS or without."""

import asyncio
import ssl
from typing import cast

from tamis.broker.stomp.connection import StompConnection
from tamis.broker.stomp.service import StompService

BACKLOG = 1024  # connections that wait to be accepted
HANDSHAKE = 10.0  # seconds for the handshake of TLS


class StompServer:
    """Listens on an address, until it is stopped."""

    def __init__(self, service: StompService) -> None:
        self.service = service
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen; returns the port, which is a free one if 0 was asked for."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: TcpWire(self.service),
            host,
            port,
            ssl=tls,
            backlog=BACKLOG,
            ssl_handshake_timeout=None if tls is None else HANDSHAKE,
        )
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        """Listen no more, and let all clients go."""
        if self._server is not None:
            self._server.close()
        await self.service.stop()


class TcpWire(asyncio.Protocol):
    """The bytes of one TCP connection."""

    def __init__(self, service: StompService) -> None:
        self.is_flushed = True
        self._service = service
        self._transport: asyncio.Transport | None = None
        self._connection: StompConnection | None = None
        self._finished = False

    # ---- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # `pause_writing` as soon as something waits; with TLS, 0 would mean that nothing may wait.
        self._transport.set_write_buffer_limits(high=1, low=0)
        peer = self._transport.get_extra_info("peername")
        self._connection = self._service.connect(self, f"{peer[0]}:{peer[1]}" if peer else "?")

    def data_received(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.received(data)

    def eof_received(self) -> bool:
        if self._connection is None or self._finished:
            return False
        self._connection.received_all()
        if self._transport is None or not self._transport.can_write_eof():
            return False  # with TLS, a connection ends for both sides at once
        return not self._finished  # whether the connection stays open for answers

    def pause_writing(self) -> None:
        self.is_flushed = False

    def resume_writing(self) -> None:
        self.is_flushed = True
        if self._connection is not None:
            self._connection.flushed()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - it is gone, either way
        if self._connection is not None:
            self._connection.lost()
            self._connection = None

    # ---- called by the connection

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def finish(self) -> None:
        self._finished = True
        if self._transport is None:
            return
        if not self._transport.can_write_eof():  # TLS
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError:  # the client has cut the connection, which asyncio has not seen yet
            self._transport.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
