"""Programs that segments compile, against evaluating every filter on every event by itself."""

import operator
import os
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bit_rows import digits
from cases import each
from kernel_calls import from_python
from tamis import Schema, parse
from tamis.engines.sliced import layout
from tamis.engines.sliced.attribute_tests import FailedTests
from tamis.engines.sliced.buffers import BlockBuffers
from tamis.engines.sliced.interning import intern_filters
from tamis.engines.sliced.leaves import (
    ABSENT,
    EQUAL,
    LEAF_KINDS,
    NONE_OF,
    ONE_OF,
    PRESENT,
    TEST,
    UNEQUAL,
    Leaves,
)  # fmt: skip
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_tests import SegmentTests
from tamis.engines.sliced.value_classes import classes_of
from tamis.kernels.comparisons import ABOVE, AT_LEAST, AT_MOST, BELOW
from tamis.kernels.event_truth import EventTruth
from tamis.kernels.one_event import run_clusters
from tamis.kernels.predicate_rows import (
    EVENTS,
    TOUCHED,
    finish_block,
    make_rows,
    rows_of_failed_tests,
    rows_of_tests,
)
from tamis.kernels.programs import (
    ALIVE,
    FEW,
    MIXED,
    add_planes,
    cluster_end,
    plan_visits,
    run_programs,
)
from tamis.kernels.simd_rows import LANES, WORDS
from tamis.language.evaluation import compile_tree
from tamis.predicates.computed_values import ComputedAttributes
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.keys import Keys

cluster_end = from_python(cluster_end)

pytestmark = pytest.mark.uncompiled

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
MANY = 60 if COMPILED else 12

SCHEMA = Schema({"n": "int", "m": "int", "s": "string"})
N, M, S, NOWHERE = (LEAF_KINDS * place for place in range(4))
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
STRINGS = ["", "a", "ab", "b", "é"]
_TESTS = {
    "n % 3 = 1": N, "abs(n) > 4": N, "s LIKE 'a%'": S, "length(s) = 1": S, "n < m": NOWHERE,
    "n + m IS NULL": NOWHERE,
}  # fmt: skip
# The leaves of predicates that can only be tried.
TRIED = [(home + TEST, parse(text, SCHEMA).tree) for text, home in _TESTS.items()]
ANSWERS = {test: compile_tree(test, SCHEMA) for _, test in TRIED}


# --- what filters say


def holds(leaf, row):
    """Whether a leaf, a code and a constant, is true of a row."""
    code, constant = leaf
    attribute, kind = divmod(code, LEAF_KINDS)
    if kind == TEST:
        return ANSWERS[constant](row) is True
    value = row[attribute]
    if value is None or kind in {PRESENT, ABSENT}:
        return kind == (ABSENT if value is None else PRESENT)
    if kind in {ONE_OF, NONE_OF}:
        return (value in constant) == (kind == ONE_OF)
    return COMPARE[kind](value, constant)


def truth_of(filters, rows):
    """truth[filter, event], read sign by sign."""
    known = {}
    found = np.zeros((len(filters), EVENTS), bool)
    for number, (shape, *leaves) in enumerate(filters):
        stack, left = [], iter(leaves)
        for sign in shape:
            if sign == "a":
                leaf = next(left)
                if leaf not in known:
                    known[leaf] = np.array([holds(leaf, row) for row in rows], bool)
                stack.append(known[leaf])
            else:
                one, other = stack.pop(), stack.pop()
                stack.append(one & other if sign == "&" else one | other)
        (found[number, : len(rows)],) = stack
    return found


# --- what programs say


class How(NamedTuple):
    """What a segment makes of filters."""

    named: bool = True  # whether the references are named if they are few
    selective: float = 0.02  # 2 lets every first predicate lead to a cluster if it can
    common: int = 16
    shift: int | None = None  # of the table from numbers to runs, if not the usual one


USUAL = How()
WAYS = [
    USUAL, How(named=False), How(selective=2), How(named=False, selective=2),
    How(named=False, selective=2, shift=3), How(common=2), How(named=False, common=1, shift=1),
]  # fmt: skip


