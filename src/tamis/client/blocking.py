"""The client for programs without asyncio: the asyncio client, run by a thread.

with tamis.connect("http://127.0.0.1:8420") as broker:
    broker.publish("quotes", {"symbol": "IBM", "price": 9.5})
    for delivery in broker.subscribe("quotes", "price < 10", durable="cheap"):
        print(delivery.event)
"""

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from tamis.broker.records import Published
from tamis.client import connection
from tamis.client.connection import PATIENCE, URL
from tamis.client.delivery import Delivery
from tamis.client.opening import BlockingClosable, Opening
from tamis.client.publications import Tally, publications
from tamis.client.publisher import PublishedEvents
from tamis.client.publisher import Publisher as AsyncPublisher
from tamis.client.subscription import BUFFER
from tamis.client.subscription import Subscription as AsyncSubscription
from tamis.errors import BrokerUnreachable

T = TypeVar("T")


def connect(
    url: str = URL, token: str | None = None, *, patience: float = PATIENCE
) -> "Connection":
    """A connection to a broker; use it in ``with``, or close it.

    `token` says who you are, to a broker with accounts. If the broker stops answering later, a
    request is made again for `patience` seconds before it fails, and a subscription resumes where
    it was. `tamis.aio.connect` is the same for asyncio.
    """
    loop = LoopThread()
    try:
        opening = connection.connect(url, token, patience=patience)
        return Connection(loop, loop.run(_opened(opening)))
    except BaseException:  # whatever ends it, no thread is left behind
        loop.stop()
        raise


async def _opened(opening: Opening[Any]) -> Any:
    return await opening


class LoopThread:
    """An event loop that a thread runs, for calls from other threads."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="tamis-client", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def is_current(self) -> bool:
        """Whether the caller is this thread."""
        return self._thread is threading.current_thread()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work in the loop and return its result; Ctrl-C cancels it."""
        if self.loop.is_closed():
            work.close()
            raise BrokerUnreachable("the connection is closed")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:  # Ctrl-C, too, ends the work
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()


