"""A broker of a simulated network: the one that is served, on what a simulation gives it.

It is killed, loses its power, is stopped and started again; its storage stays.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from tamis.broker.accounts import Account
from tamis.broker.broker import Broker
from tamis.broker.catalogue import Catalogue
from tamis.broker.grants import Grants
from tamis.broker.network.connections import Connections
from tamis.broker.network.link import Manners
from tamis.broker.network_settings import NetworkSettings, PeerSettings
from tamis.broker.settings import Address, Settings
from tamis.broker.simulation.simulated_catalogue import SimulatedCatalogue
from tamis.broker.simulation.simulated_disk import SimulatedDisk
from tamis.broker.simulation.simulated_workers import SimulatedWorkers
from tamis.broker.simulation.virtual_time import Process, VirtualTime
from tamis.broker.simulation.wires import Wires
from tamis.errors import Busy

T = TypeVar("T")

BEAT, PATIENCE = 1.0, 2.5  # seconds
BEGINNING = 1_000_000.0  # the wall clock when virtual time begins
HOST = "simulated"


class Nature(NamedTuple):
    """What a broker is like."""

    strategy: str = "advertisements+covering"
    publishes: str = "TRUE"  # what its clients may publish
    pace: float = 0.002  # seconds that its disk may take


class Gone(Exception):
    """The broker does not answer any more; nobody knows what it has done."""


class SimulatedStorage:
    """What stays of a broker when its process ends."""

    def __init__(self, random: Random) -> None:
        self.disk = SimulatedDisk(random)
        self.tables = SimulatedCatalogue(random)

    def open_catalogue(self) -> Catalogue:
        """The catalogue, for a process that starts."""
        return self.tables.open()

    def release(self) -> None:
        """Nobody else wants it."""


class SimulatedBroker:
    """A broker, whether its process runs or not."""

    def __init__(
        self, time: VirtualTime, wires: Wires, name: str, ports: Mapping[str, int],
        called: list[str], nature: Nature,
    ) -> None:  # fmt: skip
        """`ports` has those of all brokers; without any, there is no network."""
        self.name = name
        self.storage = SimulatedStorage(wires.random)
        self.broker: Broker | None = None  # while it can be asked
        self.links: Connections | None = None
        self.process: Process | None = None
        self.workers: SimulatedWorkers | None = None
        self.clock_jump = 0.0  # how wrong the wall clock is
        self.slowness = 1.0
        self.starts = 0
        self.problems: list[str] = []
        self._time = time
        self._wires = wires
        self._pace = nature.pace
        self._port = ports.get(name)
        network = None
        if self._port is not None:
            peers = {peer: PeerSettings(Address(HOST, ports[peer])) for peer in called}
            listen = Address(HOST, self._port)
            network = NetworkSettings(
                name, listen, peers, beat=BEAT, patience=PATIENCE, strategy=nature.strategy
            )
        publish = Grants({"*": nature.publishes})
        every = Grants({"*": "TRUE"})
        account = Account("client", publish=publish, subscribe=every, topics=every)
        self.settings = Settings(data=Path("/simulated"), network=network, accounts=(account,))

    # --- its life

    def start(self) -> None:
        """Start a process, unless one runs."""
        if self.process is None:
            self.starts += 1
            self.process = self._time.process(self.name, self._wires)
            self.process.create_task(self._open(self.process))

    async def _open(self, process: Process) -> None:
        random = self._wires.random
        self.workers = SimulatedWorkers(random, self._stopped, self._pace)
        self.workers.slowness = self.slowness
        try:
            broker = await Broker.open(
                self.settings, clock=self._clock, monotonic=process.time, storage=self.storage,
                workers=self.workers, random=random.randbytes,
            )  # fmt: skip
        except (Busy, OSError, sqlite3.Error):  # its disk does not let it; somebody tries it again
            process.call_soon(self.crash)
            return
        known, network = self.settings.network, broker.network
        if network is not None and known is not None and known.listen is not None:
            manners = Manners(self.name, {}, b"", BEAT, PATIENCE)
            self.links = Connections(network, manners, process.time, random.randbytes)
            await self.links.start(*known.listen)
            for peer, described in known.peers.items():
                self.links.call(peer, described.address)
        self.broker = broker

    def _clock(self) -> float:
        return BEGINNING + self._time.now + self.clock_jump

    def _stopped(self) -> None:
        """The disk has ended the process in the middle of something."""
        self.crash(power_failed=self._wires.random.random() < 0.7)

    def crash(self, *, power_failed: bool = False, silently: bool = False) -> None:
        """End the process at once; `silently`: the other ends of its links are not told."""
        process, self.process = self.process, None
        if process is None:
            return
        self.broker = self.links = self.workers = None
        if silently:
            for conduit in self._wires.conduits_of(self.name):
                for wire in list(conduit.wires):
                    wire.fall_silent()
        if self._port is not None:
            self._wires.listening.pop(self._port, None)
        self.problems += [f"{self.name}: {problem}" for problem in process.problems]
        process.end()
        self.storage.disk.restart(power_failed=power_failed)

    async def stop(self) -> None:
        """Stop as a server does when it is told to; it runs in the process of the broker."""
        process, broker, links = self.process, self.broker, self.links
        if process is None or broker is None:
            return
        self.broker = self.links = None
        try:
            if links is not None:
                await links.stop()
            await broker.close()
        except Busy:  # what could not be written is written by nobody
            pass
        finally:
            process.call_soon(self.crash)

    # --- its clients

    async def ask(
        self, make: Callable[[Broker], Awaitable[T]], process: Process | None = None
    ) -> T:
        """What a call to the broker returns, for a client that is another process.

        With `process`, the call is for that process only: what is asked for ended with it.
        """
        random, client = self._wires.random, asyncio.get_running_loop()
        await asyncio.sleep(0.003 * random.random())
        broker, running = self.broker, self.process
        if broker is None or running is None or (process is not None and process is not running):
            raise Gone
        answer: asyncio.Future[T] = client.create_future()

        async def call() -> None:
            try:
                found = await make(broker)
            except Exception as error:  # noqa: BLE001 - it is for the one who asked
                client.call_later(0.003 * random.random(), _settle, answer, None, error)
            else:
                client.call_later(0.003 * random.random(), _settle, answer, found, None)

        def ended() -> None:
            client.call_later(0.003 * random.random(), _settle, answer, None, Gone())

        forget = running.when_ended(ended)
        running.create_task(call())
        try:
            return await answer
        finally:
            forget()


def account_of(broker: Broker) -> Account:
    """The account of all clients."""
    return next(iter(broker.accounts))


def _settle(answer: "asyncio.Future[Any]", found: object, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)
