"""Verdicts follow from the record alone, and change with what was measured."""

import json

from cases import each
from paper_records import record
from tamis.papers.rules import CONFIRMED, NOT_COMPARABLE, REFUTED
from tamis.papers.verdicts import judge, told

FASTER = {"claim": "a is faster.", "rule": "ratio", "of": "b", "to": "a", "measure": "time",
          "above": 1}  # fmt: skip
TWICE = FASTER | {"claim": "Twice as fast", "above": 2}
OPEN = FASTER | {"claim": "Much faster", "above": 2.5}
ELSEWHERE = FASTER | {"claim": "As fast as c", "to": "c"}
VALUES = {("a", 1): [1.0, 1.0], ("b", 1): [2.2, 3.0]}


@each(
    "claims, verdict",
    [
        ([FASTER], CONFIRMED),
        ([FASTER, TWICE], CONFIRMED),
        ([FASTER, OPEN], CONFIRMED),
        ([OPEN], NOT_COMPARABLE),
        ([ELSEWHERE], NOT_COMPARABLE),
        ([FASTER, FASTER | {"above": 4}], REFUTED),
        ([], NOT_COMPARABLE),
    ],
)
def test_a_figure_has_one_verdict(claims, verdict):
    found = judge(record(VALUES, claims))
    assert found["verdict"] == verdict
    assert [claim["claim"] for claim in found["claims"]] == [claim["claim"] for claim in claims]


def test_why_names_the_claims_that_decide():
    found = judge(record(VALUES, [FASTER, OPEN]))
    assert found["why"] == ("1 of 2 claims: a is faster: b / a, time: 2.2 to 3 at 1, above 1")


def test_a_verdict_can_be_found_again_from_its_line():
    found = judge(record(VALUES, [FASTER, TWICE, OPEN]))
    assert judge(json.loads(json.dumps(found))) == found


def test_other_measurements_have_another_verdict():
    found = judge(record(VALUES, [FASTER]))
    for row in found["measurements"]:
        if row["line"] == "b":
            row["values"] = [value / 4 for value in row["values"]]
    changed = judge(found)
    assert (found["verdict"], changed["verdict"]) == (CONFIRMED, REFUTED)
    assert changed["why"] != found["why"]


def test_numbers_in_the_text_come_from_the_measurements():
    facts = {
        "times": {"of": "b", "to": "a", "measure": "time"},
        "slow": {"of": "b", "measure": "time", "at": "smallest"},
        "none": {"of": "c", "measure": "time"},
    }
    text = "b takes {times} times as long, {slow} ms; {none}; {other}"
    found = record({("a", 1): [1.0], ("b", 1): [2.25]}, [], facts=facts, today=text)
    assert told(found) == "b takes 2.25 times as long, 2.25 ms; (not measured); {other}"


def test_a_number_can_be_compared_with_itself_elsewhere():
    fact = {"of": "a", "measure": "time", "at": "smallest", "over": "largest"}
    values = {("a", 1): [1.0, 3.0], ("a", 5): [2.0, 6.0]}
    found = record(values, [], facts={"part": fact, "none": fact | {"over": 7}}, today="{part}")
    assert told(found) == "0.5"
    assert told(found | {"today": "{none}"}) == "(not measured)"
