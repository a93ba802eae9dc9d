"""Bits of words: what one instruction says is what the digits say."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bit_rows import EVERY_BIT
from tamis.kernels.bits import count_ones, first_one

pytestmark = pytest.mark.uncompiled

SINGLE = [1 << place for place in range(64)]
LOW = [(1 << width) - 1 for width in range(1, 65)]
HIGH = [EVERY_BIT ^ (word >> 1) for word in LOW]
WORDS = [*SINGLE, *LOW, *HIGH, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 0x8000000000000001]


@numba.njit
def compiled_count(word):
    return count_ones(word)


@numba.njit
def compiled_first(word):
    return first_one(word)


@numba.njit
def compiled_places(word, places):
    """All places, the way the kernels walk over them."""
    count = 0
    while word != 0:
        places[count] = first_one(word)
        count += 1
        word &= word - np.uint64(1)
    return count


def places_of(word):
    return [place for place, digit in enumerate(reversed(f"{word:064b}")) if digit == "1"]


@pytest.mark.parametrize("count", [count_ones, compiled_count])
def test_counting_the_delicate_words(count):
    assert count(np.uint64(0)) == 0
    assert [count(np.uint64(word)) for word in WORDS] == [len(places_of(w)) for w in WORDS]


@pytest.mark.parametrize("first", [first_one, compiled_first])
def test_the_first_of_the_delicate_words(first):
    assert [first(np.uint64(word)) for word in WORDS] == [places_of(word)[0] for word in WORDS]


@given(st.integers(0, EVERY_BIT))
def test_any_word(word):
    expected = places_of(word)
    assert count_ones(word) == count_ones(np.uint64(word)) == len(expected)
    assert compiled_count(np.uint64(word)) == len(expected)
    places = np.empty(65, np.int64)
    assert places[: compiled_places(np.uint64(word), places)].tolist() == expected
    if word:
        assert first_one(word) == first_one(np.uint64(word)) == expected[0]


def test_the_answers_are_signed():
    """They are added to places, and a sum of signed and unsigned numbers is a double."""

    @numba.njit
    def place(base, word):
        return base + first_one(word), base + count_ones(word)

    found = place(-1, np.uint64(1))
    assert found == (-1, 0)
    assert all(type(number) is int for number in found)