def compiled(filters, how=USUAL, seed=0):
    """The segment of filters, whose handles are in another order, and that order."""
    order = np.random.default_rng(seed).permutation(len(filters))
    pairs = []
    for handle, (shape, *leaves) in zip(order.tolist(), filters, strict=True):
        codes, constants = zip(*leaves, strict=True)
        pairs.append((3 * handle + 1, Leaves(shape, codes, constants)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "NAMED", 10**6 if how.named else 0)
        patch.setattr(layout, "_often", lambda _: 10**6)  # clusters or not
        patch.setattr(layout, "SELECTIVE", how.selective)
        patch.setattr(layout, "COMMON", how.common)
        segment = Segment.compile(intern_filters(pairs, Keys(SCHEMA)))
    conjunctions = len(segment.programs.refs) > LANES
    assert (len(segment.programs.named) > 0) == (how.named and conjunctions)
    return segment, order


class Bench:
    """A segment and the room in which blocks are evaluated, again and again."""

    def __init__(self, segment, shift=None):
        self.segment = segment
        self.room = BlockBuffers(segment)
        self._computed = ComputedAttributes(SCHEMA, segment.predicates.terms)
        self._tests = SegmentTests(segment.predicates, self._computed)
        if shift is not None and len(self.room.block_rows.coarse):
            coarse = np.empty((segment.predicates.size >> shift) + 1, np.int32)
            self.room.block_rows = self.room.block_rows._replace(coarse=coarse, shift=shift)

    def prepare(self, rows):
        """Classes, truth and plan of a block."""
        segment, block = self.segment, self.room.block_rows
        batch = self._computed.batch(batch_of_rows(rows, SCHEMA))
        classes = classes_of(batch, segment.predicates, segment.used)
        make_rows(
            classes, 0, len(rows), segment.used, segment.numbering, block, self.room.order,
            self.room.spare, self.room.digits,
        )  # fmt: skip
        for part in self._tests.of_batch(batch):
            listed = part.codes, part.starts, part.numbers
            if isinstance(part, FailedTests):
                rows_of_failed_tests(*listed, part.tests, block)
            else:
                rows_of_tests(*listed, block)
        finish_block(segment.numbering, block)
        plan_visits(segment.programs, segment.steps, block, self.room.program_buffers)
        return classes

    def evaluate(self, classes, now, out, by_rows):
        """Evaluate what is planned; by_rows, even where few events come to a cluster."""
        segment, block, buffers = self.segment, self.room.block_rows, self.room.program_buffers
        before = buffers.planned.copy()
        if by_rows:
            visits, single = before
            buffers.visits[visits : visits + single] = buffers.single[:single, :3]
            buffers.planned[:] = visits + single, 0
        run_programs(segment.programs, segment.steps, block, buffers, segment.died, now, out)
        if buffers.planned[1]:
            event = EventTruth(
                np.ascontiguousarray(classes.T), np.empty(0, np.uint8), block.rows, block.listed
            )
            run_clusters(
                segment.programs, segment.numbering, segment.predicates.number_owners, event,
                block, buffers, segment.died, now, out,
            )  # fmt: skip
        if len(out.counts):
            add_planes(out)
        buffers.planned[:] = before

    def listing(self):
        """Lists that are long enough for every bit of every subscription."""
        most = EVENTS * len(self.segment.handles) + 1
        return self.room.listing()._replace(
            slots=np.full(most, -1, np.int32), words=np.full(most, -1, np.int8),
            bits=np.zeros(most, np.uint64),
        )  # fmt: skip


def lists_as_bits(out, subs):
    """bits[slot, event] of listed words, none of which is 0 or says what another says."""
    size = int(out.size[0])
    slots, words, bits = out.slots[:size], out.words[:size], out.bits[:size]
    found = np.zeros((subs, WORDS), np.uint64)
    np.bitwise_or.at(found, (slots, words), bits)
    assert bits.all()
    assert digits(found).sum() == digits(bits).sum()
    return digits(found)


def check(bench, order, filters, rows, times=(0,)):
    """All results of a block at some times, against the filters."""
    segment, subs = bench.segment, len(filters)
    by_slot = np.zeros((subs, EVENTS), bool)
    by_slot[order] = truth_of(filters, rows)
    classes = bench.prepare(rows)
    for now in times:
        expected = by_slot & (segment.died > now)[:, None] if len(segment.died) else by_slot
        for by_rows in (False, True) if bench.room.program_buffers.planned[1] else (False,):
            counts = np.zeros(EVENTS, np.int64)
            bench.evaluate(classes, now, bench.room.counting(counts), by_rows)
            assert counts.tolist() == expected.sum(axis=0).tolist()

            counts = np.full(EVENTS, 2**40, np.int64)  # is added to
            out = bench.room.filling(counts)
            bench.evaluate(classes, now, out, by_rows)
            assert (digits(out.matrix) == expected).all()
            assert (counts - 2**40).tolist() == expected.sum(axis=0).tolist()
            assert not out.planes.any()

            out = bench.listing()
            bench.evaluate(classes, now, out, by_rows)
            assert (lists_as_bits(out, subs) == expected).all()


# --- filters and events


def conjunction(*leaves):
    return ("a" + "a&" * (len(leaves) - 1), *leaves)


def random_leaf(chance):
    kind = int(chance.integers(0, 14))
    if kind >= 12:
        return TRIED[chance.integers(0, len(TRIED))]
    attribute = int(chance.integers(0, 3))
    pool = STRINGS if attribute == 2 else range(-3, 10)
    code = (
        attribute * LEAF_KINDS + [*range(6), EQUAL, EQUAL, ONE_OF, NONE_OF, PRESENT, ABSENT][kind]
    )
    if kind >= 10:
        return code, None
    if kind >= 8:
        members = {pool[chance.integers(0, len(pool))] for _ in range(chance.integers(2, 5))}
        return (code, tuple(sorted(members))) if len(members) > 1 else random_leaf(chance)
    return code, pool[chance.integers(0, len(pool))]


def random_shape(chance, sign, depth):
    """A formula as `forms` writes it: leaves first, then the parts by their own shapes."""
    leaves = int(chance.integers(0 if depth else 1, 4))
    parts = int(chance.integers(0 if leaves > 1 else 1, 3)) if depth else 0
    inner = sorted(random_shape(chance, "&|"[sign == "&"], depth - 1) for _ in range(parts))
    shape = "a" + ("a" + sign) * (leaves - 1) if leaves else ""
    for part in inner:
        shape += part + (sign if shape else "")
    return shape


def random_filters(chance, size, shapes=4):
    made = ["a", "aa&", "aaa&|", *(random_shape(chance, "&|"[k % 2], 2) for k in range(shapes))]
    found = []
    for _ in range(size):
        shape = made[chance.integers(0, len(made))]
        found.append((shape, *(random_leaf(chance) for _ in range(shape.count("a")))))
    return found


def random_rows(chance, size, missing=0.15):
    def value(pool):
        return None if chance.random() < missing else pool[chance.integers(0, len(pool))]

    numbers = range(-4, 11)
    return [(value(numbers), value(numbers), value(STRINGS)) for _ in range(size)]


@given(data=st.data())
@settings(max_examples=MANY)
def test_any_programs(data):
    """One room, several blocks and times, whichever way the filters are laid out."""
    chance = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    filters = random_filters(chance, data.draw(st.sampled_from([1, 5, 60, 150])))
    how = data.draw(st.sampled_from(WAYS))
    segment, order = compiled(filters, how, len(filters))
    if data.draw(st.booleans()):
        segment.died = chance.integers(0, 4, len(filters)).astype(np.int64)
        segment.died[segment.died == 0] = ALIVE
    bench = Bench(segment, how.shift)
    for size in data.draw(st.lists(st.sampled_from([0, 1, 2, 70, EVENTS]), min_size=1, max_size=3)):
        check(bench, order, filters, random_rows(chance, size), times=(0, 2, ALIVE - 1))


@each("how", WAYS)
def test_every_way_at_once(how):
    """Enough filters for full chunks of every group."""
    chance = np.random.default_rng(7)
    filters = random_filters(chance, 900 if COMPILED else 300, shapes=1)
    segment, order = compiled(filters, how)
    assert (segment.programs.chunk_subs[1:] > segment.programs.chunk_subs[:-1]).all()
    check(Bench(segment, how.shift), order, filters, random_rows(chance, 100))


# --- chunks


def bordered(size):
    """So many members of a conjunction in each group of chunks, and of formulas."""
    groups = [
        [conjunction((N + EQUAL, 3), (M + AT_LEAST, k % 9)) for k in range(size)],
        [conjunction((N + EQUAL, 4), (M + UNEQUAL, k % 9)) for k in range(size)],
        [conjunction((S + EQUAL, "a"), (M + UNEQUAL, k % 9), TRIED[k % 6]) for k in range(size)],
        [conjunction((M + PRESENT, None), (N + UNEQUAL, k % 9)) for k in range(size)],
        [conjunction((N + ABOVE, k), (M + AT_MOST, -k)) for k in range(size)],
        [("aaa|&", (N + EQUAL, 3), (M + BELOW, k % 9), (S + EQUAL, "b")) for k in range(size)],
        [("aaa&|", (S + EQUAL, "é"), (N + ABOVE, k % 9), (M + BELOW, 5)) for k in range(size)],
    ]
    return [one for group in groups for one in group]


@pytest.mark.parametrize("how", [How(selective=2), How(named=False, selective=2), How()])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 129])
def test_chunk_borders(size, how):
    if not COMPILED and size not in {1, 65}:
        pytest.skip("two of these are enough where nothing is compiled")
    filters = bordered(size)
    segment, order = compiled(filters, how, size)
    sizes = np.diff(segment.programs.chunk_subs)
    assert LANES >= sizes.max() >= min(size, LANES)
    bench, chance = Bench(segment), np.random.default_rng(size)
    check(bench, order, filters, random_rows(chance, 200))
    check(bench, order, filters, [(3, 8, "é")] * 130)
    segment.died = np.where(chance.random(len(filters)) < 0.5, 1, ALIVE).astype(np.int64)
    check(bench, order, filters, random_rows(chance, 60), times=(0, 1))
    segment.died[:] = 1
    check(bench, order, filters, random_rows(chance, 60), times=(0, 1))


