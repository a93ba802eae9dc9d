import json
import re

import pytest

from tamis.cli import demo, main


def run(capsys, *arguments):
    assert main(["demo", *arguments]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def test_the_text_shows_quotes_matches_and_a_reason(capsys):
    text = run(capsys)
    assert text.startswith("6 subscriptions on 2,000 stock quotes\n")
    assert "the first quotes, and who is told of them" in text
    assert "matches by subscription" in text
    for name, text_of_filter in demo.SUBSCRIPTIONS.items():
        assert re.search(rf"^  {name} .*{re.escape(text_of_filter)}$", text, re.MULTILINE)
    assert "why is dave" in text
    assert "'dave' " in text


def test_the_demo_is_the_same_every_time(capsys):
    assert run(capsys) == run(capsys)
    assert run(capsys, "--seed", "1") == run(capsys)
    assert run(capsys, "--seed", "2") != run(capsys)


def test_the_answer_for_machines(capsys):
    answer = json.loads(run(capsys, "--json", "--events", "300"))
    assert answer["events"] == 300
    assert answer["matches"] == sum(answer["by_subscription"].values()) > 0
    assert set(answer["by_subscription"]) <= set(demo.SUBSCRIPTIONS)


def test_every_subscriber_of_the_demo_is_told_of_something(capsys):
    answer = json.loads(run(capsys, "--json"))
    assert set(answer["by_subscription"]) == set(demo.SUBSCRIPTIONS)


@pytest.mark.parametrize("events", ["1", "3"])
def test_a_short_demo(capsys, events):
    text = run(capsys, "--events", events)
    assert f"6 subscriptions on {events} stock quotes" in text
    assert text.count("  ->  ") == int(events)


@pytest.mark.parametrize(
    ("seed", "question", "answer"),
    [
        (1, "why is dave not told of the first quote?", "'dave' does not match: "),
        (50, "why is dave told of the first quote?", "'dave' matches: "),
    ],
)
def test_the_question_about_dave_fits_the_answer(capsys, seed, question, answer):
    assert f"{question}\n  {answer}" in run(capsys, "--events", "1", "--seed", str(seed))


def test_some_quotes_have_no_change():
    changes = [quote.get("change") for quote in demo.quotes(200, 1)]
    assert None in changes
    assert any(change is not None for change in changes)
