"""`Connection`: a client of a broker, for asyncio.

async with tamis.aio.connect("http://127.0.0.1:8420") as broker:
    await broker.topics.create("quotes", {"symbol": "string", "price": "double"})
    await broker.publish("quotes", {"symbol": "IBM", "price": 9.5})
    async for delivery in broker.subscribe("quotes", "price < 10", start="earliest"):
        print(delivery.event)
"""

import weakref
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Any

from tamis.broker.records import Published
from tamis.client.broker_session import BrokerSession, path_of
from tamis.client.delivery import Delivery
from tamis.client.error_answers import RefusedEvents
from tamis.client.opening import Closable, Opening
from tamis.client.publications import Publication, Tally, publications, single
from tamis.client.publisher import Publisher
from tamis.client.subscription import Subscription, Wish
from tamis.errors import OptionError
from tamis.language.parameters import fill

URL = "http://127.0.0.1:8420"
PATIENCE = 30.0  # seconds to wait for a broker that does not answer any more


def connect(
    url: str = URL, token: str | None = None, *, patience: float = PATIENCE
) -> Opening["Connection"]:
    """Connect to a broker: ``await`` this, or use it in ``async with``.

    `token` says who you are, to a broker with accounts. If the broker stops answering later, a
    request is made again for `patience` seconds before it fails, and a subscription resumes where
    it was.
    """
    return Opening(Connection(BrokerSession(url, token, patience)).open())


