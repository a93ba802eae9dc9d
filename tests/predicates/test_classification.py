"""Every canonical predicate is one kind of test, and the kind says all of it."""

import math

import pytest
from hypothesis import given

from cases import each
from strategies import SCHEMA, filters
from tamis import Schema, TypeMismatch, parse
from tamis.language import ast
from tamis.language.evaluation import Logic
from tamis.language.normal_form import normalize
from tamis.predicates.classification import (
    Comparison,
    Constant,
    LikeTest,
    Membership,
    OtherTest,
    PairComparison,
    PartTest,
    Presence,
    RegexTest,
    StringTest,
    classify,
    deciding_attribute,
    plain_attribute,
)
from tamis.types import BOOL, DOUBLE, INT, STRING, TIMESTAMP

I, X, S, T, B = (
    ast.Attribute((name,), kind)
    for name, kind in (("i", INT), ("x", DOUBLE), ("s", STRING), ("t", STRING), ("b", BOOL))
)

KINDS = {
    "i < 5": Comparison(I, "<=", 4),
    "5.5 >= i": Comparison(I, "<=", 5),
    "x <> 1": Comparison(X, "<>", 1.0),
    "s = 'a'": Comparison(S, "=", "a"),
    "b": Comparison(B, "=", True),
    "NOT b": Comparison(B, "=", False),
    "i IN (3, 1, 1)": Membership(I, (1, 3)),
    "s NOT IN ('b', 'a')": Membership(S, ("a", "b"), negated=True),
    "i IN (1)": Comparison(I, "=", 1),
    "i IS NULL": Presence(I, present=False),
    "i IS NOT NULL": Presence(I, present=True),
    "s LIKE '%'": Presence(S, present=True),
    "startswith(s, 'ab')": StringTest(S, "startswith", "ab"),
    "s LIKE '%ab'": StringTest(S, "endswith", "ab"),
    "s NOT LIKE '%ab%'": StringTest(S, "contains", "ab", negated=True),
    "s SUBSTRING OF 'abc'": PartTest(S, "contains", "abc"),
    "startswith('abc', s)": PartTest(S, "startswith", "abc"),
    "NOT endswith('abc', s)": PartTest(S, "endswith", "abc", negated=True),
    "s LIKE 'a_c'": LikeTest(S, "a_c", "\\"),
    "s NOT LIKE 'a_c' ESCAPE '!'": LikeTest(S, "a_c", "!", negated=True),
    "s RLIKE 'a+'": RegexTest(S, "a+"),
    "NOT s RLIKE 'a+'": RegexTest(S, "a+", negated=True),
    "s < t": PairComparison(S, "<", T),
    "TRUE": Constant(truth=True),
    "1 > 2": Constant(truth=False),
}


def form(text, schema=SCHEMA):
    return normalize(parse(text, schema).tree)


@each("text", KINDS)
def test_each_kind(text):
    found = classify(form(text))
    assert (type(found), found) == (type(KINDS[text]), KINDS[text])


def test_moments_are_compared():
    at = ast.Attribute(("at",), TIMESTAMP)
    found = classify(form("at > TIMESTAMP '1970-01-01 00:00:01'"))
    assert found == Comparison(at, ">", 1_000_000)


def test_computed_values_are_tested_as_attributes_are():
    tested = classify(form("length(s) > 3"))
    assert isinstance(tested, Comparison)
    assert (str(tested.value.name), tested.op, tested.constant) == ("length", ">", 3)
    assert isinstance(classify(form("lower(s) LIKE 'a%'")), StringTest)
    assert isinstance(classify(form("1 / i IS NULL")), Presence)


def test_infinity_is_not_a_constant():
    found = classify(form("x < 1e308 * 10"))
    assert isinstance(found, PairComparison)
    assert found.left == X
    assert not ast.attributes(found.right)


