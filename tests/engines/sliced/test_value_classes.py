"""Events as classes between cuts, and the tests that they pass: of one event and of many."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import ExpressionError, Schema, parse
from tamis.engines.sliced import value_classes
from tamis.engines.sliced.interning import intern_filters
from tamis.engines.sliced.leaves import leaves_of
from tamis.engines.sliced.segment_predicates import Texts
from tamis.engines.sliced.value_classes import RowClasses, classes_of
from tamis.kernels.value_classes import MISSING
from tamis.language.evaluation import compile_tree
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.keys import Keys, key_values
from tamis.semantics import Semantics

SMALL = Schema(
    {"i": "int", "x": "double", "s": "string", "side": "enum('sell', 'buy')", "t": "string"}
)
TEXTS = [
    "i > 3 AND i < 7", "i = 3", "x >= 0.5", "x IN (-1, 2, 8)", "s = 'b' OR s > 'd'", "s <> ''",
    "side = 'sell'", "t IS NULL",
]  # fmt: skip


def predicates_of(texts, schema):
    meaning, keys, filters_ = Semantics("sql", schema), Keys(schema), []
    for number, text in enumerate(texts):
        try:
            leaves = leaves_of(parse(text, schema), meaning)
        except ExpressionError:
            continue
        if leaves.codes:
            filters_.append((number, leaves))
    return intern_filters(filters_, keys).predicates if filters_ else None, keys


def cut_values(predicates, schema, attribute):
    """The cuts of an attribute as values."""
    cuts = predicates.cuts[attribute]
    if isinstance(cuts, Texts):
        return [text.decode() for text in cuts.to_arrow().to_pylist()]
    return key_values(schema.attributes[attribute], cuts)


def expected_class(value, cuts, first):
    """A class by its definition; nan is above everything, and equal to itself."""
    if value is None:
        return MISSING

    def order(one):
        return (one != one, 0 if one != one else one)  # noqa: PLR0124 - nan

    below = sum(order(cut) < order(value) for cut in cuts)
    return 2 * (first + below) + (order(value) in map(order, cuts))


def check(predicates, keys, schema, some):
    used = np.arange(len(schema))
    found = classes_of(batch_of_rows(some, schema), predicates, used)
    single = RowClasses(predicates, used, keys)
    for attribute in range(len(schema)):
        cuts = cut_values(predicates, schema, attribute)
        first = int(predicates.starts[attribute]) + 1
        expected = [expected_class(row[attribute], cuts, first) for row in some]
        assert found[attribute].tolist() == expected
    for event, row in enumerate(some):
        assert single.of(row).tolist() == [found[:, event].tolist()]


# --- classes


@given(st.lists(filters(), min_size=1, max_size=10), st.lists(rows(), max_size=8))
@settings(max_examples=25)
def test_classes_of_any_events(texts, some):
    predicates, keys = predicates_of(texts, SCHEMA)
    if predicates is not None:
        check(predicates, keys, SCHEMA, [*some, *delicate_rows()[:5], (None,) * len(SCHEMA)])


@each("size", [0, 1, 70])
def test_classes_of_values_at_and_between_cuts(size):
    predicates, keys = predicates_of(TEXTS, SMALL)
    pools = [[2, 3, 4, 7, 8, None, -(2**63), 2**63 - 1],
             [-1.0, -0.5, 0.5, 2.0, 9.0, -0.0, math.nan, math.inf, -math.inf, None],
             ["", "a", "b", "ba", "d", "da", "é", None],
             ["buy", "sell", None], ["", "z", None]]  # fmt: skip
    chance = np.random.default_rng(size)
    some = [tuple(pool[chance.integers(len(pool))] for pool in pools) for _ in range(size)]
    check(predicates, keys, SMALL, some)


def test_attributes_that_nobody_asks_for_are_missing():
    predicates, keys = predicates_of(["i > 3", "s = 'a'"], SMALL)
    some = [(4, 1.0, "a", "buy", "z"), (None,) * 5]
    used = np.array([0, 2])
    found = classes_of(batch_of_rows(some, SMALL), predicates, used)
    assert (found[[1, 3, 4]] == MISSING).all()
    assert (found[[0, 2], 0] != MISSING).all()
    single = RowClasses(predicates, used, keys)
    for event, row in enumerate(some):
        assert single.of(row).tolist() == [found[:, event].tolist()]


def test_a_column_of_strings_that_are_all_missing():
    predicates, keys = predicates_of(["s = 'a'", "t > ''"], SMALL)
    check(predicates, keys, SMALL, [(None,) * 5] * 3)
    check(predicates, keys, SMALL, [(None, None, None, None, "t"), (1, None, "a", None, None)])


# --- tests


TESTED = [
    "s LIKE 'a%'", "s RLIKE 'b$'", "length(s) > 1", "s LIKE '%é%'", "t LIKE '_'", "i % 2 = 0",
    "abs(x) > 1", "x * 2 = x", "side LIKE 's%'", "i > x", "lower(s) = t", "s > t AND i + x > 3",
    "(i > x) IS NULL",
]  # fmt: skip
ROWS = [
    (i, x, s, side, t)
    for i, x in ((None, None), (2, 1.5), (3, math.nan), (-4, -0.0), (2, math.inf))
    for s, t in ((None, None), ("ab", "a"), ("é", "ab"), ("b", None), ("", ""))
    for side in (None, "buy", "sell")
]


def passed_by(predicates, schema, row):
    """The numbers of the tests that a row passes, by asking each."""
    return [
        predicates.first_test + place
        for place, test in enumerate(predicates.tests)
        if compile_tree(test, schema)(row) is True
    ]


@pytest.mark.parametrize("remembered", [0, 1_000, 32_000_000])
@pytest.mark.parametrize(
    "texts", [TESTED, [*TESTED[:3], "i IN (1, 2)", "s IN ('a', 'b')"], ["i > 0"]]
)
def test_what_rows_and_batches_pass(monkeypatch, texts, remembered):
    monkeypatch.setattr(value_classes, "MOST_REMEMBERED", remembered)
    predicates, _ = predicates_of(texts, SMALL)
    tests = value_classes.SegmentTests(predicates, SMALL)
    expected = [passed_by(predicates, SMALL, row) for row in ROWS]
    for _ in range(2):  # what is remembered is the same
        assert [sorted(tests.of_row(row).tolist()) for row in ROWS] == expected
        for given_rows in (ROWS, None):
            passed = tests.of_batch(batch_of_rows(ROWS, SMALL), given_rows)
            found = [[] for _ in ROWS]
            for part in passed:
                assert part.codes.shape == (len(ROWS),)
                for event, code in enumerate(part.codes.tolist()):
                    found[event] += part.numbers[part.starts[code] : part.starts[code + 1]].tolist()
            assert [sorted(numbers) for numbers in found] == expected
    assert all(known.nbytes <= remembered for known in tests._known.values())


def test_a_value_is_tested_once(monkeypatch):
    asked = []
    compiled = value_classes.compile_tree

    def counting(tree, schema):
        test = compiled(tree, schema)
        return lambda row: asked.append(row) or test(row)

    monkeypatch.setattr(value_classes, "compile_tree", counting)
    predicates, _ = predicates_of(["s LIKE 'a%'", "x * 2 = x"], SMALL)
    tests = value_classes.SegmentTests(predicates, SMALL)
    some = [(1, x, "ab", None, None) for x in (1.0, math.nan, -0.0, 0.0, math.nan)] * 10
    tests.of_batch(batch_of_rows(some, SMALL), None)
    first = len(asked)
    assert first <= 2 + 4  # two strings, with the missing one, and four doubles
    for row in some:
        tests.of_row(row)
    tests.of_batch(batch_of_rows(some, SMALL), None)
    assert len(asked) == first


def test_no_events_and_no_tests():
    predicates, _ = predicates_of(TESTED, SMALL)
    passed = value_classes.SegmentTests(predicates, SMALL).of_batch(batch_of_rows([], SMALL), None)
    assert all(len(part.codes) == 0 for part in passed)
    predicates, _ = predicates_of(["i > 0"], SMALL)
    tests = value_classes.SegmentTests(predicates, SMALL)
    assert tests.of_batch(batch_of_rows(ROWS, SMALL), None) == []
    assert tests.of_row(ROWS[0]).tolist() == []
