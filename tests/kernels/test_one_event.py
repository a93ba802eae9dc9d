"""Single events against the answers of the filters' own trees.

`test_programs.py` has the clusters of a block that are looked at event by event.
"""

import os
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from kernel_calls import from_python
from offers import parsed
from strategies import SCHEMA, filters, rows
from tamis import Schema, parse
from tamis.engines.sliced import layout
from tamis.engines.sliced.event_values import EventBuffers, EventWriter
from tamis.engines.sliced.interning import intern_filters, sets_of
from tamis.engines.sliced.leaves import leaves_of
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_predicates import SegmentPredicates
from tamis.engines.sliced.segment_tests import SegmentTests
from tamis.engines.sliced.value_classes import classes_of
from tamis.kernels.comparisons import EQUAL, UNEQUAL
from tamis.kernels.event_truth import (
    EventValues,
    FlatCuts,
    TouchedPredicates,
    forget_touched,
    touch_elements,
    touch_tests,
    touch_values,
)
from tamis.kernels.one_event import (
    _all_within,
    _interval,
    _tested,
    living_handles,
    living_marked_handles,
    match_event,
)
from tamis.kernels.predicate_rows import NO_ROW, SETS
from tamis.kernels.programs import ALIVE, MIXED
from tamis.kernels.simd_rows import LANES
from tamis.kernels.value_classes import MISSING, REF_KINDS, holds_class
from tamis.language.evaluation import compile_tree
from tamis.predicates.computed_values import ComputedAttributes
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.keys import Keys
from tamis.semantics import Semantics

_all_within, _interval, _tested, holds_class = map(
    from_python, (_all_within, _interval, _tested, holds_class)
)
living_handles, living_marked_handles = map(from_python, (living_handles, living_marked_handles))
forget_touched, touch_elements, touch_tests, touch_values = map(
    from_python, (forget_touched, touch_elements, touch_tests, touch_values)
)

pytestmark = pytest.mark.uncompiled

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
MANY = 60 if COMPILED else 20
TRUE_ROWS = np.array([[0], [1]], np.uint64)

STOCK = Schema({"n": "int", "m": "int", "x": "double", "s": "string", "b": "bool", "t": "string"})


# --- intervals


@each("kind", range(REF_KINDS))
def test_the_interval_of_a_class(kind):
    """Exactly the true references of a kind, of an attribute with the numbers from 20 to 29."""
    start, end = 20, 30
    for value in [MISSING, *range(2 * start + 2, 2 * end + 1)]:
        low, high, is_outside = _interval(kind, np.int64(value), start, end)
        found = [(low <= number < high) != is_outside for number in range(start + 1, end)]
        expected = [bool(holds_class(kind, value, number)) for number in range(start + 1, end)]
        assert found == expected


@each("count", [1, 2, 63, 64])
def test_columns_of_a_chunk(count):
    """Conditions from `first` to `leads`, some of them negated; no bit after the last member."""
    chance = np.random.default_rng(count)
    columns = chance.integers(0, 40, (4, count)).astype(np.int32)
    before, after = np.zeros(3, np.int32), np.zeros(LANES, np.int32)
    refs = np.concatenate([before, columns.reshape(-1), after])
    intervals = np.array([[5, 30, 0], [10, 5, 1], [0, 0, 1], [20, 20, 0]], np.int64)
    low, span, is_outside = intervals.T[:, :, None]
    inside = (columns >= low) & (columns < low + span)
    truth = inside != is_outside.astype(bool)
    for first in range(4):
        for leads in range(5):
            expected = truth[first:leads].all(axis=0)
            found = int(_all_within(refs, 3, count, first, leads, intervals))
            assert found == sum(1 << k for k in np.flatnonzero(expected).tolist())


def test_references_one_by_one():
    """Comparisons of every kind, only of the members in `left`."""
    start, end = 8, 16
    home = np.array([0, 1], np.int32)
    starts, nothing = np.array([0, start, end], np.int64), np.zeros(3, np.int64)
    for kind in range(REF_KINDS):
        numbers = np.arange(start + 1, end)
        refs = np.concatenate([[0, 0], numbers * REF_KINDS + kind, np.zeros(LANES)]).astype(
            np.int32
        )
        for value in [MISSING, *range(2 * start + 2, 2 * end + 1)]:
            classes = np.array([MISSING, value], np.int32)
            truth = [bool(holds_class(kind, value, number)) for number in numbers.tolist()]
            for left in (0b1111111, 0b0101010, 0):
                found = _tested(
                    np.uint64(left), refs, 2, 0, classes, starts, nothing, TRUE_ROWS,
                    np.empty(0, np.int32), home, 3,
                )  # fmt: skip
                assert int(found) == left & sum(one << k for k, one in enumerate(truth))


