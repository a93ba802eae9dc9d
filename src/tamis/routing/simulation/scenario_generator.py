"""The generator of scenarios: each follows from its seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tamis.routing.simulation.filters import (
    BROAD,
    NEVER,
    WRONG,
    WRONG_EVENTS,
    matching_event,
    random_pool,
)
from tamis.routing.simulation.scenario import CALM, STORM, Action, Fault, Scenario, ScenarioClient
from tamis.routing.simulation.topology import Topology, shaped

STORMS = (6.0, 15.0, 40.0)  # seconds: the shorter, the more happens at the same time
DELAYS = ((0.01, 0.05), (0.01, 0.3), (0.3, 0.6), (0.4, 1.3))  # seconds; the last exceeds t1
# With "lossy" faults no neighbour may ever look failed. Trouble comes everywhere at the same time
# and for at most TROUBLE seconds; then nothing is lost for QUIET seconds, in which lost messages
# are sent again (within t1) and received (two delays): TROUBLE + t1 + 2 delays < t2.
TROUBLE = 4.0
QUIET = 3.0
TRIALS = 12  # to find an event that matches


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """What a scenario must be like; the seed decides the rest."""

    strategy: str = "advertisements+covering"
    semantics: str = "sql"
    faulty: str = "lossy"
    topology: str = "random"
    brokers: int | None = None
    clients: int | None = None
    actions: int | None = None


def generate(seed: int, options: ScenarioOptions) -> Scenario:
    """The scenario of a seed."""
    chance = random.Random(f"{seed} {options.faulty} {options.strategy} {options.semantics}")  # noqa: S311 - reproducible, no secret
    topology = shaped(options.topology, options.brokers or chance.randint(3, 7), chance)
    clients = tuple(
        ScenarioClient(
            f"c{number}",
            chance.choice(topology.brokers),
            leaves=round(chance.uniform(0, 5), 3),
            polite=chance.random() < 0.5,
        )
        for number in range(1, 1 + (options.clients or chance.randint(4, 8)))
    )
    length = chance.choice(STORMS)
    writer = _ActionWriter(chance, options, clients, length)
    faults = _faults(chance, options.faulty, topology, length)
    return Scenario(
        seed=seed,
        strategy=options.strategy,
        semantics=options.semantics,
        faulty=options.faulty,
        brokers=topology.brokers,
        edges=topology.edges,
        clients=clients,
        actions=tuple(writer.actions()),
        faults=tuple(sorted(faults, key=lambda fault: fault.time)),
        delay=chance.choice(DELAYS),
        merging=chance.choice(("size 2", "size 3", "every 1s", "every 5s, size 6", "outputs 1.2")),
        threshold=chance.choice((0.02, 0.1, 0.5)),
        **_small_limits(chance, options.faulty),
    )


# --- actions of clients


@dataclass(slots=True)
class _ClientMemory:
    """The filters of a client, as far as they are known when a scenario is written."""

    subscriptions: dict[str, str] = field(default_factory=dict)
    advertisements: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)  # ids that were withdrawn
    number: int = 0


class _ActionWriter:
    """Writes the actions of clients, most of which make sense."""

    def __init__(
        self,
        chance: random.Random,
        options: ScenarioOptions,
        clients: tuple[ScenarioClient, ...],
        length: float,
    ) -> None:
        self.chance = chance
        self.length = length
        self.options = options
        self.memories = {client.name: _ClientMemory() for client in clients}
        self.names = list(self.memories)
        self.pool = random_pool(chance)

    def actions(self) -> Iterator[Action]:
        chance = self.chance
        for name in self.names:
            time = round(chance.uniform(0, 2), 3)
            yield Action(time, name, "connect")
            if chance.random() < 0.7:
                yield from self._advertise(time, name)
            if chance.random() < 0.6:
                yield from self._subscribe(time, name)
        count = self.options.actions or chance.randint(16, 40)
        for time in sorted(chance.uniform(1, self.length) for _ in range(count)):
            yield from self._some(round(time, 3), chance.choice(self.names))
        for name in self.names:
            for _ in range(chance.randint(1, 2)):
                yield self._publish(round(chance.uniform(0, 3), 3), name, phase=CALM)

    def _some(self, time: float, name: str) -> Iterator[Action]:
        draw = self.chance.random()
        memory = self.memories[name]
        if draw < 0.25:
            yield self._publish(time, self._publisher())
        elif draw < 0.50:
            yield from self._subscribe(time, name)
        elif draw < 0.72 and memory.subscriptions:
            yield from self._unsubscribe(time, name)
        elif draw < 0.84:
            yield from self._advertise(time, name)
        elif draw < 0.91 and memory.advertisements:
            gone = self.chance.choice(list(memory.advertisements))
            del memory.advertisements[gone]
            yield Action(time, name, "unadvertise", gone)
            yield self._publish(round(time + self.chance.uniform(0, 1), 3), name)
        elif draw < 0.93:
            memory.subscriptions.clear()
            memory.advertisements.clear()
            yield Action(time, name, "disconnect")
        elif draw < 0.96:
            yield Action(time, name, "connect")
        else:
            yield self._mistake(time, name)

    def _subscribe(self, time: float, name: str) -> Iterator[Action]:
        memory = self.memories[name]
        if memory.subscriptions and self.chance.random() < 0.1:
            number = self.chance.choice(list(memory.subscriptions))  # another filter in its place
        else:
            number = self._number(memory, "s")
        memory.subscriptions[number] = self.chance.choice(self.pool)
        yield Action(time, name, "subscribe", number, memory.subscriptions[number])
        if self.chance.random() < 0.5:
            yield self._publish(
                0.0, self._publisher(), (memory.subscriptions[number],), after=f"{name}/{number}"
            )

    def _unsubscribe(self, time: float, name: str) -> Iterator[Action]:
        """End a subscription, and publish events for it and for others that it may have covered."""
        memory = self.memories[name]
        gone = self.chance.choice(list(memory.subscriptions))
        wanted = memory.subscriptions.pop(gone)
        memory.gone.append(gone)
        yield Action(time, name, "unsubscribe", gone)
        others = [text for one in self.memories.values() for text in one.subscriptions.values()]
        for _ in range(self.chance.choice((0, 0, 1, 4))):
            soon = round(time + self.chance.uniform(0, 1), 3)
            other = self.chance.choice(others) if others else wanted
            yield self._publish(soon, self._publisher(), (wanted, other))

    def _advertise(self, time: float, name: str) -> Iterator[Action]:
        memory = self.memories[name]
        number = self._number(memory, "a")
        source = BROAD if self.chance.random() < 0.6 else self.pool
        memory.advertisements[number] = self.chance.choice(source)
        yield Action(time, name, "advertise", number, memory.advertisements[number])
        if self.chance.random() < 0.6:
            yield self._publish(
                0.0, name, (memory.advertisements[number],), after=f"{name}/{number}"
            )

    def _publish(
        self, time: float, name: str, wanted: tuple[str, ...] = (), *, phase: str = STORM,
        after: str = "",
    ) -> Action:  # fmt: skip
        memory = self.memories[name]
        filters = list(wanted)
        if memory.advertisements:
            filters.append(self.chance.choice(list(memory.advertisements.values())))
        filters = filters if self.chance.random() < 0.9 else []
        event = matching_event(self.chance, self.options.semantics, filters, TRIALS)
        number = self._number(memory, "p")
        return Action(time, name, "publish", number, event=event, phase=phase, after=after)

    def _publisher(self) -> str:
        """A client that has advertised something, most of the time."""
        able = [name for name in self.names if self.memories[name].advertisements]
        return self.chance.choice(able if able and self.chance.random() < 0.9 else self.names)

    def _mistake(self, time: float, name: str) -> Action:
        memory = self.memories[name]
        choice = self.chance.randrange(5)
        if choice == 0 and memory.gone:
            return Action(time, name, "unsubscribe", self.chance.choice(memory.gone))
        if choice == 1:
            verb = self.chance.choice(("unsubscribe", "unadvertise"))
            return Action(time, name, verb, f"{'sa'[verb == 'unadvertise']}999")
        if choice == 2:
            event = dict(self.chance.choice(WRONG_EVENTS))
            return Action(time, name, "publish", self._number(memory, "p"), event=event)
        wrong = self.chance.choice(WRONG if choice == 3 else NEVER)
        verb, letter = self.chance.choice((("subscribe", "s"), ("advertise", "a")))
        return Action(time, name, verb, self._number(memory, letter), wrong)

    @staticmethod
    def _number(memory: _ClientMemory, letter: str) -> str:
        memory.number += 1
        return f"{letter}{memory.number}"


# --- faults


def _small_limits(chance: random.Random, faulty: str) -> dict[str, int]:
    """Small limits, now and then, where reaching them breaks no promise."""
    found = {}
    if faulty != "none" and chance.random() < 0.3:
        found["early"] = chance.randint(1, 4)
    if faulty == "crashing" and chance.random() < 0.3:
        found["waiting"] = chance.randint(30, 50)
    return found


def _faults(
    chance: random.Random, faulty: str, topology: Topology, length: float
) -> Iterator[Fault]:
    if faulty == "none" or len(topology.brokers) == 1:
        return
    begin = chance.uniform(0, 4)
    while begin < length:
        if faulty == "lossy":
            duration = chance.uniform(0.5, TROUBLE)
            yield from _short_faults(chance, topology, begin, duration)
            begin += duration + QUIET + chance.uniform(0, 6)
        else:
            duration = chance.uniform(0.5, 14)
            yield from _short_faults(chance, topology, begin, duration)
            yield from _failures(chance, topology, begin, duration)
            begin += duration + chance.uniform(0, 18)


def _short_faults(
    chance: random.Random, topology: Topology, begin: float, duration: float
) -> Iterator[Fault]:
    """Faults that a link survives if they are short."""
    some = tuple(e for e in topology.edges if chance.random() < 0.6)
    if some and chance.random() < 0.8:
        yield Fault(
            round(begin, 3), "weather", round(duration, 3), some,
            loss=chance.choice((0.0, 0.1, 0.3, 0.6)),
            duplication=chance.choice((0.0, 0.1, 0.5)),
            slowness=chance.choice((0.0, 0.1, 0.4)),
        )  # fmt: skip
    if chance.random() < 0.4:
        time, length = _within(chance, begin, duration)
        cut = tuple(chance.sample(topology.edges, chance.randint(1, min(2, len(topology.edges)))))
        yield Fault(time, "partition", length, cut)
    if chance.random() < 0.4:
        time, length = _within(chance, begin, duration)
        yield Fault(time, "pause", length, broker=chance.choice(topology.brokers))


def _failures(
    chance: random.Random, topology: Topology, begin: float, duration: float
) -> Iterator[Fault]:
    if chance.random() < 0.6:
        time, length = _within(chance, begin, duration)
        broker = chance.choice(topology.brokers)
        told = tuple(n for n in topology.neighbours[broker] if chance.random() < 0.4)
        yield Fault(time, "crash", length, broker=broker, told=told)
    if chance.random() < 0.3:
        time, length = _within(chance, begin, duration)
        one = chance.choice(topology.edges)
        told = one if chance.random() < 0.5 else (chance.choice(one),)
        yield Fault(time, "link", length, (one,), told=told)


def _within(chance: random.Random, begin: float, duration: float) -> tuple[float, float]:
    start = chance.uniform(0, duration * 0.9)
    length = chance.uniform(0.05, duration - start)
    return round(begin + start, 3), round(length, 3)
