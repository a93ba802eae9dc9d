"""Routers and the ways between them, in virtual time.

What happens to a message from broker to broker is decided by random numbers of its direction alone,
so that leaving something out of a scenario changes little elsewhere. Between client and broker
nothing is lost and no time passes.
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

MakeRouter = Callable[[str, int], Any]  # name and incarnation of a router

STEPS = 200_000  # of one simulation; more is a network that never rests
SLOW = 3.0  # seconds that weather holds up a message, at most
ECHO = 12.0  # seconds after which a duplicate may still come: longer than any session lasts


class _Way:
    """One direction of an edge."""

    __slots__ = ("chance", "clear", "cuts", "latest", "weather")

    def __init__(self, seed: int, start: str, end: str) -> None:
        self.chance = random.Random(f"{seed} {start} {end}")  # noqa: S311 - reproducible, no secret
        self.latest = 0.0  # arrival of the last message, if it came in order
        self.cuts = 0
        self.weather: list[Fault] = []


class Network:
    """Brokers, ways, faults and time."""

    def __init__(
        self,
        scenario: Scenario,
        topology: Topology,
        make_router: MakeRouter,
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
        self._deaths: Counter[str] = Counter()
        self._ways = {
            (a, b): _Way(scenario.seed, a, b)
            for a in topology.brokers
            for b in topology.neighbours[a]
        }

    # --- time

    def at(self, time: float, call: Callable[..., None], *arguments: Any) -> None:
        """Do something at a time to come."""
        self._number += 1
        heapq.heappush(self._heap, (time, self._number, call, arguments))

    def forward(self) -> bool:
        """Do what comes next; False if nothing does."""
        if not self._heap or self.failed:
            return False
        self.now, _, call, arguments = heapq.heappop(self._heap)
        self.oracle.now = self.now
        call(*arguments)
        if not self.oracle.trust.complete and self.settled:
            self.oracle.trust.settled(self.oracle.step)
        return True

    @property
    def next_time(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    @property
    def settled(self) -> bool:
        """Whether every broker is there and has told all that it has to tell."""
        routers = self.routers
        return len(routers) == len(self.topology.brokers) and all(
            router.settled for router in routers.values()
        )

    @property
    def quiet(self) -> bool:
        """Whether, moreover, nothing waits for a receipt."""
        return (
            self.settled
            and self.oracle.trust.complete
            and all(
                not router.link(other).waiting
                for name, router in self.routers.items()
                for other in self.topology.neighbours[name]
            )
        )

    # --- brokers

    def start(self, broker: str) -> None:
        """A broker appears, empty."""
        self._incarnations[broker] += 1
        router = self._make_router(broker, self._incarnations[broker])
        self.routers[broker] = router
        self._work(broker, Tick(), lambda: router.start(self.now))

    def hand(self, broker: str, message: Message) -> None:
        """A message arrives at a broker; the dead do not hear it, those that pause later."""
        if broker in self._paused:
            self._paused[broker].append(message)
            return
        router = self.routers.get(broker)
        if router is None:
            return
        member = self.oracle.members.get(message.sender)
        if member is not None:
            if self._trace:
                self._trace.asked(self.now, broker, message)
            self.oracle.asked(member, message, router)
        self._work(broker, message, lambda: router.handle(message, self.now))

    def _work(self, broker: str, message: Message, work: Callable[[], Sends]) -> None:
        oracle = self.oracle
        oracle.step += 1
        if oracle.step > STEPS:
            oracle.complain("livelock", f"no rest after {STEPS:,} steps")
            self.failed = True
            return
        try:
            sends = work()
        except Exception:  # noqa: BLE001 - whatever a router raises is a finding
            lines = traceback.format_exc(limit=-4)
            oracle.complain("error", f"{broker} failed on {message}:\n{lines}")
            self.failed = True
            return
        for to, sent in sends:
            if (broker, to) in self._ways:
                self._send(broker, to, sent)
            else:
                self._tell(broker, to, sent)
        router = self.routers[broker]
        oracle.handled(broker, message, sends, router)
        wanted = router.next_time()
        if wanted is not None and wanted < self._ticks.get(broker, float("inf")):
            self._ticks[broker] = wanted
            self.at(max(wanted, self.now), self._tick, broker, wanted)

    def _tick(self, broker: str, planned: float) -> None:
        if self._ticks.get(broker) != planned:
            return  # an earlier one was asked for later
        del self._ticks[broker]
        if broker in self.routers:
            self.hand(broker, Tick())

    def _tell(self, broker: str, to: str, message: Message) -> None:
        member = self.oracle.members.get(to)
        if member is None or member.client.broker != broker:
            self.oracle.complain("misaddressed", f"{broker} sent {message} to {to}")
            return
        if self._trace:
            self._trace.told(self.now, to, message)
        self.oracle.told(member, message)

    # --- ways

    def _send(self, start: str, end: str, message: Message) -> None:
        way = self._ways[start, end]
        chance = way.chance
        low, high = self.scenario.delay
        delay = low + (high - low) * chance.random()
        self.counts["messages"] += 1
        if way.cuts:
            self._lost(start, end, message)
            return
        if not way.weather:
            way.latest = arrival = max(self.now + delay, way.latest)
            self._travel(start, end, message, arrival)
            return
        draws = chance.random(), chance.random(), chance.random(), chance.random()
        if any(draws[0] < fault.loss for fault in way.weather):
            self._lost(start, end, message)
            return
        if any(draws[1] < fault.slowness for fault in way.weather):
            self.counts["slowed"] += 1
            delay += SLOW * draws[3]
        self._travel(start, end, message, self.now + delay)
        if any(draws[2] < fault.duplication for fault in way.weather):
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
        """A fault begins; its end is planned."""
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

    def _directions(self, edges: tuple[Edge, ...]) -> list[_Way]:
        return [self._ways[pair] for a, b in edges for pair in ((a, b), (b, a))]

    def _cloud(self, fault: Fault) -> None:
        for way in self._directions(fault.edges):
            way.weather.append(fault)

    def _clear(self, fault: Fault) -> None:
        for way in self._directions(fault.edges):
            way.weather.remove(fault)

    def _cut(self, fault: Fault) -> None:
        for way in self._directions(fault.edges):
            way.cuts += 1

    def _join(self, fault: Fault) -> None:
        for way in self._directions(fault.edges):
            way.cuts -= 1

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
        self._deaths[broker] += 1
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
        self._deaths[broker] -= 1
        if not self._deaths[broker]:
            if self._trace:
                self._trace.note(self.now, f"{broker} returns")
            self.start(broker)
            for member in self.oracle.members.values():
                if member.client.broker == broker:
                    for message in member.again():
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
