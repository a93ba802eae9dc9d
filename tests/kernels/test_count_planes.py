"""Counts of matches in bit planes, against counting bit by bit."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bit_rows import digits
from cases import each
from kernel_calls import from_python
from tamis.kernels.predicate_rows import EVENTS
from tamis.kernels.programs import PLANES, Output, _consume, _count, add_planes
from tamis.kernels.simd_rows import LANES, WORDS

_consume, _count = map(from_python, (_consume, _count))

pytestmark = pytest.mark.uncompiled

MANY = 60 if os.environ.get("NUMBA_DISABLE_JIT", "0") == "0" else 12


def output():
    """For counts alone."""
    return Output(
        counts=np.zeros(EVENTS, np.int64), matrix=np.empty((0, WORDS), np.uint64),
        slots=np.empty(0, np.int32), words=np.empty(0, np.int8), bits=np.empty(0, np.uint64),
        size=np.zeros(2, np.int64), planes=np.zeros((PLANES, WORDS), np.uint64),
    )  # fmt: skip


def random_bits(seed, size, density):
    bits = np.random.default_rng(seed).random((size, EVENTS)) < density
    return np.packbits(bits, axis=-1, bitorder="little").view(np.uint64).reshape(size, WORDS)


def waiting(rows):
    """Results that are not handed over yet, followed by rubbish."""
    local = np.full((3 * LANES, WORDS), 0xABCDEF, np.uint64)
    local[: len(rows)] = rows
    return local


CARRIES = np.full((LANES // 8, WORDS), 0xBAD, np.uint64)


@given(
    sizes=st.lists(st.integers(0, 2 * LANES) | st.sampled_from([1, 63, 64, 65]), max_size=12),
    density=st.sampled_from([0.0, 0.1, 0.9, 1.0]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=MANY)
def test_counting_by_planes(sizes, density, seed):
    """Any number of portions, also of fewer than 64 rows."""
    out = output()
    expected = np.zeros(EVENTS, np.int64)
    for number, size in enumerate(sizes):
        rows = random_bits(seed + number, size, density)
        _count(waiting(rows), size, CARRIES, out.planes)
        expected += digits(rows).sum(axis=0)
    sums = (digits(out.planes) * (1 << np.arange(PLANES))[:, None]).sum(axis=0)
    assert sums.tolist() == expected.tolist()
    add_planes(out)
    assert out.counts.tolist() == expected.tolist()
    assert not out.planes.any()


def planes_of(count):
    """The planes when every event has `count` matches."""
    every = np.uint64(2**64 - 1)
    return np.array([[every if count >> p & 1 else 0] * WORDS for p in range(PLANES)], np.uint64)


@each("count", [2**k - 1 for k in range(6, PLANES)] + [1024, 2**19 + 2**7])
def test_carries_go_through_all_planes(count):
    planes = planes_of(count)
    rows = random_bits(count, 2 * LANES, 0.5)
    rows[0] = 2**64 - 1
    _count(waiting(rows), len(rows), CARRIES, planes)
    sums = (digits(planes) * (1 << np.arange(PLANES))[:, None]).sum(axis=0)
    assert sums.tolist() == (count + digits(rows).sum(axis=0)).tolist()


@each("before", [0, 1000, 2**PLANES - 4 * LANES - 127, 2**PLANES - 4 * LANES])
@each("size", [0, 1, 64, 127])
def test_planes_are_added_before_they_are_full(size, before):
    """All rows are counted once, and there is space for the next portion."""
    out = output()
    out.planes[:] = planes_of(before)
    out.size[1] = before
    slots = np.arange(size, dtype=np.int32)
    live = np.arange(3 * LANES, dtype=np.int64)
    rows = random_bits(size, size, 1.0)
    for _ in range(3):
        _consume(waiting(rows), live, size, slots, CARRIES, np.empty(0, np.int64), 0, out)
        assert int(out.size[1]) + 2 * LANES < 2**PLANES
    add_planes(out)
    assert set(out.counts.tolist()) == {before + 3 * size}
    assert not out.planes.any()
    assert out.size.tolist() == [0, 0]
