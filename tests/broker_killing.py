"""Kills a broker under load at random moments, and compares what it acknowledged with what it gave.

Publishers over HTTP and STOMP send events until each is acknowledged; whatever was not acknowledged
when the broker died is sent again with the same id. Durable subscribers over SSE and STOMP
acknowledge some of what they get, and come back when their connection is lost. At the end

* no acknowledged event is missing at a subscriber whose filter it matches,
* nobody got an event that does not match, and every event is stored once,
* what came twice was marked as redelivered, and what was not so marked came in order.

By hand: ``python tests/broker_killing.py --kills 100 --seed 7``.
"""

import argparse
import asyncio
import contextlib
import json
import math
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp

from broker_process import BrokerProcess, quiet_ports

TOPIC = "load"
SCHEMA = {"sender": "string", "number": "int", "kind": "int", "last": "bool"}
LOST = aiohttp.ClientError, OSError, EOFError, TimeoutError, asyncio.IncompleteReadError

Key = tuple[str, int]
Frame = tuple[str, dict[str, str], bytes]


@dataclass
class Subscriber:
    """What one durable subscriber got."""

    name: str
    below: int  # it wants the kinds below this one
    events: dict[int, Key] = field(default_factory=dict)  # by offset
    got: int = 0
    repeated: int = 0
    latest: int = -1  # the highest offset that was not marked as redelivered
    problems: list[str] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def filter(self) -> str:
        return f"kind < {self.below} OR last"

    def take(self, offset: int, event: dict[str, Any], *, redelivered: bool) -> None:
        self.got += 1
        key = event["sender"], event["number"]
        if not (event["kind"] < self.below or event["last"]):
            self.problems.append(f"{self.name}: {event} does not match {self.filter}")
        if self.events.setdefault(offset, key) != key:
            self.problems.append(f"{self.name}: {offset} is {self.events[offset]}, and {key}")
        if offset <= self.latest and not redelivered:
            self.problems.append(
                f"{self.name}: offset {offset} after {self.latest}, not marked as redelivered"
            )
        if not redelivered:
            self.latest = max(self.latest, offset)
        self.repeated += redelivered
        if event["last"]:
            self.done.set()


