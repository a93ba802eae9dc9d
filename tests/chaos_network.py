"""Brokers as processes with a proxy between each two, and what can happen to them.

Whatever happens to one broker holds its lock, so that a broker is not killed while it is moved.
"""

import asyncio
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from broker_process import BrokerProcess, quiet_ports
from chaos_clients import LOST
from link_proxy import Proxy

PATIENCE = 2.0  # seconds; some brokers are stopped for longer
FAULTS = ("kill", "kill", "cut", "cut", "stop", "delay", "damage")


class Site(BrokerProcess):
    """A broker, and its way to the one that it calls."""

    def __init__(self, folder: Path, name: str, ports: Iterator[int]) -> None:
        self.name = name
        self.lock = asyncio.Lock()
        self._ports = ports
        self.listen, http, stomp = next(ports), next(ports), next(ports)
        self.parent: Site | None = None
        self.proxy: Proxy | None = None
        self._config = folder / "impatient.toml"
        super().__init__(folder / name, http=http, stomp=stomp)

    async def call(self, parent: "Site | None") -> None:
        """Call another broker, from the next start on, and no other."""
        arguments = ["--name", self.name, "--listen", f"127.0.0.1:{self.listen}"]
        arguments += ["--config", str(self._config)]
        if self.proxy is not None:
            await self.proxy.stop()
        self.parent, self.proxy = parent, None
        if parent is not None:
            self.proxy = Proxy(next(self._ports), parent.listen)
            await self.proxy.start()
            arguments += ["--peer", f"{parent.name}=127.0.0.1:{self.proxy.port}"]
        self._arguments = tuple(arguments)

    async def restart(self, pause: float) -> None:
        """Start again after a pause."""
        await asyncio.sleep(pause)
        self.spawn()
        await asyncio.to_thread(self.wait)


@dataclass
class ChaosNetwork:
    """A tree of brokers."""

    folder: Path
    random: random.Random
    sites: list[Site] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text = f'name = "any"\n[network]\nbeat = 0.4\npatience = {PATIENCE}\n'
        (self.folder / "impatient.toml").write_text(text, encoding="utf-8")
        self._ports = iter(quiet_ports(500))  # a broker that moves takes another one

    async def start(self, brokers: int) -> None:
        for _ in range(brokers):
            (await self._new()).spawn()
        for site in self.sites:
            await asyncio.to_thread(site.wait)

    async def _new(self) -> Site:
        site = Site(self.folder, f"b{len(self.sites)}", self._ports)
        await site.call(self.random.choice(self.sites) if self.sites else None)
        self.sites.append(site)
        return site

    async def stop(self) -> None:
        for site in self.sites:
            site.kill()
        for site in self.sites:
            await site.call(None)

    def count(self, what: str) -> None:
        self.faults[what] = self.faults.get(what, 0) + 1

    # --- what goes wrong

    async def fault(self) -> None:
        """Let something go wrong, for a moment."""
        kind = self.random.choice(FAULTS)
        site = self.random.choice(self.sites)
        self.count(kind)
        async with site.lock:
            if kind == "kill":
                site.kill()
                await site.restart(self.random.uniform(0, 0.5))
            elif kind == "stop":
                site.send(signal.SIGSTOP)
                await asyncio.sleep(self.random.uniform(0, 2 * PATIENCE))
                site.send(signal.SIGCONT)
            elif site.proxy is not None:
                await self._disturb(site.proxy, kind)

    async def _disturb(self, proxy: Proxy, kind: str) -> None:
        if kind == "cut":
            proxy.cut()
            await asyncio.sleep(self.random.uniform(0, 1.0))
            proxy.is_cut = False
        elif kind == "damage":
            proxy.flip = self.random.randrange(1000)
        else:
            proxy.delay = self.random.uniform(0, 0.1)
            await asyncio.sleep(self.random.uniform(0, 1.0))
            proxy.delay = 0.0

    # --- what is changed on purpose

    async def add(self) -> Site:
        """One broker more."""
        site = await self._new()
        async with site.lock:
            await site.restart(0.0)
        self.count("added")
        return site

    def leaf(self) -> Site:
        """A broker that calls another one, and is called by nobody."""
        called = {site.parent for site in self.sites}
        leaves = [one for one in self.sites if one not in called and one.parent is not None]
        return self.random.choice(leaves)

    async def move(self, leaf: Site) -> Site:
        """Link a leaf to another broker instead; returns the one that it was linked to."""
        before = leaf.parent
        others = [site for site in self.sites if site not in (leaf, before)]
        async with leaf.lock:
            if self.random.random() < 0.5:
                await asyncio.to_thread(leaf.stop)
            else:
                leaf.kill()
            await leaf.call(self.random.choice(others))
            await leaf.restart(self.random.uniform(0, 0.5))
        self.count("moved")
        return before


async def forget(http: aiohttp.ClientSession, site: Site, peer: str) -> None:
    """Let a broker forget a peer, as ``tamis peer remove`` does; again, until it has done so."""
    url = f"{site.url}/peers/{peer}"
    while True:
        try:
            async with http.delete(url, timeout=aiohttp.ClientTimeout(30)) as answer:
                text = await answer.text()
                if answer.status == 204 or "there is no peer" in text:
                    return
        except LOST:
            pass
        await asyncio.sleep(0.2)
