"""What the subscriptions of one connection get, written as MESSAGE frames.

There is no task for a subscription: an attachment that has something says so, and the next turn of
the event loop writes what all subscriptions of the connection have, in one piece. Nothing is
written before the client has taken what was written before; meanwhile events wait in the
attachments, which are bounded.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tamis.broker.protocols.stomp.messages import messages
from tamis.broker.protocols.stomp.requests import AUTO, CLIENT, Ack, Subscription
from tamis.broker.records import Record
from tamis.errors import Conflict, TamisError

if TYPE_CHECKING:
    from tamis.broker.attachment import Attachment

BATCH_BYTES = 1 << 18  # of messages that are written at once, about
TURN = 256  # deliveries of one subscription, before the next one has its turn


class FrameOutput(Protocol):
    """Where frames go."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    @property
    def is_flushed(self) -> bool:
        """Whether all that was written was handed over to the operating system."""

    def fail(self, error: TamisError) -> None:
        """End the connection with an error."""


class DeliveredSubscription:
    """A subscription, and where its events come from."""

    __slots__ = ("acks_itself", "attachment", "most", "queued", "shared", "subscription")

    def __init__(
        self,
        subscription: Subscription,
        attachment: "Attachment",
        shared: Callable[[Record], bytes],
    ) -> None:
        self.subscription = subscription
        self.attachment = attachment
        self.shared = shared
        # What a durable subscription gets without being asked for an ACK is acknowledged when the
        # operating system has it, so that the end of the broker's process loses nothing.
        self.acks_itself = subscription.ack == AUTO and attachment.durable
        self.queued = False
        self.most = TURN


class Deliveries:
    """The subscriptions of one connection, by their numbers."""

    def __init__(self, output: FrameOutput) -> None:
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[int, DeliveredSubscription] = {}
        self._ready: deque[DeliveredSubscription] = deque()
        self._unflushed: list[tuple[DeliveredSubscription, int]] = []
        self._scheduled = False
        self._ended = False

    def add(
        self,
        subscription: Subscription,
        attachment: "Attachment",
        shared: Callable[[Record], bytes],
    ) -> None:
        """Deliver what an attachment gets; `shared` makes the common part of MESSAGE frames."""
        listener = DeliveredSubscription(subscription, attachment, shared)
        self._listeners[subscription.number] = listener
        attachment.when_ready(lambda: self._queue(listener))

    def remove(self, subscription: Subscription) -> "Attachment | None":
        """Deliver no more to a subscription; gives its attachment, which is to be closed."""
        listener = self._listeners.pop(subscription.number, None)
        return None if listener is None else listener.attachment

    def remove_all(self) -> "list[Attachment]":
        """The connection ends; gives all attachments, which are to be closed."""
        self._ended = True
        attachments = [listener.attachment for listener in self._listeners.values()]
        self._listeners.clear()
        self._ready.clear()
        self._unflushed.clear()
        return attachments

    def acknowledge(self, acks: list[Ack]) -> None:
        """Pass acknowledgements on; with the mode `client` they are about all up to an offset."""
        pending: Ack | None = None  # of several such ACKs one after the other, the highest counts
        for ack in acks:
            if pending is not None and (
                ack.subscription is not pending.subscription or not ack.accepted
            ):
                self._acknowledge_up_to(pending)
                pending = None
            if ack.subscription.ack != CLIENT:
                self._acknowledge_one(ack)
            elif not ack.accepted:
                self._acknowledge_up_to(ack)
            elif pending is None or ack.offset > pending.offset:
                pending = ack
        if pending is not None:
            self._acknowledge_up_to(pending)

    def flushed(self) -> None:
        """The operating system has taken all that was written."""
        for listener, offset in self._unflushed:
            listener.attachment.ack_up_to(offset)
        self._unflushed.clear()
        if self._ready:
            self._schedule()

    def _acknowledge_one(self, ack: Ack) -> None:
        listener = self._listeners.get(ack.subscription.number)
        if listener is not None and ack.accepted:
            listener.attachment.ack(ack.offset)
        elif listener is not None:
            listener.attachment.nack(ack.offset)

    def _acknowledge_up_to(self, ack: Ack) -> None:
        listener = self._listeners.get(ack.subscription.number)
        if listener is not None and ack.accepted:
            listener.attachment.ack_up_to(ack.offset)
        elif listener is not None:
            listener.attachment.nack_up_to(ack.offset)

    def _queue(self, listener: DeliveredSubscription) -> None:
        if not listener.queued:
            listener.queued = True
            self._ready.append(listener)
            self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled and self._output.is_flushed:
            self._scheduled = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        """Write what there is, up to a batch; what is left has its turn after other connections."""
        self._scheduled = False
        if not self._output.is_flushed or self._ended:
            return  # `flushed` comes back here
        pieces: list[bytes] = []
        size = 0
        while self._ready and size < BATCH_BYTES:
            listener = self._ready.popleft()
            listener.queued = False
            if self._listeners.get(listener.subscription.number) is listener:
                size += self._take(listener, pieces)
        if pieces:
            self._output.write(b"".join(pieces))
        if self._output.is_flushed:
            self.flushed()

    def _take(self, listener: DeliveredSubscription, pieces: list[bytes]) -> int:
        """Take what one subscription has, as pieces of frames; returns how many bytes they have."""
        attachment = listener.attachment
        taken = attachment.take_nowait(listener.most)
        if not taken:
            if attachment.closed_because is not None:
                key = listener.subscription.key[:60]
                self._output.fail(
                    Conflict(f"subscription {key!r} ended: {attachment.closed_because}")
                )
            return 0
        made = messages(listener.subscription, taken, listener.shared, attachment.dropped)
        pieces += made
        size = sum(map(len, made))
        if listener.acks_itself:
            self._unflushed.append((listener, taken[-1].record.offset))
        if len(taken) == listener.most:
            listener.queued = True
            self._ready.append(listener)
        # Next time, of large events fewer at once.
        listener.most = max(1, min(TURN, BATCH_BYTES * len(taken) // size))
        return size
