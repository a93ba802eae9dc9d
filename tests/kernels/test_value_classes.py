"""Classes say of every value what comparing it with every constant says."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from kernel_calls import from_python
from tamis.kernels import comparisons
from tamis.kernels.value_classes import (
    ABSENT,
    MISSING,
    MOST_CUTS,
    PRESENT,
    REF_KINDS,
    holds_class,
    key_classes,
    string_class,
    string_classes,
)
from tamis.types import INT64_MAX, INT64_MIN

holds_class, string_class = map(from_python, (holds_class, string_class))

pytestmark = pytest.mark.uncompiled

# In the order of the kinds.
TESTS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]

KEYS = [INT64_MIN, INT64_MIN + 1, -(2**53), -2, -1, 0, 1, 2, 7, 2**31, INT64_MAX - 1, INT64_MAX]
# Prefixes of each other, bytes of 0, and signs whose order in UTF-16 is another one.
TEXTS = ["", "\x00", "\x00\x00", "\x00a", "a", "a\x00", "a\x00b", "aa", "ab", "abc", "b", "~",
         "\x7f", "\x80", "é", "e\u0301", "ÿ", "日", "日本", "\ud7ff", "\ue000", "\uffff",
         "\U00010000", "😀", "\U0010ffff", "z" * 300, "z" * 299 + "y", "z" * 301]  # fmt: skip


def check(value, found, cuts, first):
    """The class of a value, None for a missing one, against all its comparisons."""
    assert not holds_class(ABSENT if value is not None else PRESENT, found, first - 1)
    assert holds_class(ABSENT if value is None else PRESENT, found, first - 1)
    for number, cut in enumerate(cuts, first):
        truth = [bool(holds_class(kind, found, number)) for kind in range(REF_KINDS)]
        expected = [value is not None and test(value, cut) for test in TESTS]
        assert truth == [*expected, value is not None, value is None]
    if value is None:
        assert found == MISSING
    else:
        below = sum(cut < value for cut in cuts)
        assert found == 2 * (first + below) + (value in cuts)


def test_kinds():
    assert [getattr(comparisons, name) for name in (
        "EQUAL", "UNEQUAL", "BELOW", "AT_MOST", "ABOVE", "AT_LEAST"
    )] == list(range(6))  # fmt: skip
    assert (PRESENT, ABSENT) == (6, 7)
    assert REF_KINDS == 8
    assert MOST_CUTS * REF_KINDS == 2**31
    assert MISSING < 0


# --- keys


def classes_of(values, cuts, first):
    keys = np.array([0 if value is None else value for value in values], np.int64)
    present = np.array([value is not None for value in values], np.uint8)
    found = np.full(len(values), -99, np.int32)
    key_classes(keys, present, np.array(cuts, np.int64), first, found)
    return found.tolist()


def check_keys(values, cuts, first):
    for value, found in zip(values, classes_of(values, cuts, first), strict=True):
        check(value, found, cuts, first)


@each("first", [1, 2, 77])
def test_every_key_with_every_cut(first):
    values = [*KEYS, None, 5, -5]
    check_keys(values, KEYS, first)
    check_keys(values, KEYS[1:-1], first)
    check_keys(values, KEYS[::2], first)


def test_one_cut():
    for cut in KEYS:
        check_keys([*KEYS, None], [cut], 4)


def test_no_cuts():
    """Then only presence can be tested."""
    assert classes_of([INT64_MIN, None, 0, INT64_MAX], [], 9) == [18, MISSING, 18, 18]
    check_keys([3, None], [], 9)


def test_no_values():
    assert classes_of([], KEYS, 1) == []


def test_a_missing_value_has_no_key():
    """Whatever stands in the place of its key."""
    keys, present = np.array([5, 5, INT64_MIN], np.int64), np.array([0, 1, 0], np.uint8)
    found = np.zeros(3, np.int32)
    key_classes(keys, present, np.array([5], np.int64), 1, found)
    assert found.tolist() == [MISSING, 3, MISSING]


def test_the_highest_numbers():
    """A class has 32 bits, as the highest numbers need."""
    first = MOST_CUTS - 3
    assert classes_of([0, 1, 2, 3, 9], [1, 3], first) == [
        2 * first, 2 * first + 1, 2 * first + 2, 2 * first + 3, 2 * first + 4,
    ]  # fmt: skip


whole = st.sampled_from(KEYS) | st.integers(-20, 20) | st.integers(INT64_MIN, INT64_MAX)


@given(
    values=st.lists(st.none() | whole, max_size=12), cuts=st.sets(whole, max_size=12),
    first=st.integers(1, 1000),
)  # fmt: skip
@settings(max_examples=25)
def test_any_keys(values, cuts, first):
    check_keys([*values, *cuts], sorted(cuts), first)


# --- strings


def joined(texts, spare=b""):
    """Offsets and bytes of strings that come after something else."""
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([len(spare), *map(len, encoded)]).astype(np.int64)
    return offsets, np.frombuffer(spare + b"".join(encoded), np.uint8)


def check_texts(values, cuts, first, spare=b""):
    """In the order of code points, which is that of the bytes."""
    starts, data = joined(values, spare)
    cut_offsets, cut_data = joined(cuts, spare)
    found = np.full(len(values), -99, np.int32)
    string_classes(starts, data, cut_offsets, cut_data, first, found)
    for value, one in zip(values, found.tolist(), strict=True):
        check(value, one, cuts, first)


def test_the_texts_are_in_order():
    assert sorted(TEXTS, key=str.encode) == sorted(TEXTS)
    assert len(set(TEXTS)) == len(TEXTS)


@each("spare", [b"", b"abc"])
def test_every_text_with_every_cut(spare):
    ordered = sorted(TEXTS)
    check_texts(TEXTS, ordered, 1, spare)
    check_texts(TEXTS, ordered[1:-1:2], 5, spare)
    check_texts(TEXTS, ordered[2::3], 5, spare)


def test_one_text():
    for cut in TEXTS:
        check_texts(TEXTS, [cut], 3)


def test_no_texts():
    check_texts(["", "a"], [], 2)
    check_texts([], ["a"], 2)


def test_a_single_text():
    offsets, data = joined(["", "a", "é"], b"xy")
    for text, expected in [("", 3), ("\x00", 4), ("a", 5), ("a\x00", 6), ("é", 7), ("ê", 8)]:
        assert string_class(np.frombuffer(text.encode(), np.uint8), offsets, data, 1) == expected


@given(
    values=st.lists(st.sampled_from(TEXTS) | st.text(max_size=4), max_size=8),
    cuts=st.sets(st.sampled_from(TEXTS) | st.text(max_size=4), max_size=10),
)
@settings(max_examples=25)
def test_any_texts(values, cuts):
    check_texts([*values, *cuts], sorted(cuts), 1)
