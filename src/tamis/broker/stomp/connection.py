"""One connection of a STOMP client.

One task carries out what the client asks for, in order. What comes while it waits for the disk is
read when it is done: all SEND frames of that are the next batch. Nothing here grows without bound:
nothing is carried out before the client has taken what was written before, and nothing is read
while more than `HIGH_WATER` bytes wait.

`Wire` is what carries the bytes: TCP in `tamis.broker.stomp_server`, or a WebSocket.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from tamis.broker.protocols.stomp import replies
from tamis.broker.protocols.stomp.requests import Connect, Disconnect, Failure, Request
from tamis.broker.protocols.stomp.session import Session
from tamis.broker.protocols.stomp.time_limits import TimeLimits
from tamis.broker.stomp.client import RefusedSend, StompClient
from tamis.broker.stomp.deliveries import Deliveries
from tamis.broker.stomp.quenches import Quenches
from tamis.errors import Busy, TamisError

if TYPE_CHECKING:
    from tamis.broker.accounts import Account
    from tamis.broker.stomp.service import StompService

HIGH_WATER = 1 << 18  # bytes that may wait to be read
LINGER = 2.0  # seconds in which a client can read an ERROR before the connection is cut

logger = logging.getLogger("tamis.broker.stomp")


class Wire(Protocol):
    """What carries bytes to and from a client."""

    def write(self, data: bytes) -> None:
        """Send bytes. If they cannot be handed over at once, `is_flushed` is False until then."""

    @property
    def is_flushed(self) -> bool:
        """Whether all that was written was handed over to the operating system."""

    def pause_reading(self) -> None:
        """Let the client wait."""

    def resume_reading(self) -> None:
        """Read again."""

    def finish(self) -> None:
        """Send what was written, then tell the client that nothing more comes."""

    def abort(self) -> None:
        """Cut the connection."""


class StompConnection:
    """One connection. The wire calls `received`, `flushed` and `lost`, all in the event loop."""

    def __init__(self, service: "StompService", wire: Wire, peer: str) -> None:
        self.peer = peer
        self._service = service
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._session = Session()
        self._times = TimeLimits(service.times, self._loop.time())
        self._deliveries = Deliveries(self)
        self._client: StompClient | None = None
        self._quenches: Quenches | None = None
        self._closing = False  # nothing more is read or carried out
        self._no_more = False  # the client sends nothing more
        self._is_lost = False
        self._has_given_back = False
        self._gone = asyncio.Event()
        self._busy = False  # something is carried out
        self._paused = False
        self._serving: asyncio.Task[None] | None = None
        self._change = asyncio.Event()  # bytes came, the wire was flushed, or the connection ends
        self._timer: asyncio.TimerHandle | None = None
        self._watch()

    # ---- for the wire

    def received(self, data: bytes) -> None:
        """The client sent bytes."""
        if self._closing:
            return
        self._session.receive(data)
        self._times.heard(self._loop.time())
        self._change.set()
        if self._serving is None:
            self._serving = self._loop.create_task(self._serve())
        # What waits while nothing is carried out is half a frame: it needs the rest.
        elif self._busy and self._session.waiting > HIGH_WATER and not self._paused:
            self._paused = True
            self._wire.pause_reading()

    def flushed(self) -> None:
        """The operating system has taken all that was written."""
        self._times.blocked(None)
        self._change.set()
        self._deliveries.flushed()

    def received_all(self) -> None:
        """The client sends nothing more, and may still read the answers to what it sent."""
        self._no_more = True
        self._change.set()
        if self._serving is None:
            self._finish()

    def lost(self) -> None:
        """The connection is gone."""
        self._is_lost = True
        self._close()
        self._forget_if_done()

    # ---- for deliveries and the client

    @property
    def is_flushed(self) -> bool:
        """Whether more can be written."""
        return self._wire.is_flushed and not self._is_lost

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._is_lost:
            return
        now = self._loop.time()
        self._wire.write(data)
        self._times.sent(now)
        if not self._wire.is_flushed:
            self._times.blocked(now)

    def fail(self, error: TamisError, receipt: str | None = None) -> None:
        """Send an ERROR frame, and end the connection after it."""
        if not self._closing:
            logger.info("%s: %s", self.peer, str(error).partition("\n")[0])
            self.write(replies.error(error, receipt, self._session.version))
            self._finish()

    # ---- for the service

    @property
    def account(self) -> "Account | None":
        """Who is connected; None until it is known."""
        return None if self._client is None else self._client.account

    def stop(self) -> None:
        """The server stops: tell the client, and let it go."""
        self.fail(Busy("the broker stops; connect again"))

    def abort(self) -> None:
        """Cut the connection."""
        self._wire.abort()

    async def gone(self) -> None:
        """Return when the connection is lost, and all that it had is given back."""
        await self._gone.wait()

    # ---- what it does

    async def _serve(self) -> None:
        try:
            while not self._closing:
                self._change.clear()
                requests = self._session.requests()
                self._times.parsed(
                    self._loop.time(), inside=self._session.inside, completed=bool(requests)
                )
                if requests:
                    await self._carry_out_all(requests)
                elif self._no_more:
                    self._finish()
                else:
                    await self._change.wait()
        except Exception:  # an error of one connection, told to it
            logger.exception("%s: a request failed", self.peer)
            self.fail(TamisError("the broker failed; its log says why"))
        finally:
            await self._give_back()

    async def _carry_out_all(self, requests: list[Request]) -> None:
        self._set_busy(True)
        for request in requests:
            while not self.is_flushed and not self._closing:
                self._change.clear()
                await self._change.wait()
            if self._closing:
                return
            try:
                await self._carry_out(request)
            except RefusedSend as refused:
                self.fail(refused.error, refused.receipt)
            except TamisError as error:
                self.fail(error, getattr(request, "receipt", None))
        self._set_busy(False)

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        self._times.busy(busy, self._loop.time())
        if self._paused and not busy and not self._closing:
            self._paused = False
            self._wire.resume_reading()

    async def _carry_out(self, request: Request) -> None:
        if isinstance(request, Connect):
            await self._connect(request)
        elif isinstance(request, Failure):
            self.fail(request.error, request.receipt)
        elif isinstance(request, Disconnect):
            if request.receipt is not None:
                self.write(replies.receipts([request.receipt], self._session.version))
            self._finish()
        elif self._client is not None:
            await self._client.carry_out(request)

    async def _connect(self, request: Connect) -> None:
        service, session = self._service, self._session
        account = await service.authenticate(self, request)
        account.usage.connect()
        version = session.version or "1.0"
        session_id = service.new_session_id()
        self._quenches = Quenches(service.broker, account, version, self, session_id)
        self._client = StompClient(
            service, account, version, self._deliveries, self._quenches, self.write
        )
        session.accept(service.session_limits(account))
        self._times.connected(*session.client_beats, self._loop.time())
        self.write(replies.connected(version, session_id, self._times.server_beats))
        self._watch()

    async def _give_back(self) -> None:
        """Close the attachments and count the connection out; what is in a transaction is lost."""
        if self._quenches is not None:
            self._quenches.close()
        attachments = self._deliveries.remove_all()
        await asyncio.gather(*(one.close() for one in attachments), return_exceptions=True)
        if self._client is not None:
            self._client.account.usage.disconnect()
        self._has_given_back = True
        self._forget_if_done()

    def _forget_if_done(self) -> None:
        if self._is_lost and (self._serving is None or self._has_given_back):
            self._service.forget(self)
            self._gone.set()

    # ---- its end

    def _close(self) -> None:
        """Read and carry out nothing more."""
        self._closing = True
        self._session.ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._change.set()

    def _finish(self) -> None:
        """End the connection in order: the client reads what was written, and closes it."""
        self._close()
        if not self._is_lost:
            if self._paused:
                self._wire.resume_reading()  # what it still sends is thrown away
            self._wire.finish()
            self._timer = self._loop.call_later(LINGER, self._wire.abort)

    # ---- its time limits

    def _watch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._times.next_look(self._loop.time()), self._look)

    def _look(self) -> None:
        """Cut a client that is too late, send a heart-beat if it is time."""
        now = self._loop.time()
        late = self._times.overdue(now)
        if late is not None:
            if not self._wire.is_flushed:  # it would not read an ERROR either
                logger.info("%s: %s", self.peer, late)
                self._wire.abort()
            else:
                self.fail(late)
            return
        if self._times.beat_is_due(now):
            if self._wire.is_flushed:
                self._wire.write(replies.HEART_BEAT)
            self._times.sent(now)
        self._watch()
