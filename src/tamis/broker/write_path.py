"""The way of publications into the log, and of their events to the live matcher.

One task takes everything that waits as one batch. While one thread appends it to the log and syncs,
another one matches it; what arrives meanwhile is the next batch, so a lone event waits for nothing.
Publishers get their answer as soon as the batch is safe; subscribers get the events after that, and
never one that could still be lost.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tamis.broker.log.frames import NewRecord
from tamis.broker.matches import Matched
from tamis.broker.publications import Publication, Publications
from tamis.broker.records import Delivery, NewEvent, Published, Record
from tamis.broker.workers import LOG
from tamis.errors import Busy
from tamis.events.event_reader import Row

if TYPE_CHECKING:
    from tamis.broker.topic import Topic

MOST_PAIRS = 100_000  # matches that are handed out at once, about

logger = logging.getLogger("tamis.broker")


class WritePath:
    """Writes and matches the publications of one topic, batch by batch."""

    def __init__(self, topic: "Topic") -> None:
        self.publications = Publications()
        self._topic = topic
        self._pairs_per_event = 1.0
        self._idle = asyncio.Event()
        self._idle.set()
        self.lock = asyncio.Lock()  # held while a batch is written and matched
        self._task = asyncio.create_task(self._run(), name=f"tamis writer {topic.name}")

    async def close(self) -> None:
        """Write what waits, and stop."""
        self.publications.close()
        while len(self.publications) or not self._idle.is_set():
            await asyncio.sleep(0)
            await self._idle.wait()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            batch = await self.publications.take()
            self._idle.clear()
            try:
                async with self.lock:
                    await self._write(batch)
            except Exception as error:  # its publishers are told, and the next batch goes on
                logger.exception("a batch of topic %r failed", self._topic.name)
                _fail(batch, Busy(f"the broker failed to store this: {error}; try again"))
            finally:
                self._idle.set()

    # --- one batch

    async def _write(self, batch: list[Publication]) -> None:
        topic = self._topic
        # Attributes may have been added since they were read.
        batch = [one._replace(read=topic.rows.again(one.read)) for one in batch]
        known = await self._known_offsets(batch)
        events, rows, places = _new_events(batch, known)
        repeated = sum(len(one.read.events) for one in batch) - len(events)
        if not events:
            _answer(batch, known, places, 0)
            topic.count_repeated(repeated)
            return
        now = int(topic.host.clock() * 1_000_000)
        new = [NewRecord(now, event.id or "", _headers(event), event.body) for event in events]
        size = self._slice()
        matching = asyncio.ensure_future(topic.match(rows[:size], now))
        run, host = topic.host.workers.run, topic.host
        began = host.monotonic()
        try:
            if host.sync:
                first = await run(LOG, self._append_and_sync, new)
            else:
                first = await run(LOG, topic.log.append, new)
                _answer(batch, known, places, first)
                await run(LOG, topic.log.sync)  # only what is safe can be read
        except OSError as error:
            await asyncio.wait([matching])
            topic.not_written()
            # The disk says why; where it was asked would not help.
            logger.error("topic %r cannot be written: %s", topic.name, error)  # noqa: TRY400
            _fail(batch, Busy(f"the disk refuses: {error}; nothing was stored, try again"))
            return
        _answer(batch, known, places, first)
        host.metrics.sync_seconds.observe(host.monotonic() - began)
        topic.count_written(events)
        topic.count_repeated(repeated)
        deliveries = [
            Delivery(Record(offset, time, id_ or str(offset), headers, body), 1)
            for offset, (time, id_, headers, body) in enumerate(new, first)
        ]
        for start in range(0, len(rows), size):
            if start:
                matching = asyncio.ensure_future(topic.match(rows[start : start + size], now))
            await asyncio.wait([matching])
            end = start + size
            part = deliveries[start:end]
            topic.dispatch(_outcome(matching), part, new[start:end], rows[start:end])
            if matching.exception() is None:
                self._learn(matching.result(), len(part))

    def _append_and_sync(self, records: Sequence[NewRecord]) -> int:
        first = self._topic.log.append(records)
        self._topic.log.sync()
        return first

    async def _known_offsets(self, batch: list[Publication]) -> dict[str, int]:
        """The offsets of events that are in the log already, by their ids."""
        ids = [event.id for publication in batch for event in publication.read.events if event.id]
        if not ids:
            return {}
        return await self._topic.host.workers.run(LOG, self._topic.log.find_ids, ids)

    def _slice(self) -> int:
        return max(1, int(MOST_PAIRS / max(self._pairs_per_event, 0.01)))

    def _learn(self, matched: Matched, events: int) -> None:
        seen = len(matched.keys) / events
        self._pairs_per_event = max(seen, 0.9 * self._pairs_per_event + 0.1 * seen)


def _outcome(matching: "asyncio.Future[Matched]") -> Matched | None:
    error = matching.exception()
    if error is None:
        return matching.result()
    logger.error("a batch cannot be matched live, its readers go to the log", exc_info=error)
    return None


def _new_events(
    batch: list[Publication], known: dict[str, int]
) -> tuple[list[NewEvent], list[Row], dict[str, int]]:
    """Events that are not in the log, their rows, and the places of those with ids among them."""
    events: list[NewEvent] = []
    rows: list[Row] = []
    places: dict[str, int] = {}
    for publication in batch:
        for event, row in zip(publication.read.events, publication.read.rows, strict=True):
            if event.id:
                if event.id in known or event.id in places:
                    continue
                places[event.id] = len(events)
            events.append(event)
            rows.append(row)
    return events, rows, places


def _answer(
    batch: list[Publication], known: dict[str, int], places: dict[str, int], first: int
) -> None:
    """Tell publishers that their events are safe, and the offset of the last one."""
    at = first
    answered: set[str] = set()
    for publication in batch:
        last: int | None = None
        for event in publication.read.events:
            if event.id and (event.id in known or event.id in answered):
                last = known[event.id] if event.id in known else first + places[event.id]
            else:
                if event.id:
                    answered.add(event.id)
                last, at = at, at + 1
        if not publication.done.done():
            answer = Published(len(publication.read.events), last, publication.read.refused)
            publication.done.set_result(answer)


def _fail(batch: list[Publication], error: Busy) -> None:
    for publication in batch:
        if not publication.done.done():
            publication.done.set_exception(error)


def _headers(event: NewEvent) -> bytes:
    return msgspec.json.encode(event.headers) if event.headers else b""
