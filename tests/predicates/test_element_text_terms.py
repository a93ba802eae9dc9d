"""Conditions on the strings of arrays: what is remembered of a string is what they mean."""

import pytest

from array_strategies import ARRAYS, TEXTS
from cases import each
from element_conditions import check_conditions
from tamis import Matcher
from tamis.events.values import MapValue
from tamis.language.evaluation import Logic
from tamis.language.negations import settle_conditions
from tamis.language.parser import parse_tree
from tamis.predicates import element_text_terms as module
from tamis.predicates.element_text_terms import element_text_terms

CONDITIONS = [
    "t LIKE 'a%'", "t NOT LIKE '%b'", "t LIKE '%a_'", "t LIKE ''", "contains(t, 'é')",
    "NOT contains(t, 'a')", "contains(t, NULL)", "NOT startswith(t, NULL)", "t RLIKE '^[ab]+$'",
    "NOT t RLIKE 'a'", "t = 'ab'", "t <> 'ab'", "t = ''", "t IN ('a', 'k')", "t IN ('a', NULL)",
    "t LIKE 'a%' AND t <> 'ab'", "t LIKE '%b%' AND length(t) > 1 AND t NOT LIKE 'x%'",
    "t LIKE '%a%' AND contains(t, NULL)", "NOT (t LIKE 'a%' AND t LIKE '%b')",
    "t LIKE 'a%' OR t LIKE '%l'", "t IS NULL", "t IS NOT NULL", "lower(t) LIKE 'a%'",
    "lower(t) = 'a'", "length(t) > 1", "t < 'b'", "t SUBSTRING OF 'null'", "TRUE", "t ILIKE 'A%'",
    "TRY_CAST(t AS INT) > 0", "nullif(t, 'a') LIKE '%b'",
]  # fmt: skip
ARRAY_TEXTS = ["tags", "r.words", "map_keys(props)", "map_values(names)"]
TERMS = [
    parse_tree(f"{name}({array}, t -> {condition})", ARRAYS)
    for array in ARRAY_TEXTS
    for condition in CONDITIONS
    for name in ("exists", "forall")
]


def arrays():
    """No array, one without elements, and some with and without nulls."""
    some = [(one, other) for one in TEXTS for other in ("a", "ab")]
    return [None, (), (None,), *some, *((None, *part) for part in some), tuple(TEXTS)]


def rows():
    found = []
    for tags in arrays():
        names = None if tags is None else MapValue(zip("abcdefghijklm", tags, strict=False))
        keys = None if tags is None else MapValue((t, 1) for t in tags if t is not None)
        given = {"tags": tags, "r.words": tags and tags[::-1], "names": names, "props": keys}
        found.append(tuple((dict.fromkeys(ARRAYS) | given).values()))
    return found


@each(
    ("condition", "expected"),
    [
        ("t LIKE '%{}'", True), ("t = '{}'", True), ("length(t) > {}", True),
        ("t LIKE 'a%' AND length(t) > {}", True), ("length(t) + i > {}", False),
        ("to_timestamp(t) > now() - INTERVAL '{}' DAYS", False),
    ],
)  # fmt: skip
def test_which_conditions_are_tested_once_per_string(condition, expected):
    texts = [f"exists(tags, t -> {condition.format(n)})" for n in range(10)]
    terms = [parse_tree(text, ARRAYS) for text in texts]
    assert bool(element_text_terms(terms, ARRAYS, others=())) == expected
    assert not element_text_terms(terms[:7], ARRAYS, others=())
    assert not element_text_terms(terms, ARRAYS, others={2, 5, 7})


@pytest.mark.parametrize("logic", Logic)
@pytest.mark.parametrize(("remembered", "held"), [(0, 0), (64_000_000, 1 << 22)])
def test_conditions_have_their_meaning(monkeypatch, logic, remembered, held):
    monkeypatch.setattr(module, "MOST_REMEMBERED", remembered)
    monkeypatch.setattr(module, "MOST_HELD", held)
    terms = [settle_conditions(term, logic) for term in TERMS]
    check_conditions(element_text_terms(terms, ARRAYS, others=()).values(), terms, rows())


@pytest.mark.parametrize("logic", Logic)
def test_only_conditions_that_may_be_true_are_tested(logic):
    terms = [parse_tree(f"exists(tags, t -> t LIKE '%x{n}y%')", ARRAYS) for n in range(100)]
    terms += [parse_tree(f"forall(tags, t -> t <> 'x{n}y')", ARRAYS) for n in range(100)]
    terms += [parse_tree(f"exists(tags, t -> t <> 'x{n}y')", ARRAYS) for n in range(100)]
    terms += [parse_tree(f"forall(tags, t -> t LIKE '%x{n}y%')", ARRAYS) for n in range(100)]
    terms = [settle_conditions(term, logic) for term in terms]
    (part,) = element_text_terms(terms, ARRAYS, others=()).values()
    tested = []

    def noting(place, condition):
        def holds(row):
            tested.append(place)
            return condition(row)

        return holds

    part._conditions = [noting(*numbered) for numbered in enumerate(part._conditions)]

    def event(tags):
        return tuple((dict.fromkeys(ARRAYS) | {"tags": tags}).values())

    keys, present = part.of_row(event(("ax7yb", "x8y", "none")))
    assert present.all()
    assert keys.nonzero()[0].tolist() == [
        7, 8, *(100 + n for n in range(100) if n != 8), *range(200, 300),
    ]  # fmt: skip
    assert sorted(tested) == [7, 8, 108, 208, 307, 308]
    tested.clear()
    keys, present = part.of_row(event(("ax7yb", "x7yx8y")))
    assert keys[300:].nonzero()[0].tolist() == [7]  # the one text that all strings have
    assert present.all()


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("sliced", {}), ("auto", {}), ("counting-list", {}),
        ("sliced", {"semantics": "default", "defaults": dict.fromkeys(ARRAYS)}),
    ],
)  # fmt: skip
def test_matches_are_those_of_naive(engine, settings):
    rules = {
        number: f"{name}({array}, t -> {condition})"
        for number, (array, condition, name) in enumerate(
            (array, condition, name)
            for array in ARRAY_TEXTS
            for condition in CONDITIONS
            for name in ("exists", "NOT exists", "forall", "NOT forall")
        )
    }
    schema_rows = [dict(zip(ARRAYS, row, strict=True)) for row in rows()]
    naive, other = (Matcher(ARRAYS, name, **settings) for name in ("naive", engine))
    for matcher in (naive, other):
        matcher.subscribe_many(rules)
    expected = [naive.match(event) for event in schema_rows]
    assert other.match_batch(schema_rows, "lists")["subscriptions"].to_pylist() == expected
    assert [other.match(event) for event in schema_rows] == expected
