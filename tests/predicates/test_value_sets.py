"""Value sets hold exactly the values of which a condition is true, by enumeration."""

import functools
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import DOUBLES, INTS, STRINGS
from tamis import Schema, parse
from tamis.language import ast
from tamis.language.normal_form import normalize
from tamis.predicates.value_orders import order_of, value_order
from tamis.predicates.value_sets import (
    MISSING,
    NOTHING,
    ValueSet,
    all_values,
    condition_of,
    holds_of,
    listed,
    value_set,
    with_missing,
)
from tamis.types import BOOL, INT

SCHEMA = Schema(
    {
        "i": "int", "n": "int(0, 5)", "x": "double", "b": "bool", "s": "string",
        "e": "enum('a', 'b', 'abc')", "at": "timestamp",
    }
)  # fmt: skip
VALUES = {
    "i": [*INTS, 4, 6, -(2**63), 2**63 - 1],
    "n": range(6),
    "x": [*DOUBLES, 4.0, 6.0, -0.0, math.nextafter(2.5, 3), math.nan, math.inf, -math.inf],
    "b": [False, True],
    "s": [*STRINGS, "\0", "a\0", "a\0\0", "z"],
    "e": ["a", "b", "abc"],
    "at": [-1, 0, 1_577_836_800_000_000, 1_609_459_200_000_000],
}
CONSTANTS = {
    "i": ["0", "1", "2", "3", "5", "2.5", "10"],
    "n": ["0", "1", "2", "3", "5"],
    "x": ["0", "-0.0D", "1", "2.5", "2.5000000000000004", "10", "1e308 * 10", "-1e308 * 10"],
    "b": ["TRUE", "FALSE"],
    "s": ["''", "'a'", "'a\\u0000'", "'b'", "'ab'"],
    "e": ["'a'", "'b'", "'abc'"],
    "at": ["TIMESTAMP '2020-01-01'", "TIMESTAMP '2021-01-01'"],
}
FINITE = {"n", "b", "e"}  # all their values are above
ORDERS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


@st.composite
def conditions(draw, name, depth=2):
    """Conditions on one attribute, as text."""
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
            constants = st.lists(constant.filter(lambda text: "*" not in text), min_size=1)
            return f"{name} {negation}IN ({', '.join(draw(constants))})"
        case _:
            return f"{negation}{name} {draw(st.sampled_from(ORDERS))} {draw(constant)}"


def form(text, schema=SCHEMA):
    return normalize(parse(text, schema).tree)


def elements(values, name):
    """The tried values that a set contains, by their places; None is the last one."""
    order = order_of(SCHEMA[name])
    tried = (*VALUES[name], None)
    return {n for n, value in enumerate(tried) if values.contains(value, order)}


def set_of(text, name):
    return value_set(form(text), order_of(SCHEMA[name]))


def everything(name):
    return with_missing(all_values(order_of(SCHEMA[name])))


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
@settings(max_examples=30)
def test_a_set_holds_what_makes_the_condition_true(name, data):
    node = form(data.draw(conditions(name)))
    found = value_set(node, order_of(SCHEMA[name]))
    if isinstance(node, ast.Literal):
        assert found == (everything(name) if node.value else NOTHING)
        return
    true_of = {n for n, v in enumerate((*VALUES[name], None)) if holds_of(node)(v)}
    assert elements(found, name) == true_of


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
@settings(max_examples=30)
def test_operations_are_those_of_sets(name, data):
    a, b, c = (set_of(data.draw(conditions(name)), name) for _ in range(3))
    first, second, third = (elements(one, name) for one in (a, b, c))
    assert elements(a.union(b, c), name) == first | second | third
    assert elements(a.intersection(b), name) == first & second
    assert elements(a.difference(b), name) == first - second
    assert bool(a) >= bool(first)
    if a.issubset(b):
        assert first <= second
        assert a.intersection(b) == a
        assert not a.difference(b)
    else:
        assert a.difference(b)
    if name in FINITE:
        assert a.issubset(b) == (first <= second)
        assert bool(a) == bool(first)
    assert a.union(a) == a.intersection(a) == a
    assert a.difference(b).union(a.intersection(b)) == a
    assert everything(name).difference(everything(name).difference(a)) == a
    for one in (a, b, a.union(b), a.intersection(b), a.difference(b)):
        cuts = [cut for interval in one.intervals for cut in interval]
        assert all(x < y for x, y in itertools.pairwise(cuts))


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
@settings(max_examples=30)
def test_a_condition_made_of_a_set_is_true_of_the_same_values(name, data):
    attribute, order = SCHEMA[name], order_of(SCHEMA[name])
    found = set_of(data.draw(conditions(name)), name)
    made = condition_of(found, attribute)
    assert value_set(made, order) == found
    assert condition_of(value_set(made, order), attribute) == made


