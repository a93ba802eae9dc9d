"""The shrinker makes a failing scenario smaller, as long as it fails in the same way.

It leaves out whatever it can: halves, quarters and so on of the actions and faults, then clients,
then brokers; it makes simpler what remains. The passes are repeated until none of them helps.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tamis.routing.simulation.scenario import Action, Fault, Scenario

T = TypeVar("T")
Fails = Callable[[Scenario], bool]

TRIALS = 2_000  # simulations that one shrinking may cost


def shrink(scenario: Scenario, fails: Fails, trials: int = TRIALS) -> Scenario:
    """A smaller scenario for which `fails` is still true; the same one if nothing can go."""
    search = _Search(scenario, fails, trials)
    before = None
    while before != search.best and search.trials:
        before = search.best
        search.drop("actions")
        search.drop("faults")
        search.simplify(_without_clients)
        search.simplify(_without_brokers)
        search.simplify(_with_simpler_faults)
        search.simplify(_with_simpler_surroundings)
        search.simplify(_with_simpler_actions)
    return search.best


class _Search:
    """The smallest scenario so far, and how many more may be tried."""

    def __init__(self, scenario: Scenario, fails: Fails, trials: int) -> None:
        self.best = scenario
        self.trials = trials
        self._fails = fails

    def accepts(self, scenario: Scenario) -> bool:
        """Try a scenario; if it fails too, it is the smallest so far."""
        if not self.trials or scenario == self.best:
            return False
        self.trials -= 1
        if not self._fails(scenario):
            return False
        self.best = scenario
        return True

    def drop(self, name: str) -> None:
        """Leave out pieces of a sequence, large ones first."""
        size = len(getattr(self.best, name))
        while size:
            place = 0
            while place < len(items := getattr(self.best, name)):
                rest = items[:place] + items[place + size :]
                if not self.accepts(replace(self.best, **{name: rest})):
                    place += size
            size //= 2

    def simplify(self, candidates: Callable[[Scenario], Iterator[Scenario]]) -> None:
        """Accept candidates as long as one of them fails."""
        while any(self.accepts(candidate) for candidate in candidates(self.best)):
            pass


def _without_clients(scenario: Scenario) -> Iterator[Scenario]:
    for client in scenario.clients:
        yield replace(
            scenario,
            clients=tuple(one for one in scenario.clients if one != client),
            actions=tuple(one for one in scenario.actions if one.client != client.name),
        )


def _without_brokers(scenario: Scenario) -> Iterator[Scenario]:
    inhabited = {client.broker for client in scenario.clients}
    topology = scenario.topology()
    for broker in scenario.brokers:
        if broker in inhabited or len(scenario.brokers) == 1:
            continue
        smaller = topology.without(broker)
        faults = (_without_broker(fault, broker, smaller.edges) for fault in scenario.faults)
        yield replace(
            scenario,
            brokers=smaller.brokers,
            edges=smaller.edges,
            faults=tuple(fault for fault in faults if fault is not None),
        )


def _without_broker(fault: Fault, gone: str, edges: Sequence[Any]) -> Fault | None:
    """A fault in the network without one of its brokers, or None if nothing is left of it."""
    kept = tuple(edge for edge in fault.edges if edge in edges)
    told = tuple(broker for broker in fault.told if broker != gone)
    if fault.broker == gone or (fault.edges and not kept) or (fault.kind == "link" and not told):
        return None
    return replace(fault, edges=kept, told=told)


def _with_simpler_faults(scenario: Scenario) -> Iterator[Scenario]:
    for place, fault in enumerate(scenario.faults):
        for simpler in _simpler_faults(fault):
            yield replace(scenario, faults=_replaced(scenario.faults, place, simpler))


def _simpler_faults(fault: Fault) -> Iterator[Fault]:
    for simpler in (
        replace(fault, loss=0.0),
        replace(fault, duplication=0.0),
        replace(fault, slowness=0.0),
    ):
        if simpler != fault:
            yield simpler
    if len(fault.edges) > 1:
        for edge in fault.edges:
            yield replace(fault, edges=tuple(one for one in fault.edges if one != edge))
    for broker in fault.told if fault.kind == "crash" or len(fault.told) > 1 else ():
        yield replace(fault, told=tuple(one for one in fault.told if one != broker))


def _with_simpler_surroundings(scenario: Scenario) -> Iterator[Scenario]:
    low, high = scenario.delay
    if low < high:
        yield replace(scenario, delay=(high, high))
        yield replace(scenario, delay=(low, low))
    for place, client in enumerate(scenario.clients):
        if client.polite:
            impolite = replace(client, polite=False)
            yield replace(scenario, clients=_replaced(scenario.clients, place, impolite))
        if client.leaves:
            early = replace(client, leaves=0.0)
            yield replace(scenario, clients=_replaced(scenario.clients, place, early))


def _with_simpler_actions(scenario: Scenario) -> Iterator[Scenario]:
    for place, action in enumerate(scenario.actions):
        for simpler in _simpler_actions(action):
            yield replace(scenario, actions=_replaced(scenario.actions, place, simpler))


def _simpler_actions(action: Action) -> Iterator[Action]:
    if action.filter and action.filter != "TRUE":
        yield replace(action, filter="TRUE")
        left, _, right = action.filter.partition(" AND ")
        for part in (left, right):
            if part and part.count("(") == part.count(")"):
                yield replace(action, filter=part)
    for name in action.event if len(action.event) > 1 else ():
        yield replace(action, event={n: v for n, v in action.event.items() if n != name})


def _replaced(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])
