"""The costs of a strategy: table sizes, messages, publications carried, false positives."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tamis.routing.simulation.filters import BROAD, matching_event, narrow_filter
from tamis.routing.simulation.scenario import CALM, Action, Scenario, ScenarioClient
from tamis.routing.simulation.simulation import Simulation
from tamis.routing.simulation.topology import shaped

BROKERS = 15
SUBSCRIPTIONS = PUBLICATIONS = 300
SPACING = 0.05  # seconds between two actions


@dataclass(slots=True)
class StrategyCosts:
    """One strategy in one scenario, after all clients have subscribed and published."""

    strategy: str
    tables: dict[str, int] = field(default_factory=dict)  # subscriptions held, by broker
    sent: Counter[str] = field(default_factory=Counter)  # by kind of message
    carried: Counter[str] = field(default_factory=Counter)  # publications by link, A>B
    false_positives: int = 0  # publications that a broker got and no hop wanted
    deliveries: int = 0

    @property
    def table_size(self) -> int:
        return sum(self.tables.values())

    def to_dict(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "table_size": self.table_size,
            "tables": self.tables,
            "sent": dict(sorted(self.sent.items())),
            "carried": self.carried.total(),
            "carried_by_link": dict(sorted(self.carried.items())),
            "false_positives": self.false_positives,
            "deliveries": self.deliveries,
        }


def measure_costs(scenario: Scenario) -> StrategyCosts:
    """Play a scenario until the end of its calm, and add up the costs of all brokers."""
    simulation = Simulation(scenario)
    outcome = simulation.run(farewell=False)
    found = StrategyCosts(scenario.strategy, deliveries=outcome.counts["deliveries"])
    for name, router in simulation.network.routers.items():
        found.tables[name] = sum(len(held) for held in router.tables().subscriptions.values())
        for (_, kind), count in router.counters.sent.items():
            found.sent[kind] += count
        for neighbour, count in router.counters.publications.items():
            found.carried[f"{name}>{neighbour}"] += count
        found.false_positives += router.counters.false_positives
    return found


def large_scenario(
    seed: int,
    strategy: str,
    *,
    semantics: str = "sql",
    topology: str = "tree",
    brokers: int = BROKERS,
    subscriptions: int = SUBSCRIPTIONS,
    publications: int = PUBLICATIONS,
) -> Scenario:
    """A larger scenario without faults, the same for each strategy of a seed.

    There is one subscriber per broker; they take turns. Every fifth broker has a publisher.
    """
    chance = random.Random(f"{seed} measures")  # noqa: S311 - reproducible, no secret
    tree = shaped(topology, brokers, chance)
    subscribers = [f"c{broker}" for broker in tree.brokers]
    publishers = [f"p{broker}" for broker in tree.brokers[::5]]
    clients = [ScenarioClient(f"c{broker}", broker) for broker in tree.brokers]
    clients += [ScenarioClient(f"p{broker}", broker) for broker in tree.brokers[::5]]
    actions = [Action(0.0, client.name, "connect") for client in clients]
    advertised = {name: chance.choice(BROAD[1:]) for name in publishers}
    actions += [Action(0.0, name, "advertise", "a1", text) for name, text in advertised.items()]
    for number in range(subscriptions):
        time = 1 + number * SPACING
        name = subscribers[number % len(subscribers)]
        actions.append(Action(time, name, "subscribe", f"s{number}", narrow_filter(chance)))
    for number in range(publications):
        name = publishers[number % len(publishers)]
        event = matching_event(chance, semantics, [advertised[name]])
        time = number * SPACING
        actions.append(Action(time, name, "publish", f"p{number}", event=event, phase=CALM))
    return Scenario(
        seed=seed,
        strategy=strategy,
        semantics=semantics,
        faulty="none",
        brokers=tree.brokers,
        edges=tree.edges,
        clients=tuple(clients),
        actions=tuple(actions),
    )
