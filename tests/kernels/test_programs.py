"""Programs that are written by hand, against evaluating each subscription by itself.

`test_sliced_segment.py` has programs that segments made. Here are their edges: results that fill
the scratch exactly, sums that fill the planes, rows that are empty in one way or another.
"""

import operator
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.kernels.programs import (
    AND_LEAF,
    CHUNK,
    OR_LEAF,
    OR_TOP,
    PLANES,
    PUSH,
    SOME,
    UNKNOWN,
    Block,
    Comparisons,
    Event,
    Programs,
    Results,
    _count,
    clusters_of,
    pour,
    resolve,
    run,
    run_one,
    work_of,
)
from tamis.kernels.slices import EMPTY, EVENTS, WORDS, Axes, Touched

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
MANY = 40 if COMPILED else 4


def digits(words):
    """words[..., word] as bits[..., event], the lowest bit first."""
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")


def random_rows(seed, size, density):
    bits = np.random.default_rng(seed).random((size, EVENTS)) < density
    return np.packbits(bits, axis=-1, bitorder="little").view(np.uint64).reshape(size, WORDS)


def results(*, counts=False, slots=0, most=0):
    """Room for counts, for a matrix of slots, or for lists; scratch is full of rubbish."""
    return Results(
        counts=np.zeros(EVENTS if counts else 0, np.int64),
        matrix=np.zeros((slots, WORDS), np.uint64),
        slots=np.empty(most, np.int32),
        words=np.empty(most, np.int8),
        bits=np.empty(most, np.uint64),
        size=np.zeros(2, np.int64),
        planes=np.zeros((PLANES, WORDS), np.uint64),
        local=np.full((CHUNK + SOME, WORDS), 0xABCDEF, np.uint64),
        live=np.full(CHUNK + SOME, -7, np.int64),
    )


def block_of(rows, row_of, touched=(), alive=(), depth=4):
    """A block without any attribute: every row is known."""
    axes = Axes(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, EVENTS), np.int64))
    return Block(
        rows=rows,
        row_of=np.array(row_of, np.int32),
        axes=axes,
        touched=touched_of(touched),
        alive=np.array(alive, np.uint8),
        stack=np.full((depth, SOME, WORDS), 0xBAD, np.uint64),
    )


def touched_of(ids):
    return Touched(np.array([*ids, -1], np.int32), np.array([len(ids)], np.int64))


def no_comparisons(predicates):
    return Comparisons(np.full(predicates, -1, np.int32), np.zeros(predicates, np.int64))


def programs_of(conjunctions, formulas=(), slots=None, led=()):
    """Conjunctions of one width in clusters of equal first members, then `aa|a&` formulas.

    The clusters of the predicates in `led` are found from the events.
    """
    width = len(conjunctions[0]) if conjunctions else 1
    shapes = [[PUSH] + [AND_LEAF] * (width - 1)] * bool(conjunctions)
    shapes += [[PUSH, OR_LEAF, AND_LEAF]] * bool(formulas)
    assert sorted(conjunctions, key=lambda one: one[0]) == list(conjunctions)
    firsts = [one[0] for one in conjunctions]
    starts = [n for n, first in enumerate(firsts) if n == 0 or firsts[n - 1] != first]
    subs = [0] + [len(conjunctions)] * bool(conjunctions)
    subs += [len(conjunctions) + len(formulas)] * bool(formulas)
    refs_at = [0] * bool(conjunctions) + [len(conjunctions) * width] * bool(formulas)
    access = [n for n, start in enumerate(starts) if firsts[start] in led]
    everything = [*conjunctions, *formulas]
    return Programs(
        subs=np.array(subs, np.int64),
        refs_at=np.array(refs_at, np.int64),
        refs=np.array([p for one in everything for p in one], np.int32),
        ops_at=np.cumsum([0, *map(len, shapes)]).astype(np.int64),
        ops=np.array([op for shape in shapes for op in shape], np.int8),
        formulas=int(bool(conjunctions)),
        cluster_shapes=np.zeros(len(starts), np.int32),
        cluster_subs=np.array([*starts, len(conjunctions)], np.int64),
        plain=np.array([n for n in range(len(starts)) if n not in access], np.int32),
        access=np.array([firsts[starts[n]] for n in access], np.int32),
        access_at=np.arange(len(access) + 1, dtype=np.int64),
        access_clusters=np.array(access, np.int32),
        slots=np.arange(len(everything), dtype=np.int32) if slots is None else slots,
    )


