"""A topic: one log, the subscriptions that somebody listens to, and how events come to them.

Theory of operation
-------------------
An event is stored once, in the log; a subscription is a filter and how far it has come in the log.
A subscription that nobody listens to is a row of the catalogue and nothing else. One that somebody
listens to is an `Attachment`, and either *current*, with matches of new events handed out by
`dispatch` as batches are written (`write_path.py`), or *lagging*, with a position in the log from
which the sweep (`sweep.py`) brings what matches. Nothing is ever stored for one subscriber.

Everything below happens in the event loop; only appending, syncing, reading and matching run in
threads, on data that nobody changes. `dispatched` is the end of what was handed out: events before
it are in the log, safe, and every current attachment was offered those that match.

In filters, now() is the time at which an event was stored, which its record has: one for all events
of a batch, and the same whenever the log is read (`log_matcher.py`).

Batches are numbered in the order in which their matching begins. An attachment goes into the live
matcher when it is made, and is sure to be found by batches that begin later: `live_from` is the
first of them.

Invariants
----------
1. `dispatched` is at most the end of what is safe on disk. No subscriber sees an event that could
   still be lost.
2. A current attachment was offered every matching event before `dispatched`, since it was attached.
   Therefore an attachment becomes current only when its position is `dispatched` and the next batch
   to be handed out is not before its `live_from` (`follows`); until then it reads the log.
3. A lagging attachment is offered events by the sweep only: from the live matcher it gets nothing.
   So it is offered each event once, and by offset.
4. A key of a matcher stands for one filter, forever. With another filter an attachment gets another
   key and lags from its first event that was not sent; matches of the old key are for nobody.
5. An attachment that has no room becomes lagging at the first event that did not fit. Nobody waits
   for it, and it costs no memory beyond its buffer.
"""

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tamis.broker.attachment import Attachment, Interest, OnClose
from tamis.broker.catalogue import TopicRow, put_topic
from tamis.broker.delivery.buffer import Buffer
from tamis.broker.delivery.window import Window
from tamis.broker.event_rows import EventRows, PublishRequirements, ReadEvents
from tamis.broker.host import Host
from tamis.broker.log_matcher import LogMatcher
from tamis.broker.matches import Matched, by_subscription
from tamis.broker.records import Delivery, NewEvent, Published, Record
from tamis.broker.sweep import Sweep
from tamis.broker.workers import MATCH
from tamis.broker.write_path import WritePath
from tamis.events.event_reader import Row
from tamis.language.arrival import arriving
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.matcher import Matcher
from tamis.schema import Schema

if TYPE_CHECKING:
    from tamis.broker.log.frames import NewRecord
    from tamis.broker.log.topic_log import TopicLog
    from tamis.broker.moved_backlog import MovedBacklog

IN_A_THREAD = 256_000  # bytes of events from which they are read in a thread

# Called with events that were handed out: the first offset, records, and rows as they were read.
Follower = Callable[[int, Sequence["NewRecord"], Sequence[Row]], None]

logger = logging.getLogger("tamis.broker")


