"""Whatever the text, `parse` reads it or says why not: no other exception leaves it.

Inputs that once broke something, or might, are kept in ``fixtures/fuzz_corpus.txt``: one JSON
string a line, so that newlines, NUL and halves of surrogate pairs can be written with backslashes.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, filters
from tamis import parse
from tamis.errors import ExpressionError

MANY = settings(max_examples=5 * settings().max_examples)

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parent / "fixtures" / "fuzz_corpus.txt").read_text().splitlines()
    if line and not line.startswith("#")
]

WORDS = [
    "AND", "OR", "NOT", "IN", "LIKE", "RLIKE", "REGEXP", "BETWEEN", "IS", "NULL", "TRUE", "FALSE",
    "DIV", "ESCAPE", "SUBSTRING", "OF", "UNKNOWN", "TIMESTAMP", "DATE", "i", "x", "s", "b", "at",
    "r", "r.k", "r.name", "`odd ``name``.`", "nobody", "`", "0", "1", "-1", "10L", "0.5", "1e3",
    "5BD", "2.5D", "2147483648", "1e999", "''", "'a'", '"b"', "r'c'", "'%'", r"'\\'", r"'\ud800'",
    "'(a'", "'2024-01-01'", "'", "length", "lower", "abs", "contains", "startswith", "nothing",
]  # fmt: skip
SIGNS = [
    *"=<>!+-*/%()[]{}.,", "<=>", "<=", ">=", "<>", "!=", "==", "--", "/*", "&&", ";", "$", "\n",
]  # fmt: skip
CHARACTERS = "ibsxr AND.`'\"\\()[]{}<=>!+-*/%,0159eLDB_\n\t\x00é😀\u2028"

SOUP = st.lists(
    st.sampled_from([f" {word} " for word in WORDS]) | st.sampled_from(SIGNS), max_size=25
).map("".join)


@st.composite
def damaged_filters(draw):
    """Filters with a piece cut out, and something else put in its place."""
    text = draw(filters(depth=2))
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 10)))
    piece = st.sampled_from(WORDS) | st.sampled_from(SIGNS) | st.text(CHARACTERS, max_size=4)
    return text[:start] + draw(piece) + text[end:]


def outcome(text):
    try:
        return parse(text, SCHEMA)
    except ExpressionError as error:
        return error


def check(text):
    result = outcome(text)
    if isinstance(result, ExpressionError):
        assert 0 <= result.start <= result.end <= len(text)
        assert result.line >= 1
        assert result.column >= 1
        assert result.problem in str(result)
    else:
        assert outcome(str(result)) == result


@each("text", CORPUS)
def test_the_corpus(text):
    check(text)


@MANY
@given(st.text())
def test_any_text(text):
    check(text)


@MANY
@given(st.text(CHARACTERS, max_size=40))
def test_characters_of_the_language(text):
    check(text)


@MANY
@given(SOUP)
def test_tokens_of_the_language(text):
    check(text)


@pytest.mark.long
@MANY
@given(damaged_filters())
def test_damaged_filters(text):
    check(text)


@MANY
@given(st.text(st.characters(categories=["Cs", "L", "P"]), max_size=20))
def test_text_that_may_hold_halves_of_surrogate_pairs(text):
    check(text)


@MANY
@given(
    st.sampled_from(
        ["s = {}", "s LIKE {}", "s RLIKE {}", "at = {}", "TIMESTAMP {} = at", "s IN ({})"]
    ),
    st.text() | st.text(r"ab\%_'\"u0(.*)[]$?+-:2", max_size=20),
)
def test_any_string_in_any_place(form, text):
    check(form.format("'" + text.replace("'", "''") + "'"))
    check(form.format("r'" + text + "'"))
