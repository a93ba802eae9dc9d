"""STOMP over a WebSocket, for programs in browsers, in messages of any size.

Frames go as text; those with a body that is not text go in a binary message, for a browser cuts the
connection when a text is not UTF-8.
"""

import asyncio
from contextlib import suppress

from aiohttp import WSMsgType, web

from tamis.broker.stomp.connection import StompConnection
from tamis.broker.stomp.service import StompService
from tamis.errors import OptionError

PROTOCOLS = ("v12.stomp", "v11.stomp", "v10.stomp")
MOST_MESSAGE = 4_000_000  # bytes; a larger frame comes in several messages


async def stomp_socket(request: web.Request, service: StompService) -> web.StreamResponse:
    """A conversation in STOMP, until one side ends it."""
    # STOMP has heart-beats of its own.
    socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=MOST_MESSAGE, compress=False)
    if not socket.can_prepare(request).ok:
        raise OptionError("this path is for WebSockets that speak STOMP")
    await socket.prepare(request)
    wire = SocketWire(request, socket)
    wire.connection = service.connect(wire, request.remote or "?")
    sending = asyncio.create_task(wire.send())
    try:
        await wire.receive()
    finally:
        wire.connection.lost()
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
    return socket


class SocketWire:
    """The bytes of one WebSocket."""

    connection: StompConnection

    def __init__(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        self.is_flushed = True
        self._request = request
        self._socket = socket
        self._waiting: list[bytes] = []
        self._finished = False
        self._written = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()

    async def receive(self) -> None:
        """Hand the client's bytes over as they come."""
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                self.connection.received(message.data.encode())
            elif message.type is WSMsgType.BINARY:
                self.connection.received(message.data)
            else:
                return
            await self._may_read.wait()

    async def send(self) -> None:
        """Send what was written, as fast as the client takes it."""
        with suppress(ConnectionError):
            while not (self._finished and not self._waiting):
                await self._written.wait()
                self._written.clear()
                while self._waiting:
                    data, self._waiting = b"".join(self._waiting), []
                    await self._socket.send_frame(data, _kind(data))
                self.is_flushed = True
                self.connection.flushed()
            await self._socket.close()

    # ---- called by the connection

    def write(self, data: bytes) -> None:
        self._waiting.append(data)
        self.is_flushed = False
        self._written.set()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def finish(self) -> None:
        self._finished = True
        self._written.set()

    def abort(self) -> None:
        self._may_read.set()
        if self._request.transport is not None:
            self._request.transport.abort()


def _kind(data: bytes) -> WSMsgType:
    try:
        data.decode()
    except UnicodeDecodeError:
        return WSMsgType.BINARY
    return WSMsgType.TEXT
