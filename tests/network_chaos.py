"""Lets everything go wrong in a network of brokers, and compares acknowledged and delivered events.

Brokers are processes (``tamis serve``) in a random tree (`chaos_network.py`): they are killed and
stopped; what goes between them is cut, delayed and damaged; a broker is added, and a leaf leaves
its neighbour for another one. Clients of every protocol (`chaos_clients.py`) publish everywhere,
until each event is acknowledged; durable subscribers at every broker acknowledge one by one or all
up to one, leave and come back; other subscriptions are made and removed. At the end,

* no acknowledged event is missing at a subscriber whose filter it matches, if its subscription was
  established when it was sent,
* nobody got an event that does not match, every broker stores each event once,
* each subscriber got the events of each publisher in their order, redeliveries aside, and aside
  from what was sent while a broker moved.

By hand: ``python tests/network_chaos.py --brokers 7 --seconds 600 --seed 7``.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import aiohttp

from chaos_clients import LOST, PUBLISHERS, RECEIVERS, TOPIC, Wanted, publisher, receiver
from chaos_network import ChaosNetwork, Site, forget

SCHEMA = {"publisher": "string", "number": "int", "kind": "int"}
KINDS = 8
MARK = "mark"  # publishers of this name show that everything before has arrived
ACKNOWLEDGED, LEAVING = 0.05, 0.0005  # of the deliveries, after which a subscriber does so
ONE_BY_ONE = {"stomp", "stomp-ws", "websocket"}
Key = tuple[str, int]


class Sent(NamedTuple):
    """An event that was acknowledged: its kind, when it was first sent, and acknowledged."""

    kind: int
    began: float
    done: float


@dataclass
class Subscriber:
    """A durable subscription, and what its clients got."""

    name: str
    site: Site
    below: int
    protocol: str
    one_by_one: bool
    since: float = float("inf")  # what was sent from then on must come
    only: str = ""  # of this publisher; of all if it is empty
    got: dict[Key, int] = field(default_factory=dict)  # how often
    latest: dict[str, int] = field(default_factory=dict)
    late: list[tuple[Key, Key]] = field(default_factory=list)  # events that came after a later one
    problems: list[str] = field(default_factory=list)

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.site, self.name, f"kind < {self.below}", self.one_by_one)

    def take(self, event: dict, *, redelivered: bool) -> None:
        key = event["publisher"], event["number"]
        if not event["kind"] < self.below:
            self.problems.append(f"{self.name} got {event}, which does not match")
        if not redelivered:
            if key in self.got:
                self.problems.append(f"{self.name} got {key} twice")
            before = self.latest.get(key[0], -1)
            if before > key[1]:
                self.late.append((key, (key[0], before)))
            self.latest[key[0]] = max(key[1], before)
        self.got[key] = self.got.get(key, 0) + 1


class Trial:
    """A network, its clients, and what they know."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a test that can be repeated
        self.network = ChaosNetwork(folder, self.random)
        self.subscribers: list[Subscriber] = []
        self.acknowledged: dict[Key, Sent] = {}
        self.moves: list[tuple[float, float]] = []  # when they began and ended
        self.problems_found: list[str] = []
        self.listening: list[asyncio.Task[None]] = []
        self.publishing: list[asyncio.Task[None]] = []
        self.faults = asyncio.Lock()  # held while something goes wrong, or must not
        self.marks = 0
        self.is_over = False

    async def run(self, seconds: float, brokers: int, *, changes: bool = True) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.network.stop)
            await self.network.start(brokers)
            self.http = await stack.enter_async_context(aiohttp.ClientSession())
            await self._until(self._create)
            self.tasks = await stack.enter_async_context(asyncio.TaskGroup())
            await asyncio.gather(*map(self._populate, self.network.sites))
            for site in self.network.sites:
                self._start_publishing(site)
            changing = [self.tasks.create_task(self._come_and_go())]
            if changes:
                changing.append(self.tasks.create_task(self._change(seconds)))
            end = time.monotonic() + seconds
            while time.monotonic() < end or not all(task.done() for task in changing[1:]):
                async with self.faults:
                    await self.network.fault()
                await asyncio.sleep(self.random.uniform(0.0, 0.5))
            self.is_over = True
            await asyncio.gather(*changing)
            await asyncio.gather(*self.publishing)
            await self._until(
                lambda: not any(map(self._missing, self.subscribers)), say=self.counts
            )
            for task in self.listening:
                task.cancel()
            for site in self.network.sites:
                await self._check_log(site)

    # --- beginning

    async def _create(self) -> bool:
        url = f"{self.network.sites[0].url}/topics/{TOPIC}"
        return await self._answers("put", url, {"schema": SCHEMA})

    async def _populate(self, site: Site) -> None:
        """Wait until a broker has the topic, and let clients subscribe to it."""
        await self._until(lambda: self._answers("get", f"{site.url}/topics/{TOPIC}"))
        number = self.network.sites.index(site)
        made = []
        for k in range(2):
            protocol = RECEIVERS[(2 * number + k) % len(RECEIVERS)]
            made.append(await self._subscribe(site, f"s{number}.{k}", protocol))
        await self._mark(site)
        for one in made:
            one.since = time.monotonic()

    async def _subscribe(self, site: Site, name: str, protocol: str) -> Subscriber:
        below = self.random.randrange(1, KINDS + 1)
        one_by_one = protocol in ONE_BY_ONE and self.random.random() < 0.5
        one = Subscriber(name, site, below, protocol, one_by_one)
        url = f"{site.url}/topics/{TOPIC}/subscriptions/{name}"
        await self._until(lambda: self._answers("put", url, {"filter": one.wanted.filter}))
        self.subscribers.append(one)
        self.listening.append(self.tasks.create_task(self._listen(one)))
        return one

    async def _mark(self, *at: Site) -> None:
        """Return when an event of every broker, sent from now on, has come to some of them.

        All subscribers want it. So everything that was sent before has come there, too, and what
        they subscribed to is established. It is sent again and again: behind a cut, events count
        from when the filter arrives there.
        """
        wanted: set[Key] = set()
        for site in at:
            while not await self._has(site, wanted):
                self.marks += 1
                name = f"{MARK}{self.marks}"
                wanted = {(name, one.http) for one in self.network.sites}
                for one in self.network.sites:
                    event = {"publisher": name, "number": one.http, "kind": 0}
                    url = f"{one.url}/topics/{TOPIC}/events"
                    await self._until(
                        lambda url=url, event=event: self._answers("post", url, event)
                    )
                await asyncio.sleep(0.5)  # it is on its way

    async def _has(self, site: Site, wanted: set[Key]) -> bool:
        """Whether a broker has some events, of one publisher; none are not enough."""
        for name, _ in wanted:
            with contextlib.suppress(*LOST):
                return wanted <= set(await self._stored(site, f"publisher = '{name}'"))
        return False

    async def _answers(self, method: str, url: str, body: dict | None = None) -> bool:
        limit = aiohttp.ClientTimeout(20)
        try:
            async with self.http.request(method, url, json=body, timeout=limit) as answer:
                # What is gone was deleted by a request whose answer was lost.
                return answer.status in {200, 204} or (method == "delete" and answer.status == 404)
        except LOST:
            return False

    async def _until(
        self, condition: Callable[[], Awaitable[bool] | bool], say: Callable[[], str] | None = None
    ) -> None:
        """Return when a condition holds; nobody tells, so it is asked again and again.

        From time to time it is said how far it is: what is lost is waited for without end.
        """
        found, asked = condition(), 0
        while not (found if isinstance(found, bool) else await found):
            await asyncio.sleep(0.1 if say is None else 2.0)
            found, asked = condition(), asked + 1
            if say is not None and asked % 20 == 0:
                sys.stderr.write("\n".join([say(), *self.problems()[:20], ""]))

    # --- clients

    def _start_publishing(self, site: Site) -> None:
        self.publishing.append(self.tasks.create_task(self._publish(site)))

    async def _publish(self, site: Site) -> None:
        rng, number, name = self.random, 0, f"p{site.name}"
        protocol = PUBLISHERS[self.network.sites.index(site) % len(PUBLISHERS)]
        client = publisher(protocol, site)
        while not self.is_over:
            kinds = [rng.randrange(KINDS) for _ in range(rng.randrange(1, 20))]
            events = [
                {"publisher": name, "number": number + n, "kind": kind}
                for n, kind in enumerate(kinds)
            ]
            ids = [f"{name}-{event['number']}" for event in events]
            began, is_sent = time.monotonic(), False
            while not is_sent:
                with contextlib.suppress(*LOST):
                    is_sent = await client.send(events, ids)
                if not is_sent:
                    await asyncio.sleep(0.1)
            done = time.monotonic()
            for event in events:
                self.acknowledged[name, event["number"]] = Sent(event["kind"], began, done)
            number += len(events)
            await asyncio.sleep(rng.uniform(0, 0.05))
        if protocol.startswith("stomp"):
            await client.close()

    async def _listen(self, one: Subscriber) -> None:
        while True:
            with contextlib.suppress(*LOST):
                async with receiver(one.protocol, one.wanted) as deliveries:
                    tokens = []
                    async for taken in deliveries:
                        if not taken.event["publisher"].startswith(MARK):
                            one.take(taken.event, redelivered=taken.redelivered)
                        tokens.append(taken.token)
                        if self.random.random() < ACKNOWLEDGED:
                            await deliveries.ack(tokens)
                            tokens.clear()
                        if self.random.random() < LEAVING and not self.is_over:
                            break
            await asyncio.sleep(self.random.uniform(0.1, 0.5))

    async def _come_and_go(self) -> None:
        """Make subscriptions and remove them; what is sent to the same broker meanwhile, counts."""
        number = 0
        while not self.is_over:
            site = self.random.choice(self.network.sites)
            one = await self._subscribe(site, f"passing{number}", self.random.choice(RECEIVERS))
            one.since, one.only = time.monotonic(), f"p{site.name}"
            await asyncio.sleep(self.random.uniform(0.5, 5))
            listening = self.listening[-1] if self.subscribers[-1] is one else None
            if listening is not None and self.random.random() < 0.7:
                await self._remove(one, listening)
            number += 1

    async def _remove(self, one: Subscriber, listening: asyncio.Task[None]) -> None:
        listening.cancel()
        self.listening.remove(listening)
        self.subscribers.remove(one)
        self.problems_found += one.problems
        url = f"{one.site.url}/topics/{TOPIC}/subscriptions/{one.name}"
        await self._until(lambda: self._answers("delete", url))

    # --- the network changes

    async def _change(self, seconds: float) -> None:
        """Add a broker, then move leaves, as long as there is time."""
        end = time.monotonic() + seconds
        site = await self.network.add()
        await self._populate(site)
        self._start_publishing(site)
        while True:
            began = time.monotonic()
            leaf = self.network.leaf()
            before = await self.network.move(leaf)
            await asyncio.sleep(self.random.uniform(0, seconds / 20))
            async with self.faults:
                await self._forget_each_other(leaf, before)
            self.moves.append((began, time.monotonic()))
            if time.monotonic() > end - seconds / 4:
                return
            await asyncio.sleep(self.random.uniform(0, seconds / 10))

    async def _forget_each_other(self, leaf: Site, before: Site) -> None:
        """Let former neighbours forget each other, as docs/network.md says.

        The filters are established on the new way, and what was published before has come.
        """
        await self._until(self._is_whole)
        for one in [one for one in self.subscribers if one.site is leaf]:
            url = f"{leaf.url}/topics/{TOPIC}/subscriptions/{one.name}"
            await self._until(
                lambda url=url, one=one: self._answers("put", url, {"filter": one.wanted.filter})
            )
        await self._mark(leaf, before)
        await forget(self.http, before, leaf.name)
        await forget(self.http, leaf, before.name)

    async def _is_whole(self) -> bool:
        """Whether all links are up."""
        for site in self.network.sites:
            if site.parent is not None and not await self._is_linked(site, site.parent.name):
                return False
        return True

    async def _is_linked(self, site: Site, peer: str) -> bool:
        with contextlib.suppress(*LOST):
            async with self.http.get(f"{site.url}/peers") as answer:
                found = (await answer.json())["peers"]
                return any(one["name"] == peer and one["linked"] for one in found)
        return False

    # --- what must hold

    def _wanted(self, one: Subscriber) -> set[Key]:
        return {
            key
            for key, sent in self.acknowledged.items()
            if sent.kind < one.below and sent.began >= one.since and one.only in ("", key[0])
        }

    def _missing(self, one: Subscriber) -> set[Key]:
        return self._wanted(one) - one.got.keys()

    async def _stored(self, site: Site, filter_: str = "TRUE") -> list[Key]:
        url = f"{site.url}/topics/{TOPIC}/events"
        found: list[Key] = []
        start = "earliest"
        while True:
            asked = {"limit": "10000", "from": start, "filter": filter_}
            async with self.http.get(url, params=asked) as answer:
                events = (await answer.json())["events"]
            found += [(one["event"]["publisher"], one["event"]["number"]) for one in events]
            if not events:
                return found
            start = str(events[-1]["offset"] + 1)

    async def _check_log(self, site: Site) -> None:
        keys = await self._stored(site)
        if len(keys) != len(set(keys)):
            self.problems_found.append(f"{site.name} stores an event twice")

    def _is_excused(self, one: Subscriber, late: Key, before: Key) -> bool:
        """Whether the order of two events was not promised.

        A broker moved while they were on their way, or the late one was sent before the
        subscription was established: it may come all the same, after a crash.
        """
        sent, later = self.acknowledged.get(late), self.acknowledged.get(before)
        if sent is None or later is None:
            return False
        return sent.began < one.since or any(
            sent.began <= end and later.done >= began for began, end in self.moves
        )

    def problems(self) -> list[str]:
        """What must not be."""
        found = self.problems_found + [p for one in self.subscribers for p in one.problems]
        found += [death for site in self.network.sites for death in site.deaths]
        for one in self.subscribers:
            found += [f"{one.name} misses {key}" for key in sorted(self._missing(one))[:5]]
            found += [
                f"{one.name} got {key} after {before}"
                for key, before in one.late
                if not self._is_excused(one, key, before)
            ]
        return found

    def counts(self) -> str:
        """What happened, in one line."""
        wanted = sum(len(self._wanted(one)) for one in self.subscribers)
        times = sum(sum(one.got.values()) for one in self.subscribers)
        missing = sum(len(self._missing(one)) for one in self.subscribers)
        late = sum(len(one.late) for one in self.subscribers)
        return (
            f"{len(self.network.sites)} brokers, faults {self.network.faults}, "
            f"{len(self.subscribers)} subscribers, acknowledged {len(self.acknowledged)}, "
            f"wanted {wanted}, delivered {times}, late while moving {late}, missing {missing}"
        )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--brokers", type=int, default=5, help="at the beginning")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-changes", action="store_true", help="no broker is added or moves")
    parser.add_argument("--keep", type=Path, help="a folder for data and logs, which stay")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.keep
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        trial = Trial(folder, options.seed)
        changes = not options.no_changes
        asyncio.run(trial.run(options.seconds, options.brokers, changes=changes))
    sys.stdout.write("\n".join([trial.counts(), *trial.problems(), ""]))
    return bool(trial.problems())


if __name__ == "__main__":
    sys.exit(main())
