"""Failing scenarios get smaller, and never stop failing."""

from tamis.routing.simulation.scenario import from_dict
from tamis.routing.simulation.scenario_generator import ScenarioOptions, generate
from tamis.routing.simulation.shrinker import shrink


def crashing(seed):
    return generate(seed, ScenarioOptions(faulty="crashing", topology="tree", brokers=7))


def test_what_does_not_matter_goes():
    for seed in range(10):
        scenario = crashing(seed)

        def fails(one):
            return sum(action.verb == "publish" for action in one.actions) >= 2

        small = shrink(scenario, fails)
        assert fails(small)
        assert [action.verb for action in small.actions] == ["publish"] * 2
        assert small.faults == ()
        assert len(small.clients) <= 2
        assert len(small.brokers) <= 2
        assert all(len(action.event) <= 1 for action in small.actions)
        assert from_dict(small.to_dict()) == small


def test_faults_stay_in_the_network():
    """A fault goes with the broker that it struck."""
    kept = 0
    for seed in range(20):
        scenario = crashing(seed)
        kinds = {fault.kind for fault in scenario.faults}

        def fails(one, kinds=kinds):
            return {fault.kind for fault in one.faults} == kinds

        small = shrink(scenario, fails)
        assert len(small.faults) == len(kinds)
        assert small.actions == ()
        assert small.clients == ()
        assert from_dict(small.to_dict()) == small
        assert all(len(fault.edges) <= 1 for fault in small.faults)
        kept += len(kinds)
    assert kept > 0


def test_it_ends_when_it_may_not_try_any_more():
    tried = []

    def fails(one):
        tried.append(one)
        return len(one.actions) > 1

    small = shrink(crashing(1), fails, trials=5)
    assert len(tried) == 5
    assert small in tried


def test_what_only_fails_as_it_is_stays_as_it_is():
    scenario = crashing(2)
    assert shrink(scenario, lambda one: one == scenario) == scenario
