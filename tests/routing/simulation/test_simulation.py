"""The simulator against a router that floods, sound and broken: it must see the difference."""

import itertools

import pytest

from cases import each
from flooding_router import FloodingRouter
from tamis.routing.messages import Ack, Deliver, Packet, Publish, Refused
from tamis.routing.simulation.campaign import examine, scenarios
from tamis.routing.simulation.scenario import FAULT_LEVELS, load
from tamis.routing.simulation.scenario_generator import ScenarioOptions, generate
from tamis.routing.simulation.simulation import play
from tamis.routing.simulation.trace import Trace

SEEDS = 25


def flooding(faulty="lossy", **options):
    return ScenarioOptions(strategy="flooding", faulty=faulty, **options)


@pytest.mark.long
@each("faulty", FAULT_LEVELS)
def test_a_sound_router_breaks_no_promise(faulty):
    delivered = excused = 0
    for scenario in scenarios(range(SEEDS), flooding(faulty, semantics="all")):
        outcome = play(scenario, FloodingRouter)
        assert outcome.violations == []
        delivered += outcome.counts["deliveries"]
        excused += outcome.counts["excused"]
        assert faulty != "none" or outcome.counts["dropped"] == 0
    assert delivered > 10 * SEEDS
    assert (excused > 0) == (faulty == "crashing")


@each("faulty", FAULT_LEVELS)
def test_a_scenario_always_goes_the_same_way(faulty):
    for seed in range(3):
        traces = []
        for _ in range(2):
            trace = Trace(verbose=True)
            outcome = play(generate(seed, flooding(faulty)), FloodingRouter, trace)
            traces.append((trace.lines, outcome.counts, outcome.faults))
        assert traces[0] == traces[1]
        assert len(traces[0][0]) > 100


class Forgetful(FloodingRouter):
    """Every fifth publication of a neighbour goes nowhere."""

    handled = 0

    def route(self, message, hop, now):
        self.handled += hop in self.links
        drop = hop in self.links and self.handled % 5 == 0
        return [] if drop else super().route(message, hop, now)


class Talkative(FloodingRouter):
    """A client gets the events that others have subscribed to."""

    def route(self, message, hop, now):
        sends = super().route(message, hop, now)
        told = {to for to, _ in sends}
        extra = [
            (client, Deliver(self.name, message.id, message.event, tuple(held)))
            for client, held in self.held.items()
            if held and client not in told and told
        ]
        return sends + extra


class Doubling(FloodingRouter):
    """Every event is delivered twice."""

    def route(self, message, hop, now):
        sends = super().route(message, hop, now)
        return sends + [one for one in sends if isinstance(one[1], Deliver)]


class Vague(FloodingRouter):
    """Names one subscription where several match."""

    def route(self, message, hop, now):
        return [
            (to, Deliver(s.sender, s.id, s.event, s.subscriptions[:1]))
            if isinstance(s, Deliver)
            else (to, s)
            for to, s in super().route(message, hop, now)
        ]


class Hoarding(FloodingRouter):
    """Keeps the filters of clients that have left."""

    def tables(self):
        tables = super().tables()
        self.seen = getattr(self, "seen", {}) | tables.subscriptions
        tables.subscriptions = self.seen
        return tables


class Sulking(FloodingRouter):
    """Forwards nothing over a link that has returned."""

    def route(self, message, hop, now):
        returned = {
            n for n, link in self.links.items() if link.our_session % 1_000_000 >= len(self.links)
        }
        return [
            (to, sent)
            for to, sent in super().route(message, hop, now)
            if not (to in returned and isinstance(sent, Packet))
        ]


class Silent(FloodingRouter):
    """Never answers a subscription."""

    def client(self, message, now):
        return [
            one
            for one in super().client(message, now)
            if not (isinstance(one[1], Ack) and one[1].what == "Subscribe")
        ]


class Credulous(FloodingRouter):
    """Accepts every event."""

    def client(self, message, now):
        sends = super().client(message, now)
        if isinstance(message, Publish) and isinstance(sends[0][1], Refused):
            return [(message.sender, Ack(self.name, message.id, "Publish"))]
        return sends


class Restless(FloodingRouter):
    """Is never done."""

    @property
    def settled(self):
        return False


class Hectic(FloodingRouter):
    """Always wants a tick at once."""

    def next_time(self):
        return 0.0


class Failing(FloodingRouter):
    def client(self, message, now):
        if message.id == "p7":
            raise ZeroDivisionError(message.id)
        return super().client(message, now)


class Lost(FloodingRouter):
    """Sends everything to a client that does not exist."""

    def route(self, message, hop, now):
        return [("nobody", sent) for _, sent in super().route(message, hop, now)]


BROKEN = [
    (Forgetful, "lost", "lossy"),
    (Talkative, "false positive", "none"),
    (Doubling, "twice", "none"),
    (Vague, "wrong names", "none"),
    (Hoarding, "left over", "none"),
    (Sulking, "lost", "crashing"),
    (Silent, "unanswered", "none"),
    (Credulous, "accepted", "none"),
    (Restless, "unsettled", "none"),
    (Hectic, "livelock", "none"),
    (Failing, "error", "none"),
    (Lost, "misaddressed", "none"),
]


def first_failure(router, faulty):
    for seed in itertools.count():
        assert seed < 50, "nothing was noticed"
        scenario = generate(seed, flooding(faulty))
        outcome = play(scenario, router)
        if outcome.violations:
            return scenario, outcome.violations[0]
    raise AssertionError


@pytest.mark.parametrize(
    ("router", "kind", "faulty"), BROKEN, ids=[router.__name__ for router, _, _ in BROKEN]
)
def test_a_broken_router_is_found_out(router, kind, faulty, monkeypatch):
    monkeypatch.setattr("tamis.routing.simulation.network.STEPS", 5_000)
    _, violation = first_failure(router, faulty)
    assert violation.kind == kind


@pytest.mark.parametrize(
    ("router", "kind", "most"), [(Forgetful, "lost", 16), (Talkative, "false positive", 7)]
)
def test_a_failure_is_made_small_and_can_be_replayed(router, kind, most, tmp_path):
    scenario, _ = first_failure(router, "lossy" if router is Forgetful else "none")
    failure = examine(scenario, kind, router)
    assert failure.violation.kind == kind
    assert len(failure.scenario.actions) <= most < len(scenario.actions)
    assert len(failure.scenario.brokers) <= len(scenario.brokers)
    assert failure.scenario.faults == ()
    assert f"VIOLATION, {kind}: {failure.violation.explanation}" in failure.trace[-1]

    path = tmp_path / "failure.json"
    failure.scenario.save(path)
    assert play(load(path), router).violations == [failure.violation]
    assert play(load(path), FloodingRouter).violations == []


def test_only_a_failed_link_excuses_a_loss():
    """The same loss is a violation where no link can fail."""
    for seed in range(SEEDS):
        outcome = play(generate(seed, flooding("lossy")), Sulking)
        assert outcome.violations == []
