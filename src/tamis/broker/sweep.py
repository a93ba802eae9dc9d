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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.broker.delivery.window import Window
from tamis.broker.log_matcher import LogMatcher
from tamis.broker.matches import Array, Matched, by_subscription
from tamis.broker.records import Delivery
from tamis.broker.workers import MATCH
from tamis.errors import CapacityError, FileError

if TYPE_CHECKING:
    from tamis.broker.attachment import Attachment
    from tamis.broker.topic import Topic

CHUNK = 8192  # offsets
CHUNK_BYTES = 16_000_000
RETRY = 1.0  # seconds until what could not be read is read again

logger = logging.getLogger("tamis.broker")


class SweptPart(NamedTuple):
    """What was found in a part of the log, up to before `stop`."""

    stop: int
    deliveries: list[Delivery]  # made once for all that get them
    matches: dict[int, list[int]]  # for each key, which of the deliveries


class Sweep:
    """Brings the lagging subscriptions of a topic up to date."""

    def __init__(self, topic: "Topic", matcher: LogMatcher) -> None:
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
        queue = [one for one in queue if not self._bring_moved(one)]
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
        found = SweptPart(start, [], {})
        if start < stop:
            run = self._topic.host.workers.run
            wanted = np.fromiter(keys.values(), np.int64, len(keys))
            try:
                found = await run(MATCH, self._find, start, stop, wanted)
            except Exception:  # a disk may recover: the same chunk is read again
                logger.exception("topic %r cannot be read from %d", self._topic.name, start)
                self._topic.host.later(RETRY, lambda: self._queue_all(queue))
                return
        for one, key in keys.items():
            # Meanwhile it may have been closed, or have got another filter.
            if one.closed_because is None and one.key == key and one.position is not None:
                matching = [found.deliveries[n] for n in found.matches.get(key, ())]
                self._bring(one, one.position, matching, found.stop)

    def _bring_moved(self, one: "Attachment") -> bool:
        """Whether a subscription is still before the log, with what came from another broker."""
        moved, position = one.moved, one.position
        if moved is None or position is None or position >= moved.resume:
            return False
        one.queued = False
        if one.closed_because is None:
            found: list[Delivery] = []
            stop = moved.resume
            if position < 0:
                try:
                    part = moved.read(position)
                except FileError:  # a disk may recover: the same part is read again
                    logger.exception("what came with %r cannot be read", one.interest.id)
                    self._topic.host.later(RETRY, lambda: self.queue(one))
                    return True
                stop, one.lost = part.stop, one.lost + part.lost
                holds = self._topic.condition(one.interest.filter)
                found = [Delivery(record, 1) for record in part.records if holds(record)]
            self._bring(one, position, found, stop, is_moved=True)
        return True

    def _skip_removed(self, one: "Attachment") -> None:
        first = self._topic.log.first_offset
        if one.position is not None and one.position < first:
            one.lost += first - one.position
            one.position = first

    def _bring(
        self, one: "Attachment", position: int, matching: list[Delivery], stop: int, *,
        is_moved: bool = False,
    ) -> None:  # fmt: skip
        """Give a subscription what matches, and let it go on."""
        if one.moved is not None and not is_moved:
            matching = one.moved.unknown(matching)
        if matching and matching[0].record.offset < position:
            matching = [delivery for delivery in matching if delivery.record.offset >= position]
        accepted = one.outbox.fill(matching)
        if accepted < len(matching):
            one.position = matching[accepted].record.offset
        else:
            one.position = max(position, stop)
            if isinstance(one.outbox, Window):
                one.outbox.passed(one.position)
            if one.position >= self._topic.dispatched:
                self._came_to_the_end(one)
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

    def _find(self, start: int, stop: int, keys: Array) -> SweptPart:
        """What matches in a part of the log, for some of the subscriptions."""
        chunk = self._topic.log.read(start, stop - start, CHUNK_BYTES)
        stop = max(start, min(stop, chunk.next_offset))
        count = int(np.searchsorted(chunk.offsets, stop))
        while True:
            try:
                matched = self.matcher.match(chunk, count)
                break
            except CapacityError:  # so many matches do not fit into memory
                if count <= 1:
                    raise
                count //= 2
                stop = int(chunk.offsets[count])
        here = np.isin(matched.keys, keys)
        rows, places = np.unique(matched.events[here], return_inverse=True)
        records = chunk.take(rows.tolist())
        deliveries = [Delivery(record.named(), 1) for record in records]
        return SweptPart(
            stop, deliveries, dict(by_subscription(Matched(places, matched.keys[here])))
        )
