"""Predicate rows and runs, against testing every reference on every class."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from kernel_calls import from_python
from tamis.engines.sliced.interning import sets_of
from tamis.engines.sliced.segment_predicates import SegmentPredicates
from tamis.kernels.comparisons import ABOVE, AT_LEAST, AT_MOST, BELOW, EQUAL, UNEQUAL
from tamis.kernels.predicate_rows import (
    DIGIT,
    EMPTY,
    END,
    EVENTS,
    NAMED,
    NO_ROW,
    ROWS,
    RUNS,
    SETS,
    TOUCHED,
    BlockRows,
    finish_block,
    make_rows,
    rows_of_failed_tests,
    rows_of_tests,
)
from tamis.kernels.simd_rows import WORDS
from tamis.kernels.value_classes import ABSENT, MISSING, PRESENT, REF_KINDS, holds_class

holds_class = from_python(holds_class)

pytestmark = pytest.mark.uncompiled

RUBBISH = 0xDEADBEEFDEADBEEF
SIZES = [0, 1, 2, 63, 64, 65, 300, 511, 512]
NOTHING = sets_of([])
ORDERED = 1 << BELOW | 1 << AT_MOST | 1 << ABOVE | 1 << AT_LEAST
EVERY_KIND = (1 << REF_KINDS) - 1


class PassedTests(NamedTuple):
    """The tests of one attribute that events pass: those of lists[codes[event]]."""

    codes: list[int]
    lists: list[list[int]]

    def pass_(self, number, event):
        return number in self.lists[self.codes[event]]


class FailedTests(NamedTuple):
    """The same for those of `tests` that events fail; the last of the lists is for no value."""

    codes: list[int]
    lists: list[list[int]]
    tests: list[int]

    def pass_(self, number, event):
        is_missing = self.codes[event] == len(self.lists) - 1
        return (
            number in self.tests and not is_missing and not PassedTests.pass_(self, number, event)
        )


def predicates_of(cuts, inside=(), tests=0, outside=()):
    """Attributes with given numbers of cuts, and sets of these as (attribute, members)."""
    return SegmentPredicates.of(
        [np.arange(count, dtype=np.int64) for count in cuts], sets_of(inside),
        [f"test {k}" for k in range(tests)], sets_of(outside), [0] * tests,
    )  # fmt: skip


class Bench:
    """A numbering, and arrays for its rows, full of rubbish and a little longer than needed."""

    def __init__(self, predicates, masks, shift=0, events=EVENTS):
        self.predicates = predicates
        self.numbering = predicates.numbering(np.array(masks, np.int64))
        self.used = np.flatnonzero(self.numbering.masks).astype(np.int64)
        most = [min(events, 2 * len(predicates.cuts[a]) + 1) for a in self.used.tolist()]
        self.most_rows = 1 + sum(4 * m + 5 for m in most) + predicates.listed
        self.most_runs = sum(2 * m + 1 for m in most) + 2 * predicates.listed + len(masks) + 1
        coarse = 0 if shift is None else (predicates.size >> shift) + 1
        self.block_rows = BlockRows(
            rows=np.full((self.most_rows + 3, WORDS), RUBBISH, np.uint64),
            run_starts=np.full(self.most_runs + 4, -5, np.int32),
            run_rows=np.full((self.most_runs + 4, REF_KINDS), -7, np.int32),
            coarse=np.full(coarse, -9, np.int32),
            shift=shift or 0,
            there=np.full(len(masks), -11, np.int32),
            listed=np.full(predicates.listed, NO_ROW, np.int32),
            touched=np.full((sum(most) + predicates.listed + 3, 2), -13, np.int32),
            sizes=np.zeros(4, np.int64),
            names=np.full(predicates.listed + 3, -15, np.int32),
        )

    def block(self, classes, start, end, passed=()):
        """Make the truth of some events."""
        order, spare = np.full((2, EVENTS), -3, np.int64)
        digits = np.full((1 << DIGIT) + 1, -5, np.int64)
        make_rows(
            classes, start, end, self.used, self.numbering, self.block_rows, order, spare, digits
        )
        for part in passed:
            starts = np.cumsum([0, *map(len, part.lists)]).astype(np.int64)
            numbers = np.array([number for one in part.lists for number in one], np.int32)
            listed = np.array(part.codes[start:end], np.int64), starts, numbers
            if isinstance(part, FailedTests):
                rows_of_failed_tests(*listed, np.array(part.tests, np.int32), self.block_rows)
            else:
                rows_of_tests(*listed, self.block_rows)
        finish_block(self.numbering, self.block_rows)
        self._is_within_bounds()

    def row_of(self, number, kind):
        """The row of a reference, by the runs from the first on, and by the coarse table."""
        block = self.block_rows
        starts = block.run_starts[: block.sizes[RUNS] + 1]
        run = int(np.searchsorted(starts, number, "right")) - 1
        if len(block.coarse):
            near = block.coarse[number >> block.shift]
            assert near <= run
            while starts[near + 1] <= number:
                near += 1
            assert near == run
        return int(block.run_rows[run, kind])

    def events_of(self, number, kind):
        return events_in(self.block_rows.rows[self.row_of(number, kind)])

    def _is_within_bounds(self):
        block, sizes = self.block_rows, self.block_rows.sizes
        assert sizes[ROWS] <= self.most_rows
        assert (block.rows[self.most_rows :] == RUBBISH).all()
        assert sizes[RUNS] <= self.most_runs
        starts = block.run_starts[: sizes[RUNS] + 1].tolist()
        assert starts[-1] == END
        assert sorted(set(starts)) == starts  # no run is empty
        assert (block.run_starts[self.most_runs + 1 :] == -5).all()
        assert (block.run_rows[self.most_runs + 1 :] == -7).all()
        assert (block.touched[-3:] == -13).all()
        assert not block.rows[EMPTY].any()


def events_in(row):
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def check(bench, classes, start, end, passed=()):
    """Make the rows of a block, and check all of them."""
    bench.block(classes, start, end, passed)
    predicates, numbering, block = bench.predicates, bench.numbering, bench.block_rows
    touched, named = {}, []
    for a in bench.used.tolist():
        mine = classes[a, start:end].tolist()
        first = int(predicates.starts[a])
        there = [e for e, value in enumerate(mine) if value != MISSING]
        gone = [e for e, value in enumerate(mine) if value == MISSING]
        assert events_in(block.rows[block.there[a]]) == there
        for number in range(first, first + len(predicates.cuts[a]) + 1):
            assert bench.events_of(number, PRESENT) == there
            assert bench.events_of(number, ABSENT) == gone
        for number in range(first + 1, first + len(predicates.cuts[a]) + 1):
            for kind in range(PRESENT):
                if numbering.masks[a] >> kind & 1:
                    expected = [e for e, v in enumerate(mine) if holds_class(kind, v, number)]
                    assert bench.events_of(number, kind) == expected
                    if kind == EQUAL and expected:
                        touched[number * REF_KINDS + EQUAL] = expected
    for number in range(predicates.listed):
        expected, is_asked = listed_events(predicates, number, classes[:, start:end], passed, start)
        for kind in range(REF_KINDS):
            assert bench.events_of(predicates.base + number, kind) == expected
        if is_asked:
            named.append(number)
            touched[(predicates.base + number) * REF_KINDS] = expected
            assert events_in(block.rows[block.listed[number]]) == expected
        else:
            assert block.listed[number] == NO_ROW
    assert block.names[: block.sizes[NAMED]].tolist() == named
    found = block.touched[: block.sizes[TOUCHED]].tolist()
    assert len({ref for ref, _ in found}) == len(found)
    assert {ref: events_in(block.rows[row]) for ref, row in found} == touched


def listed_events(predicates, number, classes, passed, start):
    """The events of a set or a test, and whether any value is listed with it."""
    size = classes.shape[1]
    if predicates.first_test <= number < predicates.first_out:
        found = [e for e in range(size) if any(part.pass_(number, start + e) for part in passed)]
        is_usual = any(number in part.tests for part in passed if isinstance(part, FailedTests))
        return found, bool(found) or is_usual
    is_in = number < predicates.first_test
    sets = predicates.in_sets if is_in else predicates.out_sets
    place = number if is_in else number - predicates.first_out
    mine = classes[sets.attributes[place]].tolist()
    members = {2 * cut + 1 for cut in sets.members[sets.at[place] : sets.at[place + 1]].tolist()}
    inside = [e for e, value in enumerate(mine) if value in members]
    outside = [e for e, value in enumerate(mine) if value not in members and value != MISSING]
    return inside if is_in else outside, bool(inside)


def random_classes(chance, predicates, size, missing, pool=None):
    """Classes of each attribute, some of them missing; from few if `pool` says how many."""
    found = np.empty((len(predicates.cuts), size), np.int32)
    for a, cuts in enumerate(predicates.cuts):
        low = 2 * (int(predicates.starts[a]) + 1)
        possible = np.arange(low, low + 2 * len(cuts) + 1)
        if pool is not None:
            possible = chance.choice(possible, pool)
        found[a] = chance.choice(possible, size)
    found[chance.random(found.shape) < missing] = MISSING
    return found


# --- comparisons


@each("size", SIZES)
@each("shift", [None, 0, 1, 3, 6])
def test_every_kind(size, shift):
    chance = np.random.default_rng(size)
    predicates = predicates_of([9, 0, 1])
    bench = Bench(predicates, [EVERY_KIND] * 3, shift)
    for missing in (0, 0.3, 1):
        check(bench, random_classes(chance, predicates, size, missing), 0, size)


@each(
    "mask",
    [
        1 << EQUAL, 1 << UNEQUAL, 1 << BELOW, 1 << AT_MOST, 1 << ABOVE, 1 << AT_LEAST,
        1 << PRESENT, 1 << ABSENT, ORDERED, 1 << EQUAL | 1 << UNEQUAL, 1 << EQUAL | 1 << ABOVE,
        1 << UNEQUAL | 1 << BELOW, EVERY_KIND,
    ],
)  # fmt: skip
def test_kinds_that_are_used(mask):
    """Others need no rows; an attribute between of which nothing is used has none."""
    predicates = predicates_of([6, 5, 6])
    bench = Bench(predicates, [mask, 0, mask])
    classes = random_classes(np.random.default_rng(mask), predicates, 100, 0.2)
    check(bench, classes, 0, 100)
    distinct = [len(set(classes[a].tolist()) - {MISSING}) for a in (0, 2)]
    rows = sum(
        3 + (m + 1) * bool(mask & (1 << BELOW | 1 << AT_MOST))
        + (m + 1) * bool(mask & (1 << ABOVE | 1 << AT_LEAST))
        + m * bool(mask & (1 << EQUAL | 1 << UNEQUAL)) + m * bool(mask & 1 << UNEQUAL)
        for m in distinct
    )  # fmt: skip
    assert bench.block_rows.sizes[ROWS] == 1 + rows


def test_cuts_that_the_block_cannot_tell_apart_share_a_run():
    predicates = predicates_of([100])
    bench = Bench(predicates, [EVERY_KIND])
    check(bench, np.array([[2 * 11, 2 * 31 + 1, 2 * 11, 2 * 101]], np.int32), 0, 4)
    starts = bench.block_rows.run_starts[: bench.block_rows.sizes[RUNS]].tolist()
    assert starts == [0, 11, 31, 32, 101]


@each("shift", [2, 6, 12])
def test_a_million_cuts(shift):
    """A block is as large as its events, not as the filters."""
    size = 10**6
    predicates = predicates_of([size])
    bench = Bench(predicates, [EVERY_KIND], shift)
    chance = np.random.default_rng(1)
    numbers = np.sort(chance.choice(np.arange(1, size + 2), 300, replace=False))
    classes = 2 * chance.choice(numbers, 500) + chance.integers(0, 2, 500)
    classes = np.minimum(classes, 2 * (size + 1)).astype(np.int32)[None]
    bench.block(classes, 0, 500)
    distinct = len(set(classes[0].tolist()))
    assert bench.block_rows.sizes[ROWS] <= 4 * distinct + 6
    assert bench.block_rows.sizes[RUNS] <= 2 * distinct + 1
    ends = [1, 2, size // 2, size - 1, size]
    near = [int(n) + d for n in numbers[::29] for d in (-1, 0, 1) if 1 <= n + d <= size]
    for number in {*ends, *near, *chance.integers(1, size, 30).tolist()}:
        for kind in (EQUAL, UNEQUAL, BELOW, AT_MOST, ABOVE, AT_LEAST):
            expected = [e for e, v in enumerate(classes[0].tolist())
                        if holds_class(kind, v, number)]  # fmt: skip
            assert bench.events_of(number, kind) == expected


def test_classes_far_apart():
    """Every digit of a class is sorted by."""
    size = 2**24 + 5
    values = [2 * size, 1 << 24, 3, 1 << 16, 257, (1 << 24) + 3, 255, 2, MISSING, (1 << 16) + 9]
    bench = Bench(predicates_of([20]), [ORDERED], shift=None)
    bench.numbering = bench.numbering._replace(starts=np.array([0, size + 1], np.int64))
    bench.block(np.array([values], np.int32), 0, len(values))
    for value in values:
        number = max(value >> 1, 1)
        for kind in (BELOW, AT_MOST, ABOVE, AT_LEAST):
            expected = [e for e, v in enumerate(values) if holds_class(kind, v, number)]
            assert bench.events_of(number, kind) == expected


# --- sets


def test_sets_and_missing_values():
    """Neither IN nor NOT IN is true of a missing value."""
    predicates = predicates_of([3, 2], [(0, [0, 2])], 0, [(0, [1]), (1, [0, 1])])
    bench = Bench(predicates, [0, 0])
    assert (bench.numbering.masks == SETS).all()
    #          = cut 1, = cut 2, missing, between, = cut 3
    first = [3, 5, MISSING, 4, 7]
    other = [MISSING, 11, 13, 10, MISSING]
    check(bench, np.array([first, other], np.int32), 0, 5)
    base = predicates.base
    assert [bench.events_of(base + k, 0) for k in range(3)] == [[0, 4], [0, 3, 4], [3]]
    check(bench, np.array([[MISSING] * 5] * 2, np.int32), 0, 5)
    assert [bench.events_of(base + k, 0) for k in range(3)] == [[], [], []]
    assert bench.block_rows.sizes[TOUCHED] == 0


def test_a_member_of_many_sets():
    sets = [(0, [k, 9]) for k in range(9)]
    predicates = predicates_of([12], sets, 0, sets)
    bench = Bench(predicates, [1 << EQUAL])
    check(bench, np.array([[2 * 10 + 1, 2 * 10 + 1, 3, 2]], np.int32), 0, 4)
    assert bench.block_rows.sizes[NAMED] == 18


@each("attribute", [0, 1, 2])
def test_nothing_but_sets_of_one_attribute(attribute):
    predicates = predicates_of([2, 2, 2], [], 0, [(attribute, [0]), (attribute, [0, 1])])
    bench = Bench(predicates, [0, 0, 0])
    classes = random_classes(np.random.default_rng(attribute), predicates, 40, 0.3)
    check(bench, classes, 0, 40)


# --- tests


def test_tests_by_value():
    predicates = predicates_of([2], [(0, [0])], 4, [(0, [1])])
    bench = Bench(predicates, [1 << BELOW])
    classes = np.array([[3, 5, MISSING, 2]], np.int32)
    one = PassedTests([0, 2, 1, 2], [[], [2], [1, 2]])
    several = PassedTests([0, 1, 1, 2], [[4], [], [3, 4]])
    check(bench, classes, 0, 4, [one, several])
    assert [bench.events_of(predicates.base + k, 0) for k in range(1, 5)] == [
        [1, 3], [1, 2, 3], [3], [0, 3],
    ]  # fmt: skip
    check(bench, classes, 0, 4, [PassedTests([0] * 4, [[]])])
    assert bench.block_rows.sizes[NAMED] == 2  # the sets


def test_tests_of_full_blocks():
    predicates = predicates_of([], [], 3)
    bench = Bench(predicates, [])
    nothing = np.empty((0, 2000), np.int32)
    codes = (np.arange(2000) % 3).tolist()
    for start in (0, 512, 1024, 1536):
        end = min(start + EVENTS, 2000)
        check(bench, nothing, start, end, [PassedTests(codes, [[0], [0, 2], []])])


def test_tests_that_most_events_pass():
    predicates = predicates_of([2], [(0, [0])], 5, [(0, [1])])
    bench = Bench(predicates, [1 << BELOW])
    classes = np.array([[3, 5, MISSING, 2]], np.int32)
    usual = FailedTests([1, 0, 3, 2], [[], [2], [4, 1, 2], []], [1, 2, 4])
    check(bench, classes, 0, 4, [usual, PassedTests([0, 1, 1, 0], [[], [3]])])
    assert [bench.events_of(predicates.base + k, 0) for k in range(1, 6)] == [
        [0, 1], [1], [1, 2], [0, 1], [],
    ]  # fmt: skip
    check(bench, classes, 0, 4, [FailedTests([3] * 4, [[], [2], [4], []], [1, 2, 4])])
    assert bench.events_of(predicates.base + 1, 0) == []
    check(bench, classes, 0, 4, [FailedTests([0] * 4, [[], []], [])])
    assert bench.block_rows.sizes[NAMED] == 2  # the sets


# --- everything together


@given(data=st.data())
@settings(max_examples=30)
def test_any_blocks(data):
    """Several blocks, one after another in the same arrays: nothing of one remains in the next."""
    chance = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    cuts = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=4))
    owners = [a for a, count in enumerate(cuts) if count]

    def sets(most):
        made = []
        for a in sorted(chance.choice(owners, chance.integers(0, most + 1))) if owners else ():
            size = chance.integers(1, cuts[a] + 1)
            members = np.sort(chance.choice(cuts[a], size, replace=False))
            if not any(a == b and members.tolist() == other.tolist() for b, other in made):
                made.append((a, members))
        return made

    tests = data.draw(st.integers(0, 5))
    predicates = predicates_of(cuts, sets(5), tests, sets(4))
    masks = chance.integers(0, EVERY_KIND + 1, len(cuts))
    masks[chance.random(len(cuts)) < 0.2] = 0
    bench = Bench(predicates, masks, data.draw(st.sampled_from([None, 0, 2, 5])))
    for _ in range(data.draw(st.integers(1, 3))):
        size = data.draw(st.sampled_from([0, 1, 7, 64, 90]))
        start = int(chance.integers(0, 3))
        pool = data.draw(st.sampled_from([None, 1, 3]))
        classes = random_classes(chance, predicates, start + size + 2, chance.random(), pool)
        passed = []
        numbers = np.arange(predicates.first_test, predicates.first_out)
        for mine in np.array_split(numbers, 2) if tests else ():
            lists = [chance.permutation(mine)[: chance.integers(0, 4)].tolist() for _ in range(3)]
            codes = chance.integers(0, 3, start + size + 2).tolist()
            if chance.random() < 0.3:
                passed.append(FailedTests(codes, [*lists[:2], []], mine.tolist()))
            else:
                passed.append(PassedTests(codes, lists))
        check(bench, classes, start, start + size, passed)