@each("name", VALUES)
def test_all_values_of_an_attribute(name):
    places = set(range(len(VALUES[name]) + 1))
    assert elements(everything(name), name) == places
    assert elements(all_values(order_of(SCHEMA[name])), name) == places - {len(VALUES[name])}


def test_members():
    order = value_order(INT)
    found = set_of("i IN (1, 2, 9) OR i IS NULL", "i")
    assert found.members(order, 3) == [1, 2, 9]
    assert found.members(order, 2) is None
    assert set_of("s IN ('b', 'a')", "s").members(order_of(SCHEMA["s"]), 5) == ["a", "b"]
    assert set_of("s < 'a'", "s").members(order_of(SCHEMA["s"]), 5) is None
    assert NOTHING.members(order, 0) == []


@each(
    ("text", "canonical"),
    [
        ("i >= 5 AND i <= 5", "i = 5"),
        ("i < 5 OR i > 5", "i <> 5"),
        ("i IN (1, 2, 3)", "i >= 1 AND i <= 3"),
        ("n >= 0", "n IS NOT NULL"),
        ("n <= 5 AND n > 2", "n >= 3"),
        ("x > 1 AND x >= 2", "x >= 2.0D"),
        ("x = -0.0D", "x = 0.0D"),
        ("x >= -0.0D AND x < 1", "x >= 0.0D AND x < 1.0D"),
        ("x > 0.3D AND x <= 0.7D", "x > 0.3D AND x <= 0.7D"),
        ("s > 'a' AND s <= 'b'", "s > 'a' AND s <= 'b'"),
        ("s <= ''", "s = ''"),
        ("e IN ('a', 'abc')", "e <> 'b'"),
        ("b OR b IS NULL", "b = TRUE OR b IS NULL"),
        ("i IS NULL AND i = 1", "1 = 2"),
        ("i IS NULL OR i IS NOT NULL", "1 = 1"),
        ("s = 'b' OR s = 'a'", "s IN ('a', 'b')"),
        ("s NOT IN ('a', 'b') AND s <> 'c'", "s NOT IN ('a', 'b', 'c')"),
    ],
)
def test_conditions_of_equal_sets_are_equal(text, canonical):
    node, expected = form(text), form(canonical)
    if node not in {ast.TRUE, ast.FALSE}:
        (path,) = ast.attributes(node)
        attribute = SCHEMA.find(path)
        node = condition_of(value_set(node, order_of(attribute)), attribute)
    assert node == expected


def test_zeros_are_one_value_whichever_came_first():
    for first in ("-0.0D", "0.0D"):
        schema = Schema({f"x{first.count('-')}": "double"})
        name = next(iter(schema))
        order = order_of(schema[name])
        made = [
            condition_of(value_set(form(text, schema), order), schema[name])
            for text in (f"{name} = {first}", f"{name} = 0.0D", f"{name} = -0.0D")
        ]
        assert made[0] == made[1] == made[2]
        assert repr(made[0].right.value) == "0.0"


@each("text", ["startswith(s, 'a')", "s LIKE 'a%b'", "s = 'a' OR s RLIKE 'b'", "i + 1 > 2"])
def test_conditions_without_a_value_set(text):
    assert set_of(text, "i" if "i +" in text else "s") is None


@each("text", ["e LIKE 'a%'", "lower(e) RLIKE '^a'", "length(e) IN (1, 3)"])
def test_every_condition_on_a_listed_domain_has_a_value_set(text):
    found, node = set_of(text, "e"), form(text)
    assert elements(found, "e") == {n for n, v in enumerate(VALUES["e"]) if holds_of(node)(v)}


def test_the_parts_of_a_text_are_listed():
    found = set_of("s SUBSTRING OF 'aba'", "s")
    parts = ["", "a", "ab", "aba", "b", "ba"]
    assert found.members(order_of(SCHEMA["s"]), 10) == parts
    assert set_of(f"s SUBSTRING OF '{'a' * 61}'", "s") is None


def test_a_constant_condition():
    order = order_of(SCHEMA["i"])
    assert value_set(ast.Literal(True, BOOL), order) == everything("i")
    assert value_set(ast.Literal(False, BOOL), order) == NOTHING


def test_neighbours_touch():
    assert listed((1, 2, 3, 5), value_order(INT)) == ValueSet(((1, 4), (5, 6)))
    assert set_of("x <= 2.5 OR x >= 2.5000000000000004D", "x") == all_values(order_of(SCHEMA["x"]))
    assert not MISSING.intervals
    assert functools.reduce(ValueSet.union, (NOTHING, MISSING)) == MISSING
