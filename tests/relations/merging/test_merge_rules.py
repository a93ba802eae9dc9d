"""The rules themselves; what they do to whole filters is in ``fixtures/merging.txt``."""

import inspect
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from tamis import Schema, parse
from tamis.language import ast
from tamis.language.normal_form import normalize
from tamis.predicates.boxes import box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.predicates.value_sets import ValueSet, with_missing
from tamis.relations.merging import merge_rules
from tamis.relations.merging.condition_mergers import join, widen
from tamis.relations.merging.merge_rules import RULES, MergedAttribute
from tamis.semantics import Semantics

SCHEMA = Schema({"n": "int(1, 9)", "x": "double", "s": "string", "b": "bool"})
MEANING = Semantics("sql", SCHEMA)
SPACE = EventSpace.of(MEANING)
VALUES = {
    "n": [None, *range(1, 10)],
    "x": [None, -1.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("nan"), float("inf")],
    "s": [None, "", "a", "ab", "abc", "abd", "b", "zz"],
    "b": [None, True, False],
}


def condition(text):
    box = box_of(form_of(parse(text, SCHEMA), MEANING), SPACE)
    return box.conditions[0].node if box and box.conditions and not box.is_empty else None


def merged_attribute(name):
    return MergedAttribute(SCHEMA[name], may_miss=True)


def true_of(node, name):
    """The values of which a condition is true, by evaluating it."""
    from tamis.predicates.value_sets import holds_of

    if isinstance(node, ast.Literal):
        return set(range(len(VALUES[name]))) if node.value else set()
    return {n for n, value in enumerate(VALUES[name]) if holds_of(node)(value)}


def conditions_of(name):
    texts = {
        "n": [f"n {op} {v}" for op in ("=", "<", "<=", ">", ">=", "<>") for v in range(1, 10)]
        + ["n IN (1, 4, 5)", "n NOT IN (2, 3)", "n IS NULL", "n IS NULL OR n > 5"],
        "x": [f"x {op} {v}" for op in ("=", "<", "<=", ">", ">=", "<>") for v in (0.5, 1, 2)],
        "s": ["s = 'a'", "s = 'ab'", "s <> 'a'", "s LIKE 'a%'", "s LIKE 'ab%'", "s < 'abc'",
              "s >= 'abc'", "NOT s LIKE 'a%'", "s LIKE '%b'", "contains(s, 'b')", "s IS NULL",
              "s IN ('abc', 'abd')"],
        "b": ["b", "NOT b", "b IS NULL"],
    }[name]  # fmt: skip
    nodes = [condition(text) for text in texts]
    return st.sampled_from([node for node in nodes if node is not None])


@st.composite
def conditions_on_one(draw):
    name = draw(st.sampled_from(["n", "n", "x", "s", "s", "b"]))
    return name, draw(st.lists(conditions_of(name), min_size=2, max_size=6))


@pytest.mark.long
@pytest.mark.parametrize("rules", RULES)
@given(drawn=conditions_on_one())
@settings(max_examples=60)
def test_a_joined_condition_is_true_when_one_of_its_members_is(rules, drawn):
    name, nodes = drawn
    found = join(nodes, merged_attribute(name), RULES[rules])
    taken = [member for joined in found for member in joined.members]
    assert len(taken) == len(set(taken))
    for joined in found:
        assert len(joined.members) > 1
        parts = set().union(*(true_of(nodes[m], name) for m in joined.members))
        assert true_of(joined.node, name) == parts


@pytest.mark.long
@pytest.mark.parametrize("rules", RULES)
@given(drawn=conditions_on_one())
@settings(max_examples=60)
def test_a_wider_condition_is_true_when_one_of_two_is(rules, drawn):
    name, (a, b, *_) = drawn
    found = widen(a, b, merged_attribute(name), RULES[rules])
    assert ast.TRUE in found
    for node in found:
        assert true_of(node, name) >= true_of(a, name) | true_of(b, name)