def truth_of(one, rows, row_of, *, formula):
    a, *others = [digits(rows[row_of[p]]).astype(bool) for p in one]
    if formula:
        return (a | others[0]) & others[1]
    for other in others:
        a = a & other
    return a


def check(programs, expected, rows, row_of, touched=(), alive=()):
    """All three results of `run`, and `run_one` for some events; expected[sub, event]."""
    subs = len(programs.slots)
    by_slot = np.zeros((subs, EVENTS), bool)
    by_slot[programs.slots] = expected
    if len(alive):
        by_slot &= np.array(alive, bool)[:, None]
    comparisons = no_comparisons(len(row_of))

    out = results(counts=True)
    run(programs, comparisons, block_of(rows, row_of, touched, alive), out)
    assert out.counts.tolist() == by_slot.sum(axis=0).tolist()
    assert not out.planes.any()

    for counts in (False, True):
        out = results(counts=counts, slots=subs)
        run(programs, comparisons, block_of(rows, row_of, touched, alive), out)
        assert (digits(out.matrix).astype(bool) == by_slot).all()
        assert out.counts.tolist() == by_slot.sum(axis=0).tolist()[: len(out.counts)]

    out = results(most=WORDS * subs + 1)
    run(programs, comparisons, block_of(rows, row_of, touched, alive), out)
    count = int(out.size[0])
    made = np.zeros((subs, WORDS), np.uint64)
    made[out.slots[:count], out.words[:count]] = out.bits[:count]
    assert count == np.count_nonzero(made)
    assert (digits(made).astype(bool) == by_slot).all()

    bits = digits(rows).astype(np.int8)
    for event in (0, 63, 64, 511):
        truth = bits[np.array(row_of), event]
        true = [p for p in touched if truth[p]]
        for complete in (False, True):
            one = Event(
                keys=np.zeros(0, np.int64), present=np.zeros(0, np.uint8), truth=truth.copy(),
                complete=complete, touched=touched_of(true),
            )  # fmt: skip
            found, stack = np.full(subs + 1, -1, np.int32), np.full(4, 1, np.int8)
            count = run_one(programs, comparisons, one, np.array(alive, np.uint8), stack, found)
            assert sorted(found[:count].tolist()) == np.flatnonzero(by_slot[:, event]).tolist()


# --- counting


@pytest.mark.parametrize("density", [0.0, 0.03, 0.5, 1.0])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 255, 256, 257, 1007, 1008, 1009, 1024, 2000])
def test_counting_conjunctions_of_one(size, density):
    """Each result has its own row, so that the counts are sums over the rows."""
    if not COMPILED and size > 300:
        pytest.skip("one of these is enough where nothing is compiled")
    rows = np.concatenate([np.zeros((1, WORDS), np.uint64), random_rows(size, size, density)])
    programs = programs_of([(p,) for p in range(size)])
    out = results(counts=True)
    run(programs, no_comparisons(size), block_of(rows, range(1, size + 1)), out)
    assert out.counts.tolist() == digits(rows).sum(axis=0, dtype=int).tolist()


