"""Degrees of mergers: exact ones against counting every event, estimates against exact ones."""

import math
import random
from fractions import Fraction
from itertools import product
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Schema, parse
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.merging import measures
from tamis.relations.merging.degrees import degree, degree_of_forms
from tamis.relations.merging.measures import Sampled, Uniform
from tamis.semantics import Semantics

SCHEMA = Schema({"n": "int(1, 6)", "m": "int(1, 4)", "side": "enum('a', 'ab', 'c')", "b": "bool"})
VALUES = [range(1, 7), range(1, 5), ["a", "ab", "c"], [False, True]]
EVENTS = list(product(*VALUES))
DEFAULTS = {"n": 2, "m": None, "side": "c", "b": None}
MEANINGS = [("sql", None), ("strict", None), ("default", DEFAULTS), ("total", None)]
PRESENCE = {"n": 0.5, "m": 0.75, "side": 1, "b": 0.25}


def exp(text, schema=SCHEMA):
    return parse(text, schema)


@st.composite
def texts(draw):
    tests = st.sampled_from(
        ["n < {n}", "n >= {n}", "n = {n}", "n <> {n}", "m <= {m}", "m > {m}", "m = {m}",
         "side = '{s}'", "side LIKE '{s}%'", "b", "NOT b", "n IS NULL", "m IS NOT NULL"]
    )  # fmt: skip
    found = [
        draw(tests).format(n=draw(st.integers(1, 6)), m=draw(st.integers(1, 4)), s="a")
        for _ in range(draw(st.integers(1, 3)))
    ]
    return draw(st.sampled_from([" AND ", " AND ", " OR "])).join(found)


def every_event(name):
    """All events with their probability, under `PRESENCE`."""
    for event in product(*([None, *values] for values in VALUES)):
        weight = Fraction(1)
        for value, values, share in zip(event, VALUES, PRESENCE.values(), strict=True):
            there = Fraction(1) if name == "total" else Fraction(share)
            weight *= 1 - there if value is None else there / len(values)
        if weight:
            yield event, weight


def counted(merger, parts, announced, meaning):
    """Definitions 1 and 2, word for word."""
    tests = [meaning.condition(part) for part in parts]
    whole, ads = meaning.condition(merger), [meaning.condition(each) for each in announced]
    hits = added = arriving = Fraction(0)
    for event, weight in every_event(meaning.name):
        row = meaning.prepare(event)
        if ads and not any(ad(row) for ad in ads):
            continue
        arriving += weight
        if whole(row):
            hits += weight
            added += 0 if any(test(row) for test in tests) else weight
    return (added / hits, hits / arriving) if hits else (0, 0)


@pytest.mark.long
@pytest.mark.parametrize(("name", "defaults"), MEANINGS)
@given(
    merger=texts(),
    parts=st.lists(texts(), max_size=4),
    announced=st.lists(texts(), max_size=2),
    few=st.sampled_from([0, measures.FEW]),  # all numbers listed, or as a range
)
@settings(max_examples=30)
def test_exact_degrees_are_those_of_counting(name, defaults, merger, parts, announced, few):
    meaning = Semantics(name, SCHEMA, defaults)
    merger, parts, announced = exp(merger), [*map(exp, parts)], [*map(exp, announced)]
    measure = Uniform(SCHEMA, presence=PRESENCE)
    with mock.patch.object(measures, "FEW", few):
        found = degree(merger, parts, meaning, measure, advertisements=announced)
    assert found.exact
    assert found.error == 0
    value, probability = counted(merger, parts, announced, meaning)
    assert (found.value, found.probability) == (value, probability)
    assert found.imt == value * probability