@given(nodes=st.lists(conditions_of("n"), min_size=2, max_size=6))
@settings(max_examples=50)
def test_the_paper_s_mergers_are_single_predicates(nodes):
    for joined in join(nodes, merged_attribute("n"), RULES["paper"]):
        match joined.node:
            case ast.Compare() | ast.Not(ast.IsNull()) | ast.Literal(True):
                pass
            case other:
                pytest.fail(f"{other} is not a predicate of the paper")


def test_many_conditions_join_at_once():
    nodes = [condition(f"n = {v}") for v in (9, 3, 1, 2, 7)]
    (found,) = join(nodes, merged_attribute("n"), RULES["full"])
    assert found.members == (0, 1, 2, 3, 4)
    assert [j.members for j in join(nodes, merged_attribute("n"), RULES["paper"])] == [(1, 2, 3)]


def test_lists_have_a_limit():
    nodes = [condition(f"s = '{v}'") for v in "abcdefg"]
    small = merged_attribute("s")._replace(list_size=3)
    assert [j.members for j in join(nodes, small, RULES["full"])] == [(0, 1, 2), (3, 4, 5)]


def test_prefixes():
    (nearest, *_), prefix = (
        widen(
            condition("s = 'abd'"), condition("s LIKE 'abc%'"), merged_attribute("s"), RULES["full"]
        ),
        condition("s LIKE 'ab%'"),
    )
    assert nearest == condition("s IS NOT NULL")
    assert prefix in widen(
        condition("s = 'abd'"), condition("s LIKE 'abc%'"), merged_attribute("s"), RULES["full"]
    )
    assert prefix not in widen(
        condition("s = 'abd'"), condition("s LIKE 'b%'"), merged_attribute("s"), RULES["full"]
    )


def test_every_rule_shows_what_it_does():
    for rules in RULES.values():
        for rule in (*rules.perfect, *rules.imperfect):
            assert inspect.getmodule(rule) is merge_rules
            assert re.match(r"``.+ ->", inspect.getdoc(rule) or "")


@each("rules", RULES.values())
def test_the_examples_of_perfect_rules_hold(rules):
    """Each docstring ``a, b -> c`` of a perfect rule is what `join` makes of a and b."""
    schema = Schema({"x": "int"})
    meaning = Semantics("sql", schema)
    place = MergedAttribute(schema["x"], may_miss=True)

    def node(text):
        box = box_of(form_of(parse(text, schema), meaning), EventSpace.of(meaning))
        return box.conditions[0].node

    for rule in rules.perfect:
        before, after = inspect.getdoc(rule).strip("`").split(" -> ")
        before = re.split(r", (?=x )", before)
        (joined,) = join([node(text) for text in before], place, rules)
        assert joined.node == node(after)
        assert len(joined.members) == len(before)


def test_the_examples_of_imperfect_rules_hold():
    """Each docstring ``a, b -> c`` of an imperfect rule is what it makes of a and b."""
    schema = Schema({"x": "int"})
    place = MergedAttribute(schema["x"], may_miss=True)

    def values(text):
        if text == "x is not tested":
            return with_missing(place.everything)
        return place.values(normalize(parse(text, schema).tree))

    for rule in {rule for rules in RULES.values() for rule in rules.imperfect}:
        before, after = inspect.getdoc(rule).replace("`", "").split(" -> ")
        one, other = map(values, before.split(", "))
        assert rule(one, other, place) == values(after)


def test_rules_that_do_not_apply():
    place = merged_attribute("x")
    one, other, above = (place.values(condition(f"x {test}")) for test in ("= 1", "= 5", "> 1"))
    assert merge_rules.open_ends(one, other, place) is None
    assert merge_rules.open_ends(one, above, place) is None
    assert merge_rules.up_to(one, other, place) is None
    assert merge_rules.down_to(one, other, place) is None
    assert merge_rules.up_to(above, other, place) is None
    nothing = ValueSet(())
    for rule in (merge_rules.hull, merge_rules.at_most, merge_rules.at_least):
        assert rule(nothing, nothing, place) is None