@given(
    sizes=st.lists(st.integers(0, CHUNK + SOME), max_size=8),
    density=st.sampled_from([0.0, 0.1, 0.9, 1.0]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=MANY)
def test_counting_by_planes(sizes, density, seed):
    """Any number of portions, and the planes never overflow."""
    out = results(counts=True)
    expected = np.zeros(EVENTS, np.int64)
    for number, size in enumerate(sizes):
        rows = random_rows(seed + number, size, density)
        out.local[:size] = rows
        _count(size, out)
        expected += digits(rows).sum(axis=0, dtype=np.int64)
        assert int(out.size[1]) < 2**PLANES
    pour(out)
    assert out.counts.tolist() == expected.tolist()
    assert not out.planes.any()
    assert out.size.tolist() == [0, 0]


def test_counts_are_added_to():
    """Several segments count into one array."""
    rows = random_rows(1, 1, 1.0)
    out = results(counts=True)
    out.counts[:] = 2**40
    run(programs_of([(0,)]), no_comparisons(1), block_of(rows, [0]), out)
    run(programs_of([]), no_comparisons(0), block_of(rows, []), out)
    assert set(out.counts.tolist()) == {2**40}  # row 0 is taken for empty
    run(programs_of([(0,)]), no_comparisons(1), block_of(np.vstack([rows * 0, rows]), [1]), out)
    assert set(out.counts.tolist()) == {2**40 + 1}


# --- programs


def shuffled(size, seed):
    return np.random.default_rng(seed).permutation(size).astype(np.int32)


@pytest.mark.parametrize("density", [0.02, 1.0])
@pytest.mark.parametrize("size", [1, 31, 32, 33, 224, 225, 255, 256, 257, 287, 288, 289, 600])
def test_results_that_fill_the_scratch(size, density):
    if not COMPILED and size not in {33, 289}:
        pytest.skip("two of these are enough where nothing is compiled")
    rows = np.vstack([np.zeros((1, WORDS), np.uint64), random_rows(size, 6, density)])
    row_of = [1, 2, 3, 4, 5, 6]
    chance = np.random.default_rng(size)
    conjunctions = sorted(map(tuple, chance.integers(0, 6, (size, 2)).tolist()))
    formulas = list(map(tuple, chance.integers(0, 6, (size, 3)).tolist()))
    for some, others in ((conjunctions, []), ([], formulas), (conjunctions, formulas)):
        total = len(some) + len(others)
        programs = programs_of(some, others, shuffled(total, size))
        expected = np.array(
            [truth_of(one, rows, row_of, formula=False) for one in some]
            + [truth_of(one, rows, row_of, formula=True) for one in others]
        )
        check(programs, expected, rows, row_of)
        alive = chance.integers(0, 2, total).tolist()
        check(programs, expected, rows, row_of, alive=alive)
        check(programs, expected, rows, row_of, alive=[0] * total)
        check(programs, expected, rows, row_of, alive=[1] * (total - 1) + [0])


@given(data=st.data())
@settings(max_examples=MANY)
def test_any_programs(data):
    """Rows that are EMPTY, that are 0 by themselves, and clusters that events lead to."""
    predicates = 7
    rows = random_rows(data.draw(st.integers(0, 99)), 9, data.draw(st.sampled_from([0.01, 0.5])))
    rows[EMPTY] = 0
    rows[8] = 0  # a row that happens to be empty
    row_of = data.draw(st.lists(st.sampled_from(range(9)), min_size=7, max_size=7))
    number = st.integers(0, predicates - 1)
    width = data.draw(st.integers(1, 4))
    conjunctions = sorted(data.draw(st.lists(st.tuples(*[number] * width), max_size=40)))
    formulas = data.draw(st.lists(st.tuples(number, number, number), max_size=40))
    total = len(conjunctions) + len(formulas)
    led = data.draw(st.sets(number))
    # What leads to a cluster is told to be true of some event; EMPTY is true of none.
    touched = [p for p in data.draw(st.permutations(sorted(led))) if row_of[p] != EMPTY]
    programs = programs_of(conjunctions, formulas, shuffled(total, total), led)
    expected = np.array(
        [truth_of(one, rows, row_of, formula=False) for one in conjunctions]
        + [truth_of(one, rows, row_of, formula=True) for one in formulas]
    ).reshape(total, EVENTS)
    alive = data.draw(st.just([]) | st.lists(st.booleans(), min_size=total, max_size=total))
    check(programs, expected, rows, row_of, touched, alive)


def test_a_cluster_is_found_from_what_is_touched():
    programs = programs_of([(0, 1), (2, 1), (2, 3), (5, 3)], led={0, 2})
    assert [clusters_of(p, programs) for p in range(6)] == [
        (0, 1), (0, 0), (1, 2), (0, 0), (0, 0), (0, 0),
    ]  # fmt: skip
    assert work_of(programs, touched_of([])) == 2
    assert work_of(programs, touched_of([2, 4])) == 6
    assert work_of(programs, touched_of([0, 2])) == 8


def test_a_comparison_is_looked_up_once_and_remembered():
    rows = np.vstack([np.zeros((1, WORDS), np.uint64), random_rows(5, 8, 0.4)])
    # One attribute with the value 10 in the block: rows 1 and 2 below, 3 and 4 above, 5 equal,
    # 6 unequal, 7 present.
    axes = Axes(np.array([1]), np.array([1]), np.array([[10] + [0] * 511]))
    comparisons = Comparisons(np.array([2, 3, 4, 5, 1, 1], np.int32), np.array([10] * 5 + [11]))
    block = block_of(rows, [UNKNOWN] * 6)._replace(axes=axes)
    programs = programs_of([(p,) for p in range(6)])
    out = results(slots=6)
    run(programs, comparisons, block, out)
    assert block.row_of.tolist() == [1, 2, 4, 3, 6, 7]
    assert (out.matrix == rows[block.row_of]).all()


OPS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("value", [None, -(2**63), 9, 10, 11, 2**63 - 1])
def test_comparisons_of_one_event(value, complete):
    """Looked up when they are needed, or all of them before."""
    segments = np.array([0, 1, 2, 3, 4, 5, 11], np.int32)  # of two attributes
    comparisons = Comparisons(segments, np.full(7, 10, np.int64))
    event = Event(
        keys=np.array([value or 0, 0], np.int64),
        present=np.array([value is not None, 0], np.uint8),
        truth=np.full(7, UNKNOWN, np.int8),
        complete=complete,
        touched=touched_of([]),
    )
    if complete:
        resolve(comparisons, event)
    expected = [int(value is not None and op(value, 10)) for op in OPS] + [0]
    programs = programs_of([(p, p) for p in range(7)], [(p, p, p) for p in range(7)])
    found = np.full(15, -1, np.int32)
    count = run_one(
        programs, comparisons, event, np.empty(0, np.uint8), np.empty(4, np.int8), found
    )
    assert sorted(found[:count].tolist()) == np.flatnonzero(expected * 2).tolist()
    assert event.truth.tolist() == expected


def test_an_op_that_combines_two_results():
    """``aa&aa&|`` needs two places on the stack."""
    programs = programs_of([], [(0, 1, 2)])._replace(
        ops=np.array([PUSH, AND_LEAF, PUSH, AND_LEAF, OR_TOP], np.int8),
        ops_at=np.array([0, 5], np.int64),
        refs=np.array([0, 1, 2, 3], np.int32),
    )
    rows = np.vstack([np.zeros((1, WORDS), np.uint64), random_rows(2, 4, 0.5)])
    a, b, c, d = digits(rows[1:]).astype(bool)
    check(programs, (a & b | c & d)[None], rows, [1, 2, 3, 4])


def test_all_kernels_without_the_compiler():
    """The same tests on the plain functions, in a process that never compiles."""
    here = Path(__file__).parent
    files = [str(here / f"test_{name}.py") for name in ("bits", "slices", "emission", "programs")]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "not compiler", *files],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout
