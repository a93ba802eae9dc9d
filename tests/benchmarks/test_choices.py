"""The benchmark of choices: every workload can be compared, and different matches are noticed."""

import sys

import pytest

import choices
from tamis import Matcher


@pytest.mark.parametrize("name", choices.OTHERS)
def test_the_other_workloads_have_filters_and_events(name):
    of = choices.task(name, 20, 40)
    assert (len(of.filters), len(of.table), len(of.events)) == (20, 40, choices.FEW)


def test_each_way_is_compared(monkeypatch, capsys):
    monkeypatch.setattr(choices, "EVENTS", 40)
    monkeypatch.setattr(choices, "HOPELESS", 10**9)
    command = ["choices.py", "--workloads", "stock", "--sizes", "10", "--engines", "naive"]
    monkeypatch.setattr(sys, "argv", [*command, "--rounds", "1"])
    choices.main()
    rows = capsys.readouterr().out.splitlines()[2:]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert [row[2] for row in cells] == list(choices.WAYS)
    assert {(row[0], row[1], row[4]) for row in cells} == {("stock", "10", "naive")}


def test_different_matches_are_noticed():
    of = choices.task("stock", 10, 40)
    right, wrong = (Matcher(of.schema, engine="naive") for _ in range(2))
    right.subscribe_many(of.filters)
    wrong.subscribe_many([(number, "TRUE") for number, _ in of.filters])
    with pytest.raises(SystemExit, match="wrong gives different matches"):
        choices.check({choices.AUTO: right, "wrong": wrong}, of)
