import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases import each
from tamis.language import ast
from tamis.language.like_patterns import (
    BadPattern,
    LikePattern,
    compile_like,
    form_of_pattern,
    parse_like,
)
from tamis.language.normal_form import normalize
from tamis.types import BOOL, STRING

EMPTY = ast.Literal("", STRING)


@each(
    ("pattern", "value", "fits"),
    [
        ("", "", True),
        ("", "a", False),
        ("a", "a", True),
        ("a", "A", False),
        ("a", "ab", False),
        ("%", "", True),
        ("%", "a\nb", True),
        ("%%", "", True),
        ("_", "", False),
        ("_", "a", True),
        ("_", "\n", True),
        ("_", "😀", True),
        ("_", "ab", False),
        ("__", "é", False),
        ("a%", "a", True),
        ("a%", "abc", True),
        ("a%", "ba", False),
        ("%a", "ba", True),
        ("%a", "ab", False),
        ("%a%", "bab", True),
        ("%a%", "b", False),
        ("a%a", "a", False),
        ("a%a", "aa", True),
        ("ab%ba", "aba", False),
        ("a%b%c", "a1b2c", True),
        ("a%b%c", "acb", False),
        ("%ab%ab%", "abab", True),
        ("%ab%ab%", "aba", False),
        ("%a_c%", "xxabcxx", True),
        ("%a_c%", "xxacxx", False),
        ("%_a_%", "aab", True),
        ("%_", "", False),
        ("_%_", "a", False),
        ("_%_", "ab", True),
        ("%a__", "aabc", True),
        (r"a\%", "a%", True),
        (r"a\%", "ab", False),
        (r"\_", "_", True),
        (r"\_", "a", False),
        (r"\\", "\\", True),
        (r"%\\%", "a\\b", True),
        (r"\\%", "\\abc", True),
        (r"\%%", "%", True),
        (r"\%%", "a%", False),
        ("[a]", "a", False),
        (".*", "abc", False),
        ("a.c", "abc", False),
    ],
)
def test_which_values_fit(pattern, value, fits):
    assert compile_like(pattern)(value) is fits


@each(
    ("pattern", "escape", "value", "fits"),
    [
        ("a!%", "!", "a%", True),
        ("a!%", "!", "ab", False),
        ("!!", "!", "!", True),
        ("!_!!%", "!", "_!a", True),
        ("\\", "!", "\\", True),
        ("\\%", "!", "\\abc", True),
        ("%%", "%", "%", True),
        ("%%", "%", "a", False),
        ("__a%", "_", "_ab", True),
        ("😀%", "😀", "%", True),
    ],
)
def test_another_escape(pattern, escape, value, fits):
    assert compile_like(pattern, escape)(value) is fits


@each(
    ("pattern", "escape", "problem"),
    [
        ("\\", "\\", "ends with its escape character"),
        ("a%\\\\\\", "\\", "ends with its escape character"),
        ("a!", "!", "ends with its escape character '!'"),
        ("\\a", "\\", "is before 'a'; it is allowed only before %, _ and itself"),
        ("!\\", "!", "is before"),
        ("%a", "%", "is before 'a'"),
    ],
)
def test_an_escape_stands_only_before_what_it_escapes(pattern, escape, problem):
    with pytest.raises(BadPattern, match=problem):
        parse_like(pattern, escape)


@each(
    ("pattern", "pieces"),
    [
        ("", ("",)),
        ("abc", ("abc",)),
        ("a%", ("a", "")),
        ("%a%", ("", "a", "")),
        (r"a\%b%\_", ("a%b", "_")),
        ("a_", None),
        ("%_%", None),
    ],
)
def test_the_plain_pieces_of_a_pattern(pattern, pieces):
    assert parse_like(pattern).plain() == pieces


def test_a_pattern_is_its_pieces():
    assert parse_like("a_%b") == LikePattern((("a", None), ("b",)))


def as_python_regex(pattern):
    return "".join(
        {"%": ".*", "_": "."}.get(character, re.escape(character)) for character in pattern
    )


@given(st.text(alphabet="ab%_", max_size=8), st.text(alphabet="ab\n", max_size=8))
@example("%ab_b%a", "aabbabba")
def test_agrees_with_a_backtracking_matcher(pattern, value):
    expected = re.fullmatch(as_python_regex(pattern), value, re.DOTALL) is not None
    assert compile_like(pattern)(value) is expected


@each("unit", ["%a", "%_a", "a%", "%a_%"])
def test_many_percent_signs_do_not_hang(unit):
    fits = compile_like(unit * 50 + "b")
    assert not fits("a" * 500)
    assert fits("a" * 500 + "b")


def test_a_long_piece_with_a_wildcard_in_a_long_value():
    fits = compile_like("%" + "a" * 5000 + "_b%")
    assert not fits("a" * 200_000)
    assert fits("a" * 200_000 + "cb")


@given(st.text("ab%_é ", max_size=6))
@example("%%a%%")
def test_the_form_of_a_pattern_is_what_it_becomes(pattern):
    value = ast.Attribute(("s",), STRING)
    became = normalize(ast.Like(value, pattern))
    match form_of_pattern(pattern):
        case None:
            assert became in (ast.Not(ast.IsNull(value)), ast.Compare("=", value, EMPTY))
        case "LIKE", text:
            assert text == pattern
            assert became == ast.Like(value, pattern)
        case "=", text:
            assert became == ast.Compare("=", value, ast.Literal(text, STRING))
        case form, text:
            assert became == ast.Call(form, (value, ast.Literal(text, STRING)), BOOL)
