"""A broker that is linked to another one than before: what waited for it comes another way."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from broker_process import quiet_ports
from linked_brokers import LOCAL, LinkedBroker, line, until
from tamis.broker.network.departures import OnWay
from tamis.broker.network.detours import Detours, Way
from tamis.broker.network.route_headers import ORIGIN, VIA
from tamis.broker.network_settings import PeerSettings
from tamis.broker.settings import Address
from tamis.errors import Conflict


def quote(number):
    return {"symbol": "X", "price": 1.0, "number": number}


def call_instead(leaf, neighbour):
    """Let a broker that is stopped call another one from now on."""
    called = {neighbour.name: PeerSettings(Address(LOCAL, neighbour.port))}
    network = replace(leaf.settings.network, peers=called)
    leaf.settings = replace(leaf.settings, network=network)


async def has(broker, numbers):
    """Return when a broker has stored events, each of them once."""
    stored = []
    while sorted(stored) != sorted(numbers):
        await asyncio.sleep(0.01)
        stored = [event["number"] for event in await broker.stored()]
        assert len(stored) == len(set(stored))


@contextlib.asynccontextmanager
async def with_leaf(folder):
    """A line of three brokers, and a leaf at the first one; all have a subscriber to everything."""
    async with line(folder, "b1", "b2", "b3") as brokers:
        leaf = LinkedBroker(folder, "leaf", quiet_ports(4)[3], {"b1": brokers[0].port})
        await leaf.start()
        await brokers[0].create()
        everybody = [*brokers, leaf]
        await until(lambda: all("quotes" in one.broker.network._shared for one in everybody))
        try:
            for one in everybody:
                await one.subscribe("all", "TRUE")
            # What is published when the last one has subscribed comes to all.
            await leaf.publish(quote(0))
            for one in everybody:
                await has(one, [0])
            yield everybody
        finally:
            await leaf.stop()


def test_what_waits_for_a_broker_that_moves_comes_after_it(tmp_path):
    async def main():
        async with with_leaf(tmp_path) as (first, middle, last, leaf):
            await leaf.stop()
            for number, one in enumerate((first, middle, last), 1):
                await one.publish(quote(number))
            for one in (first, middle, last):
                await has(one, range(4))
            await leaf.start_alone()
            await leaf.publish(quote(4))  # which only its neighbour of then is to get
            await leaf.stop()
            call_instead(leaf, last)
            await leaf.start()
            for one in (first, middle, last, leaf):
                await has(one, range(5))
            # The former neighbours forget each other, when all is there.
            await first.broker.network.forget("leaf")
            await leaf.broker.network.forget("b1")
            assert [one.name for one in first.broker.network.peers()] == ["b2"]
            assert not first.broker.network._detours._open
            assert not leaf.broker.network._detours._open
            await first.publish(quote(5))
            await leaf.publish(quote(6))
            for one in (first, middle, last, leaf):
                await has(one, range(7))
            headers = [
                record.headers.decode() for record in await leaf.broker.read(leaf.account, "quotes")
            ]
            # Where it was published, and the neighbour of then that has sent it.
            assert any(f'"{ORIGIN}":"b1","{VIA}":"b1"' in one for one in headers)
            assert any(f'"{ORIGIN}":"b3","{VIA}":"b1"' in one for one in headers)

    asyncio.run(main())


def test_a_detour_survives_restarts_on_its_way(tmp_path):
    async def main():
        async with with_leaf(tmp_path) as (first, middle, last, leaf):
            await leaf.stop()
            await first.publish(*map(quote, range(1, 50)))
            call_instead(leaf, last)
            await leaf.start()
            await until(lambda: "b3" in leaf.linked)
            await middle.stop()
            await first.publish(*map(quote, range(50, 100)))
            await middle.start()
            for one in (middle, last, leaf):
                await has(one, range(100))

    asyncio.run(main())


def test_a_peer_is_not_forgotten_before_it_has_what_waits_for_it(tmp_path):
    async def main():
        async with with_leaf(tmp_path) as (first, middle, last, leaf):
            await leaf.stop()
            await first.publish(quote(1))
            call_instead(leaf, last)
            await leaf.start()
            await until(lambda: first.broker.network._detours._open)
            detour = next(iter(first.broker.network._detours._open.values()))
            detour.departures.stored = lambda _: None  # as if the leaf did not answer
            detour.departures._on_way.append(OnWay(1, 1, 2, 10))
            forgetting = asyncio.create_task(first.broker.network.forget("leaf"))
            await asyncio.sleep(0.05)  # it would be done by now
            assert not forgetting.done()
            await middle.stop()
            with pytest.raises(Conflict, match="the way to peer 'leaf' was lost"):
                await forgetting
            assert "leaf" in {one.name for one in first.broker.network.peers()}
            await middle.start()
            await has(leaf, [0, 1])
            await until(lambda: first.broker.network._detours._open)
            await first.broker.network.forget("leaf")

    asyncio.run(main())


def test_a_topic_that_is_deleted_while_detours_change_gets_none():
    class Shared:
        """A topic that a former peer has to get; when a detour of it ends, the other is deleted."""

        rows = frozenset({"b3"})

        def __init__(self, other):
            self.other = other

        def has_heard(self, _):
            return True

        def departures_to(self, *_):
            return object()

        async def departed(self, *_):
            shared.pop(self.other, None)

    class Ways:
        path = ("b2", "b3")

        def way(self, _):
            return Way(None, self.path)

    async def run():
        detours = Detours("b1", shared, ways)
        await detours.update()
        ways.path = ("b4", "b3")
        await detours.update()
        assert list(detours._open) == [("b3", topic) for topic in shared]

    shared, ways = {"x": Shared("y"), "y": Shared("x")}, Ways()
    asyncio.run(run())
