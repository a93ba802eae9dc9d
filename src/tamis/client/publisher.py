"""`Publisher`: publishes to one topic, and drops at the source what nobody wants, if asked to.

async with broker.publisher("quotes", quench=True) as publisher:
    answer = await publisher.publish({"symbol": "IBM", "price": 9.5})
    answer.dropped  # 1 if nobody wants it, now and anywhere
"""

import asyncio
import contextlib
import itertools
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from tamis.broker.records import Published, Refusal
from tamis.client.broker_session import Attempts, BrokerSession, is_transient, path_of
from tamis.client.error_answers import RefusedEvents
from tamis.client.opening import Closable
from tamis.client.publications import (
    Publication,
    Tally,
    as_table,
    event_text,
    publications,
    single,
)
from tamis.client.quench_filter import QuenchFilter, now
from tamis.errors import OptionError, TamisError

WAIT = 1.0  # seconds that a request waits for news, so often the lease is renewed
AT_ONCE = 5_000  # events that are looked at together
LAST_WORDS = 2.0  # seconds to say that nothing is dropped any more

logger = logging.getLogger(__name__)


class Sending(Protocol):
    """What publishes for a publisher."""

    async def send(self, topic: str, publication: Publication, tally: Tally) -> None:
        """Send one publication and count what became of its events."""


class EventPart(NamedTuple):
    """Some of many events, without those that were dropped."""

    publications: Iterable[Publication]
    rows: list[int]  # of the events that are published, in the call
    dropped: int


class Publisher(Closable):
    """Publishes to one topic."""

    def __init__(
        self, sending: Sending, session: BrokerSession, topic: str, *, quench: bool,
        clock: Callable[[], float] = now,
    ) -> None:  # fmt: skip
        self.topic = topic
        self.dropped = 0  # events, so far
        self._sending = sending
        self._session = session
        self._clock = clock
        self._wanted = QuenchFilter() if quench else None
        self._path = path_of("topics", topic, "wanted", uuid.uuid4().hex)
        self._asking: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> str | None:
        """What anybody wants, as a filter; None while everything is published."""
        known = self._wanted
        return known.filter if known is not None and known.is_valid(self._clock()) else None

    async def open(self) -> "Publisher":
        """Ask what is wanted, for the first time: an account that may not know it is told so."""
        if self._wanted is not None:
            for _ in range(2):  # the second one confirms the answer to the first
                await self._ask(self._wanted, wait=0, patience=self._session.patience)
            self._asking = asyncio.create_task(self._keep_asking(self._wanted))
        return self

    async def publish(self, event: Any, id: str | None = None) -> Published:
        """Publish one event; the answer says if it was dropped instead, because nobody wants it."""
        publication = single(event, id)
        if not self._wants([publication.body])[0]:
            self.dropped += 1
            return Published(0, None, (), 1)
        tally = Tally()
        await self._sending.send(self.topic, publication, tally)
        return tally.result()

    async def publish_many(self, events: Any, ids: Iterable[Any] | None = None) -> Published:
        """Publish a table or an iterable of events; the answer says how many were dropped."""
        outcome = PublishedEvents()
        for part in self.parts(events, ids):
            await self.send(part, outcome)
        return outcome.result()

    def parts(self, events: Any, ids: Iterable[Any] | None = None) -> "Iterator[EventPart]":
        """Many events in parts; what is to be dropped is decided when a part is asked for."""
        table = None if isinstance(events, list | tuple) else as_table(events)
        if table is not None and ids is None:
            for start in range(0, table.num_rows, AT_ONCE):
                yield self._table_part(table.slice(start, AT_ONCE), start)
            return
        rows = events if table is None else table.to_pylist()
        if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
            raise OptionError(
                f"publish_many takes many events, not a {type(rows).__name__}; publish takes one"
            )
        numbered = enumerate(rows if ids is None else zip(rows, ids, strict=True))
        while some := list(itertools.islice(numbered, AT_ONCE)):
            yield self._part(some, has_ids=ids is not None)

    def _part(self, some: list[tuple[int, Any]], *, has_ids: bool) -> EventPart:
        bodies = [event_text(one[0] if has_ids else one) for _, one in some]
        wanted = self._wants(bodies)
        kept = [n for n in range(len(some)) if wanted[n]]
        keys = [some[n][1][1] for n in kept] if has_ids else None
        made = publications([bodies[n] for n in kept], keys)
        return EventPart(made, [some[n][0] for n in kept], len(some) - len(kept))

    def _table_part(self, table: Any, start: int) -> EventPart:
        wanted = [True] * table.num_rows
        if self._wanted is not None:
            from tamis.broker.arrow_events import events_of_table

            events, _ = events_of_table(table)
            found = self._wants([event.body for _, event in events])
            for (row, _), is_wanted in zip(events, found, strict=True):
                wanted[row] = is_wanted
        rows = [row for row in range(table.num_rows) if wanted[row]]
        kept = table if len(rows) == table.num_rows else table.take(rows)
        return EventPart(
            publications(kept), [start + row for row in rows], table.num_rows - len(rows)
        )

    def _wants(self, bodies: list[bytes]) -> list[bool]:
        if self._wanted is None:
            return [True] * len(bodies)
        return self._wanted.wants(bodies, self._clock())

    async def send(self, part: EventPart, outcome: "PublishedEvents") -> None:
        """Publish one part."""
        self.dropped += part.dropped
        tally = Tally()
        for publication in part.publications:
            await self._sending.send(self.topic, publication, tally)
        try:
            outcome.add(part, tally.result())
        except RefusedEvents as error:
            outcome.add(part, Published(0, None, error.refused))

    async def close(self) -> None:
        """Drop nothing any more, and say so."""
        if self._asking is None or self._wanted is None:
            return
        self._asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._asking
        self._asking = None
        self._wanted.forget()
        with contextlib.suppress(TamisError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._session.request("DELETE", self._path, patience=0)

    # --- what is wanted

    async def _ask(self, known: QuenchFilter, wait: float, patience: float) -> None:
        asked = {"version": known.version, "wait": wait}
        began = self._clock()
        answer = await self._session.request("POST", self._path, json_body=asked, patience=patience)
        known.answered(answer, began)

    async def _keep_asking(self, known: QuenchFilter) -> None:
        """Renew the lease for ever; while the broker does not answer, nothing is dropped soon."""
        attempts = Attempts(float("inf"))
        while True:
            try:
                await self._ask(known, WAIT if known.is_valid(self._clock()) else 0, patience=0)
                attempts.begin_again()
            except TamisError as error:
                if not is_transient(error):
                    known.forget()
                    logger.warning("everything is published to %s from now on: %s",
                                   self.topic, error)  # fmt: skip
                    return
                await attempts.pause(error)


class PublishedEvents:
    """What became of many events."""

    def __init__(self) -> None:
        self._accepted = self._dropped = 0
        self._offset: int | None = None
        self._refused: list[Refusal] = []

    def add(self, part: EventPart, published: Published) -> None:
        """Count what became of one part."""
        self._accepted += published.accepted
        self._dropped += part.dropped
        if published.offset is not None:
            self._offset = published.offset
        self._refused += [Refusal(part.rows[row], reason) for row, reason in published.refused]

    def result(self) -> Published:
        """All of it together; raises an error if every event was refused."""
        if self._refused and not self._accepted and not self._dropped:
            raise RefusedEvents(self._refused)
        return Published(self._accepted, self._offset, tuple(self._refused), self._dropped)
