"""The benchmark of routing strategies: what is measured is there, and who is wrong is noticed."""

import json

import pytest

import charts
import routing
from routing_sections import networks, tables


def test_strategies(tmp_path, capsys):
    path = tmp_path / "results.jsonl"
    routing.main(["--quick", "--out", str(path)])
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    flooding = lines[0]
    assert sum(flooding["carried"].values()) > flooding["needed"]
    for line in lines[1:6]:
        assert sum(line["carried"].values()) == line["needed"]
    assert [line["threshold"] for line in lines[-2:]] == [0, 0.3]
    assert "advertisements+imperfect" in capsys.readouterr().out


def test_thresholds_can_be_asked_for(tmp_path):
    path = tmp_path / "results.jsonl"
    routing.main(["--quick", "--thresholds", "0.2", "0.1", "--out", str(path)])
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["threshold"] for line in lines[-2:]] == [0.1, 0.2]


def test_a_strategy_that_delivers_less():
    found = {"strategy": "simple", "deliveries": 3, "carried": {"A>B": 5}, "needed": 5}
    networks.compare(found, 3)
    with pytest.raises(AssertionError, match="simple delivers 3, another one 4"):
        networks.compare(found, 4)
    with pytest.raises(AssertionError, match="carries less"):
        networks.compare(found | {"needed": 6}, 3)


def test_links_that_are_needed():
    extent = networks.Extent(brokers=6, subscriptions=0, publications=20)
    assert networks.needed(networks.scenario(1, extent, "simple")) == 0
    play = networks.scenario(1, extent._replace(subscriptions=40), "simple")
    assert 0 < networks.needed(play) < 20 * 5


# --- what is shown


def test_columns_stand_below_each_other():
    assert tables.aligned(("a", "number"), [("word", "1"), ("b", "1,000,000")]).splitlines() == [
        "| a    |    number |", "|------|----------:|", "| word |         1 |",
        "| b    | 1,000,000 |",
    ]  # fmt: skip


def test_the_spread_is_of_the_middle_half():
    assert tables.with_spread([]) == tables.DASH
    assert tables.with_spread([2.0]) == "2.00"
    assert tables.with_spread([1.0, 2.0, 3.0]) == "2.00 ±50%"


def test_steps_are_round():
    for most, step in ((0.3, 0.1), (33_000, 10_000), (5, 1), (99, 20), (0, 2e-10)):
        scale = charts.steps_of([0, most], 0, 100)
        assert scale.step == pytest.approx(step)
        assert scale.step * scale.count >= most
