"""Extents say of which values a condition is true, and conditions can be made of them again."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from coverings import SCHEMA, read, with_extents
from tamis import Schema, parse
from tamis.language import ast
from tamis.language.evaluation import compile_tree
from tamis.language.normal_form import normalize
from tamis.predicates.regions import whole
from tamis.relations.extents import Extent, condition_of, extent, single_attribute, union

VALUES = {
    "i": [None, -(2**63), -1, 0, 1, 2, 3, 4, 5, 6, 7, 2**63 - 1],
    "n": [None, 0, 1, 2, 3, 4, 5, 6],
    "x": [None, float("-inf"), -1.0, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 9.0, float("nan")],
    "s": [None, "", "\x00", "a", "a\x00", "ab", "abc", "abd", "b", "ba", "z"],
    "side": [None, "buy", "sell"],
    "b": [None, False, True],
}


def form(text, schema=SCHEMA):
    return normalize(read(text, schema).tree)


def attribute_of(node, schema=SCHEMA):
    return schema.find(single_attribute(node))


def truths(node):
    """The values of its attribute for which a condition is true."""
    attribute = attribute_of(node)
    place = SCHEMA.positions[attribute.path]
    holds = compile_tree(node, SCHEMA)
    row = [None] * len(SCHEMA)
    found = []
    for value in VALUES[attribute.name]:
        row[place] = value
        found.append(holds(tuple(row)) is True)
    return found


conditions = with_extents.map(form).filter(lambda node: not isinstance(node, ast.Literal))


@given(node=conditions)
def test_a_condition_made_of_an_extent_is_true_of_the_same_values(node):
    attribute = attribute_of(node)
    found = extent(node, attribute)
    made = condition_of(found, attribute)
    if made == ast.FALSE:
        assert not any(truths(node))
        assert not found
    elif made == ast.TRUE:
        assert all(truths(node))
    else:
        assert truths(made) == truths(node)
        assert extent(made, attribute) == found
        assert condition_of(extent(made, attribute), attribute) == made


@given(nodes=st.lists(conditions, min_size=2, max_size=10))
def test_sets_of_values(nodes):
    for one, other in combinations(nodes, 2):
        if single_attribute(one) == single_attribute(other):
            check_sets(one, other)


def check_sets(one, other):
    attribute = attribute_of(one)
    a, b = extent(one, attribute), extent(other, attribute)
    first, second = truths(one), truths(other)
    if a.within(b):
        assert all(q for p, q in zip(first, second, strict=True) if p)
    both, either = ast.And((one, other)), ast.Or((one, other))
    assert extent(both, attribute) == a.common(b)
    assert extent(either, attribute) == a.joined(b)
    for combined, node in ((a.common(b), both), (a.joined(b), either)):
        made = condition_of(combined, attribute)
        if made not in {ast.TRUE, ast.FALSE}:
            assert truths(made) == truths(node)
    assert a.common(b).within(a)
    assert a.within(a.joined(b))


@each(
    ("text", "canonical"),
    [
        ("i >= 5 AND i <= 5", "i = 5"),
        ("i < 5 OR i > 5", "i <> 5"),
        ("i IN (1, 2, 3)", "i >= 1 AND i <= 3"),
        ("n >= 0", "n IS NOT NULL"),
        ("n <= 6 AND n > 2", "n >= 3"),
        ("x > 1 AND x >= 2", "x >= 2.0D"),
        ("x = -0.0D", "x = 0.0D"),
        ("x >= -0.0D AND x < 1", "x >= 0.0D AND x < 1.0D"),
        ("side <> 'buy'", "side = 'sell'"),
        ("b OR b IS NULL", "b = TRUE OR b IS NULL"),
        ("i IS NULL AND i = 1", "1 = 2"),
        ("i IS NULL OR i IS NOT NULL", "1 = 1"),
        ("s = 'b' OR s = 'a'", "s IN ('a', 'b')"),
        ("s NOT IN ('a', 'b') AND s <> 'c'", "s NOT IN ('a', 'b', 'c')"),
    ],
)
def test_conditions_of_equal_extents_are_equal(text, canonical):
    node = form(text)
    attribute = attribute_of(node) if node not in {ast.TRUE, ast.FALSE} else None
    expected = form(canonical)
    made = node if attribute is None else condition_of(extent(node, attribute), attribute)
    assert made == expected


def test_zeros_are_one_value_whichever_came_first():
    for first in ("-0.0D", "0.0D"):
        schema = Schema({f"x{first.count('-')}": "double"})
        name = next(iter(schema))
        made = [
            condition_of(extent(normalize(parse(text, schema).tree), schema[name]), schema[name])
            for text in (f"{name} = {first}", f"{name} = 0.0D", f"{name} = -0.0D")
        ]
        assert made[0] == made[1] == made[2]
        assert repr(made[0].right.value) == "0.0"


@each("text", ["startswith(s, 'a')", "s LIKE 'a%b'", "s = 'a' OR s RLIKE 'b'"])
def test_tests_of_strings_have_none(text):
    assert extent(form(text), SCHEMA["s"]) is None


@each("text", ["startswith(side, 'b')", "side LIKE '%u%'", "NOT side LIKE 's%'"])
def test_tests_of_a_few_strings_have_one(text):
    found = extent(form(text), SCHEMA["side"])
    assert condition_of(found, SCHEMA["side"]) == form("side = 'buy'")


def test_only_formulas_of_one_attribute_have_a_single_one():
    assert single_attribute(form("i > 1 AND (i < 5 OR i IS NULL)")) == ("i",)
    assert single_attribute(form("i > 1 AND n < 5")) is None
    assert single_attribute(form("i > n")) is None


def test_union_joins_stretches_that_touch():
    low, middle, high = (1, 0, 0), (1, 5, 0), (1, 9, 0)
    assert union(((middle, high),), ((low, middle),)) == ((low, high),)
    assert union((), ((low, middle),)) == ((low, middle),)


@given(st.booleans())
def test_an_extent_with_the_missing_value_is_not_empty(missing):
    assert bool(Extent((), missing)) == missing
    assert Extent(whole(SCHEMA["i"].type))
