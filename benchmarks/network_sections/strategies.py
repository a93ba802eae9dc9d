"""What the strategies cost in a network of seven brokers, and one broker alone in its centre.

Each contestant is a network of processes that is started anew in each round, and does the same:
clients at the edges subscribe, two publishers publish as fast as they can, and at the end each
client must have got exactly what naive matching finds. Then events are published one after the
other, with a subscriber at every broker who wants them all: how much later one has an event than
the one before it is the latency of a hop.

*bytes between sites* are those on the links. Of one broker alone, they are what its clients send
and get, as often as there are links between their site and the centre.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from network_sections.brokers import (
    RunningNetwork,
    described,
    running,
    temporary_folder,
)
from network_sections.clients import Publisher, Subscriber
from network_sections.interests import NUMBER, SETS, Load
from network_sections.shapes import SHAPES, Shape
from routing_sections.tables import aligned, with_spread

Row = dict[str, Any]

ALONE = "one broker"
CONTESTANTS = (
    "flooding", "simple", "advertisements", "advertisements+covering", "advertisements+perfect",
    "advertisements+imperfect", ALONE,
)  # fmt: skip
PROBE = "probe"  # the topic of the events whose latency is measured
TOGETHER = 250  # events in a request


class Extent(NamedTuple):
    """How much is measured."""

    shapes: tuple[str, ...] = tuple(SHAPES)
    sets: tuple[str, ...] = tuple(SETS)
    contestants: tuple[str, ...] = CONTESTANTS
    rounds: int = 3
    filters: int = 700
    warm: int = 1_000  # events before the measured ones
    events: int = 5_000
    probes: int = 75  # events whose latency is measured
    pause: float = 0.005  # seconds between them


QUICK = Extent(rounds=1, filters=140, warm=100, events=400, probes=10)


def measured(extent: Extent) -> Iterator[Row]:
    """The rows of all rounds; in each round it is every contestant's turn."""
    loads: dict[tuple[str, str], Load] = {}
    for shape in (SHAPES[name] for name in extent.shapes):
        for name in extent.sets:
            loads[shape.name, name] = Load(
                SETS[name], shape, extent.filters, extent.warm + extent.events
            )
        for number in range(extent.rounds):
            for contestant in extent.contestants:
                some = [loads[shape.name, name] for name in extent.sets]
                for row in asyncio.run(contest(contestant, shape, some, extent)):
                    yield {"round": number, **row}


async def contest(
    contestant: str, shape: Shape, loads: Iterable[Load], extent: Extent
) -> list[Row]:
    """What one contestant does."""
    some = list(loads)
    grants = {
        broker: {load.interests.name: load.interests.grants[n] for load in some} | {PROBE: "TRUE"}
        for n, broker in enumerate(shape.publishers)
    }
    names, links = shape.brokers, shape.links
    settings = f'strategy = "{contestant}"'
    if contestant == ALONE:
        every = {load.interests.name: "TRUE" for load in some} | {PROBE: "TRUE"}
        names, links, grants, settings = (shape.centre,), (), {shape.centre: every}, ""
    with temporary_folder() as folder:
        brokers = described(Path(folder), names, links, grants, settings)
        async with running(brokers) as network:
            topics = {load.interests.name: load.interests.schema for load in some}
            await network.make_topics({**topics, PROBE: {NUMBER: "int"}}, shape.centre)
            await network.linked(len(links))
            about = {"contestant": contestant, "shape": shape.name}
            trial = Trial(network, shape, alone=contestant == ALONE)
            found = [{**about, **await trial.rate(load, extent)} for load in some]
            latency = await trial.latency(extent)
            trial.close()
            return [{**row, **latency} for row in found]