@given(merger=texts(), parts=st.lists(texts(), max_size=4), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_samples_are_counted_as_they_are(merger, parts, seed):
    chance = random.Random(seed)  # noqa: S311 - no secret
    events = [
        dict(zip(SCHEMA, (chance.choice([None, *v]) for v in VALUES), strict=True))
        for _ in range(50)
    ]
    meaning = Semantics("sql", SCHEMA)
    measure = Sampled(events, SCHEMA)
    merger, parts = exp(merger), [*map(exp, parts)]
    found = degree(merger, parts, meaning, measure)
    holds, tests = meaning.condition(merger), [meaning.condition(part) for part in parts]
    hits = [row for row in measure.rows if holds(row)]
    added = [row for row in hits if not any(test(row) for test in tests)]
    assert found.exact
    assert found.probability == Fraction(len(hits), 50)
    assert found.value == (Fraction(len(added), len(hits)) if hits else 0)


# --- the examples of the paper


def test_the_paper_s_example_of_advertisements():
    schema = Schema({"price": "int(1, 1000)"})
    meaning = Semantics("sql", schema)
    parts = [exp(text, schema) for text in ("price > 150", "price = 130", "price = 120")]
    merger, measure = exp("price >= 120", schema), Uniform(schema)
    found = degree(merger, parts, meaning, measure)
    assert found.value == Fraction(29, 881)  # 120 to 150 without 120 and 130
    announced = [exp("price > 150", schema)]
    assert degree(merger, parts, meaning, measure, advertisements=announced).value == 0


def test_what_is_never_advertised_has_degree_0():
    meaning = Semantics("sql", SCHEMA)
    found = degree(
        exp("n > 3"), [exp("n > 5")], meaning, Uniform(SCHEMA), advertisements=[exp("n < 2")]
    )
    assert (found.value, found.imt) == (0, 0)


def test_imt_is_the_share_of_all_events_that_are_added():
    found = degree(exp("n > 3"), [exp("n > 5")], Semantics("sql", SCHEMA), Uniform(SCHEMA))
    assert (found.value, found.probability) == (Fraction(2, 3), Fraction(1, 2))
    assert found.imt == Fraction(1, 3)


# --- estimates


def test_estimates_are_as_far_away_as_they_say():
    meaning = Semantics("sql", SCHEMA)
    probabilities = Uniform(SCHEMA, presence=PRESENCE).probabilities(meaning)
    space = EventSpace.of(meaning)
    chance = random.Random(7)  # noqa: S311 - no secret
    distances = []
    for seed in range(150):
        low, high = sorted(chance.sample(range(1, 7), 2))
        merger = exp(f"n >= {low} AND side <> 'c' OR m = {chance.randint(1, 4)}")
        parts = [exp(f"n > {high} AND side = 'a'"), exp(f"m = {chance.randint(1, 4)} AND b")]
        exact = degree(merger, parts, meaning, Uniform(SCHEMA, presence=PRESENCE))
        # What no box can say: the same forms, beside a comparison of attributes that is always true
        # of what is there, so that they cannot be counted.
        blurred = exp(f"({merger}) AND (n + 0 = n OR n IS NULL)")
        found = degree_of_forms(
            form_of(blurred, meaning), [form_of(part, meaning) for part in parts], space,
            probabilities, draws=400, seed=seed,
        )  # fmt: skip
        assert not found.exact
        distances.append((found.value - float(exact.value)) / found.error)
    spread = math.sqrt(sum(d * d for d in distances) / len(distances))
    assert 0.8 < spread < 1.2
    assert sum(abs(d) < 2 for d in distances) / len(distances) > 0.9


def test_an_estimate_is_the_same_every_time():
    meaning = Semantics("sql", SCHEMA)
    arguments = exp("n > m"), [exp("n > 5")], meaning, Uniform(SCHEMA)
    assert degree(*arguments, draws=500) == degree(*arguments, draws=500)
    assert degree(*arguments, draws=500) != degree(*arguments, draws=500, seed=2)


def test_what_never_comes_is_not_certain():
    schema = Schema({"n": "int(1, 1000000)", "m": "int(1, 1000000)"})
    found = degree(
        exp("n = m + 1", schema), [], Semantics("sql", schema), Uniform(schema), draws=100
    )
    assert (found.value, found.exact) == (0, False)
    assert found.error >= 0.1