class Topic:
    """A topic that is open."""

    def __init__(self, host: Host, row: TopicRow, log: "TopicLog") -> None:
        self.host = host
        self.row = row
        self.log = log
        self.dispatched = log.next_offset
        self.expired = row.expired
        self.schema = Schema(row.schema)
        self.live = self.new_matcher()
        self.sweep = Sweep(self, LogMatcher(self.new_matcher))
        self.rows = EventRows(self.live)
        self.filters = ShapeCache(self.schema)  # reads filters, in the event loop
        self.writer = WritePath(self)
        self._by_key: dict[int, Attachment] = {}
        self._by_name: dict[tuple[str, str], Attachment] = {}
        self._keys = itertools.count()
        self._batch = 0  # the last one whose matching has begun
        self._dispatched_batch = 0
        self._deadlines: list[tuple[float, int, Attachment]] = []  # a heap
        self.followers: list[Follower] = []  # called when more was handed out
        metrics = host.metrics
        self._events = metrics.events.of(row.name)
        self._bytes = metrics.event_bytes.of(row.name)
        self._repeated = metrics.repeated.of(row.name)
        self._matches = metrics.matches.of(row.name)
        self._deliveries = metrics.deliveries.of(row.name)
        self._redeliveries = metrics.redeliveries.of(row.name)
        self._acks = metrics.acknowledgements.of(row.name)
        self._dropped = metrics.dropped.of(row.name)
        self._refused = metrics.refused.of(row.name, "bad-event")
        self._dead_letters = metrics.dead_letters.of(row.name)
        self._expired = metrics.expired.of(row.name)

    @property
    def name(self) -> str:
        """The name of the topic."""
        return self.row.name

    @property
    def number(self) -> int:
        """The number that the catalogue knows it by."""
        return self.row.number

    def now(self) -> float:
        """The time that deadlines are made of."""
        return self.host.monotonic()

    def new_matcher(self) -> Matcher:
        """An empty matcher for events of this topic."""
        return Matcher(self.schema, semantics=self.row.semantics, defaults=self.row.defaults)

    def row_now(self) -> TopicRow:
        """What the catalogue is to know."""
        return self.row._replace(next_offset=self.dispatched, expired=self.expired)

    async def become(self, row: TopicRow, schema: Schema) -> None:
        """Have another retention, and more attributes; between two batches."""
        async with self.writer.lock, self.sweep.lock:
            await self.host.commits.commit(put_topic(row))
            self.row = row
            if schema == self.schema:
                return
            more = {a.name: str(a) for a in schema.attributes if self.schema.find(a.path) is None}
            new = None if row.defaults is None else {n: row.defaults[n] for n in more}
            self.schema = schema
            self.live = self.live.with_attributes(more, new)
            self.sweep.matcher.widen(more, new)
            self.rows = EventRows(self.live)
            self.filters = ShapeCache(schema)
            self.log.widen(schema)
            for one in self._by_key.values():
                one.interest = self.widened(one.interest)
            self.host.network.changed(self)
            self.host.quenching.change(self)

    def widened(self, interest: Interest) -> Interest:
        """An interest over the attributes of now; some may have been added since it was read."""
        if interest.filter.schema == self.schema:
            return interest
        return interest._replace(filter=Expression(interest.filter.tree, self.schema))

    async def close(self, because: str = "the broker stops") -> None:
        """Write what waits and hand it out, then end all attachments."""
        await self.writer.close()
        await asyncio.gather(*(one.close(because) for one in self._by_key.values()))
        await self.sweep.close()

    # --- publishing

    async def publish(
        self, events: Sequence[NewEvent], requirements: PublishRequirements
    ) -> Published:
        """Store events; returns when those that are good are safe on disk."""
        return await self.store(await self.read(events, requirements))

    async def read(
        self, events: Sequence[NewEvent], requirements: PublishRequirements
    ) -> ReadEvents:
        """Check events and read their values, in a thread if there are many."""
        rows = self.rows
        if sum(len(event.body) for event in events) < IN_A_THREAD:
            read = rows.read(events, requirements)
        else:
            read = await self.host.workers.run(MATCH, rows.read, events, requirements)
        if read.refused:
            self._refused.add(len(read.refused))
        return read

    async def store(self, read: ReadEvents) -> Published:
        """Store events that were read; returns when they are safe on disk."""
        if not read.events:
            return Published(0, None, read.refused)
        publication = await self.writer.publications.put(read)
        return await publication.done

    async def match(self, rows: Sequence[Row], time: int) -> Matched:
        """The matches of new events, stored at a time; the batch begins when this first runs."""
        self._batch += 1
        if not self._by_key:
            return Matched(NOBODY, NOBODY)
        return await self.host.workers.run(MATCH, _matched, self.live, rows, time)

    def count_written(self, events: Sequence[NewEvent]) -> None:
        """Count events that are safe on disk."""
        self._events.add(len(events))
        self._bytes.add(sum(len(event.body) for event in events))
        self.host.metrics.batch_sizes.observe(len(events))

    def count_repeated(self, events: int) -> None:
        """Count events that are acknowledged again, and not stored again."""
        self._repeated.add(events)

    def not_written(self) -> None:
        """Note that the batch that was matched last was not written."""
        self._dispatched_batch = self._batch
        self.sweep.more_came()

    def dispatch(
        self, matched: Matched | None, deliveries: list[Delivery], records: "Sequence[NewRecord]",
        rows: Sequence[Row],
    ) -> None:  # fmt: skip
        """Hand out a batch that is safe on disk; without matches, everybody reads the log."""
        first = deliveries[0].record.offset
        batch, self._dispatched_batch = self._batch, self._batch
        self.dispatched = first + len(deliveries)
        if matched is None:
            for one in list(self._by_key.values()):
                if one.position is None:
                    self.sweep.enter(one, first)
        else:
            self._matches.add(len(matched.keys))
            for key, places in by_subscription(matched):
                found = self._by_key.get(key)
                if found is not None and found.position is None and found.live_from <= batch:
                    self._offer(found, [deliveries[place] for place in places])
        self.sweep.more_came()
        for call in self.followers:
            call(first, records, rows)

    def _offer(self, one: Attachment, deliveries: list[Delivery]) -> None:
        outbox = one.outbox
        if one.moved is not None:
            deliveries = one.moved.unknown(deliveries)
        if isinstance(outbox, Buffer):
            dropped = outbox.dropped
            outbox.push(deliveries)
            if outbox.dropped != dropped:
                self._dropped.add(outbox.dropped - dropped)
                if outbox.too_slow:
                    self.remove(one, "it is too slow: its buffer is full")
                    return
        else:
            accepted = outbox.fill(deliveries)
            if accepted < len(deliveries):
                self.sweep.enter(one, deliveries[accepted].record.offset)
        one.wake()

    # --- attachments

    def attach(
        self, interest: Interest, outbox: Window | Buffer, position: int, on_close: OnClose,
        moved: "MovedBacklog | None" = None,
    ) -> Attachment:  # fmt: skip
        """Let somebody listen, from a position on."""
        interest = self.widened(interest)
        one = Attachment(self, interest, outbox, on_close)
        one.moved = moved
        self._listen(one)
        if interest.id is not None:
            self._by_name[interest.account, interest.id] = one
        # Whoever begins now has nothing to read in the log.
        if position != self.dispatched or not self.follows(one):
            self.sweep.enter(one, position)
        return one

    def listeners(self) -> Iterable[Attachment]:
        """All attachments."""
        return self._by_key.values()

    def attached(self, account: str, id_: str) -> Attachment | None:
        """Who listens to a subscription."""
        return self._by_name.get((account, id_))

    def change(self, one: Attachment, interest: Interest) -> None:
        """Give an attachment another filter: for what was not sent yet, and for what comes."""
        interest = self.widened(interest)
        self.sweep.leave(one)
        self.live.unsubscribe(one.key)
        del self._by_key[one.key]
        position = self.dispatched if one.position is None else one.position
        waiting = one.outbox.forget_waiting()
        one.interest = interest
        if isinstance(one.outbox, Window):
            matches = self.condition(interest.filter)
            one.outbox.keep_if(matches)
        self._listen(one)
        self.sweep.enter(one, position if waiting is None else waiting)
        self.was_changed(one)

    def _listen(self, one: Attachment) -> None:
        one.key = next(self._keys)
        one.live_from = self._batch + 1
        self.live.subscribe(one.key, one.interest.filter)
        self._by_key[one.key] = one

    def condition(self, expression: Expression) -> Callable[[Record], bool]:
        """Whether an event that was stored matches a filter."""
        reader, meaning = self.live.reader, self.live.meaning
        holds = meaning.condition(expression)

        def matches(record: Record) -> bool:
            with arriving(record.time):
                return holds(meaning.prepare(reader.row(record.body)))

        return matches

    def follows(self, one: Attachment) -> bool:
        """Whether an attachment that has read everything gets the matches of the next batch."""
        return one.live_from <= self._dispatched_batch + 1

    def remove(self, one: Attachment, because: str) -> bool:
        """Let nobody listen any more; returns whether somebody did."""
        if self._by_key.get(one.key) is not one:
            return False
        del self._by_key[one.key]
        self.live.unsubscribe(one.key)
        self.sweep.leave(one)
        account, id_ = one.interest.account, one.interest.id
        if id_ is not None and self._by_name.get((account, id_)) is one:
            del self._by_name[account, id_]
        self.host.commits.forget(one)
        one.end(because)
        return True

    # --- what happens to an attachment

    def was_taken(self, one: Attachment, taken: list[Delivery]) -> None:
        """Note that events were sent."""
        self._deliveries.add(len(taken))
        if taken[0].attempt > 1:  # those that are sent again come first
            self._redeliveries.add(sum(delivery.attempt > 1 for delivery in taken))
        if one.position is not None:
            self.sweep.queue(one)
        if isinstance(one.outbox, Window):
            if one.outbox.options.auto_ack:
                self.host.commits.store_later(one)
            else:
                self._watch(one)

    def count_acks(self, count: int) -> None:
        """Count deliveries that were acknowledged."""
        self._acks.add(count)

    def was_acked(self, one: Attachment, count: int) -> None:
        """Note that events were acknowledged."""
        self.count_acks(count)
        self.host.commits.store_later(one)
        one.wake()

    def was_changed(self, one: Attachment) -> None:
        """Note that something is to be sent again, or was brought from the log."""
        if isinstance(one.outbox, Window) and one.outbox.exhausted:
            for offset, delivery in one.outbox.exhausted.items():
                if offset not in one.burying:
                    one.burying.add(offset)
                    self.host.bury(self, one, delivery)
        one.wake()

    def was_buried(self, one: Attachment, offset: int) -> None:
        """Note that a dead letter is safe on disk: its event is done."""
        one.burying.discard(offset)
        if isinstance(one.outbox, Window):
            one.outbox.ack(offset)
            self._dead_letters.add()
            if one.closed_because is None:
                self.was_acked(one, 0)

    def bury_again(self, one: Attachment, offset: int) -> None:
        """Try again to write a dead letter."""
        one.burying.discard(offset)
        if one.closed_because is None:
            self.was_changed(one)

    def were_removed(self, events: int) -> None:
        """Count events that retention has removed."""
        self.expired += events
        self._expired.add(events)

    def _watch(self, one: Attachment) -> None:
        if not one.timed and isinstance(one.outbox, Window):
            deadline = one.outbox.deadline
            if deadline is not None:
                one.timed = True
                heapq.heappush(self._deadlines, (deadline, one.key, one))

    def tick(self) -> None:
        """Send again what was not acknowledged in time."""
        now = self.now()
        while self._deadlines and self._deadlines[0][0] <= now:
            one = heapq.heappop(self._deadlines)[2]
            one.timed = False
            if one.closed_because is None and isinstance(one.outbox, Window):
                if one.outbox.time_out(now):
                    self.was_changed(one)
                self._watch(one)


NOBODY = np.empty(0, np.int64)


def _matched(matcher: Matcher, rows: Sequence[Row], time: int) -> Matched:
    with arriving(time):
        pairs = matcher.match_rows(rows)
    return Matched(pairs["event"].to_numpy(), pairs["subscription"].to_numpy())
