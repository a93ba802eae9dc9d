"""Texts that tests need: found in the tests, and in strings."""

import random

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from stocks import SMALL
from tamis import TamisError, parse
from tamis.language.evaluation import compile_tree
from tamis.language.normal_form import normalize
from tamis.predicates import needed_texts
from tamis.predicates.needed_texts import NeededText, NeededTexts, needed_text

ALPHABET = "ab."


@each(
    "text, expected",
    [
        ("s LIKE 'abc%'", ("startswith", "abc")),
        ("s LIKE '%abc'", ("endswith", "abc")),
        ("s LIKE '%abc%'", ("contains", "abc")),
        ("s NOT LIKE '%abc%'", ("contains", "abc")),
        ("s LIKE 'ab%cde'", ("endswith", "cde")),
        ("s LIKE 'abcd%cde'", ("startswith", "abcd")),
        ("s LIKE 'a%cde_f%'", ("contains", "cde")),
        ("s LIKE '_b'", ("endswith", "b")),
        ("s LIKE '_%'", None),
        ("s RLIKE 'ab.*cde$'", ("contains", "cde")),
        ("s RLIKE 'abcd*e'", ("contains", "abc")),
        ("s RLIKE 'abcd{0,12}e'", ("contains", "abc")),
        ("s RLIKE '[abcd]+ef?'", ("contains", "e")),
        ("s RLIKE 'ab|cde'", None),
        ("s RLIKE '(?i)cde'", None),
        (r"s RLIKE r'\\d'", None),
        ("s SUBSTRING OF 'abc'", None),
        ("s < 'abc'", None),
    ],
)
def test_the_longest_text_is_taken(text, expected):
    found = needed_text(normalize(parse(text, SMALL).tree))
    assert found == (None if expected is None else NeededText(*expected))


@given(st.text("ab%_.*+?[]{}1,^$", max_size=7), st.lists(st.text("ab1.", max_size=6), max_size=8))
def test_no_string_passes_without_the_text(pattern, values):
    for form in ("s LIKE '{}'", "s RLIKE '{}'"):
        try:
            predicate = normalize(parse(form.format(pattern), SMALL).tree)
        except TamisError:
            continue
        needed = needed_text(predicate)
        if needed is None:
            continue
        test, texts = compile_tree(predicate, SMALL), NeededTexts({0: needed})
        at = SMALL.positions[("s",)]
        for value in values:
            row = [None] * len(SMALL)
            row[at] = value
            assert test(row) is not True or texts.candidates(value) == [0]


@each("most", [0, 1, 10**9])
def test_candidates_are_those_whose_texts_are_there(most):
    chance = random.Random(most)  # noqa: S311 - the same every time

    def word(size):
        return "".join(chance.choices(ALPHABET, k=size))

    needed = [
        NeededText(place, word(chance.randint(1, 4)))
        for place in ("startswith", "endswith", "contains")
        for _ in range(20)
    ]
    texts = NeededTexts(dict(enumerate(needed)))
    limit, needed_texts.MOST_PARTS = needed_texts.MOST_PARTS, most
    try:
        for size in range(9):
            value = word(size)
            has = {"startswith": value.startswith, "endswith": value.endswith,
                   "contains": value.__contains__}  # fmt: skip
            expected = [n for n, (place, text) in enumerate(needed) if has[place](text)]
            assert sorted(texts.candidates(value)) == expected
    finally:
        needed_texts.MOST_PARTS = limit
