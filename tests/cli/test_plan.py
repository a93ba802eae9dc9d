"""``tamis explain --plan``: how the subscriptions of a file are matched."""

import json

import pytest

from tamis import Matcher
from tamis.cli import main

SUBSCRIPTIONS = "id,filter\nalice,company = 'IBM' AND price < 100\nbob,price > 5\nbad,price >\n"
EVENTS = '{"company": "IBM", "price": 50}\n{"company": "Dell"}\n{"price": 7}\n'


@pytest.fixture
def files(tmp_path):
    rules, events = tmp_path / "rules.csv", tmp_path / "events.jsonl"
    rules.write_text(SUBSCRIPTIONS, encoding="utf-8")
    events.write_text(EVENTS, encoding="utf-8")
    return str(rules), str(events)


def test_a_plan_with_the_schema_of_events(files, capsys):
    rules, events = files
    assert main(["explain", "--plan", rules, "--events", events]) == 0
    said = capsys.readouterr().out
    assert said.startswith("engine naive: 2 subscriptions")
    assert "1 subscription cannot be used" in said


def test_a_plan_with_a_schema(files, capsys, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text('{"company": "string", "price": "double"}', encoding="utf-8")
    assert main(["explain", "--plan", files[0], "--schema", str(schema), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["engine"], said["subscriptions"], said["unusable"]) == ("naive", 2, 1)


def test_the_plan_of_a_saved_file(tmp_path, capsys):
    matcher = Matcher({"i": "int"})
    matcher.subscribe_many({n: f"i = {n}" for n in range(2000)})
    path = str(tmp_path / "rules.tamis")
    matcher.save(path)
    events = tmp_path / "events.jsonl"
    events.write_text('{"i": 1}\n{"i": 2}\n', encoding="utf-8")
    assert main(["explain", "--plan", path, "--events", str(events)]) == 0
    said = capsys.readouterr().out
    assert "2,000 found by the value of i in 2,000 clusters" in said
    assert "measured" in said


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "needs --schema"),
        (["TRUE"], "leave out FILTER, --event and --graph"),
        (["--event", "{}"], "leave out FILTER, --event and --graph"),
        (["--graph", "x.svg"], "leave out FILTER, --event and --graph"),
    ],
)
def test_misuse(files, arguments, problem, capsys):
    with pytest.raises(SystemExit) as left:
        main(["explain", *arguments, "--plan", files[0]])
    assert left.value.code == 2
    assert problem in capsys.readouterr().err


def test_events_belong_to_a_plan(files, capsys):
    with pytest.raises(SystemExit) as left:
        main(["explain", "TRUE", "--events", files[1]])
    assert left.value.code == 2
    assert "--events belongs to --plan" in capsys.readouterr().err
