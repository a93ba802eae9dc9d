"""Kernels of decimals compute what single decimals give, digit for digit."""

import random
from decimal import Decimal

import numpy as np
import pytest

from cases import each
from decimal_cases import SCHEMA, TYPES, accepted, events, table_of
from tamis import Matcher, parse
from tamis.language.evaluation import compile_tree
from tamis.language.functions.decimal_kernels import doubles, narrowed, rounded, shifted
from tamis.predicates.keys import scaled


@pytest.mark.parametrize("seed", range(2))
def test_batches_find_what_the_definition_says(seed):
    rows = events(seed, 30)
    matcher = Matcher(SCHEMA, engine="sliced")
    texts = list(accepted(120, seed, 3))
    matcher.subscribe_many(list(enumerate(texts)))
    found = matcher.match_batch(table_of(rows)).to_pylist()
    kept = {(one["event"], one["subscription"]) for one in found}
    for number, text in enumerate(texts):
        condition = compile_tree(parse(text, SCHEMA).tree, SCHEMA)
        wrong = [
            (text, row)
            for event, row in enumerate(rows)
            if ((event, number) in kept) is not (condition(row) is True)
        ]
        assert wrong == []
    for event in range(0, len(rows), 10):  # and one by one
        record = dict(zip(SCHEMA, rows[event], strict=True))
        assert set(matcher.match(record)) == {n for e, n in kept if e == event}


@each(
    ("numbers", "places", "expected"),
    [
        ([15, -15, 14, 0], 1, [2, -2, 1, 0]), ([5, -5], 1, [1, -1]), ([7], 0, [7]),
        ([2**63 - 1], 1, [922337203685477581]), ([4, -9], 25, [0, 0]), ([5 * 10**24], 25, [1]),
        ([10**30 + 5], 1, [10**29 + 1]),
    ],
)  # fmt: skip
def test_rounding_is_half_away_from_zero(numbers, places, expected):
    column = narrowed(np.array(numbers, object))
    assert rounded(column, places).tolist() == expected


def test_numbers_stay_short_as_long_as_they_fit():
    column = np.array([1, -(10**17)])
    assert shifted(column, 1).dtype == np.int64
    assert shifted(column, 2).dtype == object
    assert shifted(column, 2).tolist() == [100, -(10**19)]
    assert shifted(np.array([0]), 30).tolist() == [0]
    assert narrowed(np.array([2**63 - 1], object)).dtype == np.int64


def test_doubles_are_rounded_as_python_does():
    chance = random.Random(1)  # noqa: S311 - for tests
    for digits, scale in TYPES.values():
        numbers = [chance.randint(-(10**digits), 10**digits) for _ in range(50)]
        expected = [float(value) for value in scaled(numbers, scale)]
        assert doubles(narrowed(np.array(numbers, object)), scale).tolist() == expected
    assert doubles(np.array([1]), 1).tolist() == [float(Decimal("0.1"))]


@each("number", [-(2**63), 2**63 - 1, -(10**10), 10**10])
def test_a_number_with_more_digits_than_its_type_is_null(number):
    matcher = Matcher({"n": "int"}, engine="sliced")
    matcher.subscribe("fits", "CAST(CAST(n AS DECIMAL(10)) AS DOUBLE) > -1e300")
    matcher.subscribe("not", "CAST(n AS DECIMAL(10)) + 0.5 IS NULL")
    assert matcher.match_batch([{"n": number}])["subscription"].to_pylist() == ["not"]
    assert matcher.match_batch([{"n": 7}])["subscription"].to_pylist() == ["fits"]
