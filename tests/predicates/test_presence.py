"""Which attributes an event must have for a filter to match it."""

from hypothesis import given
from hypothesis import strategies as st

from offers import parsed
from strategies import SCHEMA, filters, rows
from tamis import Schema, parse
from tamis.language import ast
from tamis.language.evaluation import compile_tree
from tamis.language.normal_form import normalize
from tamis.language.printer import print_tree
from tamis.predicates.presence import (
    ALL,
    attribute_set,
    matching_form,
    missing_tests,
    positions_in,
    presence_tests,
    required_attributes,
)
from tamis.semantics import Semantics

ABC = Schema({"a": "int", "b": "int", "c": "string"})
STRICT, SQL = Semantics("strict", ABC), Semantics("sql", ABC)


def required(text):
    return positions_in(required_attributes(normalize(parse(text, ABC).tree), ABC))


def test_sets_of_attributes():
    assert attribute_set([("c",), ("a",)], ABC) == 0b101
    assert positions_in(0b101) == [0, 2]
    assert positions_in(0) == []
    wide = Schema({f"a{n}": "int" for n in range(100)})
    assert positions_in(attribute_set([("a99",)], wide)) == [99]


def test_required_attributes():
    cases = {
        "a > 1": [0],
        "a > 1 AND c LIKE 'x_'": [0, 2],
        "a > 1 OR b > 1": [],
        "a > 1 OR a < 0 AND b > 1": [0],
        "(a > 1 OR b > 1) AND (a > 2 OR c = 'x') AND b > 3": [1],
        "a + b > 1": [0, 1],
        "a < b": [0, 1],
        "a IS NULL": [],
        "a IS NULL AND b = 1": [1],
        "a IS NOT NULL": [0],
        "1 / a IS NULL": [],
        "1 / a IS NOT NULL": [0],
        "c NOT LIKE 'x%'": [2],
        "TRUE": [],
    }
    for text, positions in cases.items():
        assert required(text) == positions, text
    assert required_attributes(ast.FALSE, ABC) == ALL


def test_strict_demands_what_occurs_in_the_text():
    assert STRICT.demanded(parse("c = 'x' OR a > 1 OR TRUE", ABC)) == (0, 2)
    assert STRICT.demanded(parse("TRUE", ABC)) == ()
    assert SQL.demanded(parse("a > 1", ABC)) == ()


def test_missing_tests():
    expression = parse("a > 1 OR b > 1", ABC)
    first, second = (normalize(parse(text, ABC).tree) for text in ("a > 1", "b > 1"))
    assert [print_tree(t) for t in missing_tests(first, expression, STRICT)] == ["b IS NOT NULL"]
    assert [print_tree(t) for t in missing_tests(second, expression, STRICT)] == ["a IS NOT NULL"]
    assert missing_tests(ast.FALSE, expression, STRICT) == ()
    assert missing_tests(first, expression, SQL) == ()
    assert missing_tests(ast.TRUE, expression, STRICT) == presence_tests(0b11, ABC)


def test_matching_forms():
    cases = {
        "a > 1 OR b > 1": "(a >= 2 OR b >= 2) AND a IS NOT NULL AND b IS NOT NULL",
        "a > 1 AND (a > 5 OR b > 1)": "a >= 2 AND (a >= 6 OR b >= 2) AND b IS NOT NULL",
        "a > 1 OR a < 9": "(a >= 2 OR a <= 8) AND a IS NOT NULL",
        "a > 1 OR TRUE": "a IS NOT NULL",
        "a = NULL": "FALSE",
        "TRUE": "TRUE",
    }
    for text, form in cases.items():
        expression = parse(text, ABC)
        assert print_tree(matching_form(expression, STRICT), suffixes=False) == form, text
        assert matching_form(expression, SQL) == normalize(expression.tree)


@given(filters(), st.lists(rows(), min_size=1, max_size=4))
def test_a_matching_form_is_true_of_what_matches(text, some):
    strict = Semantics("strict", SCHEMA)
    expression = parsed(text)
    form, matches = matching_form(expression, strict), strict.condition(expression)
    holds = compile_tree(form, SCHEMA)
    for row in some:
        assert (holds(row) is True) is matches(row)


@given(filters(), rows())
def test_nothing_is_true_without_what_it_requires(text, row):
    form = normalize(parsed(text).tree)
    needed = required_attributes(form, SCHEMA)
    holds = compile_tree(form, SCHEMA)
    for position in range(len(SCHEMA)):
        if needed >> position & 1:
            assert holds((*row[:position], None, *row[position + 1 :])) is not True
