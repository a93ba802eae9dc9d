"""Filters that would grow without bounds meet a limit, and those below it are read."""

import pytest

from cases import each
from strategies import SCHEMA
from tamis import parse
from tamis.errors import LimitError
from tamis.language import ast
from tamis.language.evaluation import Logic, compile_tree
from tamis.language.limits import MAX_ARGUMENTS, MAX_JOINED, MAX_PADDED, MAX_REPLACED
from tamis.language.normal_form import normalize


def nested(opening, core, closing, levels):
    return opening * levels + core + closing * levels


def problem(text):
    with pytest.raises(LimitError) as caught:
        parse(text, SCHEMA)
    return caught.value.problem


def doubled(levels):
    """A concatenation of concatenations, with 2 ** levels attributes."""
    text = "s"
    for _ in range(levels):
        text = f"concat({text}, {text})"
    return text


# --- calls


def test_arguments_are_bounded():
    many = ["i"] * MAX_ARGUMENTS
    parse(f"greatest({', '.join(many)}) = 1", SCHEMA)
    assert (
        problem(f"greatest({', '.join(many)}, i) = 1") == "greatest has more than 10,000 arguments"
    )


@each(
    "text",
    [
        doubled(10),
        f"concat({doubled(9)}, lower({doubled(9)}))",
        "s" + " || s" * 90 + f" || {doubled(10)}",
    ],
)
def test_attributes_that_are_joined_are_bounded(text):
    assert 2**9 < MAX_JOINED < 2**10
    assert problem(f"{text} = 'a'").endswith(f"joins more than {MAX_JOINED:,} attributes")


def test_what_is_not_joined_does_not_count():
    cases = " ".join(f"WHEN t = 'w{n}' THEN s" for n in range(MAX_JOINED))
    parse(f"concat('a', CASE {cases} END) = 'a'", SCHEMA)


@each("opening, closing", [("trim(", ")"), ("CASE WHEN b THEN ", " END"), ("CAST(", " AS STRING)")])
def test_calls_are_not_nested_without_end(opening, closing):
    parse(nested(opening, "s", closing, 90) + " = 'a'", SCHEMA)
    assert "levels deep" in problem(nested(opening, "s", closing, 10_000) + " = 'a'")


def test_the_branches_of_case_are_bounded():
    branches = " ".join(f"WHEN i = {n} THEN {n}" for n in range(30_000))
    assert "comparisons" in problem(f"CASE {branches} END = 5")


# --- values


def value(text, row):
    """The value of an expression of s, as a filter sees it."""
    tree = parse(f"{text} IS NULL", SCHEMA).tree
    values = tuple(row.get(".".join(path)) for path in SCHEMA.positions)
    return compile_tree(tree, SCHEMA)(values)


def test_a_string_that_replace_makes_too_long_is_null():
    thousand = {"s": "a" * 1_000, "t": "a" * (MAX_REPLACED // 1_000)}
    assert value("replace(s, 'a', t)", thousand) is False
    assert value("replace(concat(s, 'a'), 'a', t)", thousand) is True
    assert value("replace(replace(replace(s, 'a', s), 'a', s), 'a', s)", thousand) is True


def test_constants_do_not_grow_without_end():
    text = nested("replace(", "'a'", ", 'a', 'aaaaaaaaaaaaaaaa')", 60)
    assert normalize(parse(f"{text} = s", SCHEMA).tree) == parse("FALSE", SCHEMA).tree


# --- conditions inside values, which the normal form writes out


@each("logic", list(Logic))
@each(
    "opening, core, closing",
    [
        ("if((", "i", ") BETWEEN 1 AND 5, 1, 2)"),
        ("if(((", "i", ") = 1) <=> b, 1, 2)"),
        ("if(j IN (1, if((", "i", ") BETWEEN 1 AND 5, 1, 2)), 1, 2)"),
    ],
)
def test_values_made_of_conditions_are_refused_before_they_fill_the_memory(
    opening, core, closing, logic
):
    normalize(parse(nested(opening, core, closing, 3) + " = 1", SCHEMA).tree, logic)
    many = parse(nested(opening, core, closing, 20) + " = 1", SCHEMA).tree
    with pytest.raises(LimitError, match="the normal form of the filter has more than 200,000"):
        normalize(many, logic)


@each("logic", list(Logic))
@each("closing", [" IN (1, 2, 3), i, 2)", " IS NULL, i, 2)"])
def test_conditions_that_keep_their_value_once_are_normalised(closing, logic):
    form = normalize(parse(nested("if(", "i", closing, 45) + " = 1", SCHEMA).tree, logic)
    assert ast.node_count(form) < 1_000


def test_values_that_any_and_all_repeat_are_bounded():
    patterns = ", ".join(f"'{letter}%'" for letter in "abcdefgh")
    text = "s"
    for _ in range(4):
        text = f"CASE WHEN {text} LIKE ANY ({patterns}) THEN 'a' ELSE s END"
    assert problem(f"{text} LIKE ALL ({patterns})") == (
        "the value before LIKE is too large for so many patterns"
    )


def test_padding_is_bounded():
    parse(f"lpad(s, {MAX_PADDED}) = 'a'", SCHEMA)
    assert problem(f"lpad(s, {MAX_PADDED + 1}) = 'a'") == "lpad makes at most 10,000 characters"
