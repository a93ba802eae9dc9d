"""Queries of a grammar: every part in its place, every choice as probable as it says."""

import re
from collections import Counter

import numpy as np
import pytest

from tamis.workloads.expansion import Expander
from tamis.workloads.grammar import parse_grammar
from tamis.workloads.random_draws import seeded


def queries(text, count=20_000, seed=1):
    made = Expander.of(parse_grammar(text)).queries(seeded(seed, 0), count)
    made.validate(full=True)
    return made.to_pylist()


def shares(text, count=20_000):
    return {query: n / count for query, n in Counter(queries(text, count)).items()}


def test_one_query():
    assert queries('q = "a" b "c" ; b = c "-" c ; c = "b" ;', 3) == ["ab-bc"] * 3


def test_none():
    assert queries('q = "a" b ; b = "c" | "d" ;', 0) == []


def test_choices():
    assert shares('q = 0.5 "a" | 0.2 ( "b" | "c" ) | 0.3 "d" "e" ;') == pytest.approx(
        {"a": 0.5, "b": 0.1, "c": 0.1, "de": 0.3}, abs=0.02
    )


def test_a_choice_of_no_probability_never_comes():
    assert set(queries('q = 0 "a" | 1 "b" | 0 x ; x = "c" ;')) == {"b"}


def test_options_and_empty_parts():
    assert shares('q = [ 0.25 "a" ] "b" x "c" ; x = "-" | ;') == pytest.approx(
        {"b-c": 0.375, "bc": 0.375, "ab-c": 0.125, "abc": 0.125}, abs=0.02
    )


def test_repetitions():
    lengths = np.array([len(query) - 1 for query in queries('q = "a" { 0.6 "b" } ;')])
    assert lengths.mean() == pytest.approx(1.5, abs=0.05)
    for times in range(5):
        assert (lengths >= times).mean() == pytest.approx(0.6**times, abs=0.02)


def test_parts_stay_together():
    text = """
        q = list ;
        list = "[" value { 0.5 "," value } "]" ;
        value = 0.5 digit | 0.3 digit digit "." | 0.2 list ;
        digit = "0" | "1" | "2" ;
    """
    for query in queries(text, 3000):
        assert re.fullmatch(r"[\[\],.0-2]+", query)
        inside = re.sub(r"\d\d\.", "1", query)
        while "[" in inside:
            shorter = re.sub(r"\[\d(,\d)*\]", "1", inside)
            assert shorter != inside
            inside = shorter
        assert inside == "1"


def test_queries_do_not_depend_on_each_other():
    made = queries('q = "a" { 0.5 "a" } ;', 40_000)
    lengths = np.array([len(query) for query in made])
    assert np.corrcoef(lengths[:-1], lengths[1:])[0, 1] == pytest.approx(0, abs=0.03)


def test_a_seed_fixes_the_queries():
    text = 'q = "a" { 0.5 ( "b" | "c" ) } ;'
    assert queries(text, 500, seed=3) == queries(text, 500, seed=3)
    assert queries(text, 500, seed=3) != queries(text, 500, seed=4)
