"""From bits to lists, against numpy's own reading of the bits."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.kernels.emission import (
    count_listed,
    sort_unless_rising,
    transpose,
    write_listed,
    write_matrix,
)
from tamis.kernels.slices import EVENTS, WORDS

SIZES = [0, 1, 2, 63, 64, 65, 129, 130]
DENSITIES = [0.0, 0.01, 0.5, 0.99, 1.0]


def digits(words):
    """words[..., word] as bits[..., event], the lowest bit first."""
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")


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


@pytest.mark.parametrize("density", DENSITIES)
def test_transposing(density):
    bits = np.random.default_rng(3).random((64, 64)) < density
    block = words_of(bits).reshape(64)
    before = block.copy()
    transpose(block)
    assert (digits(block[:, None]) == bits.T).all()
    transpose(block)
    assert (block == before).all()


def test_transposing_single_bits():
    for row, place in [(0, 0), (0, 63), (63, 0), (63, 63), (31, 32), (32, 31), (5, 40)]:
        block = np.zeros(64, np.uint64)
        block[row] = np.uint64(1) << np.uint64(place)
        transpose(block)
        assert np.flatnonzero(block).tolist() == [place]
        assert int(block[place]) == 1 << row


# --- both ways to lists

KINDS = [np.int32, np.int64]


def names_of(size, kind):
    """Names of slots that are ascending and no slots."""
    names = np.arange(size, dtype=kind) * 5 + 3
    return names + 2**40 if kind is np.int64 else names


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("size", SIZES)
def test_matrices(size, density):
    kind = KINDS[size % 2]
    matrix = random_matrix(size, size, density)
    before, names = matrix.copy(), names_of(size, kind)
    starts = starts_of(digits(matrix).sum(axis=0, dtype=np.int64))
    places, found = starts[:-1].copy(), np.full(starts[-1], -1, kind)
    write_matrix(matrix, names, places, found)
    assert split(found, starts) == expected_lists(matrix, names)
    assert (places == starts[1:]).all()
    assert (matrix == before).all()


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("size", SIZES)
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
    matrix, names = random_matrix(seed, size, density), names_of(size, np.int32)
    slots, words, bits, count = listed(matrix, np.arange(size))
    counts = np.zeros(EVENTS, np.int64)
    count_listed(words, bits, count, counts)
    starts = starts_of(counts)
    found, other = np.zeros((2, starts[-1]), np.int32)
    write_matrix(matrix, names, starts[:-1].copy(), found)
    write_listed(slots[:count], words[:count], bits[:count], names, starts[:-1].copy(), other)
    assert (found == other).all()


# --- sorting


@given(st.lists(st.lists(st.integers(-5, 5), max_size=8), max_size=10))
def test_sorting_what_is_not_in_order(lists):
    starts = starts_of([len(one) for one in lists])
    found = np.array([number for one in lists for number in one], np.int32)
    sort_unless_rising(found, starts)
    assert split(found, starts) == [sorted(one) for one in lists]


def test_sorting_keeps_to_its_stretch():
    found = np.array([9, 3, 2, 1, 8, 4, 0], np.int32)
    sort_unless_rising(found, np.array([1, 4, 4, 6], np.int64))
    assert found.tolist() == [9, 1, 2, 3, 4, 8, 0]
