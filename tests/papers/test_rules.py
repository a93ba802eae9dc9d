"""Rules decide from measurements, all seeds of them, and say why."""

import pytest

from cases import each
from paper_records import record
from tamis.errors import OptionError
from tamis.papers.rules import (
    CONFIRMED,
    NOT_COMPARABLE,
    REFUTED,
    RULES,
    Evidence,
    check_parameters,
)
from tamis.papers.verdicts import evidence_of

LINEAR = {("a", x): [x * 1.0, x * 1.01, x * 0.99] for x in (10, 100, 1000)}
ROOT = {("a", x): [x**0.5, x**0.5 * 1.02, x**0.5 * 0.98] for x in (10, 100, 1000)}
BENT = {("a", 1): [0.001]} | LINEAR
TWO = {("a", 1): [2.0, 3.0], ("b", 1): [1.0, 1.0], ("a", 2): [4.0, 5.0], ("b", 2): [1.0, 2.0]}
TURN = {("a", 1): [1.0, 1.0], ("b", 1): [2.0, 3.0], ("a", 9): [9.0, 9.0], ("b", 9): [2.0, 3.0]}
HILL = {("a", 1): [1.0, 1.0], ("a", 2): [5.0, 5.0], ("a", 3): [2.0, 3.0]}


def decide(rule, values, **parameters):
    return RULES[rule](evidence_of(record(values, [])), measure="time", **parameters)


@each(
    "rule, values, parameters, verdict",
    [
        ("ratio", TWO, {"of": "a", "to": "b", "above": 1}, CONFIRMED),
        ("ratio", TWO, {"of": "b", "to": "a", "above": 1}, REFUTED),
        ("ratio", TWO, {"of": "a", "to": "b", "above": 3}, REFUTED),  # at 1: 2 and 3
        ("ratio", TWO, {"of": "a", "to": "b", "above": 3, "at": "largest"}, NOT_COMPARABLE),
        ("ratio", TWO, {"of": "a", "to": "b", "above": 2.1, "at": "largest"}, CONFIRMED),
        ("ratio", TWO, {"of": "a", "to": "b", "above": 2.1, "at": 2}, CONFIRMED),
        ("ratio", TWO, {"of": "a", "to": "b", "below": 4.5}, CONFIRMED),
        ("ratio", TWO, {"of": "a", "to": "nobody", "above": 1}, NOT_COMPARABLE),
        ("ratio", TWO, {"of": "a", "to": "b", "above": 1, "at": 7}, NOT_COMPARABLE),
        ("value", TWO, {"of": "a", "above": 1.5, "below": 6}, CONFIRMED),
        ("value", TWO, {"of": "a", "below": 4, "at": "largest"}, REFUTED),
        ("value", TWO, {"of": "a", "below": 4.5, "at": "largest"}, NOT_COMPARABLE),
        ("growth", TWO, {"of": "a", "above": 1.5}, CONFIRMED),
        ("growth", TWO, {"of": "a", "above": 2.5}, REFUTED),
        ("growth", TURN, {"of": "a", "above": 8, "first": 1, "last": 9}, CONFIRMED),
        ("growth", TURN, {"of": "a", "below": 1, "first": 9, "last": 1}, CONFIRMED),
        ("growth", TURN, {"of": "a", "below": 1, "first": 9, "last": 2}, NOT_COMPARABLE),
        ("growth", {("a", 1): [1.0]}, {"of": "a", "above": 1}, NOT_COMPARABLE),
        ("slope", ROOT, {"of": "a", "below": 1}, CONFIRMED),
        ("slope", LINEAR, {"of": "a", "below": 0.9}, REFUTED),
        ("slope", LINEAR, {"of": "a", "below": 1}, NOT_COMPARABLE),  # 1 is in the interval
        ("slope", LINEAR, {"of": "a", "above": 0.9, "below": 1.1}, CONFIRMED),
        ("slope", BENT, {"of": "a", "below": 1.2}, NOT_COMPARABLE),
        ("slope", BENT, {"of": "a", "below": 1.2, "least": 10}, CONFIRMED),
        ("slope", TWO, {"of": "a", "below": 1}, NOT_COMPARABLE),  # two sizes are not enough
        ("monotone", ROOT, {"of": "a", "direction": "rises"}, CONFIRMED),
        ("monotone", ROOT, {"of": "a", "direction": "falls"}, REFUTED),
        ("monotone", {("a", 1): [1.0]}, {"of": "a", "direction": "falls"}, NOT_COMPARABLE),
        ("crossover", TURN, {"of": "a", "to": "b"}, CONFIRMED),
        ("crossover", TURN, {"of": "b", "to": "a"}, REFUTED),
        ("crossover", TWO, {"of": "a", "to": "b"}, REFUTED),
        ("alike", TWO, {"lines": ["a", "b"], "factor": 5}, CONFIRMED),
        ("alike", TWO, {"lines": ["a", "b"], "factor": 1.5}, REFUTED),
        ("alike", TURN, {"lines": ["a", "b"], "factor": 4}, NOT_COMPARABLE),
        ("decline", HILL, {"of": "a", "below": 0.9}, CONFIRMED),
        ("decline", HILL, {"of": "a", "below": 0.3}, REFUTED),
        ("decline", HILL, {"of": "a", "below": 0.5}, NOT_COMPARABLE),
        ("decline", LINEAR, {"of": "a", "below": 0.9}, REFUTED),
        ("decline", TWO, {"of": "a", "below": 0.9}, NOT_COMPARABLE),  # no place for a hill
    ],
)
def test_verdicts(rule, values, parameters, verdict):
    found = decide(rule, values, **parameters)
    assert found.verdict == verdict, found.why
    assert found.why


