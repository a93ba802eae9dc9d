"""The tests of a segment that events pass: of one event and of many."""

import math

import pytest

from interned import predicates_of
from tamis import Schema
from tamis.engines.sliced import attribute_tests, segment_tests
from tamis.engines.sliced.attribute_tests import FailedTests
from tamis.language.evaluation import compile_tree
from tamis.predicates.computed_values import ComputedAttributes
from tamis.predicates.event_batches import batch_of_rows

SMALL = Schema(
    {"i": "int", "x": "double", "s": "string", "side": "enum('sell', 'buy')", "t": "string"}
)


TESTED = [
    "s LIKE 'a%'", "s RLIKE 'b$'", "length(s) > 1", "s LIKE '%é%'", "t LIKE '_'", "i % 2 = 0",
    "abs(x) > 1", "x * 2 = x", "side LIKE 's%'", "i > x", "lower(s) = t", "s > t AND i + x > 3",
    "(i > x) IS NULL", "upper(s) LIKE '%B_'", "s || t RLIKE 'a.'", "s NOT LIKE 'a%'",
    "NOT contains('xab', s)", "NOT t RLIKE 'a.?b$'", "NOT side LIKE 'b%' AND NOT i % 2 = 0",
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


def compiled_tests(predicates):
    """The tests of some predicates, and the attributes that they are written with."""
    computed = ComputedAttributes(SMALL, predicates.terms)
    return computed, segment_tests.SegmentTests(predicates, computed)


@pytest.mark.parametrize("remembered", [0, 1_000, 32_000_000])
@pytest.mark.parametrize(
    "texts", [TESTED, [*TESTED[:3], "i IN (1, 2)", "s IN ('a', 'b')"], ["i > 0"]]
)
def test_what_rows_and_batches_pass(monkeypatch, texts, remembered):
    monkeypatch.setattr(segment_tests, "MOST_REMEMBERED", remembered)
    predicates = predicates_of(texts, SMALL)
    computed, tests = compiled_tests(predicates)
    expected = [passed_by(predicates, SMALL, row) for row in ROWS]
    for _ in range(2):  # what is remembered is the same
        passed = [tests.of_row(computed.row(row)) for row in ROWS]
        assert [sorted(numbers.tolist()) for numbers in passed] == expected
        found = [[] for _ in ROWS]
        for part in tests.of_batch(computed.batch(batch_of_rows(ROWS, SMALL))):
            assert part.codes.shape == (len(ROWS),)
            for event, code in enumerate(part.codes.tolist()):
                listed = part.numbers[part.starts[code] : part.starts[code + 1]].tolist()
                if isinstance(part, FailedTests):
                    is_missing = code == len(part.starts) - 2
                    listed = [] if is_missing else sorted({*part.tests.tolist()} - {*listed})
                found[event] += listed
        assert [sorted(numbers) for numbers in found] == expected
    assert tests.nbytes <= remembered


def test_a_value_is_tested_once(monkeypatch):
    asked = []
    compiled = attribute_tests.compile_tree

    def counting(tree, schema):
        test = compiled(tree, schema)
        return lambda row: asked.append(row) or test(row)

    monkeypatch.setattr(attribute_tests, "compile_tree", counting)
    predicates = predicates_of(["s LIKE 'a%'", "t RLIKE 'b'"], SMALL)
    _, tests = compiled_tests(predicates)
    some = [(1, 1.0, "ab", None, t) for t in ("a", "b", None, "ab", "b")] * 10
    tests.of_batch(batch_of_rows(some, SMALL))
    first = len(asked)
    assert first <= 2 + 4  # two strings, with the missing one, and four
    for row in some:
        tests.of_row(row)
    tests.of_batch(batch_of_rows(some, SMALL))
    assert len(asked) == first


def test_no_events_and_no_tests():
    predicates = predicates_of(TESTED, SMALL)
    computed, tests = compiled_tests(predicates)
    passed = tests.of_batch(computed.batch(batch_of_rows([], SMALL)))
    assert all(len(part.codes) == 0 for part in passed)
    predicates = predicates_of(["i > 0"], SMALL)
    _, tests = compiled_tests(predicates)
    assert tests.of_batch(batch_of_rows(ROWS, SMALL)) == []
    assert tests.of_row(ROWS[0]).tolist() == []
