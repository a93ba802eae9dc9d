"""The sweep: brings lagging subscriptions what matches from the log, many of them at once.

The log is cut into chunks of `CHUNK` offsets. Each lagging subscription that wants more stands in
the queue of the chunk that its position is in. The chunks are visited in turn, the one that waited
longest first: the chunk is read once, matched once against all lagging subscriptions, and everyone
in its queue gets what matches from its position on, as far as it has room. Then it goes on to the
next chunk's queue, is current because it came to the end, or rests until it has room again.

So subscribers that return together are caught up together, however many there are; one that fell
behind a little does not wait until another one is through with its backlog; and one round visits
each chunk at most once.
"""

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from tamis.broker.delivery.window import Window
from tamis.broker.matches import Matched, by_subscription
from tamis.broker.records import Delivery
from tamis.broker.workers import MATCH
from tamis.errors import CapacityError
from tamis.matcher import Matcher

if TYPE_CHECKING:
    from tamis.broker.attachment import Attachment
    from tamis.broker.log.chunk import Chunk
    from tamis.broker.topic import Topic

CHUNK = 8192  # offsets
CHUNK_BYTES = 16_000_000

logger = logging.getLogger("tamis.broker")


class Sweep:
    """Brings the lagging subscriptions of a topic up to date."""

    def __init__(self, topic: "Topic", matcher: Matcher) -> None:
        self.matcher = matcher  # of all lagging subscriptions
        self.lock = asyncio.Lock()  # held while a chunk is read and matched
        self._topic = topic
        self._queues: OrderedDict[int, dict[Attachment, None]] = OrderedDict()
        self._at_end: dict[Attachment, None] = {}  # and wait for the batch that is being matched
        self._task: asyncio.Task[None] | None = None

    def enter(self, one: "Attachment", position: int) -> None:
        """Let a subscription lag from a position on."""
        if one.position is None or one.key not in self.matcher:
            self.matcher.subscribe(one.key, one.interest.filter)
        one.position = position
        self.queue(one)

    def queue(self, one: "Attachment") -> None:
        """Let a lagging subscription stand in the queue of its chunk, if it wants more."""
        if one.queued or one.position is None or not one.outbox.wants_more:
            return
        one.queued = True
        self._queues.setdefault(one.position // CHUNK, {})[one] = None
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"tamis sweep {self._topic.name}")

    def _queue_all(self, some: "list[Attachment]") -> None:
        for one in some:
            self.queue(one)

    def leave(self, one: "Attachment") -> None:
        """Forget a subscription that is closed, or gets another filter."""
        if one.queued:
            for queue in self._queues.values():
                queue.pop(one, None)
            one.queued = False
        self._at_end.pop(one, None)
        if one.key in self.matcher:
            self.matcher.unsubscribe(one.key)

    def more_came(self) -> None:
        """Go on with those that stood at the end: another batch was matched."""
        if self._at_end:
            waiting, self._at_end = self._at_end, {}
            self._queue_all(list(waiting))

    async def settled(self) -> None:
        """Return when nobody stands in a queue."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop."""
        self._queues.clear()
        if self._task is not None:
            await asyncio.wait([self._task])

    # --- one chunk after the other

    async def _run(self) -> None:
        try:
            while self._queues:
                _, queue = self._queues.popitem(last=False)
                async with self.lock:
                    if queue:
                        await self._visit(list(queue))
        finally:
            self._task = None

    async def _visit(self, queue: "list[Attachment]") -> None:
        for one in queue:
            one.queued = False
            self._skip_removed(one)
        # Some may have been closed while the one before was visited.
        keys = {one: one.key for one in queue if one.closed_because is None}
        starts = [one.position for one in keys if one.position is not None]
        if not starts:
            return
        start = min(starts)
        stop = min((start // CHUNK + 1) * CHUNK, self._topic.dispatched)
        found: dict[int, list[int]] = {}
        chunk = None
        if start < stop:
            run = self._topic.host.workers.run
            try:
                chunk, matched = await run(MATCH, self._read_and_match, start, stop)
            except Exception:
                logger.exception("topic %r cannot be read from %d", self._topic.name, start)
                self._topic.host.later(1.0, lambda: self._queue_all(queue))
                return
            found = dict(by_subscription(matched))
            stop = max(start, min(stop, chunk.next_offset))
        deliveries = _Deliveries(chunk)
        for one, key in keys.items():
            # Meanwhile it may have been closed, or have got another filter.
            if one.closed_because is None and one.key == key and one.position is not None:
                self._bring(one, deliveries, found.get(key, []), stop)

    def _skip_removed(self, one: "Attachment") -> None:
        first = self._topic.log.first_offset
        if one.position is not None and one.position < first:
            one.lost += first - one.position
            one.position = first

    def _bring(
        self, one: "Attachment", deliveries: "_Deliveries", rows: list[int], stop: int
    ) -> None:
        """Give a subscription what matches, and let it go on."""
        position = one.position
        assert position is not None  # noqa: S101 - it was asked before
        offered = deliveries.of([row for row in rows if deliveries.offset(row) >= position])
        accepted = one.outbox.fill(offered)
        if accepted < len(offered):
            one.position = offered[accepted].record.offset
        else:
            one.position = max(position, stop)
            if isinstance(one.outbox, Window):
                one.outbox.passed(one.position)
            if one.position >= self._topic.dispatched:
                self._came_to_the_end(one)
        one.wake()
        self._topic.was_changed(one)
        if one not in self._at_end:
            self.queue(one)

    def _came_to_the_end(self, one: "Attachment") -> None:
        # Its position is beyond if it began while a batch was written that is not handed out yet.
        if one.position == self._topic.dispatched and self._topic.follows(one):
            one.position = None
            self.matcher.unsubscribe(one.key)
        else:
            self._at_end[one] = None

    # --- in a thread

    def _read_and_match(self, start: int, stop: int) -> "tuple[Chunk, Matched]":
        chunk = self._topic.log.read(start, stop - start, CHUNK_BYTES)
        within = int(np.searchsorted(chunk.offsets, stop))
        table = chunk.table.slice(0, within)
        while True:
            try:
                return chunk, self._matched(table)
            except CapacityError:
                if table.num_rows <= 1:
                    raise
                half = table.num_rows // 2
                table = table.slice(0, half)
                chunk = chunk._replace(next_offset=int(chunk.offsets[half]))

    def _matched(self, table: "object") -> Matched:
        pairs = self.matcher.match_batch(table)
        return Matched(pairs["event"].to_numpy(), pairs["subscription"].to_numpy())


class _Deliveries:
    """The deliveries of a chunk, made once for all subscriptions that get them."""

    def __init__(self, chunk: "Chunk | None") -> None:
        self._chunk = chunk
        self._made: dict[int, Delivery] = {}

    def offset(self, row: int) -> int:
        """The offset of a row."""
        assert self._chunk is not None  # noqa: S101 - there are rows
        return int(self._chunk.offsets[row])

    def of(self, rows: list[int]) -> list[Delivery]:
        """The deliveries of some rows."""
        new = [row for row in rows if row not in self._made]
        if new:
            assert self._chunk is not None  # noqa: S101 - there are rows
            for row, record in zip(new, self._chunk.take(new), strict=True):
                self._made[row] = Delivery(record.named(), 1)
        return [self._made[row] for row in rows]
