"""Facts between predicates, against the truth of all values that could tell them apart."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import DECIMALS, DOUBLES, INTS, LONG_DECIMALS, MOMENTS, SCHEMA, STRINGS, atoms
from tamis import Schema, TypeMismatch, parse
from tamis.errors import LimitError
from tamis.language import ast
from tamis.language.evaluation import Logic, compile_tree
from tamis.language.normal_form import normalize
from tamis.predicates.implication import attribute_of, complements, excludes, facts, implies

POOLS = {
    "int": [None, *INTS, *range(-20, 21)],
    "double": [None, *DOUBLES, *(n / 2 for n in range(-20, 21))],
    "string": [None, *STRINGS, "IBM corp", "xIBM", "aab", "aba", "ba", "bb", "a\x00"],
    "bool": [None, True, False],
    "timestamp": [None, *MOMENTS],
    "decimal(9, 2)": [None, *DECIMALS],
    "decimal(38, 10)": [None, *LONG_DECIMALS],
}


def predicate(text, schema=SCHEMA):
    return normalize(parse(text, schema).tree)


def truths(node, schema, pool):
    (path,) = ast.attributes(node)
    position, holds = schema.positions[path], compile_tree(node, schema)
    rows = [[None] * len(schema) for _ in pool]
    for row, value in zip(rows, pool, strict=True):
        row[position] = value
    return [holds(tuple(row)) is True for row in rows]


@each(
    ("u", "v"),
    [
        ("i = 10", "i > 8"), ("i < 5", "i <= 5"), ("i < 5", "i <= 4"), ("i <= 4", "i < 5"),
        ("x < 5", "x <= 5"), ("x = 5", "x >= 5"), ("x > 5", "x <> 5"), ("i IN (1, 2)", "i < 3"),
        ("i IN (1, 2)", "i IN (1, 2, 3)"), ("i IN (1, 2)", "NOT i IN (4, 5)"),
        ("s = 'IBM'", "s LIKE 'I%'"), ("s LIKE 'IBM%'", "s LIKE 'I%'"), ("s LIKE '%M'", "s <> 'x'"),
        ("s LIKE 'IBM%'", "contains(s, 'BM')"), ("s = 'a'", "s SUBSTRING OF 'ab'"),
        ("s SUBSTRING OF 'a'", "s SUBSTRING OF 'ab'"), ("s = 'IBM'", "s IS NOT NULL"),
        ("s RLIKE 'x'", "s IS NOT NULL"), ("NOT s LIKE 'I%'", "NOT s LIKE 'IBM%'"),
        ("s = 'abc'", "s RLIKE '^a'"),
        ("at < TIMESTAMP '2020-01-01'", "at < TIMESTAMP '2021-01-01'"),
        ("s = 'abc'", "s > 'abb'"), ("b = TRUE", "b IS NOT NULL"),
    ],
)  # fmt: skip
def test_implies(u, v):
    u, v = predicate(u), predicate(v)
    assert implies(u, v)
    assert facts(v, u) == facts(u, v).mirrored()


@each(
    ("u", "v"),
    [
        ("i < 5", "i >= 6"), ("i < 5", "i >= 5"), ("x = 1", "x = 2"), ("s = 'a'", "s LIKE 'b%'"),
        ("s LIKE 'a%'", "s LIKE 'b%'"), ("s LIKE '%a'", "s LIKE '%b'"), ("i IS NULL", "i = 1"),
        ("b = TRUE", "b = FALSE"), ("s LIKE 'ab%'", "NOT s LIKE 'a%'"),
        ("i IS NULL", "i IS NOT NULL"),
    ],
)  # fmt: skip
def test_excludes(u, v):
    assert excludes(predicate(u), predicate(v))


@each(
    ("u", "v"),
    [
        ("i < 5", "i >= 5"), ("i <= 5", "i > 5"), ("x < 5", "x >= 5"), ("s = 'a'", "s <> 'a'"),
        ("i IN (1, 2)", "NOT i IN (1, 2)"), ("b = TRUE", "b = FALSE"),
        ("s LIKE '%a_'", "NOT s LIKE '%a_'"), ("i IS NULL", "i IS NOT NULL"),
    ],
)  # fmt: skip
def test_complements(u, v):
    assert complements(predicate(u), predicate(v))


def test_values_between_constants_tell_doubles_apart_and_not_whole_numbers():
    assert complements(predicate("i > 4"), predicate("i < 5"))
    assert excludes(predicate("i > 4"), predicate("i < 5"))
    assert not excludes(predicate("x > 4"), predicate("x < 5"))


def test_a_domain_adds_facts():
    schema = Schema({"side": "enum('buy', 'sell')", "level": "int(1, 5)"})
    buy, sell = predicate("side = 'buy'", schema), predicate("side = 'sell'", schema)
    assert not complements(buy, sell)
    assert complements(buy, sell, schema["side"].domain)
    starts = predicate("side LIKE 'b%'", schema)
    assert implies(starts, buy, schema["side"].domain)
    low, high = predicate("level <= 3", schema), predicate("level IN (4, 5)", schema)
    assert complements(low, high, schema["level"].domain)
    assert not complements(low, high)


def test_predicates_of_different_attributes_say_nothing_about_each_other():
    assert not any(facts(predicate("i = 1"), predicate("j = 1")))
    assert not any(facts(predicate("i = j"), predicate("i <> j")))


@pytest.mark.long
@given(texts=st.lists(atoms(depth=0), min_size=2, max_size=6), logic=st.sampled_from(Logic))
@settings(max_examples=150)
def test_every_fact_is_true_of_every_value(texts, logic):
    known = {}
    for text in texts:
        try:
            form = normalize(parse(text, SCHEMA).tree, logic)
        except (TypeMismatch, LimitError):
            continue
        for part in ast.walk(form):
            negated = isinstance(part, ast.Not)
            if (negated or not isinstance(part, ast.And | ast.Or)) and attribute_of(part):
                known[part] = str(next(iter(
                    p.type for p in ast.walk(part) if isinstance(p, ast.Attribute))))  # fmt: skip
    for u, v in itertools.permutations(known, 2):
        if attribute_of(u) != attribute_of(v):
            continue
        found, pool = facts(u, v), POOLS[known[u]]
        pairs = list(zip(truths(u, SCHEMA, pool), truths(v, SCHEMA, pool), strict=True))
        assert not found.implies or all(b for a, b in pairs if a)
        assert not found.implied or all(a for a, b in pairs if b)
        assert not found.excludes or not any(a and b for a, b in pairs)
        assert not found.exhausts or all(a or b for a, b in pairs[1:])  # the first is missing
