"""The costs of strategies on the same scenario."""

import pytest

from tamis.routing.simulation.simulation import play
from tamis.routing.simulation.strategy_costs import large_scenario, measure_costs
from tamis.routing.strategies import STRATEGIES

# All of it in one process, for a fixture that takes long.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("costs of strategies")]


@pytest.fixture(scope="module")
def measured():
    sizes = {"brokers": 9, "subscriptions": 90, "publications": 60}
    return {name: measure_costs(large_scenario(3, name, **sizes)) for name in STRATEGIES}


def test_every_strategy_delivers_the_same(measured):
    assert len({one.deliveries for one in measured.values()}) == 1
    assert measured["simple"].deliveries > 0


def test_each_step_makes_tables_smaller(measured):
    sizes = [measured[name].table_size for name in STRATEGIES[1:]]
    flooding, simple, covering, advertised, both, perfect, imperfect = (
        measured[name].table_size for name in STRATEGIES
    )
    assert flooding == 90  # of clients alone
    assert simple == max(sizes)
    assert simple > covering > both
    assert simple > advertised > both >= perfect
    assert imperfect < both


def test_filters_keep_publications_where_they_are_wanted(measured):
    assert measured["flooding"].carried.total() == 60 * 8  # over every link
    exact = [measured[name] for name in STRATEGIES[1:-1]]
    assert {one.false_positives for one in exact} == {0}
    assert len({one.carried.total() for one in exact}) == 1
    assert exact[0].carried.total() < measured["flooding"].carried.total()
    assert measured["flooding"].false_positives > 0


def test_what_is_sent_is_counted_by_kind(measured):
    simple = measured["simple"].sent
    assert simple["Subscribe"] == simple["Ack"] > 0
    assert simple["Advertise"] == 0
    assert measured["flooding"].sent["Subscribe"] == 0
    assert measured["advertisements"].sent["Advertise"] > 0
    assert set(measured["simple"].to_dict()) >= {"table_size", "carried_by_link", "sent"}


def test_a_large_scenario_breaks_no_promise():
    scenario = large_scenario(
        1, "advertisements+covering", brokers=5, subscriptions=30, publications=20
    )
    assert play(scenario).violations == []
