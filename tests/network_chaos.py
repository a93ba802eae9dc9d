"""Kills and stops brokers of a network at random, and compares what was acknowledged and delivered.

Brokers are processes (``tamis serve``). Between each two stands a proxy, which cuts, delays and
damages.
Publishers at every broker send events until each is acknowledged, with ids; durable subscribers at
every broker, over HTTP, acknowledge what they get. At the end, when all brokers and links are back,

* no acknowledged event is missing at a subscriber whose filter it matches,
* nobody got an event that does not match, every broker stores each event once,
* each subscriber got the events of each publisher in their order, redeliveries aside.

By hand: ``python tests/network_chaos.py --brokers 5 --seconds 600 --seed 7``.
"""

import argparse
import asyncio
import contextlib
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from broker_process import BrokerProcess, quiet_ports

SCHEMA = {"publisher": "string", "number": "int", "kind": "int"}
LOST = aiohttp.ClientError, OSError, EOFError, TimeoutError
KINDS = 8
ACKNOWLEDGED = 0.05  # of the deliveries, with all before them
PATIENCE = 2.0  # seconds; some brokers are stopped for longer


@dataclass
class Proxy:
    """Carries bytes between two brokers, until it is told not to."""

    port: int
    target: int
    delay: float = 0.0
    is_cut: bool = False
    flip: int | None = None  # about where the next bytes are damaged
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        back = None
        self.tasks.add(task)
        try:
            if not self.is_cut:
                there, back = await asyncio.open_connection("127.0.0.1", self.target)
                await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            for one in (writer, back):
                if one is not None:
                    one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if self.delay:
                await asyncio.sleep(self.delay)
            if self.flip is not None:
                place, self.flip = self.flip % len(data), None
                data = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError

    def cut(self) -> None:
        self.is_cut = True
        for task in self.tasks:
            task.cancel()

    async def stop(self) -> None:
        self.server.close()
        tasks = list(self.tasks)
        self.cut()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0)  # transports are closed in the next round


@dataclass
class Subscriber:
    """A durable subscriber, and what it got."""

    name: str
    broker: BrokerProcess
    below: int
    got: dict[tuple[str, int], int] = field(default_factory=dict)  # how often
    latest: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def take(self, event: dict, *, redelivered: bool) -> None:
        key = event["publisher"], event["number"]
        if not event["kind"] < self.below:
            self.problems.append(f"{self.name} got {event}, which does not match")
        if not redelivered:
            if key in self.got:
                self.problems.append(f"{self.name} got {key} twice")
            if self.latest.get(key[0], -1) > key[1]:
                self.problems.append(f"{self.name} got {key} after {self.latest[key[0]]}")
            self.latest[key[0]] = max(key[1], self.latest.get(key[0], -1))
        self.got[key] = self.got.get(key, 0) + 1


