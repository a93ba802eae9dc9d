"""Texts that tests need, found in the tests."""

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from stocks import SMALL
from tamis import TamisError, parse
from tamis.language.evaluation import compile_tree
from tamis.language.normal_form import normalize
from tamis.predicates.needed_texts import NeededText, needed_text


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
        test = compile_tree(predicate, SMALL)
        at = SMALL.positions[("s",)]
        for value in values:
            row = [None] * len(SMALL)
            row[at] = value
            has = {"startswith": value.startswith, "endswith": value.endswith,
                   "contains": value.__contains__}  # fmt: skip
            assert test(row) is not True or has[needed.place](needed.text)
