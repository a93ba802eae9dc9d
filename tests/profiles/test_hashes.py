"""Hashes of values."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tamis.profiles.hashes import LONGEST, hashes_of, mixed, shortened, shortened_text


def texts(values):
    return pa.array(values, pa.large_string())


def test_they_are_the_same_on_every_machine():
    # Files of profiles are merged with later ones; the first is SplitMix64's own first number.
    assert mixed(np.array([0])).tolist() == [0xE220A8397B1DCDAF]
    found = hashes_of(texts(["", "a", "IBM"]))
    assert found.tolist() == [12035550249420947055, 701441379477201763, 6424661563023938032]


@given(st.lists(st.text(max_size=40), unique=True))
def test_distinct_strings_have_distinct_hashes_wherever_they_stand(values):
    found = hashes_of(texts(values)).tolist()
    assert len(set(found)) == len(values)
    assert hashes_of(texts(["x", *values]).slice(1)).tolist() == found
    assert [hashes_of(texts([value]))[0] for value in values] == found


def test_many_strings_are_hashed_in_several_parts():
    values = texts([f"S{n}" for n in range(20_000)])
    assert len(np.unique(hashes_of(values))) == 20_000
    assert hashes_of(values)[-1] == hashes_of(texts(["S19999"]))[0]


def test_hashes_are_spread_evenly():
    for values in (np.arange(100_000), texts([str(n) for n in range(100_000)])):
        counts = np.bincount((hashes_of(values) >> np.uint64(56)).astype(np.int64), minlength=256)
        assert abs(counts - 100_000 / 256).max() < 6 * (100_000 / 256) ** 0.5


def test_long_strings_stay_apart():
    alike = ["é" * 500 + "a", "é" * 500 + "b"]
    found = shortened(texts(["short", *alike, "x" * LONGEST])).to_pylist()
    assert found == ["short", *map(shortened_text, alike), "x" * LONGEST]
    assert len(set(found)) == 4
    assert found[1].startswith("é" * 54 + "…")
    assert [shortened_text(text) for text in found] == found  # once is enough
    assert len(set(hashes_of(texts(found)).tolist())) == 4


def test_what_is_short_is_not_copied():
    values = texts(["a", "b"])
    assert shortened(values) is values
