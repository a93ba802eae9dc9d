"""The share of events that predicates are expected to be true of, judged by the filters."""

import numpy as np

from interned import interned
from tamis import Schema
from tamis.engines.sliced.expected_shares import (
    ANYWHERE,
    AT_END,
    EQUALITY,
    OTHER,
    RANGE,
    SET,
    TEST,
    ExpectedShares,
)


def test_shares():
    source = interned([
        "s = 'a'", "s = 'b'", "s = 'c'", "s = 'd'", "i = 1", "s IN ('a', 'b')", "s IN ('x', 'y')",
        "x > 1", "x <> 1", "i IS NULL", "s LIKE 'abc%'", "s LIKE 'b%'", "x > i", "i NOT IN (7, 8)",
        "s NOT LIKE 'a%'", "contains('abc', s)", "s RLIKE 'a.'", "s LIKE '_a%_b'",
        "contains(s, 'ab')", "NOT s RLIKE 'a.'", *(f"s LIKE '_{n}%'" for n in range(60)),
    ])  # fmt: skip
    shares = ExpectedShares(source)
    (table,) = source.tables.values()
    found = dict(zip(table.handles.tolist(), shares.of(table.refs[:, 0]).tolist(), strict=True))
    findable = dict(
        zip(table.handles.tolist(), shares.findable(table.refs[:, 0]).tolist(), strict=True)
    )
    unfindable = {7, 8, 9, 13}
    assert [h for h, is_found in findable.items() if not is_found] == sorted(unfindable)
    assert found[0] == found[3] == EQUALITY / 4
    assert found[4] == EQUALITY
    assert found[5] == found[6] == min(SET, 2 * EQUALITY / 4)
    assert found[7] == RANGE
    assert found[8] == found[9] == found[13] == OTHER
    usual = TEST / 66
    assert found[10] == found[15] == found[16] == usual
    assert found[11] == found[20] == AT_END  # many strings have one character
    assert found[17] == max(usual, AT_END**2)
    assert found[18] == ANYWHERE**2
    assert found[12] == RANGE
    assert found[14] == found[19] == OTHER


def test_shares_of_comparisons_of_two_attributes():
    source = interned(["i < j", "i = j", "i <> j"], Schema({"i": "int", "j": "int"}))
    assert len(source.predicates.tests) == 3
    shares = ExpectedShares(source)
    (table,) = source.tables.values()
    assert shares.of(table.refs[:, 0]).tolist() == [RANGE, TEST / 3, OTHER]
    assert np.array_equal(shares.findable(table.refs[:, 0]), [True] * 3)
