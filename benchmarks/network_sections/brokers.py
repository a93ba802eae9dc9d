"""Networks of broker processes on this machine, each with settings and data of its own."""

import asyncio
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from broker_sections.stopwatch import cpu_seconds
from tamis.broker.accounts import token_hash

HOST = "127.0.0.1"
TOKEN = "tamis_benchmark"  # noqa: S105 - of brokers that only this machine reaches
PAUSE = 0.05  # seconds between two questions
STEADY = 16  # questions in a row with the same answer: nothing changes any more

Grants = Mapping[str, str]  # what may be published, by topic
Topics = Mapping[str, Mapping[str, str]]  # schemas, by topic


@dataclass
class NetworkBroker:
    """A process of ``tamis serve``."""

    name: str
    folder: Path
    listen: int
    peers: dict[str, int] = field(default_factory=dict)  # their ports
    grants: Grants = field(default_factory=dict)
    settings: str = ""  # of [network]
    http: int = 0
    stomp: int = 0
    process: "subprocess.Popen[str] | None" = None

    @property
    def url(self) -> str:
        """The address for HTTP."""
        return f"http://{HOST}:{self.http}"

    def spawn(self) -> None:
        """Start the process; `wait` until it accepts connections."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "tamis.toml"
        config.write_text(self._toml(), encoding="utf-8")
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own
                [sys.executable, "-m", "tamis", "serve", "--config", str(config), "--data",
                 str(self.folder / "data"), "--http", f"{HOST}:{self.http}",
                 "--stomp", f"{HOST}:{self.stomp}"],
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip

    def _toml(self) -> str:
        """Its settings: one account that may publish what is granted, and subscribe to all."""
        grants = "\n".join(f'"{topic}" = "{text}"' for topic, text in self.grants.items())
        peers = "\n".join(f'{name} = "{HOST}:{port}"' for name, port in self.peers.items())
        return f"""\
name = "{self.name}"
listen = "{HOST}:{self.listen}"
[log]
format = "text"
[network]
{self.settings}
[peers]
{peers}
[accounts.client]
tokens = ["{token_hash(TOKEN)}"]
topics = ["*"]
metrics = true
[accounts.client.publish]
{grants}
[accounts.client.subscribe]
"*" = true
"""

    def wait(self) -> None:
        """Wait until the process accepts connections."""
        assert self.process is not None  # noqa: S101 - it was spawned
        assert self.process.stdout is not None  # noqa: S101 - it was asked for
        words = self.process.stdout.readline().split()
        if not words or words[0] != "ready":
            raise SystemExit(f"broker {self.name} did not start:\n{self.said()}")
        ports = dict(word.split("=", 1) for word in words[1:])
        self.http, self.stomp = (int(ports[n].rpartition(":")[2]) for n in ("http", "stomp"))

    def said(self) -> str:
        """The end of its log."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:]

    def cpu(self) -> float:
        """Seconds of processor time that the process has used."""
        return cpu_seconds(self.process.pid) if self.process is not None else 0.0

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the process."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.communicate()
            self.process = None

    def held(self) -> dict[str, int]:
        """The subscriptions that it holds for its peers, by topic."""
        path = self.folder / "data" / "catalogue.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as tables:
            return dict(
                tables.execute(
                    "SELECT name, count(*) FROM peer_filters JOIN topics ON number = topic "
                    "WHERE kind = 'subscription' GROUP BY name"
                ).fetchall()
            )


class Carried(NamedTuple):
    """What has gone over links."""

    events: int
    bytes: int

    def __sub__(self, other: "Carried") -> "Carried":
        return Carried(self.events - other.events, self.bytes - other.bytes)


@dataclass
class RunningNetwork:
    """Brokers that run, and a client that asks them."""

    brokers: dict[str, NetworkBroker]
    http: aiohttp.ClientSession

    def cpu(self) -> float:
        """Seconds of processor time that all brokers have used."""
        return sum(one.cpu() for one in self.brokers.values())

    def entries(self, topic: str) -> int:
        """How many subscriptions brokers hold for their peers."""
        return sum(one.held().get(topic, 0) for one in self.brokers.values())

    def largest(self, topic: str) -> int:
        """How many subscriptions the broker with the most of them holds for its peers."""
        return max(one.held().get(topic, 0) for one in self.brokers.values())

    async def get(self, broker: str, path: str) -> Any:
        """What a broker answers, None if there is no such thing."""
        async with self.http.get(f"{self.brokers[broker].url}{path}") as answer:
            return await answer.json() if answer.status == 200 else None

    async def make_topics(self, topics: Topics, at: str) -> None:
        """Make topics at one broker, and return when all have them."""
        for topic, schema in topics.items():
            address = f"{self.brokers[at].url}/topics/{topic}"
            async with self.http.put(address, json={"schema": dict(schema)}) as answer:
                if answer.status not in {200, 201}:
                    raise SystemExit(f"the broker said: {await answer.text()}")
        for broker in self.brokers:
            for topic in topics:
                while await self.get(broker, f"/topics/{topic}") is None:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(PAUSE)

    async def linked(self, links: int) -> None:
        """Return when all links are up."""
        while True:
            peers = [await self.get(broker, "/peers") for broker in self.brokers]
            if sum(one["linked"] for some in peers for one in some["peers"]) == 2 * links:
                return
            await asyncio.sleep(PAUSE)

    async def carried(self) -> Carried:
        """What has gone over all links so far."""
        peers = [await self.get(broker, "/peers") for broker in self.brokers]
        every = [one for some in peers for one in some["peers"]]
        return Carried(
            sum(one["events_sent"] for one in every), sum(one["bytes_sent"] for one in every)
        )

    async def settle(self, topic: str) -> None:
        """Return when the tables of a topic have not changed for a while."""
        seen: list[int] = []
        while len(seen) < STEADY or len(set(seen[-STEADY:])) > 1:
            await asyncio.sleep(PAUSE)
            seen.append(self.entries(topic))


def quiet_ports(count: int) -> list[int]:
    """Free ports."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]


def described(
    folder: Path, names: Iterable[str], links: Iterable[tuple[str, str]],
    grants: Mapping[str, Grants], settings: str = "",
) -> dict[str, NetworkBroker]:  # fmt: skip
    """The brokers of a network, not started yet; of each link the first one calls the second."""
    known = list(names)
    ports = dict(zip(known, quiet_ports(len(known)), strict=True))
    brokers = {
        name: NetworkBroker(
            name, folder / name, ports[name], grants=grants.get(name, {}), settings=settings
        )
        for name in known
    }
    for caller, called in links:
        brokers[caller].peers[called] = ports[called]
    return brokers


@asynccontextmanager
async def running(brokers: dict[str, NetworkBroker]) -> AsyncIterator[RunningNetwork]:
    """The network while its processes run; they are ended, and their data removed."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        for one in brokers.values():
            one.spawn()
        for one in brokers.values():
            one.wait()
        async with aiohttp.ClientSession(headers=headers) as http:
            yield RunningNetwork(brokers, http)
    finally:
        for one in brokers.values():
            one.end(signal.SIGKILL)
            shutil.rmtree(one.folder, ignore_errors=True)


def temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    """Where the data of a network is."""
    return tempfile.TemporaryDirectory(prefix="bench-network-")
