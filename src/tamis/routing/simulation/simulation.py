"""A simulation: the start, storm, calm and farewell of a scenario, watched by the oracle."""

from collections.abc import Callable
from typing import Any

from tamis.routing.limits import RouterLimits
from tamis.routing.links import Timing
from tamis.routing.router import Router
from tamis.routing.simulation.filters import DEFAULTS, schema
from tamis.routing.simulation.network import Network, RouterFactory
from tamis.routing.simulation.oracle import Oracle
from tamis.routing.simulation.outcome import Outcome
from tamis.routing.simulation.scenario import CALM, STORM, Action, Scenario
from tamis.routing.simulation.trace import Trace
from tamis.routing.strategies import Merging


def play(
    scenario: Scenario, router: Callable[..., Any] | None = None, trace: Trace | None = None
) -> Outcome:
    """Run a scenario to its end, or to the first violation.

    `router` is used in place of `Router`; lines are added to `trace`.
    """
    return Simulation(scenario, router, trace).run()


class Simulation:
    """One run of one scenario; `network` can be examined when it is over."""

    def __init__(
        self,
        scenario: Scenario,
        router: Callable[..., Any] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.scenario = scenario
        self.outcome = Outcome()
        topology = scenario.topology()
        self._after: dict[str, list[Action]] = {}
        self.oracle = Oracle(scenario, topology, self.outcome, self._established)
        self._trace = trace
        maker = _maker(scenario, topology.neighbours, router)
        self.network = Network(scenario, topology, maker, self.oracle, trace)

    def run(self, *, farewell: bool = True) -> Outcome:
        """Play all parts, or all except the farewell."""
        parts = (self._start, self._storm, self._calm, self._farewell)
        for part in parts if farewell else parts[:-1]:
            part()
            if self.outcome.violations:
                break
        self.outcome.counts.update(self.network.counts)
        if self._trace is not None:
            for violation in self.outcome.violations:
                self._trace.note(violation.time, f"VIOLATION, {violation.kind}: "
                                 f"{violation.explanation}")  # fmt: skip
        return self.outcome

    # --- the parts

    def _start(self) -> None:
        for broker in self.scenario.brokers:
            self.network.start(broker)
        self._settle("the start")

    def _storm(self) -> None:
        self._note("the storm begins")
        begin = self.network.now
        self._plan(STORM)
        for fault in self.scenario.faults:
            self.outcome.faults[fault.kind] += 1
            self.network.at(begin + fault.time, self.network.strike, fault)
        ends = [fault.time + fault.duration for fault in self.scenario.faults]
        ends += [action.time for action in self.scenario.actions if action.phase == STORM]
        self._until(begin + max(ends, default=0.0))
        self._settle("the storm")

    def _calm(self) -> None:
        self._note("all is calm")
        begin = self.network.now
        self._plan(CALM)
        times = [action.time for action in self.scenario.actions if action.phase == CALM]
        self._until(begin + max(times, default=0.0))
        self._settle("the calm")

    def _farewell(self) -> None:
        self._note("all clients leave")
        begin = self.network.now
        for client in self.scenario.clients:
            self.network.at(begin + client.leaves, self._leave, client.name)
        self._until(begin + max((client.leaves for client in self.scenario.clients), default=0.0))
        self._settle("all clients had left")
        if not self.outcome.violations:
            self.oracle.left(self.network.routers)

    # --- clients

    def _plan(self, phase: str) -> None:
        for action in self.scenario.actions:
            if action.phase == phase and action.after:
                self._after.setdefault(action.after, []).append(action)
            elif action.phase == phase:
                self.network.at(self.network.now + action.time, self._act, action)

    def _established(self, request: str) -> None:
        """Plan the actions that wait for the Ack of a request."""
        for action in self._after.pop(request, ()):
            self.network.at(self.network.now + action.time, self._act, action)

    def _act(self, action: Action) -> None:
        client = self.oracle.clients[action.client]
        message = client.act(action)
        if message is None:
            return
        self.outcome.counts["actions"] += 1
        if action.verb == "publish":
            self.outcome.counts["publications"] += 1
        self.network.hand(client.broker, message)

    def _leave(self, name: str) -> None:
        client = self.oracle.clients[name]
        for message in client.farewell():
            self.network.hand(client.broker, message)

    # --- time

    def _until(self, end: float) -> None:
        """Do everything that happens up to a time."""
        network = self.network
        while not self.outcome.violations:
            coming = network.next_time
            if coming is None or coming > end:
                break
            network.forward()

    def _settle(self, what: str) -> None:
        """Wait until no message is on its way, which must not take forever."""
        network, scenario = self.network, self.scenario
        limit = network.now + 4 * scenario.t2 + 20 * scenario.t1
        while not self.outcome.violations and not network.quiet:
            coming = network.next_time
            if coming is None or coming > limit:
                self._complain_unsettled(what, limit)
                return
            network.forward()
        if not self.outcome.violations:
            self.oracle.settled(self.network.routers)

    def _complain_unsettled(self, what: str, limit: float) -> None:
        unsettled = [name for name, one in self.network.routers.items() if not one.settled]
        down = ["-".join(ends) for ends in self.oracle.trusted_links.missing]
        self.oracle.complain(
            "unsettled",
            f"after {what} the network did not settle before {limit:.1f}: "
            f"brokers {unsettled} still wait for answers, edges {down} are not up",
        )

    def _note(self, text: str) -> None:
        if self._trace is not None:
            self._trace.note(self.network.now, f"--- {text}")


def _maker(
    scenario: Scenario, neighbours: dict[str, list[str]], router: Callable[..., Any] | None
) -> RouterFactory:
    router = Router if router is None else router
    timing = Timing(scenario.t1, scenario.t2)
    merging = Merging(policy=scenario.merging, threshold=scenario.threshold)
    limits = RouterLimits(waiting=scenario.waiting, early=scenario.early)
    defaults = DEFAULTS if scenario.semantics == "default" else None

    def make(name: str, incarnation: int) -> Any:
        return router(
            name, schema(), neighbours=neighbours[name], strategy=scenario.strategy,
            semantics=scenario.semantics, defaults=defaults, incarnation=incarnation,
            timing=timing, limits=limits, merging=merging,
        )  # fmt: skip

    return make
