"""`Subscription`: what matches a filter, received one after the other, over lost connections.

**How it resumes.** A durable subscription has its cursor at the broker: a new connection names the
last offset that was acknowledged (``Last-Event-ID``), and the broker goes on after it. Any other is
made anew, to start after the last offset that was received, so that nothing is lost that the topic
still has.

**What is not handed out twice.** What is received stays here until it is taken, so the broker's
repetitions of it are left out. Otherwise a repetition is handed out, marked as redelivered, where
the caller acknowledges by hand; where iterating does it, it is left out, because it was handed out
before and the next step acknowledges it.
"""

import asyncio
import contextlib
import json
import logging
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tamis.client.acknowledgements import BEFORE_ALL, Acknowledgements
from tamis.client.broker_session import Attempts, BrokerSession, is_transient, path_of
from tamis.client.delivery import Acknowledgement, Delivery
from tamis.client.event_stream import EventStream, Message
from tamis.client.opening import Closable
from tamis.errors import BrokerUnreachable, Busy, Conflict, TamisError, UnknownSubscription, counted
from tamis.events.event_reader import exact_number
from tamis.language.expression import MATCHES_ALL

BUFFER = 1000  # deliveries that are received and not yet taken; then the connection waits
BROKER_STOPS = "the broker stops"  # why it ends a subscription that may come back later
MOVING = 5.0  # seconds that a request waits for a subscription that comes from another broker
LAST_WORDS = 5.0  # seconds for the last acknowledgement when a subscription is closed

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wish:
    """What a subscriber wants."""

    topic: str
    filter: str | None  # None: that of the durable subscription, or everything
    durable: str | None = None
    start: str | int = "new"
    manual_ack: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    move_from: str | None = None  # the broker that has the durable subscription now


