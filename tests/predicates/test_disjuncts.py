"""Filters as conjunctions that share an id."""

import pytest
from hypothesis import given

from strategies import SCHEMA, filters, rows
from tamis import LimitError, Schema, TypeMismatch, parse
from tamis.language.evaluation import compile_tree
from tamis.language.printer import print_tree
from tamis.predicates.disjuncts import conjunctions
from tamis.semantics import Semantics

CARS = Schema({"car": "string", "name": "string", "year": "int"})


def printed(text, semantics="sql", schema=CARS):
    found = conjunctions(parse(text, schema), Semantics(semantics, schema))
    return [sorted(print_tree(p, suffixes=False) for p in c) for c in found]


def test_a_conjunction_is_itself():
    assert printed("car = 'VW' AND year < 78") == [["car = 'VW'", "year <= 77"]]


def test_the_papers_27_subscriptions():
    """The BDD paper counts 27 conjunctions of equalities; sets stay whole here, so 3 are enough."""
    text = (
        "car IN ('GM', 'BMW', 'VW') AND name IN ('Liz', 'Bob', 'Al') "
        "AND (year < 78 OR year = 80 OR year > 90)"
    )
    assert len(printed(text)) == 3
    spelled = (
        "(car = 'GM' OR car = 'BMW' OR car = 'VW') AND (name = 'Liz' OR name = 'Bob' OR "
        "name = 'Al') AND (year < 78 OR year = 80 OR year > 90)"
    )
    assert len(printed(spelled)) == 27


def test_always_and_never():
    assert printed("TRUE") == [[]]
    assert printed("FALSE") == []
    assert printed("year = 1.5") == []


def test_strict_needs_every_attribute_of_the_text():
    assert printed("year < 5 OR car = 'VW'", "strict") == [
        ["car IS NOT NULL", "year <= 4"],
        ["car = 'VW'", "year IS NOT NULL"],
    ]
    assert printed("year IS NULL", "strict") == [["year IS NOT NULL", "year IS NULL"]]


def test_too_many_disjuncts():
    text = " AND ".join(f"(year = {n} OR car = '{n}')" for n in range(20))
    with pytest.raises(LimitError, match="more than 1,000 disjuncts"):
        printed(text)


@pytest.mark.long
@given(filters(), rows())
def test_an_event_matches_iff_all_of_one_disjunct_is_true(text, row):
    semantics = Semantics("sql", SCHEMA)
    try:
        expression = parse(text, SCHEMA)
        found = conjunctions(expression, semantics)
    except (TypeMismatch, LimitError):
        return
    some = any(all(compile_tree(p, SCHEMA)(row) is True for p in c) for c in found)
    assert some == semantics.condition(expression)(row)
