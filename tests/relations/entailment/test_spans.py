"""A span holds exactly the values that make a condition true."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import DOUBLES, INTS, STRINGS
from tamis import Schema, parse
from tamis.language import ast
from tamis.language.normal_form import normalize
from tamis.relations.entailment.ordered_values import Order
from tamis.relations.entailment.spans import Names, Numbers, holding, span, whole
from tamis.types import BOOL

SCHEMA = Schema(
    {
        "i": "int", "n": "int(0, 5)", "x": "double", "b": "bool", "s": "string",
        "e": "enum('a', 'b', 'abc')",
    }
)  # fmt: skip
VALUES = {
    "i": [*INTS, 4, 6],
    "n": range(6),
    "x": [*DOUBLES, 4.0, 6.0, math.nextafter(2.5, 3)],
    "b": [False, True],
    "s": STRINGS,
    "e": ["a", "b", "abc"],
}
CONSTANTS = {
    "i": ["0", "1", "2", "3", "5", "2.5", "10"],
    "n": ["0", "1", "2", "3", "5"],
    "x": ["0", "1", "2.5", "10", "1e308 * 10", "-1e308 * 10"],
    "b": ["TRUE", "FALSE"],
    "s": ["''", "'a'", "'b'", "'ab'"],
    "e": ["'a'", "'b'", "'abc'"],
}
ORDERS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


@st.composite
def conditions(draw, name, depth=2):
    """Conditions of one attribute, as text."""
    if depth and draw(st.booleans()):
        word = draw(st.sampled_from([" AND ", " OR "]))
        parts = draw(st.lists(conditions(name, depth - 1), min_size=2, max_size=4))
        return draw(st.sampled_from(["", "NOT "])) + f"({word.join(parts)})"
    constant = st.sampled_from(CONSTANTS[name])
    negation = draw(st.sampled_from(["", "NOT "]))
    match draw(st.integers(0, 3)):
        case 0:
            return f"{name} IS {negation}NULL"
        case 1:
            return f"{name} {negation}IN ({', '.join(draw(st.lists(constant, min_size=1)))})"
        case _:
            operators = ["=", "<>"] if name == "s" else ORDERS
            return f"{negation}{name} {draw(st.sampled_from(operators))} {draw(constant)}"


def form(text):
    return normalize(parse(text, SCHEMA).tree)


def has(found, attribute, value):
    if value is None:
        return found.missing
    if isinstance(found, Names):
        return (value in found.names) != found.others
    number = Order(attribute.type, attribute.domain).around(value)[0]
    return any(low <= number <= high for low, high in found.ranges)


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
@settings(max_examples=40)
def test_a_span_holds_what_makes_the_condition_true(name, data):
    attribute = SCHEMA[name]
    first, second = (form(data.draw(conditions(name))) for _ in range(2))
    spans = [span(condition, attribute, True) for condition in (first, second)]
    for condition, found in zip((first, second), spans, strict=True):
        holds = holding(condition, attribute)
        assert [has(found, attribute, v) for v in (*VALUES[name], None)] == [
            holds(v) for v in (*VALUES[name], None)
        ]
    a, b = spans
    outside = [v for v in (*VALUES[name], None) if has(a, attribute, v) > has(b, attribute, v)]
    if outside:
        assert not a.within(b)
    elif name in {"n", "b", "e"}:  # all values were tried
        assert a.within(b)
    assert a.within(a)
    assert bool(a) or not any(has(a, attribute, v) for v in (*VALUES[name], None))


@each("name", VALUES)
def test_the_whole_of_an_attribute(name):
    attribute = SCHEMA[name]
    everything = whole(attribute, missing=True)
    assert all(has(everything, attribute, value) for value in (*VALUES[name], None))
    assert not whole(attribute, missing=False).missing


@each("text", ["s LIKE 'a_'", "s < 'a'", "i + 1 > 2", "s RLIKE 'a'"])
def test_conditions_without_a_span(text):
    name = text[0]
    assert span(form(text), SCHEMA[name], True) is None


@each("text", ["e LIKE 'a%'", "lower(e) RLIKE '^a'", "length(e) IN (1, 3)"])
def test_everything_about_a_listed_domain_has_a_span(text):
    assert isinstance(span(form(text), SCHEMA["e"], True), Names)


def test_spans_are_written_in_one_way():
    attribute = SCHEMA["i"]
    first = span(form("i BETWEEN 1 AND 3 OR i = 4 OR i > 4 AND i <= 6"), attribute, False)
    assert first == span(form("i BETWEEN 1 AND 6"), attribute, False) == Numbers(((1, 6),), False)


def test_a_constant_condition():
    assert span(ast.Literal(True, BOOL), SCHEMA["i"], True) == whole(SCHEMA["i"], True)
    assert not span(ast.Literal(False, BOOL), SCHEMA["i"], True)