def test_deaths_at_different_times():
    """A match that began before a subscription was removed still sees it."""
    filters = [conjunction((N + AT_LEAST, 0), (N + BELOW, k)) for k in range(1, 8)] * 10
    segment, order = compiled(filters)
    segment.died = np.arange(len(filters), dtype=np.int64)
    check(Bench(segment), order, filters, [(k, 0, "") for k in range(9)], (-1, 0, 5, 68, 69, 70))


# --- plans


def symbols(size, alike=True):
    """Clusters of `size` under s = 'a' and s = 'b'; without `alike` with tests in between."""
    return [
        conjunction((S + EQUAL, text), (N + ABOVE, k) if alike or k % 2 else TRIED[0])
        for text in "ab" for k in range(size)
    ]  # fmt: skip


@each(
    ("alike", "named", "events", "is_single"),
    [
        (True, False, 1, True), (True, False, FEW, True), (True, False, FEW + 1, False),
        (False, False, 1, True), (False, False, 2, False),
        (True, True, 1, False), (False, True, 1, False),
    ],
)  # fmt: skip
def test_events_one_by_one_or_by_rows(alike, named, events, is_single):
    filters = symbols(70, alike)
    segment, order = compiled(filters, How(named, selective=2))
    assert (segment.programs.signatures == MIXED).any() != alike
    bench = Bench(segment)
    rows = [(1, 1, "é"), (1, 1, None), *((k % 30, 0, "a") for k in range(events))]
    bench.prepare(rows)
    buffers = bench.room.program_buffers
    assert buffers.planned.tolist() == ([0, 1] if is_single else [1, 0])
    planned = (buffers.single if is_single else buffers.visits)[0].tolist()
    assert planned[1] - planned[0] == 2  # the chunks of 's = a' alone
    check(bench, order, filters, rows)