def test_a_ratio_is_taken_seed_by_seed():
    """Both seeds say 2, however much they differ from each other."""
    noisy = {("a", 1): [2.0, 200.0], ("b", 1): [1.0, 100.0]}
    assert decide("ratio", noisy, of="a", to="b", above=1.9, below=2.1).verdict == CONFIRMED


def test_a_seed_that_was_not_measured_is_left_out():
    values = {("a", 1): [2.0, None], ("b", 1): [1.0, 5.0]}
    assert decide("ratio", values, of="a", to="b", above=1).verdict == CONFIRMED


@each("factor, verdict", [(1.1, REFUTED), (3, CONFIRMED), (2, NOT_COMPARABLE)])
def test_a_ratio_is_compared_with_the_published_one(factor, verdict):
    said = {"where": "Table 1", "unit": "ms", "names": {"a": "A", "b": "B"},
            "lines": {"a": [[1, 3.0]], "b": [[1, 2.0]]}}  # fmt: skip
    values = {("a", 1): [2.0, 3.5], ("b", 1): [1.0, 1.0]}
    evidence = evidence_of(record(values, [], published={"time": said}))
    rule = RULES["published-ratio"]
    assert rule(evidence, of="a", to="b", measure="time", factor=factor).verdict == verdict
    nothing = Evidence(evidence.measurements, {})
    found = rule(nothing, of="a", to="b", measure="time", factor=factor)
    assert found.verdict == NOT_COMPARABLE


@each("factor, verdict", [(1.2, REFUTED), (2, CONFIRMED), (1.6, NOT_COMPARABLE)])
def test_values_are_compared_with_the_published_ones(factor, verdict):
    said = {"where": "Table 1", "unit": "ms", "names": {"a": "A"}, "lines": {"a": [[1, 2.0]]}}
    evidence = evidence_of(record({("a", 1): [3.0, 3.5]}, [], published={"time": said}))
    rule = RULES["published"]
    assert rule(evidence, of="a", measure="time", factor=factor).verdict == verdict
    elsewhere = rule(evidence, of="a", measure="time", factor=factor, at=7)
    assert elsewhere.verdict == NOT_COMPARABLE


def test_why_has_the_numbers_that_decide():
    found = decide("ratio", TWO, of="a", to="b", above=1)
    assert found.why == "a / b, time: 2 to 3 at 1, 2.5 to 4 at 2, above 1"
    found = decide("slope", ROOT, of="a", below=1)
    assert "grows with the power 0.50 of x (95 %: 0.49 to 0.51; 10 to 1,000)" in found.why


@each(
    "rule, parameters, message",
    [
        ("rato", {}, "unknown rule 'rato'"),
        ("ratio", {"of": "a", "to": "b"}, "the rule ratio needs the parameter measure"),
        ("ratio", {"of": "a", "to": "b", "measure": "x", "over": 1}, "'over'"),
    ],
)
def test_rules_that_cannot_be_used_are_refused(rule, parameters, message):
    with pytest.raises(OptionError) as caught:
        check_parameters(rule, parameters)
    assert message in str(caught.value)


def test_a_rule_without_a_bound_is_refused():
    with pytest.raises(OptionError, match="above or below"):
        decide("ratio", TWO, of="a", to="b")
