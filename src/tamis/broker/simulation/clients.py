"""Clients of simulated brokers: publishers that try again, durable subscribers that come and go."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from tamis.broker.attachment import Attachment
from tamis.broker.broker import Broker
from tamis.broker.move_rows import DONE
from tamis.broker.records import Delivery, DeliveryOptions, NewEvent
from tamis.broker.simulation.onlooker import KINDS
from tamis.broker.simulation.promises import Event, Filter, PromisedSubscription, Promises
from tamis.broker.simulation.simulated_broker import Gone, SimulatedBroker, account_of
from tamis.broker.simulation.virtual_time import Process
from tamis.errors import Busy, TamisError

SCHEMA = "publisher string, number int, kind int"
AGAIN = 0.2  # seconds until a client tries again
Note = Callable[[str], None]


EVERYTHING = Filter("TRUE", frozenset(range(KINDS)))


def random_filter(random: Random) -> Filter:
    """A filter, from one that hardly matches anything to one that matches everything."""
    low, high = sorted((random.randrange(KINDS), random.randint(1, KINDS)))
    shape = random.randrange(5)
    if shape == 0:
        return EVERYTHING
    if shape == 1:
        return Filter(f"kind < {high}", frozenset(range(high)))
    if shape == 2:
        return Filter(f"kind >= {low}", frozenset(range(low, KINDS)))
    if shape == 3:
        return Filter(f"kind = {low}", frozenset([low]))
    kinds = frozenset(range(low, high + 1)) & frozenset(range(KINDS))
    return Filter(f"kind >= {low} AND kind <= {high}", kinds)


def new_event(event: Event, *, has_id: bool) -> NewEvent:
    """An event as it is published."""
    body = {"publisher": event.publisher, "number": event.number, "kind": event.kind}
    name = f"{event.publisher}-{event.number}" if has_id else None
    return NewEvent(msgspec.json.encode(body), name)


def event_of(topic: str, body: bytes) -> Event:
    """The event that a body describes."""
    return Event(topic, **msgspec.json.decode(body))


@dataclass(eq=False)
class SimulatedPublisher:
    """Publishes one batch after the other to one topic of a broker."""

    name: str
    topic: str
    broker: SimulatedBroker
    has_ids: bool
    kinds: list[int]  # that it may publish
    promises: Promises
    note: Note
    _number: int = 0

    async def publish_some(self, random: Random, most: int) -> None:
        """Publish some events."""
        await self.publish([random.choice(self.kinds) for _ in range(random.randint(1, most))])

    async def publish(self, kinds: list[int]) -> None:
        """Publish a batch; with ids it is tried until it is acknowledged, without them once."""
        events = [
            Event(self.topic, self.name, self._number + n, kind) for n, kind in enumerate(kinds)
        ]
        self._number += len(events)
        new = [new_event(event, has_id=self.has_ids) for event in events]
        for event in events:
            self.promises.publishing(self.broker.name, event)
        numbers = [event.number for event in events]
        self.note(f"{self.name} publishes {numbers} kinds {kinds} at {self.broker.name}")
        while True:
            try:
                answer = await self.broker.ask(
                    lambda broker: broker.publish(account_of(broker), self.topic, new)
                )
            except (Gone, TamisError) as error:
                self.note(f"{self.name} fails with {numbers}: {error!r}")
                if not self.has_ids:
                    return
                await asyncio.sleep(AGAIN)
                continue
            if answer.refused:
                self.promises.wrong.append(f"{self.name} was refused: {answer.refused}")
            self.note(f"{self.name} has {numbers} acknowledged, up to offset {answer.offset}")
            for event in events:
                self.promises.published(event)
            return


@dataclass(eq=False)
class SimulatedSubscriber:
    """Holds one durable subscription at a broker."""

    known: PromisedSubscription
    broker: SimulatedBroker
    options: DeliveryOptions
    promises: Promises
    random: Random
    note: Note
    clumsiness: float = 0.1  # the probability that it loses what it takes, with its connection
    _at: Attachment | None = None
    _process: Process | None = None  # in which it is attached
    _taken: set[int] = field(default_factory=set)  # offsets, since it was attached
    _acked: set[int] = field(default_factory=set)
    _failures: int = 0  # of the catalogue, when it was attached

    @property
    def name(self) -> str:
        """Its subscription."""
        return f"{self.known.id} of {self.known.broker}"

    # --- the subscription

    async def put(self, filter_: Filter) -> None:
        """Have a filter; it is tried until it is acknowledged."""
        one = self.known
        if one.filters:
            self.promises.changing(one, filter_)
        while True:
            carried = self.promises.carrying(one)
            self.note(f"{self.name} wants {filter_.text}")
            try:
                await self.broker.ask(
                    lambda broker: broker.put_subscription(
                        account_of(broker), one.topic, one.id, filter_.text,
                        options=self.options,
                    )
                )  # fmt: skip
            except (Gone, TamisError) as error:
                self.note(f"{self.name} fails to want {filter_.text}: {error!r}")
                await asyncio.sleep(AGAIN)
                continue
            self.promises.put(one, filter_, carried)
            self.note(f"{self.name} has {filter_.text}, known to {sorted(one.filters[-1].reached)}")
            return

    async def move(self, there: SimulatedBroker) -> None:
        """Go on at another broker; it is tried until the subscription is there, and only there."""
        one, before = self.known, self.broker.name
        carried = self.promises.carrying(one)
        text = one.filters[-1].filter.text if self.random.random() < 0.5 else None
        self._at = None
        while True:
            self.note(f"{self.name} moves to {there.name}")
            try:
                move = await there.ask(
                    lambda broker: broker.move_subscription(
                        account_of(broker), one.topic, one.id, before, text, wait=1.0
                    )
                )
            except (Gone, TamisError) as error:
                self.note(f"{self.name} cannot move to {there.name}: {error!r}")
            else:
                if move.problem:
                    self.promises.wrong.append(f"{self.name} cannot move: {move.problem}")
                if move.state == DONE:
                    break
            await asyncio.sleep(AGAIN)
        self.broker = there
        self.promises.moved(one, there.name, carried)
        self.note(f"{self.name} has moved, with {move.events} events")

    async def unsubscribe(self) -> None:
        """Have no subscription any more."""
        one = self.known
        self.promises.leaving(one)
        self._at = None
        while True:
            try:
                await self.broker.ask(
                    lambda broker: broker.delete_subscription(account_of(broker), one.topic, one.id)
                )
            except (Gone, Busy):
                await asyncio.sleep(AGAIN)
            except TamisError:  # an earlier attempt has done it
                break
            else:
                break
        self.note(f"{self.name} has unsubscribed")

    # --- its events

    async def attach(self) -> bool:
        """Listen; returns whether that could be done."""
        one, failures = self.known, self.broker.storage.tables.failures

        async def attached(broker: Broker) -> tuple[Attachment, Any]:
            found = await broker.attach(account_of(broker), one.topic, one.id)
            return found, asyncio.get_running_loop()

        try:
            self._at, self._process = await self.broker.ask(attached)
        except (Gone, TamisError) as error:
            self.note(f"{self.name} cannot listen: {error!r}")
            self._at = None
            return False
        self._failures, self._taken, self._acked = failures, set(), set()
        return True

    async def detach(self) -> None:
        """Listen no more; what was acknowledged must not come again."""
        attachment, self._at = self._at, None
        if attachment is None:
            return
        if await self._call(attachment.close):
            is_firm = self._failures == self.broker.storage.tables.failures
            self.note(f"{self.name} listens no more, acknowledged {sorted(self._acked)}")
            if is_firm:
                self.known.firm |= self._acked

    async def take(self, most: int) -> int:
        """Take what is there, and acknowledge some of it or all; returns how many there were."""
        attachment = self._at
        if attachment is None and not await self.attach():
            return 0
        attachment = self._at
        if attachment is None or attachment.closed_because is not None:
            self._at = None
            return 0

        async def taken() -> list[Delivery]:
            return attachment.take_nowait(most)

        found: list[list[Delivery]] = []
        if not await self._call(taken, found):
            self._at = None
            return 0
        if self.random.random() < self.clumsiness:
            self.note(f"{self.name} loses {[record.offset for record, _ in found[0]]}")
            self._at = None
            return 0
        for record, attempt in found[0]:
            self.note(f"{self.name} gets {record.offset}: {record.body.decode()} ({attempt})")
            self._taken.add(record.offset)
            event = event_of(self.known.topic, record.body)
            self.promises.deliver(self.known, event, record.offset, attempt)
        return len(found[0])

    async def ack(self) -> None:
        """Acknowledge something of what was taken and is not acknowledged yet."""
        attachment = self._at
        if attachment is None:
            return
        offsets = sorted(self._taken - self._acked)
        if not offsets:
            return
        up_to = self.random.random() < 0.5
        offset = self.random.choice(offsets)
        self.note(f"{self.name} acknowledges {'up to ' * up_to}{offset}")

        async def acked() -> None:
            (attachment.ack_up_to if up_to else attachment.ack)(offset)

        if await self._call(acked):
            self._acked |= {at for at in offsets if at <= offset} if up_to else {offset}

    async def ack_all(self) -> None:
        """Acknowledge everything that was taken."""
        attachment = self._at
        if attachment is None or not self._taken:
            return
        offset = max(self._taken)

        async def acked() -> None:
            attachment.ack_up_to(offset)

        if await self._call(acked):
            self._acked |= self._taken

    async def nack(self) -> None:
        """Ask for something again."""
        attachment = self._at
        offsets = sorted(self._taken - self._acked)
        if attachment is None or not offsets:
            return
        offset = self.random.choice(offsets)

        async def nacked() -> None:
            attachment.nack(offset)

        await self._call(nacked)

    async def _call(self, make: Callable[[], Any], found: list[Any] | None = None) -> bool:
        """Whether a call to the process in which it is attached came back."""

        async def call(_: Broker) -> Any:
            return await make()

        try:
            answer = await self.broker.ask(call, self._process)
        except Gone:
            self._at = None
            return False
        if found is not None:
            found.append(answer)
        return True