class Trial:
    """One broker, its clients, and what they know."""

    def __init__(self, folder: Path, seed: int, *, stomp: bool = True) -> None:
        self.stomp = stomp
        self.chance = random.Random(seed)  # noqa: S311 - a test that can be repeated
        ports = quiet_ports(2)
        self.broker = BrokerProcess(folder, http=ports[0], stomp=ports[1])
        self.acknowledged: dict[Key, dict[str, Any]] = {}
        self.ending = asyncio.Event()
        self.kills = self.pauses = self.early_kills = 0
        self.starts: list[float] = []
        self.subscribers = [
            Subscriber("sse-a", 7), Subscriber("sse-b", 2), Subscriber("stomp-a", 9),
            Subscriber("stomp-b", 5),
        ][: 4 if stomp else 2]  # fmt: skip

    async def run(self, kills: int, minutes: float = math.inf) -> None:
        """Kill the broker that often under load, then let everything come to its end."""
        until = time.monotonic() + minutes * 60
        await asyncio.to_thread(self.broker.start)
        try:
            async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
                await self._prepare(session)
                senders = [
                    group.create_task(self._send_http(session, "http-a", 1)),
                    group.create_task(self._send_http(session, "http-b", 25)),
                    *([group.create_task(self._send_stomp("stomp-c"))] if self.stomp else []),
                ]
                listeners = [
                    group.create_task(
                        self._listen_stomp(one)
                        if one.name.startswith("stomp")
                        else self._listen_sse(session, one)
                    )
                    for one in self.subscribers
                ]
                while self.kills + self.pauses < kills and time.monotonic() < until:
                    await asyncio.sleep(self.chance.uniform(0.05, 2.5))  # let it work
                    await self._disturb()
                self.ending.set()
                await asyncio.gather(*senders)
                await self._publish(session, "end", [self._event("end", 0, last=True)])
                await asyncio.gather(*(one.done.wait() for one in self.subscribers))
                for task in listeners:
                    task.cancel()
            code = await asyncio.to_thread(self.broker.stop)
            assert code == 0, f"a clean stop ended with {code}\n{self.broker.log[-3000:]}"
        finally:
            self.broker.kill()

    def problems(self) -> list[str]:
        """What must not be."""
        found = [problem for one in self.subscribers for problem in one.problems]
        found += self.broker.deaths
        offsets: dict[Key, set[int]] = {}
        for one in self.subscribers:
            for offset, key in one.events.items():
                offsets.setdefault(key, set()).add(offset)
            wanted = {
                key for key, event in self.acknowledged.items()
                if event["kind"] < one.below or event["last"]
            }  # fmt: skip
            missing = wanted - set(one.events.values())
            if missing:
                found.append(f"{one.name} misses {len(missing)} events, {sorted(missing)[:5]}")
        twice = {key: at for key, at in offsets.items() if len(at) > 1}
        if twice:
            found.append(f"{len(twice)} events are stored twice, {list(twice.items())[:5]}")
        return found

    async def _disturb(self) -> None:
        if self.chance.random() < 0.25:
            self.pauses += 1
            self.broker.send(signal.SIGSTOP)
            await asyncio.sleep(self.chance.uniform(0.02, 0.5))  # it stands still
            self.broker.send(signal.SIGCONT)
            return
        self.kills += 1
        self.broker.kill()
        while self.chance.random() < 0.15:  # killed while it recovers
            self.early_kills += 1
            self.broker.spawn()
            await asyncio.sleep(self.chance.uniform(0.0, 2.0))
            self.broker.kill()
        began = time.monotonic()
        await asyncio.to_thread(self.broker.start)
        self.starts.append(time.monotonic() - began)

    async def _prepare(self, session: aiohttp.ClientSession) -> None:
        url = f"{self.broker.url}/topics/{TOPIC}"
        async with session.put(url, json={"schema": SCHEMA}) as answer:
            assert answer.status in {200, 201}, await answer.text()
        for one in self.subscribers:
            # STOMP makes its subscriptions itself; those that are there before get everything.
            wanted = {"filter": one.filter, "durable": True, "start": "earliest"}
            async with session.put(f"{url}/subscriptions/{one.name}", json=wanted) as answer:
                assert answer.status in {200, 201}, await answer.text()

    def _event(self, sender: str, number: int, *, last: bool = False) -> dict[str, Any]:
        kind = 99 if last else self.chance.randrange(10)
        return {"sender": sender, "number": number, "kind": kind, "last": last}

    # --- publishers

    async def _send_http(self, session: aiohttp.ClientSession, sender: str, most: int) -> None:
        number = 0
        while not self.ending.is_set():
            count = self.chance.randint(1, most)
            batch = [self._event(sender, n) for n in range(number, number + count)]
            number += count
            await self._publish(session, sender, batch)

    async def _publish(
        self, session: aiohttp.ClientSession, sender: str, batch: list[dict[str, Any]]
    ) -> None:
        body = [
            {"specversion": "1.0", "type": "load", "source": sender, "data": event,
             "id": f"{sender}-{event['number']}"}
            for event in batch
        ]  # fmt: skip
        kind = {"Content-Type": "application/cloudevents-batch+json"}
        url = f"{self.broker.url}/topics/{TOPIC}/events"
        while True:
            try:
                async with session.post(url, data=json.dumps(body), headers=kind) as answer:
                    content = await answer.json()
            except LOST:
                await asyncio.sleep(0.02)  # it is dead; asking all the time would not wake it
                continue
            if answer.status == 200:
                assert content["accepted"] == len(batch), content
                self.acknowledged |= {(sender, event["number"]): event for event in batch}
                return
            assert answer.status == 503, content

    async def _send_stomp(self, sender: str) -> None:
        waiting: dict[str, dict[str, Any]] = {}
        number = 0
        while waiting or not self.ending.is_set():
            async with stomp_connection(self.broker.stomp) as stomp:
                for receipt, event in waiting.items():
                    send_event(stomp, receipt, event)
                while waiting or not self.ending.is_set():
                    while len(waiting) < 50 and not self.ending.is_set():
                        receipt = f"{sender}-{number}"
                        waiting[receipt] = self._event(sender, number)
                        number += 1  # before it is sent: it may be lost on the way
                        send_event(stomp, receipt, waiting[receipt])
                    command, headers, body = await stomp.receive()
                    assert command == "RECEIPT", (headers, body)
                    event = waiting.pop(headers["receipt-id"])
                    self.acknowledged[sender, event["number"]] = event

    # --- subscribers

    async def _listen_sse(self, session: aiohttp.ClientSession, one: Subscriber) -> None:
        url = f"{self.broker.url}/topics/{TOPIC}/subscriptions/{one.name}"
        seen: int | None = None
        while True:
            resumes = seen is not None and self.chance.random() < 0.5
            headers = {"Last-Event-ID": str(seen)} if resumes else {}
            leaves_after = self.chance.randint(50, 5000)
            with contextlib.suppress(*LOST):
                async with session.get(f"{url}/events", headers=headers) as answer:
                    assert answer.status == 200, await answer.text()
                    async for line in answer.content:
                        if not line.startswith(b'data: {"offset"'):
                            continue
                        told = json.loads(line[6:])
                        offset = told["offset"]
                        one.take(offset, told["event"], redelivered=told["redelivered"])
                        seen = max(offset, seen or 0)
                        if self.chance.random() < 0.02:
                            async with session.post(f"{url}/ack", json={"offset": offset}):
                                pass
                        leaves_after -= 1
                        if not leaves_after:
                            break
            await asyncio.sleep(0.02)

    async def _listen_stomp(self, one: Subscriber) -> None:
        mode = "client-individual" if one.name.endswith("a") else "client"
        while True:
            leaves_after = self.chance.randint(50, 5000)
            async with stomp_connection(self.broker.stomp) as stomp:
                stomp.send(
                    "SUBSCRIBE", destination=f"/topic/{TOPIC}", id="0", ack=mode,
                    selector=one.filter, **{"durable-subscription-name": one.name},
                )  # fmt: skip
                while leaves_after:
                    command, headers, body = await stomp.receive()
                    assert command == "MESSAGE", (command, headers, body)
                    redelivered = headers.get("redelivered") == "true"
                    one.take(int(headers["offset"]), json.loads(body), redelivered=redelivered)
                    if mode == "client-individual":
                        stomp.send("NACK" if self.chance.random() < 0.01 else "ACK",
                                   id=headers["ack"])  # fmt: skip
                    elif self.chance.random() < 0.02:
                        stomp.send("ACK", id=headers["ack"])
                    leaves_after -= 1


