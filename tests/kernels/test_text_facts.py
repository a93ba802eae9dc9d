"""The tests of strings that are found by their texts, against running each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.predicates import text_index
from tamis.predicates.text_index import TextIndex, TextTest

pytestmark = pytest.mark.uncompiled

# Parts of each other, more than one byte long, and bytes of 0.
LETTERS = ["a", "b", "\x00", "é", "è", "日", "\U0001f600"]
texts = st.lists(st.sampled_from(LETTERS), max_size=9).map("".join)
short = st.lists(st.sampled_from(LETTERS[:4]), max_size=3).map("".join)
text_tests = st.builds(
    TextTest,
    st.sampled_from(["contains", "startswith", "endswith"]), short | texts,
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip


def has(test, value):
    """Whether a test is true of a string, without its negation, if its text decides it."""
    whole, part = (test.text, value) if test.of_constant else (value, test.text)
    functions = {"contains": whole.__contains__, "startswith": whole.startswith,
                 "endswith": whole.endswith}  # fmt: skip
    return functions[test.place](part)


def flat(values):
    data = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, data)])
    return offsets, np.frombuffer(b"".join(data), np.uint8)


def found_by(index, values, most):
    """What each string says of the tests: passed, failed, and left open."""
    found = index.of_texts(*flat(values), most)
    lists = [
        (found.passed_at, found.passed),
        (found.failed_at, found.failed),
        (found.open_at, found.left_open),
    ]
    assert all(len(numbers) == at[-1] for at, numbers in lists)
    return [
        tuple(sorted(numbers[at[k] : at[k + 1]].tolist()) for at, numbers in lists)
        for k in range(len(values))
    ]


def check(tests, values):
    index = TextIndex(tests)
    expected = []
    for value in values:
        has_text = {n: test for n, test in tests.items() if has(test, value)}
        expected.append((
            [n for n, test in has_text.items() if test.decided and not test.negated],
            [n for n, test in has_text.items() if test.decided and test.negated],
            [n for n, test in has_text.items() if not test.decided],
        ))  # fmt: skip
    for most in (0, text_index.MOST_AT_ONCE):
        assert found_by(index, values, most) == expected
    for value, lists in zip(values, expected, strict=True):
        assert tuple(sorted(part.tolist()) for part in index.of_text(value)) == lists
    return expected


@given(st.lists(text_tests, max_size=25), st.lists(texts, max_size=8))
def test_each_test_of_each_string(tests, values):
    check({3 * n: test for n, test in enumerate(tests)}, ["", *values])


def decided(place, text, *, of_constant=False, negated=False):
    return TextTest(place, text, of_constant=of_constant, negated=negated, decided=True)


@each(
    "text, values",
    [
        ("", ["", "a"]),
        ("aaaa", ["", "a", "aa", "aaaa", "aaaaa", "baaaab"]),
        ("abababab", ["ab", "ba", "bab", "abababab", "b", "c"]),
        ("'\"%_\\", ["'", '"%', "%_", "\\", "a'\"%_\\"]),
        ("é日\U0001f600", ["é", "日\U0001f600", "\U0001f600", "è", "x日"]),
        ("a" * 40, ["a" * 39, "a" * 40, "a" * 41, "a" * 7, "a" * 8]),
    ],
)
def test_every_way_to_ask_for_a_text(text, values):
    ways = [
        decided(place, text, of_constant=of_constant, negated=negated)
        for place in ("contains", "startswith", "endswith")
        for of_constant in (False, True)
        for negated in (False, True)
    ]
    check(dict(enumerate(ways * 2)), values)  # several tests ask for the same


def test_constants_that_begin_with_each_other():
    words = ["abcdefg" + "hij" * k + end for k in range(12) for end in ("", "h", "x", "ab")]
    tests = {n: decided("contains", word, of_constant=True) for n, word in enumerate(words)}
    check(tests, [*words, "abcdefg", "bcdefgh", "efghijhi", "hijx", "hijhijhijhijhijab", "xa"])


def test_many_negated_tests():
    tests = {n: decided("contains", f"w{n}", negated=n % 3 > 0) for n in range(400)}
    check(tests, ["", "w", "w1", "w17w3", "".join(f"w{n}" for n in range(0, 400, 7))])


@pytest.mark.parametrize("longest", [1, 3, 5])
@given(st.lists(text_tests, max_size=12), st.lists(texts, max_size=6))
def test_long_texts_are_left_open_or_left_out(longest, tests, values):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LONGEST_TEXT", "LONGEST_CONSTANT"):
            patch.setattr(text_index, name, longest)
        index = TextIndex(dict(enumerate(tests)))
    found = found_by(index, values, 0)
    sizes = [len(test.text.encode()) for test in tests]
    assert sorted(index.left_out) == [
        n for n, test in enumerate(tests) if test.of_constant and sizes[n] > longest
    ]
    for value, (passed, failed, left_open) in zip(values, found, strict=True):
        for n, test in enumerate(tests):
            has_text = has(test, value)
            if n in index.left_out:
                assert n not in {*passed, *failed, *left_open}
            elif test.decided and sizes[n] <= longest:
                decided_by = failed if test.negated else passed
                assert (n in decided_by, n in left_open) == (has_text, False)
            else:
                assert n not in {*passed, *failed}
                assert n in left_open or not has_text
