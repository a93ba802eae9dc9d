"""From bits to lists, against numpy's own reading of the bits."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bit_rows import digits
from cases import each
from kernel_calls import from_python
from tamis.kernels.match_bits import (
    DIGITS,
    FEW,
    NEAR,
    count_listed,
    sort_listed,
    sort_unless_rising,
    transpose_matrix,
    transpose_square,
    write_listed,
    write_transposed,
)
from tamis.kernels.predicate_rows import EVENTS
from tamis.kernels.simd_rows import WORDS

transpose_square = from_python(transpose_square)

pytestmark = pytest.mark.uncompiled

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
SIZES = [0, 1, 2, 63, 64, 65, 127, 128, 129, 200] if COMPILED else [0, 1, 65]
DENSITIES = [0.0, 0.01, 0.5, 0.99, 1.0]
RUBBISH = -77


def words_of(bits):
    return np.packbits(bits.astype(np.uint8), axis=-1, bitorder="little").view(np.uint64)


def random_matrix(seed, size, density):
    chance = np.random.default_rng(seed)
    return words_of(chance.random((size, EVENTS)) < density).reshape(size, WORDS)


def starts_of(counts):
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int64)


def listed(matrix, order):
    """The words of a matrix that are not 0, in an order of slots; longer than needed."""
    slots, words = np.nonzero(matrix[order])
    spare = np.zeros(3, np.int64)
    return (
        np.concatenate([np.asarray(order)[slots], spare]).astype(np.int32),
        np.concatenate([words, spare]).astype(np.int8),
        np.concatenate([matrix[order][slots, words], ~spare.astype(np.uint64)]),
        len(slots),
    )


def split(found, starts):
    return [found[a:b].tolist() for a, b in itertools.pairwise(starts)]


def expected_lists(matrix, names):
    return [names[np.flatnonzero(column)].tolist() for column in digits(matrix).T]


# --- transposing


@each("density", DENSITIES)
def test_transposing(density):
    bits = np.random.default_rng(3).random((64, 64)) < density
    block = words_of(bits).reshape(64)
    before = block.copy()
    transpose_square(block)
    assert (digits(block[:, None]) == bits.T).all()
    transpose_square(block)
    assert (block == before).all()


def test_transposing_single_bits():
    for row, place in [(0, 0), (0, 63), (63, 0), (63, 63), (31, 32), (32, 31), (5, 40)]:
        block = np.zeros(64, np.uint64)
        block[row] = np.uint64(1) << np.uint64(place)
        transpose_square(block)
        assert np.flatnonzero(block).tolist() == [place]
        assert int(block[place]) == 1 << row


# --- turning a matrix around


def transposed(matrix):
    """transposed[event, slot // 64], written over rubbish."""
    found = np.full((EVENTS, -(-len(matrix) // 64)), 0xBAD, np.uint64)
    transpose_matrix(matrix, found)
    return found


@each("density", DENSITIES)
@each("size", SIZES)
def test_turning(size, density):
    """Places after the last slot are 0."""
    matrix = random_matrix(size, size, density)
    before = matrix.copy()
    found = transposed(matrix)
    assert (matrix == before).all()
    assert found.shape == (EVENTS, (size + 63) // 64)
    expected = np.zeros((EVENTS, 64 * found.shape[1]), np.uint8)
    expected[:, :size] = digits(matrix).T
    assert (digits(found).reshape(expected.shape) == expected).all()


def test_turning_more_than_is_near():
    size = NEAR + 65
    chance = np.random.default_rng(8)
    slots, events = chance.integers(0, size, 400), chance.integers(0, EVENTS, 400)
    slots[:3] = NEAR - 1, NEAR, size - 1
    bits = np.zeros((size, EVENTS), bool)
    bits[slots, events] = True
    matrix = words_of(bits).reshape(size, WORDS)
    assert (digits(transposed(matrix))[:, :size] == bits.T).all()


def test_digits():
    for byte in range(256):
        places = [place for place in range(8) if byte >> place & 1]
        assert DIGITS[byte].tolist() == places + [0] * (8 - len(places))


# --- from a matrix to lists


def written(matrix, first, events=EVENTS, begin=0):
    """What is written of some events: nothing in front, nothing behind."""
    counts = digits(matrix).sum(axis=0, dtype=np.int64)[begin : begin + events]
    starts = starts_of(counts) + 3
    found = np.full(starts[-1] + 70, RUBBISH, np.int32)
    write_transposed(transposed(matrix), begin, first, starts, DIGITS, found)
    assert set(found[:3].tolist()) == {RUBBISH}
    assert set(found[starts[-1] :].tolist()) == {RUBBISH}
    return split(found, starts)


@each("density", DENSITIES)
@each("size", SIZES)
def test_matrices(size, density):
    matrix = random_matrix(size, size, density)
    for first in (0, 1000, 2**31 - 1 - size):
        assert written(matrix, first) == expected_lists(matrix, np.arange(first, first + size))


def test_less_room_than_a_word_writes():
    """An event with n matches has n places; the next place belongs to another event."""
    for size in (1, 8, 63, 64, 65, 100, 130):
        for matches in {0, 1, 7, 8, 9, 63, 64, 65, size} & set(range(size + 1)):
            for bits in (np.arange(size) < matches, np.arange(size) >= size - matches):
                matrix = words_of(np.repeat(bits[:, None], EVENTS, axis=1)).reshape(size, WORDS)
                expected = np.flatnonzero(bits).tolist()
                assert written(matrix, 0, 3) == [expected] * 3


def test_events_that_no_matrix_is_turned_for():
    matrix = random_matrix(1, 90, 0.4)
    expected = expected_lists(matrix, np.arange(90))
    assert written(matrix, 0, 0) == []
    assert written(matrix, 0, 70) == expected[:70]
    assert written(matrix, 0, 70, 100) == expected[100:170]
    assert written(matrix, 0, 1, EVENTS - 1) == expected[-1:]


@each("matches", range(FEW - 1, FEW + 3))
def test_words_of_few_bits(matches):
    """Each way to write a word goes on where the other one stopped."""
    bits = np.zeros((640, EVENTS), bool)
    for block in range(10):
        bits[64 * block + 7 : 64 * block + 7 + (1 if block % 3 else matches)] = True
    bits[200:300, ::3] = True
    matrix = words_of(bits).reshape(640, WORDS)
    assert written(matrix, 3) == expected_lists(matrix, np.arange(3, 643))


def test_full_and_empty_events_by_turns():
    bits = np.zeros((150, EVENTS), bool)
    bits[:, ::2] = True
    matrix = words_of(bits).reshape(150, WORDS)
    assert written(matrix, 5) == [list(range(5, 155)), []] * (EVENTS // 2)


# --- from lists of words to lists

KINDS = [np.int32, np.int64]


def names_of(size, kind):
    """Names of slots that are ascending and no slots."""
    names = np.arange(size, dtype=kind) * 5 + 3
    return names + 2**40 if kind is np.int64 else names


@each("density", DENSITIES)
@each("size", SIZES)
def test_listed_words(size, density):
    kind = KINDS[size % 2]
    matrix, names = random_matrix(size + 1, size, density), names_of(size, kind)
    order = np.random.default_rng(size).permutation(size)
    slots, words, bits, count = listed(matrix, order)
    counts = np.full(EVENTS, 7, np.int64)  # is added to
    count_listed(words, bits, count, counts)
    counts -= 7
    assert counts.tolist() == digits(matrix).sum(axis=0, dtype=int).tolist()
    starts = starts_of(counts)
    places, found = starts[:-1].copy(), np.full(starts[-1], -1, kind)
    write_listed(slots[:count], words[:count], bits[:count], names, places, found)
    assert (places == starts[1:]).all()
    sort_unless_rising(found, starts)
    assert split(found, starts) == expected_lists(matrix, names)


@given(seed=st.integers(0, 2**32), size=st.integers(0, 40), density=st.floats(0, 1))
@settings(max_examples=25)
def test_both_ways_agree(seed, size, density):
    matrix, names = random_matrix(seed, size, density), np.arange(7, size + 7, dtype=np.int32)
    slots, words, bits, count = listed(matrix, np.arange(size))
    counts = np.zeros(EVENTS, np.int64)
    count_listed(words, bits, count, counts)
    starts = starts_of(counts)
    found = np.zeros(starts[-1], np.int32)
    write_listed(slots[:count], words[:count], bits[:count], names, starts[:-1].copy(), found)
    assert split(found, starts) == written(matrix, 7)


def test_a_word_that_comes_in_parts():
    """Single events are listed bit by bit, each with its own entry."""
    matrix = random_matrix(9, 30, 0.2)
    slots, places = np.nonzero(digits(matrix))
    order = np.random.default_rng(4).permutation(len(slots))
    slots, places = slots[order].astype(np.int32), places[order]
    words, bits = (places // 64).astype(np.int8), np.uint64(1) << (places % 64).astype(np.uint64)
    counts = np.zeros(EVENTS, np.int64)
    count_listed(words, bits, len(slots), counts)
    assert counts.tolist() == digits(matrix).sum(axis=0, dtype=int).tolist()
    starts, names = starts_of(counts), names_of(30, np.int32)
    found = np.full(starts[-1], RUBBISH, np.int32)
    write_listed(slots, words, bits, names, starts[:-1].copy(), found)
    sort_unless_rising(found, starts)
    assert split(found, starts) == expected_lists(matrix, names)


# --- sorting


@each("most", [1, 2, 2047, 2048, 2049, 2**22, 2**22 + 5, 2**31 - 1])
def test_sorting_listed_words(most):
    """By slots, whatever comes twice stays in its order."""
    chance = np.random.default_rng(most)
    slots = chance.integers(0, most, 300).astype(np.int32)
    slots[:4] = 0, most - 1, most // 2, most - 1
    words = chance.integers(0, WORDS, 300).astype(np.int8)
    bits = chance.integers(0, 2**64, 300, dtype=np.uint64)
    order = np.argsort(slots, kind="stable")
    expected = [part[order].tolist() for part in (slots, words, bits)]
    sort_listed(slots, words, bits, most)
    assert [part.tolist() for part in (slots, words, bits)] == expected


def test_sorting_no_words():
    sort_listed(np.empty(0, np.int32), np.empty(0, np.int8), np.empty(0, np.uint64), 9)


@given(st.lists(st.lists(st.integers(-5, 5), max_size=8), max_size=10))
def test_sorting_what_is_not_in_order(lists):
    starts = starts_of([len(one) for one in lists])
    found = np.array([number for one in lists for number in one], np.int32)
    assert sort_unless_rising(found, starts) == sum(sorted(one) != one for one in lists)
    assert split(found, starts) == [sorted(one) for one in lists]


def test_sorting_keeps_to_its_stretch():
    found = np.array([9, 3, 2, 1, 8, 4, 0], np.int32)
    sort_unless_rising(found, np.array([1, 4, 4, 6], np.int64))
    assert found.tolist() == [9, 1, 2, 3, 4, 8, 0]