# --- what one event touches


class Touching:
    """Predicates of three attributes with sets, and what an event touches of them."""

    def __init__(self):
        cuts = [np.arange(4), np.arange(3), np.arange(3)]
        predicates = self.predicates = SegmentPredicates.of(
            cuts, sets_of([(0, [0, 2]), (0, [1, 3]), (1, [0])]), ["test"],
            sets_of([(0, [2]), (1, [1]), (1, [0, 2])]), [0],
        )  # fmt: skip
        masks = np.array([1 << EQUAL, 1 << UNEQUAL, 1 << EQUAL], np.int64)
        self.numbering = predicates.numbering(masks)
        self.listed = np.full(predicates.listed, NO_ROW, np.int32)
        size = 3 + predicates.listed
        self.touched = TouchedPredicates(
            np.full(size, -1, np.int32), np.full(size, -1, np.int32), np.full(2, 99)
        )

    def check(self, refs, rows):
        """The references, and the rows of sets and tests; afterwards none is left."""
        assert sorted(self.touched.refs[: self.touched.sizes[0]].tolist()) == sorted(refs)
        found = {k: row for k, row in enumerate(self.listed.tolist()) if row != NO_ROW}
        assert found == rows
        assert sorted(self.touched.names[: self.touched.sizes[1]].tolist()) == sorted(rows)
        forget_touched(self.listed, self.touched)
        assert (self.listed == NO_ROW).all()


def test_what_one_event_touches():
    event = Touching()
    assert event.numbering.masks.tolist() == [1 << EQUAL | SETS, 1 << UNEQUAL | SETS, 1 << EQUAL]
    base = event.predicates.base
    for values, refs, rows_ in [
        ((5 + 2, 2 * 6, MISSING), [3 * REF_KINDS, (base + 0) * REF_KINDS], {0: 1, 4: 0}),
        ((5 + 4, 2 * 6 + 1, 2 * 10),
         [4 * REF_KINDS, (base + 1) * REF_KINDS, (base + 2) * REF_KINDS], {1: 1, 2: 1, 6: 0}),
        ((MISSING, 2 * 7 + 1, 2 * 11 + 1), [11 * REF_KINDS], {5: 0}),
        ((2 * 5, 2 * 9, 2 * 12), [], {}),
        ((MISSING, MISSING, MISSING), [], {}),
    ]:  # fmt: skip
        touch_values(np.array(values, np.int32), event.numbering, event.listed, event.touched)
        event.check(refs, rows_)


def test_what_elements_and_tests_touch():
    """Sets with several of the elements are noted once."""
    event = Touching()
    base, nothing = event.predicates.base, np.full(3, MISSING, np.int32)
    for elements, passed, refs, rows_ in [
        ([(0, 0), (0, 2), (0, 2), (0, 7)], [], [base + 0], {0: 1, 4: 0}),
        ([(1, 0), (0, 3), (1, 2)], [3], [base + 1, base + 2, base + 3], {1: 1, 2: 1, 3: 1, 6: 0}),
        ([(1, -1), (0, 9)], [], [], {}),
        ([], [3], [base + 3], {3: 1}),
    ]:
        values = EventValues(
            np.zeros(3, np.uint8), np.zeros(3, np.int64),
            np.array([*elements, (0, 0)], np.int64), np.zeros(1, np.uint8),
        )  # fmt: skip
        cuts = FlatCuts(*event.predicates.flat)
        touch_values(nothing, event.numbering, event.listed, event.touched)
        touch_elements(values, len(elements), 0, cuts, event.numbering, event.listed, event.touched)
        touch_tests(np.array(passed, np.int32), event.numbering, event.listed, event.touched)
        event.check([ref * REF_KINDS for ref in refs], rows_)


# --- whole programs


@cache
def read(text, schema):
    """The leaves of a filter, and its own answers."""
    expression = parse(text, schema)
    return leaves_of(expression, Semantics("sql", schema)), compile_tree(expression.tree, schema)


