"""Automata accept what evaluation accepts, and all that can go together is found."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.language.like_patterns import compile_like
from tamis.relations.entailment.string_languages import (
    TooManySteps,
    explore,
    like_language,
    part_language,
    places,
    text_language,
)

TESTS = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": lambda value, part: part in value,
}
SHORT = ["".join(word) for n in range(6) for word in itertools.product("abx", repeat=n)]

patterns = st.text(alphabet="ab_%", max_size=5)
texts = st.text(alphabet="ab", max_size=3)
strings = st.text(alphabet="abxé\n", max_size=8)


def accepts(language, value):
    state = language.start
    for letter in value:
        state = language.step(state, letter)
    return language.accepts(state)


@given(patterns, strings)
def test_like(pattern, value):
    assert accepts(like_language(pattern), value) == compile_like(pattern)(value)


@given(st.text(alphabet="ab_%!", max_size=6), strings)
def test_like_with_an_escape(pattern, value):
    pattern = pattern.replace("!", "!%")
    assert accepts(like_language(pattern, "!"), value) == compile_like(pattern, "!")(value)


@pytest.mark.parametrize("name", TESTS)
@given(text=texts, value=strings)
def test_texts_and_their_parts(name, text, value):
    assert accepts(text_language(name, text), value) == TESTS[name](value, text)
    assert accepts(part_language(name, text), value) == TESTS[name](text, value)


def combination(value, constants, languages, *, ordered):
    below = sum(constant < value for constant in constants)
    place = 2 * below + 1 if value in constants else 2 * below * ordered
    return place, sum(accepts(language, value) << n for n, language in enumerate(languages))


@given(
    st.sets(texts, max_size=4).map(sorted),
    st.lists(patterns, min_size=1, max_size=3),
    st.booleans(),
)
def test_everything_that_can_be_is_found_and_nothing_else(constants, likes, ordered):
    languages = [like_language(pattern) for pattern in likes]
    found = explore(constants, languages, ordered=ordered)
    for key, value in found.items():
        assert combination(value, constants, languages, ordered=ordered) == key
    for value in SHORT:
        assert combination(value, constants, languages, ordered=ordered) in found


@given(st.sets(strings, max_size=5).map(sorted), st.booleans())
def test_places_are_those_that_exploring_finds(constants, ordered):
    found = places(constants, ordered=ordered)
    assert {(place, 0) for place in found} == set(explore(constants, [], ordered=ordered))
    for place, value in found.items():
        assert combination(value, constants, [], ordered=ordered) == (place, 0)


@each(
    ("low", "high", "between"),
    [
        ("a", "a\0", False),
        ("a", "a\0\0", True),
        ("a", "b", True),
        ("\ud7ff", "\ue000", True),  # "\ud7ff" with more behind it
        ("", "\0", False),
    ],
)
def test_neighbours_have_nothing_between_them(low, high, between):
    assert (2 in places([low, high], ordered=True)) == between
    assert ((2, 0) in explore([low, high], [], ordered=True)) == between


def test_no_character_is_half_of_a_surrogate_pair():
    for value in explore(["\ud7ff", "\ue000"], [like_language("_")], ordered=True).values():
        value.encode()


def test_automata_that_grow_too_large_meet_a_limit():
    with pytest.raises(TooManySteps):
        explore([], [like_language("%a" + "_" * 40)], ordered=False)