class Trial:
    """A network that runs, and what is done with it."""

    def __init__(self, network: RunningNetwork, shape: Shape, *, alone: bool) -> None:
        self._network = network
        self._shape = shape
        self._alone = alone
        self._left: list[Subscriber] = []

    def at(self, site: str) -> str:
        """The broker of the clients at a site."""
        return self._shape.centre if self._alone else site

    def close(self) -> None:
        """Let all subscribers leave."""
        for one in self._left:
            one.close()

    async def rate(self, load: Load, extent: Extent) -> Row:
        """Publish as fast as it goes, until the last delivery."""
        topic, network, edges = load.interests.name, self._network, self._shape.edges
        subscribers = {
            client: Subscriber(network.brokers[self.at(client[0])], topic)
            for client in load.clients
        }
        publishers = {e: Publisher(network, self.at(e), topic) for e in self._shape.publishers}
        begun = time.perf_counter()
        await asyncio.gather(*(s.subscribe(load.wanted_by(c)) for c, s in subscribers.items()))
        subscribing = time.perf_counter() - begun
        await network.settle(topic)
        warm, rest = range(extent.warm), range(extent.warm, extent.warm + extent.events)

        async def publish(numbers: range, arriving: range) -> None:
            events = load.published(numbers)
            counts = load.arriving(arriving)
            nonlocal begun
            begun = time.perf_counter()
            await asyncio.gather(
                *(one.publish_all(events[e], TOGETHER) for e, one in publishers.items()),
                *(one.wait_until(counts[c]) for c, one in subscribers.items()),
            )

        distance = {e: self._shape.distance(e, self._shape.centre) for e in edges}

        def afar() -> int:
            """Bytes of clients so far, as often as there are links to the centre."""
            got = sum(distance[e] * one.bytes for (e, _), one in subscribers.items())
            return got + sum(distance[e] * one.bytes for e, one in publishers.items())

        await publish(warm, warm)
        before = afar()
        links, cpu = await network.carried(), network.cpu()
        await publish(rest, range(rest.stop))
        seconds = time.perf_counter() - begun
        cpu = network.cpu() - cpu
        carried = await network.carried() - links
        got = sum((one.got() for one in subscribers.values()), start=type(load.expected)())
        self._left += subscribers.values()  # filters that are withdrawn would disturb the next set
        if got != load.expected:
            raise SystemExit(f"{topic}: deliveries differ: {_difference(got, load.expected)}")
        return {
            "set": topic, "filters": len(load.filters), "subscribing": subscribing,
            "events": len(rest), "seconds": seconds, "rate": len(rest) / seconds,
            "cpu": 1000 * cpu / len(rest), "deliveries": load.arriving(rest).total(),
            "entries": network.entries(topic), "largest": network.largest(topic),
            "link events": carried.events,
            "bytes": afar() - before if self._alone else carried.bytes,
        }  # fmt: skip

    async def latency(self, extent: Extent) -> Row:
        """Publish one event after the other, and compare when neighbours have it."""
        shape, network = self._shape, self._network
        first = shape.publishers[0]
        sites = shape.edges if self._alone else shape.brokers
        subscribers = {e: Subscriber(network.brokers[self.at(e)], PROBE) for e in sites}
        await asyncio.gather(*(one.subscribe({0: "TRUE"}) for one in subscribers.values()))
        publisher = Publisher(network, self.at(first), PROBE)
        sent = []
        for number in range(extent.probes):
            sent.append(time.perf_counter())
            await publisher.publish([b'{"number":%d}' % number])
            await asyncio.gather(*(one.wait_until(number + 1) for one in subscribers.values()))
            await asyncio.sleep(extent.pause)
        times = {edge: one.arrivals() for edge, one in subscribers.items()}
        self._left += subscribers.values()
        warm = extent.probes // 5
        whole = [max(t[n] for t in times.values()) - sent[n] for n in range(warm, extent.probes)]
        hops = [] if self._alone else [
            times[far][n] - times[near][n]
            for near, far in self._away(first)
            for n in range(warm, extent.probes)
        ]  # fmt: skip
        return {
            "last p50": statistics.median(whole), "last p99": _p99(whole),
            "hop p50": statistics.median(hops) if hops else None,
            "hop p99": _p99(hops) if hops else None,
            "hops": max(shape.distance(first, other) for other in shape.brokers),
        }  # fmt: skip

    def _away(self, start: str) -> Iterator[tuple[str, str]]:
        """The links, each with the broker first that is nearer to the start."""
        near = self._shape.topology().neighbours
        seen = [start]
        for here in seen:
            for there in near[here]:
                if there not in seen:
                    seen.append(there)
                    yield here, there


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * len(values))]


def _difference(got: Any, expected: Any) -> str:
    missing, more = expected - got, got - expected
    return f"{missing.total():,} missing, {more.total():,} too many"


# --- tables

COLUMNS = (
    "contestant", "events/s", "cpu s for 1,000", "entries", "largest", "events on links",
    "kB between sites",
)  # fmt: skip
LATENCY_COLUMNS = ("contestant", "a hop, p50", "p99", "all sites, p50", "p99")


def printed(rows: list[Row]) -> str:
    """A table for each shape and set: medians of the rounds, with the spread of the middle half."""
    parts = []
    for key in dict.fromkeys((row["shape"], row["set"]) for row in rows):
        some = [row for row in rows if (row["shape"], row["set"]) == key]
        first = some[0]
        said = (
            f"**{key[0]}, {key[1]}**: {first['filters']:,} subscriptions, {first['events']:,} "
            f"events, {first['deliveries']:,} deliveries"
        )
        parts.append(said + "\n\n" + aligned(COLUMNS, _by_contestant(some, _cells)))
    for shape in dict.fromkeys(row["shape"] for row in rows):
        some = [row for row in rows if row["shape"] == shape]
        some = [
            row for row in some if row["set"] == some[0]["set"]
        ]  # it is in the rows of all sets
        said = f"**{shape}, latency**: one event after the other, {some[0]['hops']} hops at most"
        parts.append(said + "\n\n" + aligned(LATENCY_COLUMNS, _by_contestant(some, _latencies)))
    return "\n\n".join(parts)


def _by_contestant(rows: list[Row], cells: Callable[[list[Row]], list[str]]) -> list[list[str]]:
    names = [name for name in CONTESTANTS if any(row["contestant"] == name for row in rows)]
    return [cells([row for row in rows if row["contestant"] == name]) for name in names]


def _cells(rounds: list[Row]) -> list[str]:
    return [
        rounds[0]["contestant"], _spread(rounds, "rate"), _spread(rounds, "cpu", "{:.2f}"),
        *(_spread(rounds, name) for name in ("entries", "largest", "link events")),
        _spread(rounds, "bytes", times=0.001),
    ]  # fmt: skip


def _latencies(rounds: list[Row]) -> list[str]:
    return [
        rounds[0]["contestant"],
        *(_spread(rounds, f"{what} {part}", "{:.1f} ms", 1000)
          for what in ("hop", "last") for part in ("p50", "p99")),
    ]  # fmt: skip


def _spread(rounds: list[Row], name: str, form: str = "{:,.0f}", times: float = 1) -> str:
    return with_spread([times * row[name] for row in rounds if row[name] is not None], form)