class Bench:
    """The segment of some filters of a schema; with `named`, few references stand in a table."""

    def __init__(self, texts, schema, named=True, selective=0.02, common=16):
        self.schema, self.keys = schema, Keys(schema)
        held = [(leaves, answer) for leaves, answer in (read(text, schema) for text in texts)
                if leaves.shape not in {"0", "1"}]  # fmt: skip
        order = np.random.default_rng(len(held)).permutation(len(held)).tolist()
        handles = [3 * slot + 1 for slot in order]
        self.answers = [None] * len(held)  # by slot
        for slot, (_, answer) in zip(order, held, strict=True):
            self.answers[slot] = answer
        self.segment = None
        if held:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(layout, "NAMED", 10**6 if named else 0)
                patch.setattr(layout, "SELECTIVE", selective)
                patch.setattr(layout, "COMMON", common)
                pairs = zip(handles, (leaves for leaves, _ in held), strict=True)
                self.segment = Segment.compile(intern_filters(pairs, self.keys))
            of = self.segment
            self._computed = ComputedAttributes(schema, of.predicates.terms)
            self._tests = SegmentTests(of.predicates, self._computed)
            keys, keyed = Keys(self._computed.schema), self._computed.keyed
            self._writer = EventWriter(of.used, keys, keyed=keyed)
            self._buffers = EventBuffers(of)

    def found(self, row, now=0, are_many=False):
        """The handles of an event, and whether they are said to be ascending."""
        of, buffers, plain = self.segment, self._buffers, row
        row = self._computed.row(plain)
        elements = self._writer.write(row, buffers.values)
        written = buffers.values.values
        self._computed.write_keys(plain, written.numbers, written.kinds)
        found = np.full(len(of.handles) + 2, -1, np.int64)
        size = int(match_event(
            buffers.values.packed, elements, self._tests.of_row(row), *of.packed, buffers.event,
            buffers.scratch, buffers.touched, of.handles, of.died, now, are_many, found[:-2],
        ))  # fmt: skip
        assert found[-2:].tolist() == [-1, -1]
        self._is_as_in_a_batch(plain)
        return found[: size if size >= 0 else ~size].tolist(), size >= 0

    def check(self, row, times=(0,)):
        """Against every filter by itself."""
        if self.segment is None:
            return
        died = self.segment.died
        true = [slot for slot, answer in enumerate(self.answers) if answer(row) is True]
        for now in times:
            expected = [3 * s + 1 for s in true if not len(died) or died[s] > now]
            found, is_rising = self.found(row, now)
            assert sorted(found) == expected
            assert is_rising == (found == expected)
            assert self.found(row, now, are_many=True) == (expected, True)

    def _is_as_in_a_batch(self, row):
        of, event = self.segment, self._buffers.event
        batch = self._computed.batch(batch_of_rows([row], self.schema))
        expected = classes_of(batch, of.predicates, of.used)
        assert getattr(event, "record", event).classes.tolist() == expected.T.tolist()


WAYS = [
    {}, {"named": False}, {"selective": 2}, {"named": False, "selective": 2},
    {"common": 1}, {"named": False, "common": 1},
]  # fmt: skip


@pytest.mark.long
@given(
    texts=st.lists(filters(), min_size=1, max_size=8), some=st.lists(rows(), max_size=4),
    way=st.sampled_from(WAYS),
)  # fmt: skip
@settings(max_examples=MANY)
def test_any_filters(texts, some, way):
    for text in texts:
        parsed(text)
    bench = Bench(texts, SCHEMA, **way)
    for row in some:
        bench.check(row)


OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


def alike(size):
    """Conjunctions whose columns compare in the same way, and formulas of such columns."""
    found = []
    for k in range(size):
        for op in OPERATORS:
            found.append(f"n {op} {k % 7} AND m {op} {k}")
            found.append(f"s {op} '{'ab' * (k % 5)}' AND x {op} {k / 4}D AND m IS NOT NULL")
        found.append(f"n = {k % 3} AND m <> {k} AND x > {k}D")
        found.append(f"n = {k % 3} AND (m < {k} OR x > {k}D)")
        found.append(f"n < {k} AND m > 2 OR x > {k}D AND s <> 'é'")
        found.append(f"m IS NULL AND n <> {k % 4}")
        found.append(f"s > '{k}' AND t <= '{'ab' * (k % 5)}'")
    return found


def mixed(size):
    """Columns of any kind, with sets and tests."""
    found = []
    for k in range(size):
        op = OPERATORS[k % 6]
        found.append(f"n {op} {k % 9} AND s {OPERATORS[k % 5]} 'ab'")
        found.append(f"n IN ({k % 3}, {k % 5 + 1}) AND m {op} {k % 8}")
        found.append(f"n NOT IN ({k % 3}, {k % 5 + 1}) AND s NOT IN ('a', '{k % 4}')")
        found.append(f"s LIKE '%{k % 3}' AND n {op} {k % 4}")
        found.append(f"n % {k % 5 + 2} = 1 AND (b OR m {op} 3)")
        found.append(f"(n < {k} OR m > 2 OR x {op} 1D) AND (s = 'a' OR t > 'b' OR b)")
        found.append(f"n {op} 1 AND (m < {k % 9} OR x > 2D AND (s <> 'a' OR t IS NULL))")
        found.append(f"n + m > {k % 20} AND (s IN ('a', 'b{k % 3}') OR x {op} 1D)")
    return found


