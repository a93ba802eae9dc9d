"""Truth rows against comparing every value with every constant."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.kernels.comparisons import OPERATORS, Lists
from tamis.kernels.slices import (
    EMPTY,
    EVENTS,
    MOST_ROWS,
    WORDS,
    Axes,
    Touched,
    comparison_rows,
    equal_predicates,
    equal_rows,
    find_row,
    listed_rows,
    ordered_rows,
)
from tamis.types import INT64_MAX, INT64_MIN

TESTS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
GARBAGE = 0xDEADBEEFDEADBEEF
SIZES = [0, 1, 2, 63, 64, 65, 127, 128, 300, 511, 512]
POOLS = {
    "one": [7],
    "few": [-1, 0, 1],
    "ends": [INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX],
    "many": list(range(-400, 400)),
}


def bits_of(row):
    """The events of a row."""
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def lists_of(held, attributes):
    """Lists of (attribute, operator, constant, id), with an id of -1 for what is gone."""
    segments = [[] for _ in range(6 * attributes)]
    for attribute, op, constant, number in held:
        segments[6 * attribute + OPERATORS.index(op)].append((constant, number))
    pairs = [pair for segment in segments for pair in sorted(segment)]
    starts = np.cumsum([0, *map(len, segments)])
    return Lists(
        starts=starts.astype(np.int64),
        keys=np.array([key for key, _ in pairs], np.int64),
        ids=np.array([number for _, number in pairs], np.int32),
        young_segments=np.empty(4, np.int64),
        young_keys=np.empty(4, np.int64),
        young_ids=np.empty(4, np.int32),
        young=0,
    )


def used_of(held):
    return np.array(sorted({attribute for attribute, *_ in held}), np.int64)


def scratch(most):
    rows = np.full((most, WORDS), GARBAGE, np.uint64)
    rows[EMPTY] = 0
    return rows


def axes_of(attributes):
    return Axes(
        np.full(attributes, -1, np.int64),
        np.full(attributes, -1, np.int64),
        np.full((attributes, EVENTS), 99, np.int64),
    )


def touched_of(most):
    return Touched(np.full(most, -1, np.int32), np.zeros(1, np.int64))


def met(touched):
    """The predicates that were touched, each once."""
    found = touched.ids[: touched.size[0]].tolist()
    assert len(set(found)) == len(found)
    return set(found)


def expected_events(keys, present, one):
    attribute, op, constant, _ = one
    there = np.flatnonzero(present[attribute]).tolist()
    return [e for e in there if TESTS[op](int(keys[attribute, e]), constant)]


def check(keys, present, held):
    """Compare both ways to a row with trying every value."""
    attributes = len(keys)
    lists, used, axes = lists_of(held, attributes), used_of(held), axes_of(attributes)
    rows = scratch(1 + len(used) * MOST_ROWS)
    free = comparison_rows(keys, present, used, axes, rows)
    distinct = [len(set(keys[a][present[a] > 0].tolist())) for a in used]
    assert free == 1 + sum(4 * count + 3 for count in distinct)
    assert not rows[EMPTY].any()
    assert (rows[free:] == GARBAGE).all()

    living = [one for one in held if one[3] >= 0]
    numbers = [number for *_, number in living]
    row_of = np.full(max(numbers, default=0) + 2, EMPTY, np.int32)
    touched = touched_of(len(row_of))
    equal_rows(used, lists, axes, row_of, touched)
    equal = [one for one in living if one[1] == "="]
    assert met(touched) == {one[3] for one in equal if expected_events(keys, present, one)}
    assert set(np.flatnonzero(row_of).tolist()) == met(touched)
    ordered_rows(used, lists, axes, row_of)
    assert not rows[EMPTY].any()
    for one in living:
        attribute, op, constant, number = one
        expected = expected_events(keys, present, one)
        assert bits_of(rows[row_of[number]]) == expected, one
        segment = 6 * attribute + OPERATORS.index(op)
        assert find_row(segment, constant, axes) == row_of[number], one
    strangers = np.setdiff1d(np.arange(len(row_of)), numbers)
    assert (row_of[strangers] == EMPTY).all()


def check_single_events(keys, present, held):
    lists, used = lists_of(held, len(keys)), used_of(held)
    for event in range(keys.shape[1]):
        found = equal_predicates(keys[:, event].copy(), present[:, event].copy(), lists, used)
        expected = [
            one[3]
            for one in held
            if one[3] >= 0 and one[1] == "=" and event in expected_events(keys, present, one)
        ]
        assert sorted(found.tolist()) == sorted(expected)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("size", SIZES)
def test_every_operator(size, pool):
    chance = np.random.default_rng(size)
    values = np.array(POOLS[pool], np.int64)
    keys = chance.choice(values, (3, size))
    present = (chance.random((3, size)) < [[1.0], [0.7], [0.0]]).astype(np.uint8)
    constants = {*POOLS[pool][:10], INT64_MIN, INT64_MAX, 0, 1000, -1000}
    held = [(a, op, c) for a in (2, 0, 1) for op in OPERATORS for c in sorted(constants)]
    check(keys, present, [(*one, number) for number, one in enumerate(held)])


@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from(SIZES) | st.integers(0, EVENTS),
    pool=st.sampled_from(list(POOLS.values())),
    held=st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(OPERATORS),
            st.sampled_from(POOLS["ends"]) | st.integers(-400, 400), st.booleans(),
        ),
        max_size=30, unique_by=lambda one: one[:3],
    ),
)  # fmt: skip
@settings(max_examples=60)
def test_any_lists(seed, size, pool, held):
    """Attributes without comparisons, constants that are gone, blocks out of a larger batch."""
    chance = np.random.default_rng(seed)
    before = int(chance.integers(0, 3))
    keys = chance.choice(np.array(pool, np.int64), (4, before + size + 2))
    present = (chance.random(keys.shape) < chance.random((4, 1))).astype(np.uint8)
    block = slice(before, before + size)
    numbers = chance.permutation(len(held) + 5).tolist()
    numbered = [
        (a, op, c, number if here else -1)
        for (a, op, c, here), number in zip(held, numbers, strict=False)
    ]
    check(keys[:, block], present[:, block], numbered)
    some = slice(before, before + min(size, 5))
    check_single_events(keys[:, some], present[:, some], numbered)


def test_as_many_distinct_values_as_events():
    keys = np.random.default_rng(1).permutation(EVENTS).astype(np.int64)[None] * 3 - 700
    constants = range(-703, 840, 5)
    held = [(0, op, c) for op in OPERATORS for c in constants]
    check(keys, np.ones((1, EVENTS), np.uint8), [(*one, number) for number, one in enumerate(held)])


def test_a_missing_value_has_no_key():
    """Whatever stands in the place of its key."""
    keys = np.array([[5, 0, 5, INT64_MIN]], np.int64)
    present = np.array([[0, 1, 1, 0]], np.uint8)
    check(keys, present, [(0, op, c, 10 * n + m) for n, op in enumerate(OPERATORS)
                          for m, c in enumerate((-1, 0, 5, 6))])  # fmt: skip


def test_constants_that_the_block_cannot_tell_apart_share_a_row():
    keys, present = np.array([[10, 20, 30]], np.int64), np.ones((1, 3), np.uint8)
    held = [(0, "<", c, c) for c in range(11, 21)] + [(0, "=", c, c) for c in (21, 22, 29)]
    rows, row_of, axes = scratch(1 + MOST_ROWS), np.zeros(40, np.int32), axes_of(1)
    comparison_rows(keys, present, used_of(held), axes, rows)
    equal_rows(used_of(held), lists_of(held, 1), axes, row_of, touched_of(40))
    ordered_rows(used_of(held), lists_of(held, 1), axes, row_of)
    assert len(set(row_of[11:21].tolist())) == 1
    assert set(row_of[[21, 22, 29]].tolist()) == {EMPTY}


# --- predicates that are listed by value


def check_listed(stages, size, most):
    """Stages are (codes, lists of ids); predicates belong to one stage each."""
    rows, row_of, free = scratch(1 + most), np.zeros(most, np.int32), 1
    touched, expected = touched_of(most), {}
    for codes, lists in stages:
        starts = np.cumsum([0, *map(len, lists)]).astype(np.int64)
        ids = np.array([one for some in lists for one in some], np.int32)
        free = listed_rows(np.array(codes, np.int64), (starts, ids), rows, row_of, free, touched)
        for event, code in enumerate(codes):
            for one in lists[code]:
                expected.setdefault(one, []).append(event)
    assert met(touched) == set(expected)
    assert free == 1 + len(expected)
    assert not rows[EMPTY].any()
    assert (rows[free:] == GARBAGE).all()
    for one in range(most):
        assert bits_of(rows[row_of[one]]) == expected.get(one, [])
    assert all(event < size for events in expected.values() for event in events)
    assert sorted(row_of[list(expected)].tolist()) == list(range(1, free))


@given(seed=st.integers(0, 2**32), size=st.sampled_from(SIZES), stages=st.integers(0, 3))
@settings(max_examples=50)
def test_listed_predicates(seed, size, stages):
    chance = np.random.default_rng(seed)
    made = []
    for stage in range(stages):
        count = int(chance.integers(1, 8))
        mine = np.arange(10 * stage, 10 * stage + 10)
        lists = [chance.permutation(mine)[: chance.integers(0, 11)].tolist() for _ in range(count)]
        made.append((chance.integers(0, count, size).tolist(), lists))
    check_listed(made, size, 10 * stages + 1)


def test_nothing_is_listed():
    check_listed([([0] * 512, [[]])], 512, 3)
    check_listed([([], [[0, 1]])], 0, 3)


def test_rows_of_comparisons_stay():
    """Listed predicates get the rows behind those of comparisons."""
    keys, present = np.array([[1, 2]], np.int64), np.ones((1, 2), np.uint8)
    held = [(0, "=", 1, 0), (0, "=", 7, 1)]
    rows, row_of, axes = scratch(1 + MOST_ROWS + 4), np.zeros(4, np.int32), axes_of(1)
    touched = touched_of(4)
    free = comparison_rows(keys, present, used_of(held), axes, rows)
    equal_rows(used_of(held), lists_of(held, 1), axes, row_of, touched)
    classes = np.array([0, 1, 3], np.int64), np.array([3, 3, 2], np.int32)
    assert listed_rows(np.array([0, 1]), classes, rows, row_of, free, touched) == free + 2
    assert [bits_of(rows[row]) for row in row_of] == [[0], [], [1], [0, 1]]
    assert met(touched) == {0, 2, 3}
