"""Scenarios as data: from seeds, to files and back."""

import json
import random

import pytest

from cases import each
from tamis.errors import FileError
from tamis.routing.simulation.filters import condition, random_pool, row_of, some_event_matches
from tamis.routing.simulation.scenario import FAULT_LEVELS, from_dict, load
from tamis.routing.simulation.scenario_generator import QUIET, TROUBLE, ScenarioOptions, generate


@each("faulty", FAULT_LEVELS)
def test_a_seed_is_a_scenario(faulty):
    options = ScenarioOptions(faulty=faulty)
    made = [generate(seed, options) for seed in range(20)]
    assert made == [generate(seed, options) for seed in range(20)]
    assert len({str(scenario) for scenario in made}) == 20
    assert {fault.kind for one in made for fault in one.faults} == {
        "none": set(),
        "lossy": {"weather", "partition", "pause"},
        "crashing": {"weather", "partition", "pause", "crash", "link"},
    }[faulty]
    verbs = {action.verb for one in made for action in one.actions}
    assert verbs == {
        "connect", "disconnect", "advertise", "unadvertise", "subscribe", "unsubscribe", "publish",
    }  # fmt: skip


def test_options_are_granted():
    made = generate(3, ScenarioOptions(topology="star", brokers=6, clients=2, actions=11))
    assert len(made.brokers) == 6
    assert all("B1" in edge for edge in made.edges)
    assert len(made.clients) == 2


def test_lossy_trouble_is_short_and_followed_by_quiet():
    """Otherwise a neighbour could look failed, and the oracle would demand too much."""
    for seed in range(50):
        faults = generate(seed, ScenarioOptions(faulty="lossy")).faults
        spans = sorted((fault.time, fault.time + fault.duration) for fault in faults)
        begin, end = -QUIET, -QUIET
        for start, stop in spans:
            if start - end >= QUIET - 0.01:
                begin = start
            end = max(end, stop)
            assert end - begin <= TROUBLE + 0.01


def test_files(tmp_path):
    path = tmp_path / "scenario.json"
    for seed in range(5):
        scenario = generate(seed, ScenarioOptions(faulty="crashing"))
        scenario.save(path)
        assert load(path) == scenario
        assert from_dict(json.loads(json.dumps(scenario.to_dict()))) == scenario


def test_what_is_not_a_scenario_is_refused(tmp_path):
    path = tmp_path / "scenario.json"
    good = generate(1, ScenarioOptions(faulty="crashing")).to_dict()
    client = {"name": "c1", "broker": good["brokers"][0]}
    fault = {"time": 1, "kind": "weather", "duration": 1}
    no_number = "times and probabilities must be numbers"
    cases = [
        ("no JSON", "it is not JSON"),
        (json.dumps([1]), "not a scenario"),
        (json.dumps(good | {"colour": "red"}), "colour"),
        (json.dumps({k: v for k, v in good.items() if k != "brokers"}), "brokers"),
        (json.dumps(good | {"edges": [["B1", "B9"]]}), "unknown broker 'B9'"),
        (json.dumps(good | {"faulty": "awful"}), "unknown kind of faults 'awful'"),
        (json.dumps(good | {"t1": "soon"}), no_number),
        (json.dumps(good | {"clients": [client | {"leaves": "soon"}], "actions": []}), no_number),
        *(
            (json.dumps(good | {"faults": [fault | {name: value}]}), no_number)
            for name in ("time", "duration", "loss", "duplication", "slowness")
            for value in ("0.5", -1, None)
        ),
        (json.dumps(good | {"actions": [{"time": 1, "client": "c99", "verb": "connect"}]}), "c99"),
        (json.dumps(good | {"actions": [{"time": 1, "client": "c1", "verb": "sing"}]}), "sing"),
        (json.dumps(good | {"faults": [{"time": 1, "kind": "flood", "duration": 1}]}), "flood"),
    ]
    for text, message in cases:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FileError) as caught:
            load(path)
        assert message in str(caught.value)
        assert str(path) in str(caught.value)
    with pytest.raises(FileError, match="No such file"):
        load(tmp_path / "nowhere.json")
    with pytest.raises(FileError, match="cannot be written"):
        generate(1, ScenarioOptions()).save(tmp_path / "no" / "such")


def test_the_small_world():
    chance = random.Random(1)  # noqa: S311 - no secret
    pool = {text for _ in range(300) for text in random_pool(chance)}
    assert len(pool) > 300
    for semantics in ("sql", "strict", "default", "total"):
        assert all(condition(text, semantics) is not None for text in pool)
        assert not some_event_matches("price > 5 AND price < 3", semantics)
        assert some_event_matches("price = 3 AND symbol = 'B' AND name = 'ba'", semantics)
    assert some_event_matches("price IS NULL", "sql")
    assert not some_event_matches("price IS NULL", "total")
    assert row_of({"price": 77}, "sql") is None
    assert row_of({"price": 7}, "total") is None
    assert condition("prise = 3", "sql") is None
