"""``tamis simulate``, without the command line around it."""

import argparse
import json

import pytest

from tamis.cli import simulate
from tamis.errors import FileError, RoutingError
from tamis.routing.router import Router
from tamis.routing.simulation import simulation, strategy_costs
from tamis.routing.simulation.scenario import load
from tamis.routing.strategies import STRATEGIES


@pytest.fixture
def run(capsys):
    """What the command prints; or, if it has to fail, that and the error."""
    parser = argparse.ArgumentParser(prog="tamis")
    simulate.add_parser(parser.add_subparsers())

    def call(*arguments, fails=None):
        options = parser.parse_args(["simulate", *map(str, arguments)])
        if fails is None:
            options.run(options)
        else:
            with pytest.raises(fails) as caught:
                options.run(options)
        output = capsys.readouterr()
        assert output.err == ""
        return output.out if fails is None else (output.out, str(caught.value))

    return call


class Leaky(Router):
    """Loses every fourth publication of a neighbour."""

    routed = 0

    def _route(self, hop, message):
        self.routed += hop in self._neighbours
        if hop not in self._neighbours or self.routed % 4:
            super()._route(hop, message)


@pytest.fixture
def leaky(monkeypatch):
    monkeypatch.setattr(simulation, "Router", Leaky)


def test_a_summary(run):
    lines = run("--seeds", 6).splitlines()
    assert lines[0].startswith("6 seeds in ")
    assert lines[-1] == "violations               0"


def test_seeds_and_json(run):
    found = json.loads(run("--seeds", 4, "--from", 30, "--faults", "crashing", "--json"))
    assert found["seeds"] == 4
    assert found["violations"] == 0
    assert found["failure"] is None
    assert found["faults"]["crash"] > 0
    one = json.loads(run("--seed", 31, "--faults", "crashing", "--json"))
    assert one["seeds"] == 1
    assert 0 < one["messages"] < found["messages"]
    again = json.loads(run("--seed", 31, "--faults", "crashing", "--json"))
    assert again | {"seconds": 0} == one | {"seconds": 0}


def test_wishes(run):
    found = json.loads(
        run("--seed", 1, "--brokers", 1, "--strategy", "simple", "--faults", "none",
            "--semantics", "total", "--topology", "star", "--json")
    )  # fmt: skip
    assert found["messages"] == 0
    assert found["deliveries"] > 0
    assert not any(found["faults"].values())


@pytest.mark.usefixtures("leaky")
def test_a_failure_is_printed_saved_and_replayed(run, tmp_path, monkeypatch):
    path = tmp_path / "failure.json"
    arguments = ["--seeds", 50, "--strategy", "simple", "--faults", "lossy", "--semantics", "sql"]
    out, error = run(*arguments, "--save", path, fails=RoutingError)
    assert "violations               1" in out
    assert "VIOLATION, lost: " in out
    assert out.endswith(f"repeat it with: tamis simulate --replay {path}\n")
    seed = load(path).seed
    assert error.startswith(f"seed {seed}: lost at ")

    replayed, same = run("--replay", path, fails=RoutingError)
    assert same == error
    story = "the smallest simulation that fails in this way:"
    assert replayed.split(story)[1].splitlines()[:-1] == out.split(story)[1].splitlines()[:-1]

    told, _ = run("--seed", seed, *arguments[2:], "--json", fails=RoutingError)
    failure = json.loads(told)["failure"]
    assert failure["kind"] == "lost"
    assert failure["scenario"] == json.loads(path.read_text(encoding="utf-8"))
    unsaved, _ = run(*arguments, "--brokers", 6, fails=RoutingError)
    command = unsaved.splitlines()[-1].removeprefix("repeat it with: tamis simulate ")
    assert run(*command.split(), fails=RoutingError)[0].split(story)[1] == unsaved.split(story)[1]

    monkeypatch.undo()
    assert "violations               0" in run("--replay", path)


def test_measures(run, monkeypatch):
    monkeypatch.setattr(strategy_costs, "SUBSCRIPTIONS", 40)
    monkeypatch.setattr(strategy_costs, "PUBLICATIONS", 40)
    found = json.loads(run("--measures", "--brokers", 9, "--json"))
    by_name = {one["strategy"]: one for one in found}
    assert list(by_name) == list(STRATEGIES)
    assert len({one["deliveries"] for one in found}) == 1
    assert by_name["flooding"]["carried"] >= by_name["simple"]["carried"]
    assert by_name["simple"]["table_size"] > by_name["simple+covering"]["table_size"]
    assert by_name["simple"]["false_positives"] == 0 < by_name["flooding"]["false_positives"]
    assert all(sum(one["tables"].values()) == one["table_size"] for one in found)
    assert all(sum(one["carried_by_link"].values()) == one["carried"] for one in found)

    table = run("--measures", "--brokers", 3, "--strategy", "simple", "--seed", 2).splitlines()
    assert table[0].split() == [
        "strategy", "table", "largest", "control", "carried", "needless", "delivered",
    ]  # fmt: skip
    assert table[1].split()[0] == "simple"


def test_what_cannot_be_used(run, tmp_path):
    missing = tmp_path / "no" / "such.json"
    assert "folder does not exist" in run("--save", missing, fails=FileError)[1]
    assert "cannot be read" in run("--replay", missing, fails=FileError)[1]
    bad = tmp_path / "bad.json"
    bad.write_text("{}", encoding="utf-8")
    assert "is not a scenario" in run("--replay", bad, fails=FileError)[1]


@pytest.mark.parametrize(
    "arguments",
    [["--seeds", "0"], ["--seed", "-1"], ["--faults", "awful"], ["--topology", "ring"],
     ["--seed", "1", "--replay", "x"], ["--strategy", "best"], ["--brokers", "none"]],
)  # fmt: skip
def test_misuse(arguments, capsys):
    parser = argparse.ArgumentParser(prog="tamis")
    simulate.add_parser(parser.add_subparsers())
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(["simulate", *arguments])
    assert caught.value.code == 2
    assert "usage: tamis simulate" in capsys.readouterr().err


def test_an_interruption_tells_how_far_it_came(capsys, monkeypatch):
    played = []

    def play(scenario, router):
        played.append(scenario.seed)
        if len(played) == 3:
            raise KeyboardInterrupt
        return simulation.play(scenario, router)

    monkeypatch.setattr("tamis.routing.simulation.campaign.play", play)
    parser = argparse.ArgumentParser(prog="tamis")
    simulate.add_parser(parser.add_subparsers())
    options = parser.parse_args(["simulate"])
    with pytest.raises(KeyboardInterrupt):
        options.run(options)
    assert capsys.readouterr().out.startswith("2 seeds in ")
