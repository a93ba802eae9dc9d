"""One trial: a network of brokers drawn from a seed, its clients and its faults, and what is wrong.

All chance comes from the seed, so that it repeats the trial exactly.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any, NamedTuple

from tamis.broker.records import DeliveryOptions
from tamis.broker.simulation import onlooker
from tamis.broker.simulation.clients import (
    AGAIN,
    EVERYTHING,
    SCHEMA,
    SimulatedPublisher,
    SimulatedSubscriber,
    event_of,
    random_filter,
)
from tamis.broker.simulation.faults import Faults
from tamis.broker.simulation.onlooker import KINDS, matches
from tamis.broker.simulation.promises import Kinds, PromisedSubscription, Promises
from tamis.broker.simulation.simulated_broker import Gone, Nature, SimulatedBroker, account_of
from tamis.broker.simulation.virtual_time import VirtualTime
from tamis.broker.simulation.wires import Wires
from tamis.errors import TamisError
from tamis.routing.strategies import STRATEGIES

LASTS = 5.0  # seconds in which things go wrong
SETTLING = 40.0  # seconds until everything must have arrived
LAST_CALL = 40.0  # seconds that a call may still take which the slowest disk has begun
OPTIONS = DeliveryOptions(window=4, ack_timeout=2.0, most_attempts=1000)


class TrialOutcome(NamedTuple):
    """What became of a trial."""

    seed: int
    wrong: list[str]
    faults: Counter[str]
    acknowledged: int
    delivered: int
    moves: int  # of subscriptions to other brokers
    trace: list[str]


class Trial:
    """A network, its clients and its faults."""

    def __init__(self, seed: int, *, is_traced: bool = False) -> None:
        self.seed = seed
        self.random = random = Random(seed)  # noqa: S311 - to be repeated
        self.trace: list[str] = []
        self._is_traced = is_traced
        self.time = VirtualTime()
        self.wires = Wires(random, pace=random.choice((0.005, 0.02, 0.1)))
        self.observer = self.time.process("clients")
        names = [f"b{n}" for n in range(random.choice((1, 2, 2, 3, 3, 4)))]
        self.tree: dict[str, list[str]] = {name: [] for name in names}
        called: dict[str, list[str]] = {name: [] for name in names}
        for n, name in enumerate(names[1:], 1):
            parent = names[random.randrange(n)]
            self.tree[name].append(parent)
            self.tree[parent].append(name)
            caller, callee = random.sample((name, parent), 2)
            called[caller].append(callee)
            if random.random() < 0.2:
                called[callee].append(caller)
        is_alone = len(names) == 1 and random.random() < 0.5
        ports = {} if is_alone else {name: n for n, name in enumerate(names, 1)}
        self.natures, self.published = self._natures(names)
        self.brokers = {
            name: SimulatedBroker(
                self.time, self.wires, name, ports, called[name], self.natures[name]
            )
            for name in names
        }
        self.topics = ["t0", "t1"][: random.choice((1, 1, 2))]
        self.promises = Promises(self.brokers, self.tree)
        self.faults = Faults(self.brokers, self.tree, self.wires, self.observer, self.note)
        self._publishers: list[SimulatedPublisher] = []
        self._subscribers: list[SimulatedSubscriber] = []
        self._clients: list[asyncio.Task[None]] = []
        self._is_ending = False
        # Drawn apart, so that a trial without moves is what it was before there were any.
        moves = Random(f"moves of {seed}")  # noqa: S311 - to be repeated
        self._moves = moves if len(names) > 1 and moves.random() < 0.3 else None

    def _natures(self, names: list[str]) -> tuple[dict[str, Nature], dict[str, Kinds]]:
        """What brokers are like, and the kinds of events that their clients may publish."""
        random, natures, published = self.random, {}, {}
        pace = random.choice((0.002, 0.01, 0.05))
        is_usual, is_free = random.random() < 0.6, random.random() < 0.6
        for name in names:
            strategy = "advertisements+covering" if is_usual else random.choice(STRATEGIES)
            granted = EVERYTHING if is_free else random_filter(random)
            if not granted.kinds:
                granted = EVERYTHING
            natures[name] = Nature(strategy, granted.text, pace)
            published[name] = granted.kinds
        return natures, published

    def note(self, text: str) -> None:
        """Write something down, if somebody wants to read it."""
        if self._is_traced:
            self.trace.append(f"{self.time.now:9.5f} {text}")

    # --- the whole

    def run(self) -> TrialOutcome:
        """Play the trial."""
        try:
            self._play()
        finally:
            for one in self.brokers.values():
                one.crash()
            self.observer.end()
        wrong = self.promises.wrong + [p for b in self.brokers.values() for p in b.problems]
        return TrialOutcome(
            self.seed, wrong, self.faults.counts, self.promises.acknowledged,
            self.promises.delivered, self.promises.moves, self.trace,
        )  # fmt: skip

    def _play(self) -> None:
        for one in self.brokers.values():
            one.start()
        if not self._until(self._are_linked, 30.0, "brokers do not find each other"):
            return
        first = self.random.choice(list(self.brokers.values()))
        for topic in self.topics:
            self._client(self._create(first, topic))
        if not self._until(self._share_topics, 30.0, "topics are not shared"):
            return
        self._make_clients()
        count = self.random.randint(2, 9)
        for at in sorted(LASTS * self.random.random() for _ in range(count)):
            self.observer.call_later(at, self.faults.happen)
        self.time.run(lambda: False, self.time.now + LASTS)
        self.note("all faults are over")
        self.faults.end()
        self._is_ending = True
        problem = "the network does not recover"
        if not self._until(self._is_restored, SETTLING + LAST_CALL, problem):
            return
        self._clients = [self._task(self._end(one)) for one in self._subscribers]
        for publisher in self._publishers:
            self._client(publisher.publish_some(self.random, 1))
        self._until(self._is_settled, SETTLING, "it does not settle")
        self._check()

    def _until(self, condition: Callable[[], bool], seconds: float, problem: str) -> bool:
        """Go on until a condition holds; it is looked at from time to time."""
        end = self.time.now + seconds
        while not condition():
            self.faults.keep_alive()
            if self.time.now >= end:
                self.promises.wrong += [problem, *self.promises.missing()]
                return False
            self.time.run(lambda: False, self.time.now + 0.1)
        return True

    def _task(self, client: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return self.observer.create_task(client)

    def _client(self, client: Coroutine[Any, Any, None]) -> None:
        self._clients.append(self._task(client))

    # --- before and after

    async def _create(self, at: SimulatedBroker, topic: str, schema: str = SCHEMA) -> None:
        await at.ask(lambda broker: broker.create_topic(account_of(broker), topic, schema))

    async def _widen(self, at: SimulatedBroker, topic: str) -> None:
        """Give a topic one more attribute, sooner or later."""
        await asyncio.sleep(LASTS * self.random.random())
        self.note(f"{topic} gets another attribute at {at.name}")
        while True:
            try:
                await self._create(at, topic, f"{SCHEMA}, more int")
            except (Gone, TamisError):
                await asyncio.sleep(AGAIN)
            else:
                return

    def _are_linked(self) -> bool:
        return all(
            one.broker is not None
            and all(
                one.broker.network is not None and one.broker.network.linked(peer)
                for peer in self.tree[name]
            )
            for name, one in self.brokers.items()
        )

    def _share_topics(self) -> bool:
        return all(
            onlooker.has_topic(one, topic)
            and all(onlooker.departures(one, topic, peer) for peer in self.tree[name])
            for name, one in self.brokers.items()
            for topic in self.topics
        )

    def _is_restored(self) -> bool:
        done = all(task.done() for task in self._clients)
        return done and self._are_linked() and self._share_topics()

    def _is_settled(self) -> bool:
        # A broker that was told to stop while it was stalled does so only now.
        if not self._are_linked() or not all(task.done() for task in self._clients):
            return False
        if self._wrong_tables():
            return False
        if any(peers for peers in self.tree.values()) and not all(
            onlooker.is_calm(one, topic, self.tree[name])
            for name, one in self.brokers.items()
            for topic in self.topics
        ):
            return False
        if self.promises.missing():
            for one in self._subscribers:
                if not one.known.is_gone:
                    self._client(self._drain(one))
            return False
        return True

    # --- clients

    def _make_clients(self) -> None:
        random = self.random
        for name, broker in self.brokers.items():
            for topic in self.topics:
                if random.random() < 0.7 or (len(self.brokers) == 1):
                    has_ids = random.random() < 0.7
                    one = SimulatedPublisher(
                        f"p{len(self._publishers)}", topic, broker, has_ids,
                        sorted(self.published[name]), self.promises, self.note,
                    )  # fmt: skip
                    self._publishers.append(one)
                    self._client(self._publish(one))
            for _ in range(random.choice((0, 1, 1, 2))):
                self._subscribe(name)
        if random.random() < 0.15:
            chosen = random.choice(list(self.brokers.values())), random.choice(self.topics)
            self._client(self._widen(*chosen))
        if not self._subscribers:
            self._subscribe(random.choice(list(self.brokers)))

    def _subscribe(self, name: str) -> None:
        number = len(self._subscribers)
        known = PromisedSubscription(self.random.choice(self.topics), f"s{number}", name)
        one = SimulatedSubscriber(
            known, self.brokers[name], OPTIONS, self.promises, self.random, self.note
        )
        self._subscribers.append(one)
        self._client(self._listen(one))

    async def _publish(self, one: SimulatedPublisher) -> None:
        for _ in range(self.random.randint(1, 4)):
            await asyncio.sleep(self.random.uniform(0.0, 2.0))
            await one.publish_some(self.random, 3)

    async def _listen(self, one: SimulatedSubscriber) -> None:
        random = self.random
        if random.random() < 0.3:
            await asyncio.sleep(random.uniform(0.0, 3.0))
        await one.put(random_filter(random))
        while not self._is_ending:
            await asyncio.sleep(random.uniform(0.05, 1.0))
            if self._moves is not None and self._moves.random() < 0.15:
                others = [other for other in self.brokers.values() if other is not one.broker]
                await one.move(self._moves.choice(others))
                continue
            chance = random.random()
            if chance < 0.45:
                await one.take(random.randint(1, 5))
            elif chance < 0.7:
                await one.ack()
            elif chance < 0.75:
                await one.nack()
            elif chance < 0.85:
                await one.detach()
            elif chance < 0.95:
                await one.put(random_filter(random))
            elif chance < 0.97:
                await one.unsubscribe()
                return

    async def _end(self, one: SimulatedSubscriber) -> None:
        if not one.known.is_gone:
            await one.detach()

    async def _drain(self, one: SimulatedSubscriber) -> None:
        one.clumsiness = 0.0
        try:
            while await one.take(100):
                await one.ack_all()
        except (Gone, TamisError) as error:
            self.note(f"{one.name} cannot be drained: {error!r}")

    # --- what must be true at the end

    def _check(self) -> None:
        wrong = self.promises.wrong
        for task in self._clients:
            if task.done() and task.exception() is not None:
                wrong.append(f"a client failed: {task.exception()!r}")
        for name, one in self.brokers.items():
            for topic in self.topics:
                self._check_log(name, one, topic)
        wrong += self._wrong_tables()

    def _check_log(self, name: str, one: SimulatedBroker, topic: str) -> None:
        wrong, events = self.promises.wrong, self.promises.events
        latest: dict[str, int] = {}
        seen = set()
        for body in onlooker.bodies(one, topic):
            event = event_of(topic, body)
            if event not in events:
                wrong.append(f"{name} stores {event}, which nobody has published")
            if event in seen:
                wrong.append(f"{name} stores {event} twice")
            elif event.number < latest.get(event.publisher, -1) and events[event].broker == name:
                wrong.append(f"{name} stores {event} after number {latest[event.publisher]}")
            seen.add(event)
            latest[event.publisher] = max(event.number, latest.get(event.publisher, -1))
        for event, promised in events.items():
            is_here = promised.broker == name and event.topic == topic
            if promised.is_acknowledged and is_here and event not in seen:
                wrong.append(f"{name} has lost {event}")

    def _wrong_tables(self) -> list[str]:
        return [
            problem
            for name, one in self.brokers.items()
            for topic in self.topics
            for peer in self.tree[name]
            for problem in self._wrong_table(name, one, topic, peer)
        ]

    def _wrong_table(self, name: str, one: SimulatedBroker, topic: str, peer: str) -> Iterator[str]:
        """A peer must be sent what somebody behind it wants, and nothing else if none is merged."""
        strategies = {nature.strategy for nature in self.natures.values()}
        if "flooding" in strategies:
            return
        held = onlooker.held(one, topic, peer) or {}
        beyond = onlooker.behind(self.tree, name, peer)
        wanted = {
            kind
            for known in self.promises.subscriptions
            if known.topic == topic and known.broker in beyond and not known.is_gone
            for kind in known.filters[-1].filter.kinds
        }
        sent = {n for n in range(KINDS) if any(matches(text, n) for text in held.values())}
        here = {n for b in self.tree if b not in beyond for n in self.published[b]}
        is_merged = any("perfect" in strategy for strategy in strategies)
        if not wanted & here <= sent or not (sent <= wanted or is_merged):
            yield f"{name} sends kinds {sent} of {topic} to {peer}, which wants {wanted}"
        stored = onlooker.stored_filters(one, topic, peer)
        if stored != held:
            yield f"{name} has stored {stored} for {peer}, and uses {held}"


def play(seed: int, *, is_traced: bool = False) -> TrialOutcome:
    """What becomes of a trial."""
    return Trial(seed, is_traced=is_traced).run()
