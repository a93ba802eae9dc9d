"""What one client asks for, carried out by the broker."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tamis.broker.protocols.stomp import replies
from tamis.broker.protocols.stomp.header_events import is_json, json_event
from tamis.broker.protocols.stomp.requests import (
    Acknowledge,
    Commit,
    Confirm,
    Publish,
    Quench,
    Request,
    Send,
    Subscribe,
    Unsubscribe,
)
from tamis.broker.records import DeliveryOptions, NewEvent
from tamis.broker.stomp.deliveries import Deliveries
from tamis.broker.stomp.quenches import Quenches
from tamis.errors import EventError, LimitReached, OptionError, TamisError, UnknownSubscription

if TYPE_CHECKING:
    from tamis.broker.accounts import Account
    from tamis.broker.stomp.service import StompService

T = TypeVar("T")
DEFAULTS = DeliveryOptions()


class RefusedSend(Exception):
    """A frame that was refused, among others that were carried out."""

    def __init__(self, error: TamisError, receipt: str | None) -> None:
        super().__init__(error)
        self.error = error
        self.receipt = receipt


class StompClient:
    """An account that is connected, and what its requests do."""

    def __init__(
        self,
        service: "StompService",
        account: "Account",
        version: str,
        deliveries: Deliveries,
        quenches: Quenches,
        write: Callable[[bytes], None],
    ) -> None:
        self.account = account
        self._service = service
        self._broker = service.broker
        self._version = version
        self._deliveries = deliveries
        self._quenches = quenches
        self._write = write

    async def carry_out(self, request: Request) -> None:
        """Do what is asked for, and write the receipts."""
        self._count(request)
        match request:
            case Publish(sends):
                await self._publish(sends)
            case Acknowledge(acks, receipts):
                self._deliveries.acknowledge(self._quenches.acknowledge(acks))
                self._confirm(receipts)
            case Quench():
                await self._quenches.add(request)
                self._confirm([request.receipt])
            case Subscribe():
                await self._subscribe(request)
            case Unsubscribe():
                await self._unsubscribe(request)
            case Commit():
                await self._commit(request)
            case Confirm(receipt):
                self._confirm([receipt])

    def _count(self, request: Request) -> None:
        frames = 1
        if isinstance(request, Publish):
            frames = len(request.sends)
        elif isinstance(request, Acknowledge):
            frames = len(request.acks)
        kind = type(request).__name__.lower()
        self._broker.metrics.requests.of("stomp", kind).add(frames)

    def _confirm(self, receipts: Sequence[str | None]) -> None:
        given = [receipt for receipt in receipts if receipt is not None]
        if given:
            self._write(replies.receipts(given, self._version))

    async def _publish(self, sends: list[Send]) -> None:
        """Publish events, and confirm each one that is safe; then tell the first that is not."""
        problems: dict[int, TamisError] = {}
        by_topic: dict[str, list[int]] = {}
        events: list[NewEvent | None] = []
        for number, send in enumerate(sends):
            try:
                events.append(self._event(send))
                by_topic.setdefault(send.topic, []).append(number)
            except TamisError as error:
                events.append(None)
                problems[number] = error
        await asyncio.gather(
            *(self._publish_to(topic, rows, events, problems) for topic, rows in by_topic.items())
        )
        self._confirm([s.receipt for number, s in enumerate(sends) if number not in problems])
        if problems:
            first = min(problems)
            raise RefusedSend(problems[first], sends[first].receipt)

    async def _publish_to(
        self,
        topic: str,
        rows: list[int],
        events: list[NewEvent | None],
        problems: dict[int, TamisError],
    ) -> None:
        """Publish events to one topic, and note what is refused."""
        chosen = [event for event in (events[row] for row in rows) if event is not None]
        try:
            published = await self._in_time(
                lambda: self._broker.publish(self.account, topic, chosen)
            )
        except TamisError as error:
            problems.update(dict.fromkeys(rows, error))
            return
        for refusal in published.refused:
            problems[rows[refusal.row]] = EventError(refusal.reason)

    async def _in_time(self, publish: Callable[[], Awaitable[T]]) -> T:
        """Publish; a client that sends too fast has to wait, for STOMP cannot say "later"."""
        while True:
            try:
                return await publish()
            except LimitReached as error:
                if error.retry_after is None:
                    raise
                await asyncio.sleep(error.retry_after)  # until what the account owes is paid

    def _event(self, send: Send) -> NewEvent:
        if is_json(send.headers, send.body):
            return json_event(send.headers, send.body)
        return self._service.header_events(self.account, send.topic).event(send.headers, send.body)

    async def _commit(self, request: Commit) -> None:
        """Publish all events of a transaction, or none; then pass its acknowledgements on."""
        by_topic: dict[str, list[NewEvent]] = {}
        for send in request.sends:
            by_topic.setdefault(send.topic, []).append(self._event(send))
        if by_topic:
            await self._in_time(lambda: self._broker.publish_together(self.account, by_topic))
        self._deliveries.acknowledge(self._quenches.acknowledge(request.acks))
        self._confirm([request.receipt])

    async def _subscribe(self, request: Subscribe) -> None:
        subscription = request.subscription
        options = DEFAULTS
        if request.window is not None:
            options = replace(options, window=request.window)
        if request.slow is not None:
            options = replace(options, slow=request.slow)
        topic, broker = subscription.topic, self._broker
        if request.durable is not None:
            await broker.put_subscription(
                self.account, topic, request.durable, request.filter, durable=True,
                start=request.start, options=options,
            )  # fmt: skip
            attachment = await broker.attach(self.account, topic, request.durable)
        else:
            attachment = await broker.attach_filter(
                self.account, topic, request.filter, start=request.start, options=options
            )
        self._confirm([request.receipt])
        shared = self._service.shared_parts(topic, self._version)
        self._deliveries.add(subscription, attachment, shared)

    async def _unsubscribe(self, request: Unsubscribe) -> None:
        """Stop delivering; delete the durable subscription if it is named."""
        if request.subscription is not None:
            self._quenches.remove(request.subscription)
            attachment = self._deliveries.remove(request.subscription)
            if attachment is not None:
                await attachment.close()
        if request.durable is not None:
            topic = request.topic or self._topic_of(request.durable)
            await self._broker.delete_subscription(self.account, topic, request.durable)
        self._confirm([request.receipt])

    def _topic_of(self, durable: str) -> str:
        """The only topic on which the account has a durable subscription of this name."""
        topics = []
        for info in self._broker.topics(self.account):
            try:
                self._broker.subscription(self.account, info.name, durable)
            except UnknownSubscription:
                continue
            topics.append(info.name)
        if len(topics) > 1:
            raise OptionError(
                f"durable subscription {durable!r} is on the topics {', '.join(topics)[:200]}; "
                "the header destination says which one to delete"
            )
        if not topics:
            raise UnknownSubscription(f"there is no durable subscription {durable!r}")
        return topics[0]
