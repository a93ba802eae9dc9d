"""Thousands of simulations of the router, and of routers that were broken on purpose."""

import itertools
import os
import subprocess
import sys

import pytest

from tamis.routing import router as module
from tamis.routing.announcements import Announcer, State, Step
from tamis.routing.messages import Subscribe
from tamis.routing.router import Router
from tamis.routing.simulation.campaign import Summary, examine, run, scenarios
from tamis.routing.simulation.scenario_generator import Wishes, generate
from tamis.routing.simulation.simulation import play

EVERYTHING = Wishes(strategy="all", faulty="all", semantics="all")
PART, PARTS = 84, 25  # 84 seeds have each strategy, kind of faults and semantics once


@pytest.mark.parametrize("part", range(PARTS))
def test_no_promise_is_broken(part):
    summary = run(scenarios(range(part * PART, (part + 1) * PART), EVERYTHING))
    assert summary.failure is None, "\n".join(summary.failure.trace)
    assert summary.seeds == PART
    counts = summary.to_dict()
    assert min(counts[name] for name in ("publications", "deliveries", "excused")) > 0
    assert counts["excused"] < counts["deliveries"] / 10
    assert set(counts["faults"]) >= {"weather", "partition", "pause", "crash", "link"}


# --- routers that are broken


class Careless(Router):
    """Every fifth subscription is not passed on, though it is acknowledged."""

    passed = 0

    def _tell(self, hop, message):
        if isinstance(message, Subscribe) and hop in self._neighbours:
            self.passed += 1
            if self.passed % 5 == 0:
                self._neighbours[hop].subscriptions.acknowledged(message.id)
                return
        super()._tell(hop, message)


class Hasty(Announcer):
    """Withdraws before what takes the place is acknowledged."""

    def steps(self):
        found = super().steps()
        for root in [r for r in self._stale if self._announced[r].state is State.LIVE]:
            self._announced[root].state = State.GOING
            del self._stale[root]
            found.insert(0, Step(self._announced[root].id, None))
        return found


class Eager(Announcer):
    """Says that something is established before it is."""

    def when_live(self, filters, request):
        pass


class Absent(Announcer):
    """Tells a neighbour that has returned nothing of what it knew."""

    def forget(self):
        super().forget()
        self._coming.clear()


class Faithful(Router):
    """Keeps what a failed neighbour has asked for."""

    def _lose(self, neighbour):
        for announcer in neighbour.announcers:
            announcer.forget()


class Clinging(Router):
    """Leaves subscriptions where nothing is advertised any more."""

    def _dropped(self, hop, text, *, is_subscription):
        for neighbour in self._others(hop):
            (neighbour.subscriptions if is_subscription else neighbour.advertisements).drop(text)


BROKEN = [
    (Clinging, "none", {"needless"}),
    (Careless, "none", {"lost", "disagreement"}),
    (Hasty, "lossy", {"lost"}),
    (Eager, "none", {"lost"}),
    (Absent, "crashing", {"unsettled", "lost"}),
    (Faithful, "crashing", {"disagreement", "left over", "error"}),
]


@pytest.mark.parametrize(
    ("broken", "faulty", "kinds"), BROKEN, ids=[broken.__name__ for broken, _, _ in BROKEN]
)
def test_a_broken_router_is_found_out_and_the_failure_made_small(
    broken, faulty, kinds, monkeypatch
):
    router = broken if issubclass(broken, Router) else Router
    if issubclass(broken, Announcer):
        monkeypatch.setattr(module, "Announcer", broken)
    for seed in itertools.count():
        assert seed < 200, "nothing was noticed"
        scenario = generate(seed, Wishes(faulty=faulty))
        outcome = play(scenario, router)
        if outcome.violations:
            break
    violation = outcome.violations[0]
    assert violation.kind in kinds
    failure = examine(scenario, violation.kind, router)
    assert failure.violation.kind == violation.kind
    assert len(failure.scenario.actions) < len(scenario.actions) / 2
    monkeypatch.undo()
    assert play(failure.scenario).violations == []


PROGRAM = """
import hashlib
from tamis.routing.simulation.campaign import scenarios
from tamis.routing.simulation.scenario_generator import Wishes
from tamis.routing.simulation.simulation import play
from tamis.routing.simulation.trace import Trace

trace = Trace(wordy=True)
for scenario in scenarios(range(21), Wishes(strategy="all", faulty="all")):
    play(scenario, trace=trace)
print(len(trace.lines), hashlib.sha256("".join(trace.lines).encode()).hexdigest())
"""


def test_a_seed_goes_the_same_way_in_every_process():
    answers = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashes in ("1", "2")
    }
    assert len(answers) == 1
    assert int(answers.pop().split()[0]) > 1000


def test_a_summary_adds_up():
    summary = Summary()
    wishes = Wishes(faulty="lossy", strategy="simple")
    assert run(scenarios(range(3), wishes), summary=summary) is summary
    outcomes = [play(generate(seed, wishes)) for seed in range(3)]
    assert summary.counts == sum((one.counts for one in outcomes[1:]), outcomes[0].counts)
    assert summary.longest == max(one.longest for one in outcomes) > 0
    assert summary.to_dict()["failure"] is None