def test_formulas_are_evaluated_by_rows():
    filters = [("aaa|&", (S + EQUAL, t), (N + ABOVE, k), (M + ABOVE, k))
               for t in "ab" for k in range(9)]  # fmt: skip
    segment, order = compiled(filters, How(named=False, selective=2))
    bench = Bench(segment)
    bench.prepare([(3, 4, "a")])
    assert bench.room.program_buffers.planned.tolist() == [1, 0]
    check(bench, order, filters, [(3, 4, "a")])


@given(seed=st.integers(0, 2**32), how=st.sampled_from(WAYS), size=st.sampled_from([1, 3, 40]))
@settings(max_examples=MANY // 3)
def test_chunks_that_are_planned(seed, how, size):
    """Every chunk once, but those whose access predicate is true of no event."""
    chance = np.random.default_rng(seed)
    segment, _ = compiled(random_filters(chance, 80), how)
    bench, programs = Bench(segment), segment.programs
    bench.prepare(random_rows(chance, size))
    block, buffers = bench.room.block_rows, bench.room.program_buffers
    touched = set(block.touched[: block.sizes[TOUCHED], 0].tolist())
    expected = []
    for common, _, end in programs.chunk_bounds[:, 1:].tolist():
        expected += range(common, end)
    for place, ref in enumerate(programs.access.tolist()):
        if ref in touched:
            first, shape = programs.access_chunks[place], programs.access_shapes[place]
            expected += range(first, cluster_end(first, shape, programs, segment.steps))
    visits, single = buffers.planned.tolist()
    planned = [*buffers.visits[:visits].tolist(), *buffers.single[:single, :3].tolist()]
    assert sorted(chunk for one in planned for chunk in range(*one[:2])) == sorted(expected)
    for first, after, shape in planned:
        low, high = programs.chunk_bounds[shape, [0, 3]]
        assert low <= first < after <= high


def test_the_ends_of_clusters():
    for how in (How(selective=2), How(named=False, selective=2)):
        filters = [
            conjunction((S + EQUAL, text), (N + ABOVE, k))
            for text, size in (("", 1), ("a", 64), ("ab", 65), ("b", 200)) for k in range(size)
        ]  # fmt: skip
        segment, _ = compiled(filters, how)
        programs = segment.programs
        ends = [cluster_end(first, 0, programs, segment.steps) for first in programs.access_chunks]
        assert programs.access_chunks.tolist() == [0, 1, 2, 4]
        assert ends == [1, 2, 4, 8]


def test_a_cluster_ends_with_its_shape():
    """The next shape may begin with the same predicate, and zeros come after the last one."""
    filters = [("a", (N + EQUAL, 3)), conjunction((N + EQUAL, 3), (N + PRESENT, None))]
    for how in (How(selective=2), How(named=False, selective=2)):
        segment, order = compiled(filters, how)
        assert [cluster_end(k, k, segment.programs, segment.steps) for k in range(2)] == [1, 2]
        check(Bench(segment), order, filters, [(3, 0, ""), (None, 0, ""), (4, 0, "")])


def test_there_is_room_for_all_that_is_listed():
    """Clusters that are looked at event by event list every match by itself."""
    filters = [conjunction((S + EQUAL, "a"), (N + ABOVE, k)) for k in range(100)]
    filters.append(conjunction((S + EQUAL, "b"), (N + ABOVE, 0)))
    bench = Bench(compiled(filters, How(named=False, selective=2))[0])
    classes = bench.prepare([(1000, 0, "a")] * FEW)
    out = bench.listing()
    bench.evaluate(classes, 0, out, by_rows=False)
    assert int(out.size[0]) <= len(bench.room.listing().slots)


@pytest.mark.parametrize("size", [64, 65, 1023, 1024, 1025, 5000])
def test_counts_of_many(size):
    if not COMPILED and size > 1024:
        pytest.skip("the others are enough where nothing is compiled")
    filters = [("a", (N + AT_LEAST, -k)) for k in range(size)]
    segment, order = compiled(filters, How(size != 1024))
    rows = [(5, None, None), (0, 1, "a"), (-1, 1, "a"), (-size // 2, None, ""), (None, 2, "b")]
    check(Bench(segment), order, filters, rows)