def test_what_is_none_of_the_kinds():
    contains = form("contains(s, t)")
    assert classify(contains) == OtherTest(contains)
    assert classify(ast.Not(contains)) == OtherTest(contains, negated=True)
    for item in (I, ast.Literal(1.5, DOUBLE), ast.Literal(None, INT)):
        unusual = ast.In(I, (ast.Literal(1, INT), item))
        assert classify(unusual) == OtherTest(unusual)
    same = ast.Compare("<=>", I, ast.Literal(1, INT))
    assert classify(same) == OtherTest(same)
    assert classify(ast.Not(same)) == OtherTest(same, negated=True)


def test_plain_attribute():
    for text in ("i < 5", "i NOT IN (1, 2)", "i IS NULL", "i IS NOT NULL"):
        assert plain_attribute(form(text)) == I, text
    for text in ("s LIKE 'a%'", "s SUBSTRING OF 'a'", "s LIKE 'a_c'", "NOT s RLIKE 'a'"):
        assert plain_attribute(form(text)) == S, text
    for text in ("i < j", "i + 1 < 5", "lower(s) = 'a'", "TRUE", "contains(s, t)"):
        assert plain_attribute(form(text)) is None, text


def test_deciding_attribute():
    for text in ("i < 5", "i + 1 < 5", "i IS NULL", "i IS NOT NULL", "i % 3 < i"):
        assert deciding_attribute(form(text)) == ("i",), text
    for text in ("i < j", "1 / i IS NULL", "1 / i IS NOT NULL", "TRUE"):
        assert deciding_attribute(form(text)) is None, text


# --- the laws


def predicates(tree):
    if isinstance(tree, ast.And | ast.Or):
        return [predicate for item in tree.items for predicate in predicates(item)]
    return [tree]


def rebuilt(test):
    """The predicate of a test, made of nothing but the test."""
    match test:
        case Comparison(value, op, constant):
            return ast.Compare(op, value, ast.Literal(constant, value.type))
        case Membership(value, constants, _):
            return ast.In(value, tuple(ast.Literal(one, value.type) for one in constants))
        case Presence(value, _):
            return ast.IsNull(value)
        case StringTest(value, function, text, _):
            return ast.Call(function, (value, ast.Literal(text, STRING)), BOOL)
        case PartTest(value, function, text, _):
            return ast.Call(function, (ast.Literal(text, STRING), value), BOOL)
        case LikeTest(value, pattern, escape, _):
            return ast.Like(value, pattern, escape)
        case RegexTest(value, pattern, _):
            return ast.RLike(value, pattern)
        case PairComparison(left, op, right):
            return ast.Compare(op, left, right)
        case Constant(truth):
            return ast.TRUE if truth else ast.FALSE
        case OtherTest(predicate, _):
            return predicate


@pytest.mark.long
@given(filters())
def test_the_kind_says_all_of_a_predicate(text):
    try:
        tree = parse(text, SCHEMA).tree
    except TypeMismatch:
        return
    for logic in Logic:
        for predicate in predicates(normalize(tree, logic)):
            test = classify(predicate)
            negated = (
                test.present if isinstance(test, Presence) else getattr(test, "negated", False)
            )
            bare = rebuilt(test)
            assert (ast.Not(bare) if negated else bare) == predicate


@pytest.mark.long
@given(filters())
def test_only_values_without_constants_are_compared_as_pairs(text):
    try:
        tree = parse(text, SCHEMA).tree
    except TypeMismatch:
        return
    for predicate in predicates(normalize(tree)):
        match classify(predicate):
            case PairComparison(left, _, right):
                assert not isinstance(left, ast.Literal)
                assert not isinstance(right, ast.Literal)
            case Comparison(_, _, constant):
                assert constant is not None
                assert not (isinstance(constant, float) and not math.isfinite(constant))


def test_the_type_of_an_attribute_does_not_matter():
    schema = Schema({"level": "int(1, 5)", "color": "enum('red', 'green')"})
    assert classify(form("level > 3", schema)).op == ">="
    assert classify(form("color = 'red'", schema)).constant == "red"
