"""A campaign: many simulations in a row, and a summary of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tamis.routing.simulation.outcome import Violation
from tamis.routing.simulation.scenario import FAULT_LEVELS, Scenario
from tamis.routing.simulation.scenario_generator import ScenarioOptions, generate
from tamis.routing.simulation.shrinker import shrink
from tamis.routing.simulation.simulation import play
from tamis.routing.simulation.trace import Trace
from tamis.routing.strategies import STRATEGIES
from tamis.semantics import NAMES as SEMANTICS

ALL = "all"

RouterClass = Callable[..., Any] | None


@dataclass(frozen=True)
class FailedScenario:
    """A scenario that breaks a promise, as small as it could be made."""

    scenario: Scenario
    violation: Violation
    trace: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.violation.kind,
            "time": self.violation.time,
            "explanation": self.violation.explanation,
            "trace": self.trace,
            "scenario": self.scenario.to_dict(),
        }


@dataclass
class CampaignSummary:
    """What happened in all simulations of a campaign."""

    seeds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    longest_queue: int = 0  # packets that waited for a receipt of one neighbour
    failure: FailedScenario | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "seeds": self.seeds,
            **{name: self.counts[name] for name in COUNTED},
            "longest_queue": self.longest_queue,
            "faults": dict(sorted(self.faults.items())),
            "violations": 0 if self.failure is None else 1,
            "failure": None if self.failure is None else self.failure.to_dict(),
        }


COUNTED = (
    "messages", "requests", "refusals", "publications", "deliveries", "waived", "excused",
)  # fmt: skip


def options_of(seed: int, options: ScenarioOptions) -> ScenarioOptions:
    """What "all" means for a seed: seeds take turns, so that every combination comes up."""
    turn = seed
    if options.strategy == ALL:
        turn, place = divmod(turn, len(STRATEGIES))
        options = replace(options, strategy=STRATEGIES[place])
    if options.faulty == ALL:
        turn, place = divmod(turn, len(FAULT_LEVELS))
        options = replace(options, faulty=FAULT_LEVELS[place])
    if options.semantics == ALL:
        options = replace(options, semantics=SEMANTICS[turn % len(SEMANTICS)])
    return options


def scenarios(seeds: Iterable[int], options: ScenarioOptions) -> Iterator[Scenario]:
    """The scenarios of seeds; options may be "all"."""
    for seed in seeds:
        yield generate(seed, options_of(seed, options))


def run(
    some: Iterable[Scenario], router: RouterClass = None, summary: CampaignSummary | None = None
) -> CampaignSummary:
    """Play scenarios until one fails, and shrink that one. `summary` is kept up to date."""
    summary = CampaignSummary() if summary is None else summary
    for scenario in some:
        outcome = play(scenario, router)
        summary.seeds += 1
        summary.counts.update(outcome.counts)
        summary.faults.update(outcome.faults)
        summary.longest_queue = max(summary.longest_queue, outcome.longest_queue)
        for name in ("dropped", "duplicated", "slowed"):
            summary.faults[f"{name} messages"] += outcome.counts[name]
        if outcome.violations:
            summary.failure = examine(scenario, outcome.violations[0].kind, router)
            break
    return summary


def examine(scenario: Scenario, kind: str, router: RouterClass = None) -> FailedScenario:
    """The smallest scenario that fails in the same way, and how it goes."""
    small = shrink(scenario, lambda one: play(one, router).has(kind))
    return narrate(small, kind, router)


def narrate(scenario: Scenario, kind: str, router: RouterClass = None) -> FailedScenario:
    """How a failing scenario goes."""
    trace = Trace()
    trace.lines += introduction(scenario)
    outcome = play(scenario, router, trace)
    violation = next(one for one in outcome.violations if one.kind == kind)
    return FailedScenario(scenario, violation, trace.lines)


def introduction(scenario: Scenario) -> list[str]:
    """The first lines of a trace: who is where."""
    edges = ", ".join(" - ".join(edge) for edge in scenario.edges) or "none"
    clients = ", ".join(f"{client.name} at {client.broker}" for client in scenario.clients)
    seeded = f"seed {scenario.seed}, strategy {scenario.strategy}"
    return [
        f"{seeded}, semantics {scenario.semantics}, faults {scenario.faulty}",
        f"brokers {', '.join(scenario.brokers)}; edges {edges}",
        f"clients {clients or 'none'}",
    ]
