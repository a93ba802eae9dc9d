"""Caches that are bounded by bytes."""

import sys

import numpy as np
import pytest

from tamis import Schema, parse
from tamis.bounded_caches import BoundedCache, bytes_of, remembered


class Doubled(BoundedCache):
    """The text twice, for each text."""

    def __init__(self, most):
        super().__init__(most)
        self.asked = []

    def make(self, key):
        self.asked.append(key)
        return 2 * key


def test_a_value_is_made_once():
    doubled = Doubled(10_000)
    assert [doubled["a"], doubled["b"], doubled["a"]] == ["aa", "bb", "aa"]
    assert doubled.asked == ["a", "b"]
    assert doubled.find("a") == "aa"
    assert doubled.find("c") is None


def test_bytes_are_bounded_whatever_the_number_of_entries():
    for length in (1, 100, 3_000):
        doubled = Doubled(50_000)
        for n in range(2_000):
            doubled[str(n).zfill(length)]
            assert doubled.nbytes <= 50_000
        assert len(doubled) > 1


def test_what_is_used_stays():
    doubled = Doubled(20_000)
    for n in range(1_000):
        doubled["used"]
        doubled[f"new {n}"]
    assert doubled.asked.count("used") == 1
    doubled["new 0"]
    assert doubled.asked.count("new 0") == 2


def test_what_is_found_in_the_older_generation_moves():
    doubled = Doubled(20_000)
    doubled["used"]
    for n in range(1_000):
        assert doubled.find("used") == "usedused"
        doubled[f"new {n}"]


def test_what_is_too_large_is_not_kept():
    doubled = Doubled(1_000)
    doubled["a"]
    assert len(doubled["b" * 1_000]) == 2_000
    assert doubled.nbytes < 1_000
    assert doubled.find("a") == "aa"


def test_everything_is_forgotten():
    doubled = Doubled(2_000)
    for n in range(20):
        doubled[str(n)]
    doubled.clear()
    assert doubled.nbytes == 0
    assert all(doubled.find(str(n)) is None for n in range(20))


def test_a_function_remembers_its_answers():
    asked = []

    @remembered(100_000)
    def answer(a, b=0, *, c=None):
        """What it says."""
        asked.append((a, b, c))
        return None if a is None else (a, b, c)

    assert answer.__doc__ == "What it says."
    for _ in range(2):
        assert answer(1) == (1, 0, None)
        assert answer(1, 2) == (1, 2, None)
        assert answer(1, c=3) == (1, 0, 3)
        assert answer(None) is None
    assert len(asked) == 4


def test_an_error_is_not_an_answer():
    asked = []

    @remembered()
    def failing(a):
        asked.append(a)
        raise KeyError(a)

    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            failing(1)
        assert caught.value.__context__ is None
    assert asked == [1, 1]


def test_sizes():
    assert bytes_of("x" * 1_000) == sys.getsizeof("x" * 1_000)
    assert bytes_of(np.zeros(1_000)) == 8_000
    nested = (("a" * 500, 1), ["b" * 500], frozenset({"c" * 500}))
    assert 1_500 < bytes_of(nested) < 2_500
    few, many = (
        parse(f"i IN ({', '.join(map(str, range(n)))})", Schema({"i": "int"})) for n in (2, 2_000)
    )
    assert few.nbytes < 1_000
    assert 200_000 < many.nbytes < 500_000
    assert bytes_of(many) == many.tree.nbytes