class Connection(Closable):
    """A client of a broker."""

    def __init__(self, session: BrokerSession) -> None:
        self._session = session
        self._subscriptions: weakref.WeakSet[Subscription] = weakref.WeakSet()
        self._publishers: weakref.WeakSet[Publisher] = weakref.WeakSet()
        self.topics = Topics(session)

    @property
    def url(self) -> str:
        """The address of the broker."""
        return self._session.url

    async def open(self) -> "Connection":
        """Make sure that a broker answers."""
        await self._session.open()
        return self

    async def publish(self, topic: str, event: Any, id: str | None = None) -> Published:
        """Publish one event, a dict or the text of a JSON object; returns when it is safe on disk.

        An event with an id that the topic has already is not stored again.
        """
        tally = Tally()
        await self.send(topic, single(event, id), tally)
        return tally.result()

    async def publish_many(
        self, topic: str, events: Any, ids: Iterable[Any] | None = None
    ) -> Published:
        """Publish an Arrow table, a frame of pandas or polars, or an iterable of events.

        The answer says how many were accepted, and which were refused and why; that all were
        refused is an error.
        """
        tally = Tally()
        for publication in publications(events, ids):
            await self.send(topic, publication, tally)
        return tally.result()

    def publisher(self, topic: str, *, quench: bool = False) -> Opening[Publisher]:
        """What publishes to one topic: ``await`` this, or use it in ``async with``.

        With `quench` it keeps itself informed of what anybody wants, and drops at the source what
        nobody wants: the answer of its ``publish`` says so. What is dropped is in no log, so
        nobody can ask for it later.
        """
        return Opening(self._publisher(topic, quench=quench))

    async def _publisher(self, topic: str, *, quench: bool) -> Publisher:
        made = Publisher(self, self._session, topic, quench=quench)
        self._publishers.add(made)
        return await made.open()

    async def wanted(self, topic: str) -> dict[str, Any]:
        """What anybody wants of a topic now, as a filter."""
        return dict(await self._session.request("GET", path_of("topics", topic, "wanted")))

    async def send(self, topic: str, publication: Publication, tally: Tally) -> None:
        """Send one publication and count what became of its events."""
        try:
            answer = await self._session.request(
                "POST",
                path_of("topics", topic, "events"),
                data=publication.body,
                headers=publication.headers,
            )
        except RefusedEvents as error:
            tally.refuse(publication, error.refused)
        else:
            tally.add(publication, answer)

    def subscribe(  # noqa: PLR0913 - all but three by name
        self, topic: str, filter: str | None = None,
        parameters: Mapping[str, Any] | None = None, *, durable: str | None = None,
        start: str | int | datetime = "new", manual_ack: bool = False, window: int | None = None,
        ack_timeout: float | None = None, move_from: str | None = None,
    ) -> "SubscriptionOpening":  # fmt: skip
        """Receive what matches the filter: ``await`` this, or ``async with``, or ``async for``.

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
        if move_from is not None and durable is None:
            raise OptionError("move_from needs the name of a durable subscription")
        options = {"window": window, "ack_timeout": ack_timeout}
        wish = Wish(
            topic, _filled(filter, parameters), durable, _start(start), manual_ack,
            {name: value for name, value in options.items() if value is not None}, move_from,
        )  # fmt: skip
        return SubscriptionOpening(self._subscribe(wish))

    async def _subscribe(self, wish: Wish) -> Subscription:
        made = Subscription(self._session, wish)
        self._subscriptions.add(made)
        return await made.open()

    async def unsubscribe(self, topic: str, durable: str) -> None:
        """Delete a durable subscription, with the memory of what it has acknowledged."""
        await self._session.request("DELETE", path_of("topics", topic, "subscriptions", durable))

    async def subscription(self, topic: str, durable: str) -> dict[str, Any]:
        """What the broker says about a durable subscription."""
        found = await self._session.request(
            "GET", path_of("topics", topic, "subscriptions", durable)
        )
        return dict(found)

    async def read(
        self, topic: str, filter: str | None = None,
        parameters: Mapping[str, Any] | None = None, *, start: str | int | datetime = "earliest",
        most: int = 100,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Events of the past that match, with their offsets, without subscribing."""
        params = {"from": str(_start(start)), "limit": str(most)}
        text = _filled(filter, parameters)
        if text is not None:
            params["filter"] = text
        answer = await self._session.request(
            "GET", path_of("topics", topic, "events"), params=params, filter_text=text
        )
        return list(answer["events"])

    async def peers(self) -> list[dict[str, Any]]:
        """The brokers that this one is linked with: name, linked, lag, lost."""
        return list((await self._session.request("GET", "/peers"))["peers"])

    async def peer(self, name: str) -> dict[str, Any]:
        """A peer, and what covering and merging save of the filters that it is told, by topic."""
        return dict(await self._session.request("GET", path_of("peers", name)))

    async def remove_peer(self, name: str) -> None:
        """Let the broker forget a peer that is gone for good."""
        await self._session.request("DELETE", path_of("peers", name))

    async def check(
        self, topic: str, filter: str, parameters: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """How the broker understands a filter; raises an error if it is wrong."""
        text = _filled(filter, parameters)
        answer = await self._session.request(
            "POST",
            path_of("topics", topic, "check"),
            json_body={"filter": text},
            filter_text=text,
        )
        return dict(answer)

    async def why(
        self, topic: str, *, subscription: str | None = None, filter: str | None = None,
        event: Mapping[str, Any] | None = None, offset: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Why a subscription or a filter matches an event, or the event at an offset, or not."""
        if (subscription is None) == (filter is None) or (event is None) == (offset is None):
            raise OptionError("why takes a subscription or a filter, and an event or an offset")
        given = {"subscription": subscription, "filter": filter, "event": event, "offset": offset}
        answer = await self._session.request(
            "POST",
            path_of("topics", topic, "why"),
            json_body={name: value for name, value in given.items() if value is not None},
            filter_text=filter,
        )
        return dict(answer)

    async def close(self) -> None:
        """Close the subscriptions and the connection."""
        for one in list(self._subscriptions):
            await one.close()
        for publisher in list(self._publishers):
            await publisher.close()
        await self._session.close()


class SubscriptionOpening(Opening[Subscription]):
    """A subscription that is being made, and over which one may iterate at once."""

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        async with self as opened:
            async for delivery in opened:
                yield delivery


class Topics:
    """The topics of a broker; called, it lists them."""

    def __init__(self, session: BrokerSession) -> None:
        self._session = session

    async def __call__(self) -> list[dict[str, Any]]:
        """All topics: name, schema, semantics, retention, offsets."""
        return await self.list()

    async def create(
        self, name: str, schema: Mapping[str, str] | Any, *, semantics: str = "sql",
        defaults: Mapping[str, Any] | None = None, retention: Mapping[str, float] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Make a topic, or add attributes to one; the same again changes nothing.

        `schema` is a dict of names and types, a text such as "symbol string, price double", a
        `Schema`, or the schema of an Arrow table;
        `retention` may have ``max_age`` (seconds), ``max_bytes`` and ``max_events``.
        """
        from tamis.schema import as_schema

        wanted: dict[str, Any] = {"schema": schema, "semantics": semantics}
        if not isinstance(schema, str):
            attributes = as_schema(schema).attributes
            wanted["schema"] = {one.name: str(one) for one in attributes}
        if defaults is not None:
            wanted["defaults"] = dict(defaults)
        if retention is not None:
            wanted["retention"] = dict(retention)
        return dict(await self._session.request("PUT", path_of("topics", name), json_body=wanted))

    async def get(self, name: str) -> dict[str, Any]:
        """What the broker says about one topic."""
        return dict(await self._session.request("GET", path_of("topics", name)))

    async def delete(self, name: str) -> None:
        """Delete a topic with its events and subscriptions."""
        await self._session.request("DELETE", path_of("topics", name))

    async def list(self) -> list[dict[str, Any]]:
        """All topics: name, schema, semantics, retention, offsets."""
        answer = await self._session.request("GET", "/topics")
        return list(answer["topics"])


def _start(start: str | int | datetime) -> str | int:
    return start.isoformat() if isinstance(start, datetime) else start


def _filled(filter_: str | None, parameters: Mapping[str, Any] | None) -> str | None:
    """A filter with the values of its parameters."""
    if parameters is None:
        return filter_
    if filter_ is None:
        raise OptionError("parameters belong to a filter, and there is none")
    return fill(filter_, parameters).text