class Trial:
    """A network, its clients, and what they know."""

    def __init__(self, folder: Path, brokers: int, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a test that can be repeated
        names = [f"b{n}" for n in range(brokers)]
        ports = quiet_ports(4 * brokers)
        config = str(folder / "impatient.toml")
        text = f'name = "any"\n[network]\nbeat = 0.4\npatience = {PATIENCE}\n'
        Path(config).write_text(text, encoding="utf-8")
        self.proxies: list[Proxy] = []
        self.brokers: list[BrokerProcess] = []
        for n, name in enumerate(names):
            listen, http, stomp, between = ports[4 * n : 4 * n + 4]
            arguments = ["--name", name, "--listen", f"127.0.0.1:{listen}", "--config", config]
            if n:
                parent = self.random.randrange(n)
                self.proxies.append(Proxy(between, ports[4 * parent]))
                arguments += ["--peer", f"{names[parent]}=127.0.0.1:{between}"]
            self.brokers.append(BrokerProcess(folder / name, *arguments, http=http, stomp=stomp))
        self.subscribers = [
            Subscriber(f"s{n}.{k}", broker, self.random.randrange(1, KINDS + 1))
            for n, broker in enumerate(self.brokers)
            for k in range(2)
        ]
        self.acknowledged: dict[tuple[str, int], int] = {}  # the kind of each event
        self.faults: dict[str, int] = {}
        self.is_over = False

    async def run(self, seconds: float) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for proxy in self.proxies:
                await proxy.start()
                stack.push_async_callback(proxy.stop)
            for broker in self.brokers:
                broker.spawn()
                stack.callback(broker.kill)
            for broker in self.brokers:
                broker.wait()
            self.http = await stack.enter_async_context(aiohttp.ClientSession())
            await self._establish()
            publishing = [asyncio.create_task(self._publish(b)) for b in self.brokers]
            listening = [asyncio.create_task(self._listen(s)) for s in self.subscribers]
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await self._fault()
                await asyncio.sleep(self.random.uniform(0.0, 0.5))
            self.is_over = True
            await asyncio.gather(*publishing)
            await self._until(lambda: not any(map(self._missing, self.subscribers)))
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)
            for broker in self.brokers:
                await self._check_log(broker)

    async def _establish(self) -> None:
        """Make the topic, wait until all have it, and subscribe."""
        await self._put(f"{self.brokers[0].url}/topics/load", {"schema": SCHEMA})
        for broker in self.brokers:
            await self._until(lambda url=broker.url: self._is_there(f"{url}/topics/load"))
        for one in self.subscribers:
            url = f"{one.broker.url}/topics/load/subscriptions/{one.name}"
            await self._put(url, {"filter": f"kind < {one.below}"})
        await self._prove_linked()

    async def _prove_linked(self) -> None:
        """Wait until an event of every broker comes to every other one: then all is established."""
        for n, broker in enumerate(self.brokers):
            event = {"publisher": f"first{n}", "number": 0, "kind": 0}
            await self.http.post(f"{broker.url}/topics/load/events", json=event)
        for broker in self.brokers:
            await self._until(lambda one=broker: self._has_all(one))

    async def _is_there(self, url: str) -> bool:
        async with self.http.get(url) as answer:
            return answer.status == 200

    async def _has_all(self, broker: BrokerProcess) -> bool:
        return len(await self._stored(broker)) == len(self.brokers)

    async def _until(self, condition: Callable[[], Awaitable[bool] | bool]) -> None:
        """Return when a condition holds; nobody tells, so it is asked again and again."""
        found = condition()
        while not (found if isinstance(found, bool) else await found):
            await asyncio.sleep(0.05)
            found = condition()

    async def _put(self, url: str, body: dict) -> None:
        async with self.http.put(url, json=body) as answer:
            assert answer.status == 200, await answer.text()

    async def _publish(self, broker: BrokerProcess) -> None:
        name, number, rng = f"p{broker.http}", 0, self.random
        while not self.is_over:
            events = [
                {"publisher": name, "number": number + n, "kind": rng.randrange(KINDS)}
                for n in range(rng.randrange(1, 20))
            ]
            batch = [
                {
                    "specversion": "1.0", "type": "t", "source": name, "data": event,
                    "id": f"{name}-{event['number']}",
                }
                for event in events
            ]  # fmt: skip
            while not await self._send(broker, batch):  # noqa: ASYNC110 - a publisher that tries again
                await asyncio.sleep(0.1)
            for event in events:
                self.acknowledged[name, event["number"]] = event["kind"]
            number += len(events)
            await asyncio.sleep(rng.uniform(0, 0.05))

    async def _send(self, broker: BrokerProcess, batch: list[dict]) -> bool:
        kind = {"Content-Type": "application/cloudevents-batch+json"}
        try:
            async with self.http.post(
                f"{broker.url}/topics/load/events", data=json.dumps(batch), headers=kind,
                timeout=aiohttp.ClientTimeout(20),
            ) as answer:  # fmt: skip
                return answer.status == 200 and (await answer.json())["accepted"] == len(batch)
        except LOST:
            return False

    async def _listen(self, one: Subscriber) -> None:
        while True:
            with contextlib.suppress(*LOST):
                async for offset, content in self._messages(one):
                    if not content["event"]["publisher"].startswith("first"):
                        one.take(content["event"], redelivered=content["redelivered"])
                    if self.random.random() < ACKNOWLEDGED:
                        url = f"{one.broker.url}/topics/load/subscriptions/{one.name}/ack"
                        async with self.http.post(url, json={"offset": offset}):
                            pass
            await asyncio.sleep(0.1)

    async def _messages(self, one: Subscriber) -> AsyncIterator[tuple[int, dict]]:
        url = f"{one.broker.url}/topics/load/subscriptions/{one.name}/events"
        limits = aiohttp.ClientTimeout(None, sock_read=20)
        async with self.http.get(url, timeout=limits) as answer:
            async for line in answer.content:
                if line.startswith(b"data:"):
                    content = json.loads(line[5:])
                    if "offset" in content:
                        yield content["offset"], content

    # --- faults

    async def _fault(self) -> None:
        broker, proxy = self.random.choice(self.brokers), self.random.choice(self.proxies)
        kind = self.random.choice(["kill", "kill", "cut", "cut", "stop", "delay", "damage"])
        self.faults[kind] = self.faults.get(kind, 0) + 1
        if kind == "kill":
            broker.kill()
            await asyncio.sleep(self.random.uniform(0, 0.5))
            broker.spawn()
            await asyncio.to_thread(broker.wait)
        elif kind == "cut":
            proxy.cut()
            await asyncio.sleep(self.random.uniform(0, 1.0))
            proxy.is_cut = False
        elif kind == "stop":
            broker.send(signal.SIGSTOP)
            await asyncio.sleep(self.random.uniform(0, 2 * PATIENCE))
            broker.send(signal.SIGCONT)
        elif kind == "damage":
            proxy.flip = self.random.randrange(1000)
        else:
            proxy.delay = self.random.uniform(0, 0.1)
            await asyncio.sleep(self.random.uniform(0, 1.0))
            proxy.delay = 0.0

    # --- what must hold

    def _wanted(self, one: Subscriber) -> set[tuple[str, int]]:
        return {key for key, kind in self.acknowledged.items() if kind < one.below}

    def _missing(self, one: Subscriber) -> set[tuple[str, int]]:
        return self._wanted(one) - one.got.keys()

    async def _stored(self, broker: BrokerProcess) -> list[dict]:
        url = f"{broker.url}/topics/load/events?limit=10000&from="
        found: list[dict] = []
        start = "earliest"
        while True:
            async with self.http.get(url + str(start)) as answer:
                events = (await answer.json())["events"]
            found += [one["event"] for one in events]
            if not events:
                return found
            start = events[-1]["offset"] + 1

    async def _check_log(self, broker: BrokerProcess) -> None:
        keys = [(one["publisher"], one["number"]) for one in await self._stored(broker)]
        if len(keys) != len(set(keys)):
            self.subscribers[0].problems.append(f"{broker.url} stores an event twice")

    def problems(self) -> list[str]:
        """What must not be."""
        found = [problem for one in self.subscribers for problem in one.problems]
        for one in self.subscribers:
            found += [f"{one.name} misses {key}" for key in sorted(self._missing(one))[:5]]
        return found

    def counts(self) -> str:
        """What happened, in one line."""
        wanted = sum(len(self._wanted(one)) for one in self.subscribers)
        times = sum(sum(one.got.values()) for one in self.subscribers)
        missing = sum(len(self._missing(one)) for one in self.subscribers)
        return (
            f"{len(self.brokers)} brokers, faults {self.faults}, acknowledged "
            f"{len(self.acknowledged)}, wanted {wanted}, delivered {times}, missing {missing}"
        )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--brokers", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), options.brokers, options.seed)
        asyncio.run(trial.run(options.seconds))
    sys.stdout.write("\n".join([trial.counts(), *trial.problems(), ""]))
    return bool(trial.problems())


if __name__ == "__main__":
    sys.exit(main())
