"""Routers and the links between them, in virtual time.

The fate of a message between brokers is drawn from random numbers that belong to its direction
alone, so that leaving something out of a scenario changes little elsewhere. Between client and
broker nothing is lost and no time passes.
"""

import heapq
import random
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from tamis.routing.messages import LinkDown, LinkUp, Message, Sends, Tick
from tamis.routing.simulation.oracle import Oracle
from tamis.routing.simulation.scenario import Fault, Scenario
from tamis.routing.simulation.topology import Edge, Topology, edge
from tamis.routing.simulation.trace import Trace

RouterFactory = Callable[[str, int], Any]  # name and incarnation of a router

STEPS = 200_000  # of one simulation; a network that takes more never comes to rest
SLOW = 3.0  # seconds that weather holds up a message, at most
ECHO = 12.0  # seconds after which a duplicate may still come, at most: longer than t2


class _Direction:
    """One direction of an edge."""

    __slots__ = ("chance", "cuts", "latest", "weather")

    def __init__(self, seed: int, start: str, end: str) -> None:
        self.chance = random.Random(f"{seed} {start} {end}")  # noqa: S311 - reproducible, no secret
        self.latest = 0.0  # arrival of the last message, if it came in order
        self.cuts = 0  # partitions that hold now
        self.weather: list[Fault] = []