class Connection(BlockingClosable):
    """A client of a broker: `tamis.client.connection.Connection` without ``await``."""

    def __init__(self, loop: LoopThread, inner: connection.Connection) -> None:
        self._loop = loop
        self._inner = inner
        self.topics = Topics(loop, inner.topics)
        # Also when nobody closes it: at the end of the program, or when it is no longer used.
        self._closing = weakref.finalize(self, _close, loop, inner)

    @property
    def url(self) -> str:
        """The address of the broker."""
        return self._inner.url

    def publish(self, topic: str, event: Any, id: str | None = None) -> Published:
        """Publish one event, a dict or the text of a JSON object; returns when it is safe on disk.

        An event with an id that the topic has already is not stored again.
        """
        return self._loop.run(self._inner.publish(topic, event, id))

    def publish_many(self, topic: str, events: Any, ids: Iterable[Any] | None = None) -> Published:
        """Publish an Arrow table, a frame of pandas or polars, or an iterable of events.

        The answer says how many were accepted, and which were refused and why; that all were
        refused is an error.
        """
        tally = Tally()
        # Iterated over in this thread: the iterable may itself wait for this connection.
        for publication in publications(events, ids):
            self._loop.run(self._inner.send(topic, publication, tally))
        return tally.result()

    def publisher(self, topic: str, *, quench: bool = False) -> "Publisher":
        """What publishes to one topic; use it in ``with``, or close it.

        With `quench` it keeps itself informed of what anybody wants, and drops at the source what
        nobody wants: the answer of its ``publish`` says so. What is dropped is in no log, so
        nobody can ask for it later.
        """
        opening = self._inner.publisher(topic, quench=quench)
        return Publisher(self._loop, self._loop.run(_opened(opening)))

    def wanted(self, topic: str) -> dict[str, Any]:
        """What anybody wants of a topic now, as a filter."""
        return self._loop.run(self._inner.wanted(topic))

    def subscribe(  # noqa: PLR0913 - all but three by name
        self, topic: str, filter: str | None = None,
        parameters: Mapping[str, Any] | None = None, *, durable: str | None = None,
        start: str | int | datetime = "new", manual_ack: bool = False, window: int | None = None,
        ack_timeout: float | None = None, move_from: str | None = None,
    ) -> "Subscription":  # fmt: skip
        """Receive what matches the filter: iterate over the answer.

        `durable` is a name under which the broker remembers what was acknowledged, also while
        nobody listens. Without a filter, a durable subscription that exists keeps its own, and any
        other gets everything. `start` is "new", "earliest", an offset or a time; it counts when
        the subscription is made. Iterating acknowledges a delivery when the next one is asked for;
        with `manual_ack`, call ``ack()`` of the deliveries. At most `window` deliveries are
        unacknowledged, and one that stays so for `ack_timeout` seconds comes again: if handling
        one takes long, choose a small window. `move_from` is the name of another broker of the
        network which has the durable subscription now: it comes here, with what it has not got.
        `parameters` are the values of the filter's parameters, as of `Matcher.subscribe`.
        """
        opening = self._inner.subscribe(
            topic, filter, parameters, durable=durable, start=start, manual_ack=manual_ack,
            window=window, ack_timeout=ack_timeout, move_from=move_from,
        )  # fmt: skip
        return Subscription(self._loop, self._loop.run(_opened(opening)))

    def unsubscribe(self, topic: str, durable: str) -> None:
        """Delete a durable subscription, with the memory of what it has acknowledged."""
        self._loop.run(self._inner.unsubscribe(topic, durable))

    def subscription(self, topic: str, durable: str) -> dict[str, Any]:
        """What the broker says about a durable subscription."""
        return self._loop.run(self._inner.subscription(topic, durable))

    def read(
        self, topic: str, filter: str | None = None,
        parameters: Mapping[str, Any] | None = None, *, start: str | int | datetime = "earliest",
        most: int = 100,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Events of the past that match, with their offsets, without subscribing."""
        return self._loop.run(self._inner.read(topic, filter, parameters, start=start, most=most))

    def peers(self) -> list[dict[str, Any]]:
        """The brokers that this one is linked with: name, linked, lag, lost."""
        return self._loop.run(self._inner.peers())

    def peer(self, name: str) -> dict[str, Any]:
        """A peer, and what covering and merging save of the filters that it is told, by topic."""
        return self._loop.run(self._inner.peer(name))

    def remove_peer(self, name: str) -> None:
        """Let the broker forget a peer that is gone for good."""
        self._loop.run(self._inner.remove_peer(name))

    def check(
        self, topic: str, filter: str, parameters: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """How the broker understands a filter; raises an error if it is wrong."""
        return self._loop.run(self._inner.check(topic, filter, parameters))

    def why(
        self, topic: str, *, subscription: str | None = None, filter: str | None = None,
        event: Mapping[str, Any] | None = None, offset: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Why a subscription or a filter matches an event, or the event at an offset, or not."""
        return self._loop.run(
            self._inner.why(
                topic, subscription=subscription, filter=filter, event=event, offset=offset
            )
        )

    def close(self) -> None:
        """Close the subscriptions and the connection."""
        self._closing()


class Topics:
    """The topics of a broker; called, it lists them."""

    def __init__(self, loop: LoopThread, inner: connection.Topics) -> None:
        self._loop = loop
        self._inner = inner

    def __call__(self) -> list[dict[str, Any]]:
        """All topics: name, schema, semantics, retention, offsets."""
        return self.list()

    def create(
        self, name: str, schema: Mapping[str, str] | Any, *, semantics: str = "sql",
        defaults: Mapping[str, Any] | None = None, retention: Mapping[str, float] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Make a topic, or add attributes to one; the same again changes nothing.

        `schema` is a dict of names and types, a text such as "symbol string, price double", a
        `Schema`, or the schema of an Arrow table;
        `retention` may have ``max_age`` (seconds), ``max_bytes`` and ``max_events``.
        """
        return self._loop.run(
            self._inner.create(
                name, schema, semantics=semantics, defaults=defaults, retention=retention
            )
        )

    def get(self, name: str) -> dict[str, Any]:
        """What the broker says about one topic."""
        return self._loop.run(self._inner.get(name))

    def delete(self, name: str) -> None:
        """Delete a topic with its events and subscriptions."""
        self._loop.run(self._inner.delete(name))

    def list(self) -> list[dict[str, Any]]:
        """All topics: name, schema, semantics, retention, offsets."""
        return self._loop.run(self._inner.list())


class Publisher(BlockingClosable):
    """Publishes to one topic: `tamis.client.publisher.Publisher` without ``await``."""

    def __init__(self, loop: LoopThread, inner: AsyncPublisher) -> None:
        self._loop = loop
        self._inner = inner

    @property
    def topic(self) -> str:
        """The topic."""
        return self._inner.topic

    @property
    def wanted(self) -> str | None:
        """What anybody wants, as a filter; None while everything is published."""
        return self._inner.wanted

    @property
    def dropped(self) -> int:
        """How many events were dropped so far, because nobody wants them."""
        return self._inner.dropped

    def publish(self, event: Any, id: str | None = None) -> Published:
        """Publish one event; the answer says if it was dropped instead, because nobody wants it."""
        return self._loop.run(self._inner.publish(event, id))

    def publish_many(self, events: Any, ids: Iterable[Any] | None = None) -> Published:
        """Publish a table or an iterable of events; the answer says how many were dropped."""
        outcome = PublishedEvents()
        # Iterated over in this thread: the iterable may itself wait for this connection.
        for part in self._inner.parts(events, ids):
            self._loop.run(self._inner.send(part, outcome))
        return outcome.result()

    def close(self) -> None:
        """Drop nothing any more, and say so."""
        self._loop.run(self._inner.close())


class Subscription(BlockingClosable):
    """The deliveries of one subscription: iterate over it, or `take` several at once."""

    def __init__(self, loop: LoopThread, inner: AsyncSubscription) -> None:
        self._loop = loop
        self._inner = inner
        self._waiting: deque[Delivery] = deque()  # a call to the other thread brings many
        self._closing = weakref.finalize(self, _close_subscription, loop, inner)

    @property
    def topic(self) -> str:
        """The topic."""
        return self._inner.topic

    @property
    def filter(self) -> str | None:
        """The filter."""
        return self._inner.filter

    @property
    def durable(self) -> str | None:
        """The name of a durable subscription."""
        return self._inner.durable

    @property
    def dropped(self) -> int:
        """How many events the broker dropped, because they were not taken fast enough."""
        return self._inner.dropped

    @property
    def expired(self) -> int:
        """How many events the topic did not keep until they could be delivered."""
        return self._inner.expired

    def take(self, most: int = BUFFER, timeout: float | None = None) -> list[Delivery]:
        """At least one delivery and at most `most`; none if it is closed or the time is over.

        What is taken this way is acknowledged by hand.
        """
        if not self._waiting:
            return self._loop.run(_take(self._inner, most, timeout))
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def __iter__(self) -> "Subscription":
        return self

    def __next__(self) -> Delivery:
        self._inner.ack_last()
        if not self._waiting:
            self._waiting.extend(self._loop.run(self._inner.take()))
        if not self._waiting:
            raise StopIteration
        found = self._waiting.popleft()
        self._inner.hand_out(found)
        return found

    def close(self) -> None:
        """Stop receiving; a durable subscription stays at the broker, any other one goes."""
        if self._closing.detach() is not None:
            self._loop.run(self._inner.close())


# A caller who is not in a loop cannot give a timeout in any other way.
async def _take(inner: AsyncSubscription, most: int, timeout: float | None) -> list[Delivery]:  # noqa: ASYNC109
    try:
        async with asyncio.timeout(timeout):
            return await inner.take(most)
    except TimeoutError:
        return []


def _close(loop: LoopThread, inner: connection.Connection) -> None:
    if loop.loop.is_closed():
        return
    if loop.is_current():  # the garbage collector runs in any thread, and this one cannot wait
        loop.loop.create_task(inner.close()).add_done_callback(lambda _: loop.loop.stop())
        return
    loop.run(inner.close())
    loop.stop()


def _close_subscription(loop: LoopThread, inner: AsyncSubscription) -> None:
    """Close a subscription that nobody uses any more, without waiting for it."""
    if not loop.loop.is_closed():
        asyncio.run_coroutine_threadsafe(inner.close(), loop.loop)
