"""Hundreds of simulations of the router, and of routers that were broken on purpose.

TAMIS_SEEDS asks for more simulations than those of every run.
"""

import itertools
import os
import subprocess
import sys

import pytest

from tamis.routing.announcements import AnnouncementState, Announcer, Update
from tamis.routing.forwarding import Forwarding
from tamis.routing.kinds import FilterKind
from tamis.routing.messages import Subscribe
from tamis.routing.neighbours import Neighbours
from tamis.routing.simulation.campaign import CampaignSummary, examine, run, scenarios
from tamis.routing.simulation.scenario_generator import ScenarioOptions, generate
from tamis.routing.simulation.simulation import play

EVERYTHING = ScenarioOptions(strategy="all", faulty="all", semantics="all")
PART = 84  # seeds, which have each strategy, kind of faults and semantics once
PARTS = int(os.environ.get("TAMIS_SEEDS", "336")) // PART


@pytest.mark.long
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


class Careless(Neighbours):
    """Every fifth subscription is not passed on, though it is acknowledged."""

    passed = 0

    def send(self, neighbour, message):
        if isinstance(message, Subscribe):
            self.passed += 1
            if self.passed % 5 == 0:
                neighbour.announcers[FilterKind.SUBSCRIPTION].acknowledge(message.id)
                return
        super().send(neighbour, message)


class Hasty(Announcer):
    """Withdraws a filter before its replacement is acknowledged."""

    def take_updates(self):
        found = super().take_updates()
        for root in [r for r in self._stale if self._announced[r].state is AnnouncementState.LIVE]:
            self._announced[root].state = AnnouncementState.GOING
            del self._stale[root]
            found.insert(0, Update(self._announced[root].id, None))
        return found


class Eager(Announcer):
    """Says that something is established before it is."""

    def wait_until_live(self, texts, request):
        pass


class Absent(Announcer):
    """Does not announce again to a neighbour that has returned."""

    def forget(self):
        super().forget()
        self._coming.clear()
        self._untold.clear()


class Faithful(Neighbours):
    """Keeps the filters of a neighbour that has failed."""

    def _lose(self, neighbour):
        for announcer in neighbour.announcers.values():
            announcer.forget()


class Clinging(Forwarding):
    """Leaves subscriptions where nothing is advertised any more."""

    def _withdraw(self, kind, hop, text):
        for neighbour in self._neighbours.others(hop):
            neighbour.announcers[kind].drop(text)


# With the first seed to try: earlier ones do not show it.
BROKEN = [
    (Clinging, "router.Forwarding", "none", {"needless"}, 0),
    (Careless, "router.Neighbours", "none", {"lost", "disagreement"}, 0),
    (Hasty, "forwarding.Announcer", "lossy", {"lost"}, 29),
    (Eager, "forwarding.Announcer", "none", {"lost"}, 0),
    (Absent, "forwarding.Announcer", "crashing", {"unsettled", "lost"}, 0),
    (Faithful, "router.Neighbours", "crashing", {"disagreement", "left over", "error"}, 0),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "part", "faulty", "kinds", "first"),
    BROKEN,
    ids=[broken.__name__ for broken, *_ in BROKEN],
)
def test_a_router_with_a_broken_part_is_found_out_and_the_failure_made_small(
    broken, part, faulty, kinds, first, monkeypatch
):
    monkeypatch.setattr(f"tamis.routing.{part}", broken)
    for seed in itertools.count(first):
        assert seed < 200, "nothing was noticed"
        scenario = generate(seed, ScenarioOptions(faulty=faulty))
        outcome = play(scenario)
        if outcome.violations:
            break
    violation = outcome.violations[0]
    assert violation.kind in kinds
    failure = examine(scenario, violation.kind)
    assert failure.violation.kind == violation.kind
    assert len(failure.scenario.actions) < len(scenario.actions) / 2
    monkeypatch.undo()
    assert play(failure.scenario).violations == []


PROGRAM = """
import hashlib
from tamis.routing.simulation.campaign import scenarios
from tamis.routing.simulation.scenario_generator import ScenarioOptions
from tamis.routing.simulation.simulation import play
from tamis.routing.simulation.trace import Trace

trace = Trace(verbose=True)
for scenario in scenarios(range(21), ScenarioOptions(strategy="all", faulty="all")):
    play(scenario, trace=trace)
print(len(trace.lines), hashlib.sha256("".join(trace.lines).encode()).hexdigest())
"""


@pytest.mark.long
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
    summary = CampaignSummary()
    wishes = ScenarioOptions(faulty="lossy", strategy="simple")
    assert run(scenarios(range(3), wishes), summary=summary) is summary
    outcomes = [play(generate(seed, wishes)) for seed in range(3)]
    assert summary.counts == sum((one.counts for one in outcomes[1:]), outcomes[0].counts)
    assert summary.longest_queue == max(one.longest_queue for one in outcomes) > 0
    assert summary.to_dict()["failure"] is None