class Subscription(Closable):
    """The deliveries of one subscription: iterate over it, or `take` several at once."""

    def __init__(self, session: BrokerSession, wish: Wish) -> None:
        self.topic = wish.topic
        self.durable = wish.durable
        self.filter = wish.filter
        self.dropped = 0  # not durable: events that the broker dropped, because this was too slow
        self.expired = 0  # events that the topic did not keep until they could be delivered
        self._wish = wish
        self._session = session
        self._id = wish.durable or _new_id()
        self._start: str | int = wish.start
        self._buffer: deque[Delivery] = deque()
        self._received = self._taken = BEFORE_ALL  # the highest offsets
        self._last: Delivery | None = None  # handed out by iterating, and not acknowledged yet
        self._acks = Acknowledgements(self._send_ack)
        self._filled, self._emptied = asyncio.Event(), asyncio.Event()
        self._end: TamisError | None = None
        self._closed = False
        self._reader: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> "Subscription":
        """Make the subscription at the broker and wait until events can come."""
        if self._wish.move_from is not None:
            await self._fetch(self._wish.move_from)
        else:
            await self._make(self._session.patience)
        attached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read(attached))
        await attached
        return self

    async def take(self, most: int = BUFFER) -> list[Delivery]:
        """At least one delivery and at most `most`; none if the subscription is closed.

        What is taken this way is acknowledged by hand.
        """
        while not self._buffer:
            if self._closed:
                return []
            if self._end is not None:
                raise self._end
            self._filled.clear()
            await self._filled.wait()
        found = [self._buffer.popleft() for _ in range(min(most, len(self._buffer)))]
        self._taken = max(self._taken, found[-1].offset)
        self._emptied.set()
        return found

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Delivery:
        self.ack_last()
        found = await self.take(1)
        if not found:
            raise StopAsyncIteration
        self.hand_out(found[0])
        return found[0]

    def hand_out(self, delivery: Delivery) -> None:
        """Remember the delivery that iterating gives, to acknowledge it with the next step."""
        if not self._wish.manual_ack:
            self._last = delivery

    def ack_last(self) -> None:
        """Acknowledge what iterating gave last: whoever asks for the next one has done with it."""
        if self._last is not None:
            self.ack(self._last.offset)
            self._last = None

    def ack(self, offset: int) -> Acknowledgement:
        """Acknowledge all events up to this offset; may be called from any thread."""
        if self.durable is not None:
            self._acks.up_to(offset)
        return Acknowledgement(self.acknowledged, offset)

    async def acknowledged(self, offset: int) -> None:
        """Wait until the broker has the acknowledgement of this offset."""
        if self.durable is not None:
            await self._acks.sent_up_to(offset)

    async def close(self) -> None:
        """Stop receiving; a durable subscription stays at the broker, any other one goes."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)  # a second call waits for the same end

    async def _close(self) -> None:
        self._closed = True
        self._filled.set()
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        with contextlib.suppress(TamisError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._acks.close()
                if self.durable is None:
                    await self._session.request("DELETE", self._path(), patience=0)

    # --- at the broker

    def _path(self, *more: str) -> str:
        return path_of("topics", self.topic, "subscriptions", self._id, *more)

    async def _make(self, patience: float) -> None:
        """Make the subscription, or change it; a durable one that exists keeps its cursor."""
        if self.filter is None:
            self.filter = await self._known_filter(patience)
            if self.filter is not None and not self._wish.options:
                return  # it exists, and stays as it is
            self.filter = self.filter or MATCHES_ALL
        wanted = {
            "filter": self.filter, "durable": self.durable is not None, "start": self._start,
            **self._wish.options,
        }  # fmt: skip
        answer = await self._session.request(
            "PUT", self._path(), json_body=wanted, filter_text=self.filter, patience=patience
        )
        # A connection lost before the first event must not make "new" a later moment.
        if self.durable is None and isinstance(answer, dict) and "cursor" in answer:
            self._start = answer["cursor"]

    async def _fetch(self, origin: str) -> None:
        """Let the subscription come from another broker, and wait until it is here."""
        wanted = {"from": origin, "wait": MOVING, **self._wish.options}
        if self.filter is not None:
            wanted["filter"] = self.filter
        attempts = Attempts(self._session.patience)
        while True:
            answer = await self._session.request(
                "POST", self._path("move"), json_body=wanted, filter_text=self.filter
            )
            if answer["problem"]:
                raise Conflict(f"the subscription cannot come from {origin!r}: {answer['problem']}")
            if answer["state"] == "here":
                break
            logger.warning("%s is still on its way from broker %r", self.durable, origin)
            await attempts.pause(Busy(f"broker {origin!r} does not answer; try again later"))
        self.filter = await self._known_filter(self._session.patience)

    async def _known_filter(self, patience: float) -> str | None:
        if self.durable is None:
            return None
        try:
            answer = await self._session.request("GET", self._path(), patience=patience)
        except UnknownSubscription:
            return None
        return str(answer["filter"])

    async def _send_ack(self, offset: int) -> None:
        await self._session.request("POST", self._path("ack"), json_body={"offset": offset})

    # --- receiving

    async def _read(self, attached: "asyncio.Future[None]") -> None:
        """Receive until the subscription ends; a lost connection is replaced by a new one."""
        attempts = Attempts(self._session.patience)
        while True:
            try:
                await self._receive(attempts, attached)
                raise BrokerUnreachable(f"{self._session.url} ended the connection")
            except TamisError as failure:
                error = self._judged(failure)
                try:
                    if not is_transient(error):
                        raise error
                    level = logging.WARNING if attempts.is_first else logging.DEBUG
                    logger.log(level, "%s; trying again", error)  # once for each outage
                    await attempts.pause(error)
                    await self._make_again()
                except TamisError as last:
                    if is_transient(last) and last is not error:
                        continue
                    self._fail(last, attached)
                    return

    def _judged(self, error: TamisError) -> TamisError:
        """The error, or what it means for a subscription that can be made again."""
        if self.durable is None and isinstance(error, UnknownSubscription):
            return BrokerUnreachable(f"{self._session.url} stopped and forgot the subscription")
        return error

    async def _make_again(self) -> None:
        if self.durable is None:  # it went with its connection
            self._id = _new_id()
            if self._received != BEFORE_ALL:
                self._start = self._received + 1
            await self._make(patience=0)

    def _fail(self, error: TamisError, attached: "asyncio.Future[None]") -> None:
        self._end = error
        self._filled.set()
        if not attached.done():
            attached.set_exception(error)

    async def _receive(self, attempts: Attempts, attached: "asyncio.Future[None]") -> None:
        headers = {"Accept": "text/event-stream"}
        if self.durable is not None and self._acks.wanted != BEFORE_ALL:
            headers["Last-Event-ID"] = str(self._acks.wanted)
        stream = EventStream()
        async with self._session.stream(self._path("events"), headers) as pieces:
            if not attached.done():
                attached.set_result(None)
            async for piece in pieces:
                attempts.begin_again()
                for message in stream.feed(piece):
                    self._accept(message)
                while len(self._buffer) >= BUFFER:
                    self._emptied.clear()
                    await self._emptied.wait()

    def _accept(self, message: Message) -> None:
        content = json.loads(message.data, parse_float=exact_number)
        if message.kind == "message":
            self._keep(content)
        elif message.kind == "dropped":
            self.dropped += int(content["dropped"])
            self._warn(content["dropped"], "dropped by the broker: they were not read fast enough")
        elif message.kind == "expired":
            self.expired += int(content["expired"])
            self._warn(content["expired"], "removed by age or size before they were delivered")
        elif message.kind == "closed":
            reason = content.get("reason")
            if reason == BROKER_STOPS:
                raise BrokerUnreachable(f"{self._session.url}: {reason}")
            raise Conflict(f"the broker ended the subscription: {reason}")

    def _warn(self, events: int, what: str) -> None:
        logger.warning("%s of %s: %s", counted(events, "event"), self.topic, what)

    def _keep(self, content: dict[str, Any]) -> None:
        offset, redelivered = content["offset"], bool(content.get("redelivered"))
        if offset <= self._received:
            is_waiting = offset > self._taken
            is_done = not self._wish.manual_ack or offset <= self._acks.wanted
            if is_waiting or is_done:
                return
        self._received = max(self._received, offset)
        headers = content.get("headers", {})
        about = content["id"], content["time"], headers
        self._buffer.append(Delivery(offset, content["event"], redelivered, *about, self.ack))
        self._filled.set()


def _new_id() -> str:
    return f"client-{uuid.uuid4().hex}"
