"""Rows of 512 bits: what the compiler makes of them is what the plain functions say."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bit_rows import EVERY_BIT
from tamis.kernels.match_bits import DIGITS
from tamis.kernels.simd_rows import (
    LANES,
    WORDS,
    and_rows,
    any_bit,
    combine_rows,
    empty_row,
    load_row,
    or_rows,
    store_row,
    within_interval,
    write_bit_places,
    xor_rows,
)

pytestmark = pytest.mark.uncompiled

RUBBISH = 0xDEADBEEFDEADBEEF


def use_rows(rows, one, other, out, flags):
    """Everything that can be done with two rows."""
    a, b = load_row(rows, one), load_row(rows, other)
    store_row(out, 0, a)
    store_row(out, 1, empty_row())
    store_row(out, 2, and_rows(a, b))
    store_row(out, 3, or_rows(a, b))
    store_row(out, 4, xor_rows(a, b))
    flags[0], flags[1], flags[2] = any_bit(a), any_bit(empty_row()), any_bit(and_rows(a, b))


def use_combination(rows, out, signs):
    """Two rows by AND and by OR."""
    for k in range(signs.size):
        store_row(out, k, combine_rows(load_row(rows, 0), load_row(rows, 1), signs[k]))


def use_chain(rows, out):
    """A row that is carried through a loop, as counters and conjunctions are."""
    found = empty_row()
    for k in range(rows.shape[0]):
        found = xor_rows(found, load_row(rows, k))
    store_row(out, 0, found)


def use_within(numbers, start, low, span, found):
    found[0] = within_interval(numbers, start, low, span)


def use_put_bits(numbers, start, byte, digits, base):
    write_bit_places(numbers, start, byte, digits, base)


def both_ways(function):
    return pytest.mark.parametrize(
        "call", [function, numba.njit(function)], ids=["plain", "compiled"]
    )


def unaligned(size):
    """uint64[size, word] that starts in the middle of a line, between rubbish."""
    whole = np.full(size * WORDS + 4, RUBBISH, np.uint64)
    return whole, whole[3 : 3 + size * WORDS].reshape(size, WORDS)


def random_rows(seed, size, density=0.5):
    bits = np.random.default_rng(seed).random((size, 64 * WORDS)) < density
    return np.packbits(bits, axis=-1, bitorder="little").view(np.uint64).reshape(size, WORDS)


DELICATE = np.array(
    [
        [0] * WORDS, [EVERY_BIT] * WORDS, [1] + [0] * 7, [0] * 7 + [1 << 63], [0, 1 << 32] * 4,
        [EVERY_BIT, 0] * 4, [0x5555555555555555] * WORDS, [0xAAAAAAAAAAAAAAAA] * WORDS,
    ],
    np.uint64,
)  # fmt: skip


def check_rows(call, source, one, other):
    _, rows = unaligned(len(source))
    rows[:] = source
    whole, out = unaligned(5)
    flags = np.full(3, 9, np.int64)
    call(rows, one, other, out, flags)
    a, b = source[one], source[other]
    expected = [a, np.zeros(WORDS, np.uint64), a & b, a | b, a ^ b]
    assert (out == np.array(expected)).all()
    assert flags.tolist() == [bool(a.any()), False, bool((a & b).any())]
    assert (rows == source).all()
    assert set(whole[:3].tolist()) | set(whole[-1:].tolist()) == {RUBBISH}


@both_ways(use_rows)
def test_delicate_rows(call):
    for one in range(len(DELICATE)):
        for other in range(len(DELICATE)):
            check_rows(call, DELICATE, one, other)


@both_ways(use_rows)
@given(seed=st.integers(0, 2**32), density=st.sampled_from([0.001, 0.5, 0.999]))
@settings(max_examples=20)
def test_any_rows(call, seed, density):
    source = random_rows(seed, 4, density)
    check_rows(call, source, 3, 1)
    check_rows(call, source, 2, 2)


@both_ways(use_rows)
def test_every_single_bit_is_some(call):
    for bit in range(64 * WORDS):
        row = np.zeros((1, WORDS), np.uint64)
        row[0, bit // 64] = np.uint64(1) << np.uint64(bit % 64)
        check_rows(call, row, 0, 0)


@both_ways(use_chain)
def test_rows_in_a_loop(call):
    source = random_rows(5, 17)
    out = np.full((1, WORDS), RUBBISH, np.uint64)
    call(source, out)
    assert (out[0] == np.bitwise_xor.reduce(source)).all()
    call(source[:0], out)
    assert not out.any()


def test_a_plain_row_is_not_a_view():
    """What is stored later does not change it."""
    rows = random_rows(1, 2)
    row, before = load_row(rows, 0), rows[0].copy()
    store_row(rows, 0, empty_row())
    assert (row == before).all()


# --- 64 numbers in an interval


def expected_within(numbers, start, low, span):
    """Numbers without a sign: below `low` they are far above it."""
    part = numbers[start : start + LANES].tolist()
    return sum(((number - low) % 2**32 < span) << k for k, number in enumerate(part))


def check_within(call, numbers, start, low, span):
    found = np.zeros(1, np.uint64)
    call(numbers, start, low, span, found)
    assert int(found[0]) == expected_within(numbers, start, low, span)


ENDS = [0, 1, 2, 7, 8, 9, 2**30, 2**31 - 8, 2**31 - 2, 2**31 - 1]


@both_ways(use_within)
def test_intervals_at_the_ends(call):
    numbers = np.array([*(ENDS * 7)[:LANES], 5], np.int32)
    for low in (*ENDS, 2**31):
        for span in (*ENDS, 2**31):
            check_within(call, numbers, 0, low, span)
            check_within(call, numbers, 1, low, span)


@both_ways(use_within)
def test_all_and_none(call):
    numbers = np.arange(LANES, dtype=np.int32)
    found = np.zeros(1, np.uint64)
    for low, span, expected in [
        (0, 64, EVERY_BIT), (0, 0, 0), (64, 2**31 - 64, 0), (63, 1, 1 << 63), (0, 1, 1),
    ]:  # fmt: skip
        call(numbers, 0, low, span, found)
        assert int(found[0]) == expected


@both_ways(use_within)
@given(
    seed=st.integers(0, 2**32), start=st.integers(0, 70), most=st.sampled_from([3, 100, 2**31]),
    low=st.integers(0, 2**31) | st.integers(0, 100),
    span=st.integers(0, 2**31) | st.integers(0, 100),
)  # fmt: skip
@settings(max_examples=25)
def test_any_interval(call, seed, start, most, low, span):
    """From any place: the numbers need not be aligned."""
    numbers = np.random.default_rng(seed).integers(0, most, start + LANES).astype(np.int32)
    check_within(call, numbers, start, low, span)


# --- the bits of a byte


@both_ways(use_put_bits)
def test_every_byte(call):
    for byte in range(256):
        numbers = np.full(20, -1, np.int32)
        call(numbers, 5, np.uint64(byte), DIGITS, 1000)
        places = [place for place in range(8) if byte >> place & 1]
        assert numbers[5 : 5 + len(places)].tolist() == [1000 + place for place in places]
        assert set(numbers[:5].tolist()) | set(numbers[13:].tolist()) == {-1}


@both_ways(use_put_bits)
@pytest.mark.parametrize("base", [0, 2**31 - 8, -(2**31)])
def test_any_base(call, base):
    numbers = np.zeros(8, np.int32)
    call(numbers, 0, np.uint64(255), DIGITS, base)
    assert numbers.tolist() == list(range(base, base + 8))


@both_ways(use_combination)
def test_rows_are_combined_by_a_sign(call):
    rows, out = random_rows(7, 2), np.full((2, WORDS), RUBBISH, np.uint64)
    for signs in (np.array([0, 1], np.uint32), np.array([0, 1], np.int64)):
        call(rows, out, signs)
        assert (out[0] == rows[0] & rows[1]).all()
        assert (out[1] == rows[0] | rows[1]).all()
