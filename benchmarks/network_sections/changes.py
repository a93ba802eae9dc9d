"""The topology changes under load, and nothing is lost: for how long a subscriber gets nothing.

Three brokers in a line, a publisher at one end, a durable subscriber at the other. *restart*: the
one in the middle is killed, and started again at once. *spare*: it is killed and never comes back;
the first broker has a spare link to the last one, which was refused so far because it would have
closed a cycle. At the end the subscriber must have got every event that was acknowledged.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from network_sections.brokers import (
    PAUSE,
    NetworkBroker,
    RunningNetwork,
    described,
    running,
    temporary_folder,
)
from network_sections.clients import Publisher, Subscriber
from network_sections.interests import NUMBER
from routing_sections.tables import aligned

Row = dict[str, Any]
TOPIC = "changes"
NAMES = ("b1", "b2", "b3")
CASES = ("restart", "spare")
PATIENCE = 30.0  # seconds after which an event that has not come counts as missing


class Extent(NamedTuple):
    """How much is measured."""

    cases: tuple[str, ...] = CASES
    rounds: int = 3
    together: int = 10  # events in a request
    pause: float = 0.05  # seconds between requests
    before: float = 3.0  # seconds before the change
    after: float = 3.0  # seconds after the first event that came on the new way


QUICK = Extent(rounds=1, before=0.5, after=0.5)


def measured(extent: Extent) -> Iterator[Row]:
    """A row for each case and round."""
    for number in range(extent.rounds):
        for case in extent.cases:
            yield {"round": number, **asyncio.run(change(case, extent))}


async def change(case: str, extent: Extent) -> Row:
    """Change a network while events are published."""
    links = [("b2", "b3"), ("b1", "b2")] + ([("b1", "b3")] if case == "spare" else [])
    grants = {"b1": {TOPIC: "TRUE"}}
    with temporary_folder() as folder:
        brokers = described(Path(folder), NAMES, links, grants)
        first = brokers.pop("b1")
        async with running(brokers) as network:
            await network.linked(1)  # so that the first one is at the end of the line
            brokers["b1"] = first
            first.spawn()
            await asyncio.to_thread(first.wait)
            await network.linked(2)
            await network.make_topics({TOPIC: {NUMBER: "int"}}, "b1")
            middle, last = await line(network)
            load = Load(network, last, extent)
            await load.subscribe()
            # The topic may be new to a link, and nobody tells when it is not.
            while network.entries(TOPIC) < 2:  # noqa: ASYNC110 - see above
                await asyncio.sleep(PAUSE)
            load.publish()
            await asyncio.sleep(extent.before)
            begun = time.perf_counter()
            middle.end(signal.SIGKILL)
            if case == "restart":
                middle.spawn()
                await asyncio.to_thread(middle.wait)
            return {"case": case, **await load.end(begun)}


async def line(network: RunningNetwork) -> tuple[NetworkBroker, NetworkBroker]:
    """The broker that b1 is linked with, and the one behind it."""
    near = ""
    while not near:  # on a busy machine, a link may be given up and come again
        peers = (await network.get("b1", "/peers"))["peers"]
        near = next((one["name"] for one in peers if one["linked"]), "")
    far = next(name for name in NAMES if name not in {"b1", near})
    return network.brokers[near], network.brokers[far]


class Load:
    """A publisher at the first broker, and a durable subscriber at the last one."""

    def __init__(self, network: RunningNetwork, last: NetworkBroker, extent: Extent) -> None:
        self._publisher = Publisher(network, "b1", TOPIC)
        self._subscriber = Subscriber(last, TOPIC)
        self._extent = extent
        self._published = 0
        self._is_over = False

    async def subscribe(self) -> None:
        """Want everything."""
        await self._subscriber.subscribe({0: "TRUE"}, durable=True)

    def publish(self) -> None:
        """Publish from now on."""
        self._task = asyncio.create_task(self._publish())

    async def _publish(self) -> None:
        while not self._is_over:
            numbers = range(self._published, self._published + self._extent.together)
            await self._publisher.publish([b'{"number":%d}' % number for number in numbers])
            self._published = numbers.stop
            await asyncio.sleep(self._extent.pause)

    async def end(self, changed: float) -> Row:
        """What the subscriber got, after a change at a time."""
        subscriber = self._subscriber
        at_least = self._published + 1  # published after the change
        await subscriber.wait_until(at_least)
        await asyncio.sleep(self._extent.after)
        self._is_over = True
        await self._task
        end = time.perf_counter() + PATIENCE
        got = subscriber.got()
        while len(got) < self._published and time.perf_counter() < end:
            await asyncio.sleep(PAUSE)
            got = subscriber.got()
        expected = Counter((0, number) for number in range(self._published))
        times = [when for when in subscriber.arrivals() if when > changed]
        subscriber.close()
        pauses = [later - earlier for earlier, later in zip([changed, *times], times, strict=False)]
        return {
            "published": self._published, "delivered": got.total(),
            "missing": (expected - got).total(), "twice": (got - expected).total(),
            "interruption": max(pauses),
        }  # fmt: skip


COLUMNS = ("change", "acknowledged", "delivered", "missing", "twice", "nothing came for")


def printed(rows: list[Row]) -> str:
    """A line for each change: sums of the rounds, and the shortest and longest interruption."""
    lines = []
    for case in dict.fromkeys(row["case"] for row in rows):
        some = [row for row in rows if row["case"] == case]
        sums = [sum(row[name] for row in some) for name in ("published", "delivered", "missing",
                                                            "twice")]  # fmt: skip
        pauses = [row["interruption"] for row in some]
        lines.append(
            [case, *(f"{number:,}" for number in sums), f"{min(pauses):.1f} to {max(pauses):.1f} s"]
        )
    return "**Changes of the topology under load**\n\n" + aligned(COLUMNS, lines)
