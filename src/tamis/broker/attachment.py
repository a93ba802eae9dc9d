"""A subscription that somebody listens to: the topic fills it, a protocol drains it.

It belongs to the event loop. It is *current* if it follows the stream: matches of new events come
from the topic's live matcher. Else it is *lagging*: it has a position in the log, and the topic's
sweep brings it what matches from there on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from tamis.broker.catalogue import SubscriptionRow, store_progress
from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.delivery.buffer import Buffer
from tamis.broker.delivery.progress import Progress
from tamis.broker.delivery.window import Window
from tamis.broker.records import Delivery
from tamis.errors import OptionError
from tamis.language.expression import Expression

if TYPE_CHECKING:
    from tamis.broker.moved_backlog import MovedBacklog
    from tamis.broker.topic import Topic


class Interest(NamedTuple):
    """Who listens, and to what."""

    account: str
    id: str | None  # None: it has no name, and is gone when it is closed
    text: str  # the filter as it was written
    filter: Expression  # what is matched: the filter, narrowed by the grants of the account


OnClose = Callable[["Attachment", str], Awaitable[None]]


class Attachment:
    """A subscription that somebody listens to."""

    def __init__(
        self, topic: "Topic", interest: Interest, outbox: Window | Buffer, on_close: OnClose
    ) -> None:
        self.interest = interest
        self.outbox = outbox
        self.closed_because: str | None = None
        # Of the topic and its sweep:
        self.key = -1  # its id in matchers; another one for another filter
        self.live_from = 0  # the first batch whose matches it can get
        self.position: int | None = None  # of the next event to read from the log; None: current
        self.queued = False  # for the sweep
        self.timed = False  # whether the topic looks after its deadlines
        self.burying: set[int] = set()  # offsets whose dead letter is being written
        self.moved: MovedBacklog | None = None  # what it brought along from another broker
        self.lost = 0  # events that were removed before it came to them, ever
        self._topic = topic
        self._on_close = on_close
        self._told_lost = 0
        self._waiter: asyncio.Future[None] | None = None
        self._when_ready: Callable[[], None] | None = None

    @property
    def durable(self) -> bool:
        """Whether what is not acknowledged comes again."""
        return self.outbox.durable

    # --- for protocols

    async def take(self, most: int) -> list[Delivery]:
        """At least one event and at most `most`, once there is one; [] when it is closed."""
        while self.closed_because is None and not self.outbox.ready:
            if self._waiter is not None and not self._waiter.done():
                raise OptionError("one take at a time: another one waits on this attachment")
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.take_nowait(most)

    def take_nowait(self, most: int) -> list[Delivery]:
        """At most `most` of the events that are there."""
        outbox = self.outbox
        if self.closed_because is not None:
            return []
        if isinstance(outbox, Buffer):
            taken = outbox.take(most)
        else:
            taken = outbox.take(most, self._topic.now())
        if taken:
            self._topic.was_taken(self, taken)
        return taken

    def when_ready(self, call: Callable[[], None]) -> None:
        """Have a function called when there is something to take, or it is closed: no `take` waits.

        It may be called more often than that, and must not take anything itself.
        """
        self._when_ready = call
        self.wake()

    def ack(self, offset: int) -> None:
        """Acknowledge one event; nothing happens if it is acknowledged already, or was not sent."""
        if isinstance(self.outbox, Window) and self.closed_because is None:
            self._topic.was_acked(self, int(self.outbox.ack(offset)))

    def ack_up_to(self, offset: int) -> None:
        """Acknowledge everything up to an offset."""
        if isinstance(self.outbox, Window) and self.closed_because is None:
            if offset >= self._topic.dispatched:
                raise OptionError(
                    f"offset {offset} was not delivered: the next event of topic "
                    f"{self._topic.name!r} gets offset {self._topic.dispatched}"
                )
            done = self.outbox.ack_up_to(offset)
            if self.position is not None:
                self.position = max(self.position, offset + 1)
            self._topic.was_acked(self, done)

    def nack(self, offset: int) -> None:
        """Send an event again: the subscriber could not handle it."""
        if isinstance(self.outbox, Window) and self.closed_because is None:
            self.outbox.nack(offset)
            self._topic.was_changed(self)

    def nack_up_to(self, offset: int) -> None:
        """Send everything up to an offset again that was sent and is not acknowledged."""
        if isinstance(self.outbox, Window) and self.closed_because is None:
            self.outbox.nack_up_to(offset)
            self._topic.was_changed(self)

    @property
    def dropped(self) -> int:
        """How many events were dropped, since it was last asked, because it is slow."""
        if isinstance(self.outbox, Window):
            return 0
        dropped, self.outbox.dropped = self.outbox.dropped, 0
        return dropped

    @property
    def expired(self) -> int:
        """How many events of the log, since it was last asked, were removed before it saw them."""
        expired, self._told_lost = self.lost - self._told_lost, self.lost
        return expired

    async def close(self, because: str = "it was closed") -> None:
        """Stop listening; a durable subscription keeps what was not acknowledged."""
        await self._on_close(self, because)

    # --- for the topic

    def wake(self) -> None:
        """Let the one who waits in `take`, or wants to be called, look again."""
        if self._when_ready is not None and (self.outbox.ready or self.closed_because is not None):
            self._when_ready()
        waiter = self._waiter
        if waiter is not None and (self.outbox.ready or self.closed_because is not None):
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def end(self, because: str) -> None:
        """Be closed."""
        self.closed_because = because
        self.wake()

    def progress(self) -> Progress:
        """How far it has come."""
        at = self._topic.dispatched if self.position is None else self.position
        return self.outbox.progress(at)

    @property
    def cursor(self) -> int:
        """The offset before which everything is done."""
        return self.progress().cursor

    def row(self, *, attached: bool) -> SubscriptionRow:
        """What is stored of a durable subscription."""
        account, id_, text, _ = self.interest
        return SubscriptionRow(
            self._topic.number, account, id_ or "", text, self.outbox.options, self.progress(),
            self.lost, attached,
        )  # fmt: skip

    def catalogue_change(self) -> CatalogueChange:
        """The change that stores how far it has come."""
        return store_progress(self.row(attached=True))