STOCK_ROWS = [
    (None, None, None, None, None, None),
    (0, 0, 0.0, "", True, "abab"), (1, 5, 1.25, "ab", False, None),
    (2, None, 2.5, "abab", True, ""), (3, 40, None, "a", None, "é"),
    (None, 3, -1.0, "b1", True, "ab"), (6, 100, 1e9, None, False, "a"),
    (4, 7, float("nan"), "é", True, "b"), (2**63 - 1, -(2**63), float("-inf"), "2", None, "ababa"),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [1, 63, 64, 65, 130])
def test_alike_columns(size, way):
    if not COMPILED and size != 65:
        pytest.skip("one of these is enough where nothing is compiled")
    bench = Bench(alike(size), STOCK, **way)
    assert size == 1 or (bench.segment.programs.signatures != MIXED).any()
    for row in STOCK_ROWS:
        bench.check(row)


@each("way", WAYS)
def test_mixed_columns(way):
    bench = Bench(mixed(140 if COMPILED else 70), STOCK, **way)
    assert (bench.segment.programs.signatures == MIXED).any()
    for row in STOCK_ROWS:
        bench.check(row)


@each("way", WAYS)
def test_deaths_at_different_times(way):
    bench = Bench(alike(12) + mixed(12), STOCK, **way)
    chance = np.random.default_rng(3)
    bench.segment.died = chance.integers(0, 4, len(bench.answers)).astype(np.int64)
    bench.segment.died[bench.segment.died == 0] = ALIVE
    for row in STOCK_ROWS:
        bench.check(row, times=(-1, 0, 1, 2, 3))


def test_nothing_is_touched():
    """Clusters under predicates that are not true are not looked at."""
    bench = Bench([f"s = '{k}' AND n > {k}" for k in range(200)], STOCK, named=False)
    assert len(bench.segment.programs.access) == 200
    for row in ((5, *[None] * 5), (5, None, None, "201", None, "1")):
        for are_many in (False, True):
            assert bench.found(row, are_many=are_many) == ([], True)
    bench.check((100, None, None, "33", None, None))


# --- from slots to handles


@given(
    size=st.sampled_from([1, 63, 64, 65, 200, 5000]), data=st.data(),
    kind=st.sampled_from([np.int32, np.int64]), some_died=st.booleans(),
)  # fmt: skip
@settings(max_examples=MANY)
def test_handles_in_order(size, data, kind, some_died):
    """Of those that are not gone; from slots in any order, and from marks."""
    slots = data.draw(st.lists(st.integers(0, size - 1), unique=True, max_size=70))
    handles = np.arange(size, dtype=kind) * 3 + 5
    died = np.arange(size if some_died else 0, dtype=np.int64) % 3
    marks = np.zeros(-(-size // 64), np.uint64)
    for slot in slots:
        marks[slot // 64] |= np.uint64(1) << np.uint64(slot % 64)
    kept = [slot for slot in slots if not some_died or slot % 3 > 1]
    found = np.full(size, -1, np.int64)
    count = living_handles(np.array(slots, np.int32), died, 1, handles, found)
    assert (count >= 0) == (kept == sorted(kept))
    assert found[: count if count >= 0 else ~count].tolist() == [3 * slot + 5 for slot in kept]
    count = living_marked_handles(marks, died, 1, handles, found)
    assert found[:count].tolist() == [3 * slot + 5 for slot in sorted(kept)]
    assert not marks.any()


def test_all_slots():
    died = np.empty(0, np.int64)
    for size in (1, 64, 65, 640):
        handles, found = np.arange(size, dtype=np.int32) + 9, np.empty(size, np.int64)
        slots = np.arange(size, dtype=np.int32)[::-1].copy()
        assert living_handles(slots, died, 0, handles, found) == (1 if size == 1 else ~size)
        assert found.tolist() == handles[::-1].tolist()
        marks = np.full(-(-size // 64), 2**64 - 1, np.uint64)
        marks[-1] >>= np.uint64(-size % 64)
        assert living_marked_handles(marks, died, 0, handles, found) == size
        assert found.tolist() == handles.tolist()