class Stomp:
    """A connection that speaks as much STOMP as the load needs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> Self:
        stomp = cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**24))
        stomp.send("CONNECT", **{"accept-version": "1.2", "host": "tamis"})
        try:
            assert (await stomp.receive())[0] == "CONNECTED"
        except LOST:
            stomp.close()
            raise
        return stomp

    def close(self) -> None:
        self._writer.close()

    def send(self, command: str, body: str = "", **headers: str) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError("the broker is gone")
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        self._writer.write(f"{command}\n{lines}\n{body}\0".encode())

    async def receive(self) -> Frame:
        head, _, body = (await self._reader.readuntil(b"\0")).lstrip(b"\n").partition(b"\n\n")
        command, *lines = head.decode().split("\n")
        return command, dict(line.split(":", 1) for line in lines), body[:-1]


@contextlib.asynccontextmanager
async def stomp_connection(port: int) -> AsyncIterator[Stomp]:
    """A connection, as soon as there is a broker; when it is lost, the block ends."""
    stomp: Stomp | None = None
    while stomp is None:
        try:
            stomp = await Stomp.connect(port)
        except LOST:
            await asyncio.sleep(0.02)  # it is dead; asking all the time would not wake it
    with contextlib.suppress(*LOST), contextlib.closing(stomp):
        yield stomp


def send_event(stomp: Stomp, receipt: str, event: dict[str, Any]) -> None:
    headers = {"destination": f"/topic/{TOPIC}", "receipt": receipt, "event-id": receipt}
    stomp.send("SEND", json.dumps(event), **headers, **{"content-type": "application/json"})


def main(show: Callable[[str], None] = print) -> int:
    """Kill as often as the command line says; 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="kill no longer than this")
    parser.add_argument("--without-stomp", action="store_true", help="clients of HTTP only")
    parser.add_argument("--log", type=int, default=4000, help="characters of the log to show")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), options.seed, stomp=not options.without_stomp)
        try:
            asyncio.run(trial.run(options.kills, options.minutes))
        except BaseException:
            show(trial.broker.log[-options.log :])
            raise
        show(
            f"{trial.kills} kills, {trial.early_kills} of starting brokers, {trial.pauses} pauses; "
            f"{len(trial.acknowledged):,} events acknowledged; "
            f"started within {max(trial.starts, default=0.0):.1f} s"
        )
        for one in trial.subscribers:
            show(f"{one.name}: {one.got:,} deliveries, {one.repeated:,} of them redelivered")
        problems = trial.problems()
        for problem in problems[:20]:
            show(problem)
        show(f"{len(problems)} problems")
        return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