class Network:
    """Brokers, the links between them, faults and time."""

    def __init__(
        self,
        scenario: Scenario,
        topology: Topology,
        make_router: RouterFactory,
        oracle: Oracle,
        trace: Trace | None,
    ) -> None:
        self.scenario = scenario
        self.topology = topology
        self.oracle = oracle
        self.now = 0.0
        self.counts: Counter[str] = Counter()
        self.routers: dict[str, Any] = {}
        self.failed = False
        self._make_router = make_router
        self._trace = trace
        self._incarnations: Counter[str] = Counter()
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._ticks: dict[str, float] = {}
        self._paused: dict[str, list[Message]] = {}
        self._pauses: Counter[str] = Counter()
        self._crashes: Counter[str] = Counter()
        self._directions = {
            (a, b): _Direction(scenario.seed, a, b)
            for a in topology.brokers
            for b in topology.neighbours[a]
        }

    # --- time

    def at(self, time: float, call: Callable[..., None], *arguments: Any) -> None:
        """Call something at a later time."""
        self._number += 1
        heapq.heappush(self._heap, (time, self._number, call, arguments))

    def forward(self) -> bool:
        """Do what comes next; False if there is nothing."""
        if not self._heap or self.failed:
            return False
        self.now, _, call, arguments = heapq.heappop(self._heap)
        self.oracle.now = self.now
        call(*arguments)
        if not self.oracle.trusted_links.complete and self.settled:
            self.oracle.trusted_links.settled(self.oracle.step)
        return True

    @property
    def next_time(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    @property
    def settled(self) -> bool:
        """Whether every broker is running and has told its neighbours everything."""
        routers = self.routers
        return len(routers) == len(self.topology.brokers) and all(
            router.settled for router in routers.values()
        )

    @property
    def quiet(self) -> bool:
        """Whether the network is settled, and no packet waits for a receipt."""
        return (
            self.settled
            and self.oracle.trusted_links.complete
            and all(
                not router.link(other).waiting
                for name, router in self.routers.items()
                for other in self.topology.neighbours[name]
            )
        )

    # --- brokers

    def start(self, broker: str) -> None:
        """A broker starts, empty."""
        self._incarnations[broker] += 1
        router = self._make_router(broker, self._incarnations[broker])
        self.routers[broker] = router
        self._work(broker, Tick(), lambda: router.start(self.now))

    def hand(self, broker: str, message: Message) -> None:
        """A message arrives at a broker: ignored if it has crashed, kept while it pauses."""
        if broker in self._paused:
            self._paused[broker].append(message)
            return
        router = self.routers.get(broker)
        if router is None:
            return
        client = self.oracle.clients.get(message.sender)
        if client is not None:
            if self._trace:
                self._trace.request(self.now, broker, message)
            self.oracle.before_request(client, message, router)
        self._work(broker, message, lambda: router.handle(message, self.now))

    def _work(self, broker: str, message: Message, work: Callable[[], Sends]) -> None:
        oracle = self.oracle
        oracle.step += 1
        if oracle.step > STEPS:
            oracle.complain("livelock", f"the network does not come to rest within {STEPS:,} steps")
            self.failed = True
            return
        try:
            sends = work()
        except Exception:  # noqa: BLE001 - every exception of a router is a finding
            lines = traceback.format_exc(limit=-4)
            oracle.complain("error", f"{broker} failed on {message}:\n{lines}")
            self.failed = True
            return
        for to, sent in sends:
            if (broker, to) in self._directions:
                self._send(broker, to, sent)
            else:
                self._tell(broker, to, sent)
        router = self.routers[broker]
        oracle.after_step(broker, message, sends, router)
        due = router.next_time()
        if due is not None and due < self._ticks.get(broker, float("inf")):
            self._ticks[broker] = due
            self.at(max(due, self.now), self._tick, broker, due)

    def _tick(self, broker: str, planned: float) -> None:
        if self._ticks.get(broker) != planned:
            return  # an earlier tick was planned since
        del self._ticks[broker]
        if broker in self.routers:
            self.hand(broker, Tick())

    def _tell(self, broker: str, to: str, message: Message) -> None:
        client = self.oracle.clients.get(to)
        if client is None or client.broker != broker:
            self.oracle.complain("misaddressed", f"{broker} sent {message} to {to}")
            return
        if self._trace:
            self._trace.answer(self.now, to, message)
        self.oracle.after_answer(client, message)

    # --- links

    def _send(self, start: str, end: str, message: Message) -> None:
        direction = self._directions[start, end]
        chance = direction.chance
        low, high = self.scenario.delay
        delay = low + (high - low) * chance.random()
        self.counts["messages"] += 1
        if direction.cuts:
            self._lost(start, end, message)
            return
        if not direction.weather:
            direction.latest = arrival = max(self.now + delay, direction.latest)
            self._travel(start, end, message, arrival)
            return
        draws = chance.random(), chance.random(), chance.random(), chance.random()
        if any(draws[0] < fault.loss for fault in direction.weather):
            self._lost(start, end, message)
            return
        if any(draws[1] < fault.slowness for fault in direction.weather):
            self.counts["slowed"] += 1
            delay += SLOW * draws[3]
        self._travel(start, end, message, self.now + delay)
        if any(draws[2] < fault.duplication for fault in direction.weather):
            self.counts["duplicated"] += 1
            late = ECHO * draws[3] ** 4  # soon, most of the time
            self._travel(start, end, message, self.now + delay + late)

    def _travel(self, start: str, end: str, message: Message, arrival: float) -> None:
        if self._trace:
            self._trace.sent(self.now, start, end, message, arrival)
        self.at(arrival, self.hand, end, message)

    def _lost(self, start: str, end: str, message: Message) -> None:
        self.counts["dropped"] += 1
        if self._trace:
            self._trace.sent(self.now, start, end, message, None)

    # --- faults

    def strike(self, fault: Fault) -> None:
        """Begin a fault, and plan its end."""
        if self._trace:
            self._trace.fault(self.now, fault)
        begin, end = {
            "weather": (self._cloud, self._clear),
            "partition": (self._cut, self._join),
            "pause": (self._pause, self._resume),
            "crash": (self._crash, self._return),
            "link": (self._down, self._up),
        }[fault.kind]
        begin(fault)
        self.at(self.now + fault.duration, end, fault)

    def _both_directions(self, edges: tuple[Edge, ...]) -> list[_Direction]:
        return [self._directions[pair] for a, b in edges for pair in ((a, b), (b, a))]

    def _cloud(self, fault: Fault) -> None:
        for direction in self._both_directions(fault.edges):
            direction.weather.append(fault)

    def _clear(self, fault: Fault) -> None:
        for direction in self._both_directions(fault.edges):
            direction.weather.remove(fault)

    def _cut(self, fault: Fault) -> None:
        for direction in self._both_directions(fault.edges):
            direction.cuts += 1

    def _join(self, fault: Fault) -> None:
        for direction in self._both_directions(fault.edges):
            direction.cuts -= 1

    def _pause(self, fault: Fault) -> None:
        self._pauses[fault.broker] += 1
        if fault.broker in self.routers:
            self._paused.setdefault(fault.broker, [])

    def _resume(self, fault: Fault) -> None:
        self._pauses[fault.broker] -= 1
        if not self._pauses[fault.broker]:
            for message in self._paused.pop(fault.broker, []):
                self.hand(fault.broker, message)

    def _crash(self, fault: Fault) -> None:
        broker = fault.broker
        self._crashes[broker] += 1
        if broker in self.routers:
            self.oracle.step += 1
            del self.routers[broker]
            self._paused.pop(broker, None)
            self._ticks.pop(broker, None)
            self.oracle.crashed(broker)
        for other in fault.told:
            if edge(other, broker) in self.topology.edges:
                self.hand(other, LinkDown(broker))

    def _return(self, fault: Fault) -> None:
        broker = fault.broker
        self._crashes[broker] -= 1
        if not self._crashes[broker]:
            if self._trace:
                self._trace.note(self.now, f"{broker} returns")
            self.start(broker)
            for client in self.oracle.clients.values():
                if client.broker == broker:
                    for message in client.reconnection():
                        self.hand(broker, message)
        for other in fault.told:
            if edge(other, broker) in self.topology.edges:
                self.hand(other, LinkUp(broker))

    def _down(self, fault: Fault) -> None:
        ((a, b),) = fault.edges
        for here, there in ((a, b), (b, a)):
            if here in fault.told:
                self.hand(here, LinkDown(there))

    def _up(self, fault: Fault) -> None:
        ((a, b),) = fault.edges
        for here, there in ((a, b), (b, a)):
            if here in fault.told:
                self.hand(here, LinkUp(there))
