"""Runs: every cell is measured once, kept at once, and found again."""

import json
from dataclasses import replace

import pytest

from tamis.errors import FileError
from tamis.papers import run as runs
from tamis.papers.experiment import RunScale, experiment
from tamis.papers.measurements import Point
from tamis.papers.run import CELLS, CellFile, cells_of, rehearse, run_experiment

CLAIM = {"claim": "Lists win", "rule": "ratio", "of": "bits", "to": "lists", "measure": "match",
         "above": 1}  # fmt: skip


@pytest.fixture
def calls(monkeypatch):
    """A procedure that notes what it is called with; bits take twice as long as lists."""
    noted = []

    def measure(case, seed, parameters):
        noted.append((case, seed))
        if parameters.get("fails") == (case, seed):
            raise KeyboardInterrupt
        yield Point("lists", "match", case, case + seed)
        yield Point("bits", "match", case, parameters["factor"] * (case + seed))
        yield Point("bits", "memory", case, 7)

    monkeypatch.setattr(runs, "procedure", lambda _: measure)
    monkeypatch.setattr(runs.preparation, "wait", lambda: noted.append("compiled"))
    monkeypatch.setattr(runs.gc, "collect", lambda: None)  # here nothing disturbs measurements
    return noted


def made(**parameters):
    scales = {
        "quick": RunScale("quick", (1,), (9,), {"factor": 2}),
        "default": RunScale("default", (10, 20, 30), (1, 2), {"factor": 2} | parameters, (30,)),
    }
    return replace(
        experiment("count-table-1"), name="made", measures={"match": "ms"}, scales=scales,
        claims=(CLAIM,), pictures=(), facts={}, published={}, lines=None,
    )  # fmt: skip


def test_a_run_warms_up_and_measures_every_case_with_every_seed(calls, tmp_path):
    steps, cells = [], CellFile(tmp_path / CELLS, resume=False)
    rehearse(made(), "default", cells)
    record = run_experiment(made(), "default", cells, steps.append)
    steps = [(step.case, step.seed, step.number) for step in steps]
    assert calls == ["compiled", (1, 9), (10, 1), (10, 2), (20, 1), (20, 2), (30, 1)]
    assert steps == [(10, 1, 1), (10, 2, 2), (20, 1, 3), (20, 2, 4), (30, 1, 5)]
    assert record["verdict"] == "confirmed"
    assert record["seeds"] == [1, 2]
    assert record["measurements"] == [
        {"line": line, "measure": "match", "x": x, "values": values}
        for x, lists, bits in ((10, [11, 12], [22, 24]), (20, [21, 22], [42, 44]),
                               (30, [31, None], [62, None]))
        for line, values in (("lists", lists), ("bits", bits))
    ]  # fmt: skip
    assert record["environment"]["cores"] >= 1


def test_the_smallest_run_does_not_wait_for_the_compiler(calls, tmp_path):
    rehearse(made(), "quick", CellFile(tmp_path / CELLS, resume=False))
    assert calls == [(1, 9)]


def test_an_engine_that_breaks_a_claim_changes_the_verdict(calls, tmp_path):
    cells = CellFile(tmp_path / CELLS, resume=False)
    record = run_experiment(made(factor=0.5), "default", cells, lambda _: None)
    assert record["verdict"] == "refuted"
    assert calls


def test_an_interrupted_run_goes_on_where_it_was(calls, tmp_path):
    path = tmp_path / CELLS
    with pytest.raises(KeyboardInterrupt):
        run_experiment(made(fails=(20, 2)), "default", CellFile(path, resume=False), lambda _: None)
    kept = path.read_text(encoding="utf-8")
    path.write_text(kept + '\n{"procedure": "torn', encoding="utf-8")
    calls.clear()
    # What the procedure is given is part of a cell: with other parameters nothing is found.
    cells = CellFile(path, resume=True)
    assert len(cells.found) == 3
    again = replace(made(), scales=made(fails=(20, 2)).scales)
    again.scales["default"].parameters["fails"] = [20, 2]  # as JSON has it, and no longer equal
    record = run_experiment(again, "default", cells, lambda _: None)
    assert calls == [(20, 2), (30, 1)]
    assert record["verdict"] == "confirmed"
    assert len(CellFile(path, resume=True).found) == 5


def test_what_is_measured_already_is_not_measured_again(calls, tmp_path):
    path = tmp_path / CELLS
    first = run_experiment(made(), "default", CellFile(path, resume=False), lambda _: None)
    calls.clear()
    cells = CellFile(path, resume=True)
    rehearse(made(), "default", cells)
    second = run_experiment(made(), "default", cells, lambda _: None)
    assert not calls
    assert second["measurements"] == first["measurements"]
    run_experiment(made(factor=3), "default", cells, lambda _: None)
    assert len(calls) == 5


def test_the_time_of_what_is_shared_counts_once(calls, tmp_path):
    cells = CellFile(tmp_path / CELLS, resume=False)
    wanted = cells_of(made(), made().scales["default"])
    for cell in wanted:
        cells.keep(cell, [Point("lists", "match", cell.case, 1.0)], 2.0)
    first = run_experiment(made(), "default", cells, lambda _: None)
    second = run_experiment(made(), "default", cells, lambda _: None)
    assert not calls
    assert (first["seconds"], second["seconds"]) == (2.0 * len(wanted), 0)


def test_without_resume_nothing_is_left_of_an_earlier_run(calls, tmp_path):
    path = tmp_path / CELLS
    run_experiment(made(), "quick", CellFile(path, resume=False), lambda _: None)
    assert CellFile(path, resume=False).found == {}
    assert calls


def test_experiments_that_measure_the_same_share_it():
    one, two = experiment("count-table-1"), experiment("count-table-2")
    assert cells_of(one, one.scales["default"]) == cells_of(two, two.scales["default"])


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        CellFile(tmp_path / "nowhere" / CELLS, resume=False)


def test_cells_are_lines_of_json(calls, tmp_path):
    path = tmp_path / CELLS
    run_experiment(made(), "quick", CellFile(path, resume=False), lambda _: None)
    (line,) = [one for one in path.read_text(encoding="utf-8").splitlines() if one]
    found = json.loads(line)
    assert (found["procedure"], found["case"], found["seed"]) == ("event-matching", 1, 9)
    assert found["points"][0] == ["lists", "match", 1, 10]
    assert calls
