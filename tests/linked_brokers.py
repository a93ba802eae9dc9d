"""Brokers of a network in one process, on sockets, for tests."""

import asyncio
import contextlib
import json
from pathlib import Path

from broker_process import quiet_ports
from tamis.broker.broker import Broker
from tamis.broker.network_settings import NetworkSettings, PeerSettings
from tamis.broker.records import NewEvent
from tamis.broker.server import _links
from tamis.broker.settings import Address, Settings
from tamis.broker.tls import peer_context

SCHEMA = {"symbol": "string", "price": "double", "number": "int"}
LOCAL = "127.0.0.1"


class LinkedBroker:
    """A broker with its links; it can be stopped, and started again on the same data."""

    def __init__(
        self, folder: Path, name: str, port: int, peers: dict[str, int], tls=None, **more
    ) -> None:
        self.name, self.port = name, port
        called = {peer: PeerSettings(Address(LOCAL, at)) for peer, at in peers.items()}
        network = NetworkSettings(name, Address(LOCAL, port), called, **more)
        self.settings = Settings(data=folder / name, network=network, tls=tls)
        self.broker: Broker = None  # type: ignore[assignment]  # until `start`

    async def start(self) -> None:
        await self.start_alone()
        self.listening_tls = peer_context(self.settings, is_caller=False)
        await self.links.start(LOCAL, self.port, self.listening_tls)
        for peer, described in self.settings.network.peers.items():
            self.links.call(peer, described.address)

    async def start_alone(self) -> None:
        """Start without any link."""
        self.broker = await Broker.open(self.settings)
        self.calling_tls = peer_context(self.settings, is_caller=True)
        self.links = _links(self.broker.network, self.settings, self.calling_tls)

    async def stop(self) -> None:
        await self.links.stop()
        await self.broker.close()

    @property
    def account(self):
        return self.broker.accounts.guest

    @property
    def linked(self) -> set[str]:
        return {one.name for one in self.broker.network.peers() if one.is_linked}

    async def create(self, topic="quotes", schema=SCHEMA, **more) -> None:
        await self.broker.create_topic(self.account, topic, schema, **more)

    async def publish(self, *events, topic="quotes") -> None:
        new = [NewEvent(json.dumps(event).encode()) for event in events]
        answer = await self.broker.publish(self.account, topic, new)
        assert not answer.refused

    async def subscribe(self, id_, text, topic="quotes", **more) -> None:
        await self.broker.put_subscription(self.account, topic, id_, text, **more)

    async def take(self, id_, count, topic="quotes") -> list[dict]:
        """The next events of a durable subscription, which are acknowledged."""
        one = await self.broker.attach(self.account, topic, id_)
        found = []
        while len(found) < count:
            for delivery in await one.take(count - len(found)):
                found.append(json.loads(delivery.record.body))
                one.ack(delivery.record.offset)
        await one.close()
        return found

    async def stored(self, topic="quotes") -> list[dict]:
        records = await self.broker.read(self.account, topic, most=1_000_000)
        return [json.loads(record.body) for record in records]


async def until(condition, *arguments) -> None:
    """Return when a condition holds; whoever waits for ever is ended by the run of tests."""
    while not condition(*arguments):  # noqa: ASYNC110 - nobody is there to tell
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def line(folder: Path, *names: str, own=None, **more):
    """Brokers in a line, each of which calls the one before; `own` are settings by name."""
    ports = dict(zip(names, quiet_ports(len(names)), strict=True))
    before = dict(zip(names[1:], names, strict=False))
    brokers = []
    for name in names:
        called = {before[name]: ports[before[name]]} if name in before else {}
        settings = more | (own or {}).get(name, {})
        brokers.append(LinkedBroker(folder, name, ports[name], called, **settings))
    async with contextlib.AsyncExitStack() as stack:
        for one in brokers:
            await one.start()
            stack.push_async_callback(one.stop)
        await until(lambda: sum(len(one.linked) for one in brokers) == 2 * (len(names) - 1))
        yield brokers


def quote(number, price=1.0, symbol="X"):
    """An event."""
    return {"symbol": symbol, "price": price, "number": number}


def numbers(events):
    """The numbers of events."""
    return [event["number"] for event in events]


async def shared(*brokers, topic="quotes"):
    """Wait until a topic is open on all links between brokers."""

    def is_open(one):
        known = one.broker.network._shared.get(topic)
        return known is not None and all(
            peer in known.routes.peers and known.routes.is_ready(peer) for peer in one.linked
        )

    await until(lambda: all(map(is_open, brokers)))


def run(folder, test, *names, **more):
    """Run a test with brokers in a line that share a topic."""

    async def main():
        async with line(folder, *names, **more) as brokers:
            await brokers[0].create()
            await shared(*brokers)
            await test(*brokers)

    asyncio.run(main())
