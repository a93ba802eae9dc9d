"""Bugs that were, so that they do not come again."""

import contextlib
import decimal

import pytest

from answers import answer
from cases import each
from strategies import SCHEMA
from tamis import parse
from tamis.errors import ExpressionError, LimitError, ParseError, TypeMismatch
from tamis.language.evaluation import Logic
from tamis.language.literals import number_literal, string_value
from tamis.language.regular_expressions import compile_regex


# 1 precedence: after a chain, a test or comparison applies to the whole chain
@each(
    "text",
    [
        "b AND i IS NULL IS NULL",
        "b OR i IN (1) = c",
        "i = 1 AND s LIKE 'a' = b",
        "b AND c IS NULL BETWEEN b AND c",
        "b AND c OR i IS NULL IS TRUE",
    ],
)
def test_at_most_one_test_follows_a_value_inside_a_chain(text):
    with pytest.raises(ParseError, match="put parentheses around"):
        parse(text, SCHEMA)


# 2 decimals of 29 to 38 digits; decimals under the caller's context
@each(
    "number",
    [
        "12345678901234567890123456789012345678",
        "1.2345678901234567890123456789012345",
        "-12345678901234567890123456789",
        "1e37BD",
        "9" * 38,
    ],
)
def test_decimals_of_up_to_38_digits(number):
    expression = parse(f"{number} IS NULL", SCHEMA)
    assert expression.tree.operand.value == decimal.Decimal(number.removesuffix("BD"))
    assert parse(str(expression), SCHEMA) == expression


def test_the_decimal_context_of_the_caller_does_not_matter():
    with decimal.localcontext(prec=3):
        assert number_literal("123.456").value == decimal.Decimal("123.456")
        assert answer("-(123.456) = 0 - 123.456") is True
        assert answer("abs(-123.456) = 123.456") is True


@pytest.mark.parametrize(
    "text",
    [
        "-(i * 1234567890123456789.12) = 0 - i * 1234567890123456789.12",
        "abs(i * 1234567890123456789.12) = i * 1234567890123456789.12",
    ],
)
def test_signs_of_long_decimals_are_exact(text):
    assert answer(text, {"i": 1000000000001}) is True


# 3 other exceptions leave parse
@each(
    "text",
    [
        "i = " + "0" * 5000 + "1",
        "i = " + "0" * 5000 + "1L",
        "x = 1e00000000009999999999999999999999BD",
        "x = 1e-00000000009999999999999999999999BD",
    ],
)
def test_long_numbers_are_read_or_refused(text):
    with contextlib.suppress(ExpressionError):
        parse(text, SCHEMA)


# 4 quotes
@pytest.mark.parametrize(
    ("text", "value"),
    [(r"'a\''''", "a''"), (r'"a\""""', 'a""')],
)
def test_an_escaped_quote_before_a_doubled_one(text, value):
    assert string_value(text) == value


# 5 exponential BETWEEN
def nested_between(levels):
    return "(" * levels + "b" + " BETWEEN c AND c)" * levels


def test_nested_between_can_be_compiled():
    assert answer(nested_between(30), {"b": True, "c": True}) is True


def test_nested_between_can_be_hashed_and_compared():
    assert hash(parse(nested_between(30), SCHEMA)) == hash(parse(nested_between(30), SCHEMA))
    assert parse(nested_between(30), SCHEMA) == parse(nested_between(30), SCHEMA)


def test_nested_between_can_be_walked():
    assert parse(nested_between(30), SCHEMA).attributes == {("b",), ("c",)}


# 6 quadratic IN
def test_the_longest_list_can_be_compiled():
    text = "i IN (" + ",".join(map(str, range(20_000))) + ")"
    assert answer(text, {"i": 19_999}) is True


# 7 regular expressions
@pytest.mark.parametrize(
    ("pattern", "value", "found"),
    [
        (r"^[\^]$", "^", True),
        (r"\uD83D\uDE00", "😀", True),
    ],
)
def test_java_means(pattern, value, found):
    assert compile_regex(pattern)(value) is found


@each("pattern", [r"(a)\1", r"(a)\11", r"\10", r"\12", r"\0101", r"[\s-.]", r"[\d-z]", r"\uD83D"])
def test_what_re2_would_take_for_something_else_is_refused(pattern):
    from tamis.language.like_patterns import BadPattern

    with pytest.raises(BadPattern):
        compile_regex(pattern)


# 8 timestamps
@pytest.mark.parametrize(
    "text",
    ["at = TIMESTAMP '0001-01-01 00:00:00+18:00'", "at = TIMESTAMP '9999-12-31 23:59:59-18:00'"],
)
def test_timestamps_at_the_ends_print_back_or_are_refused(text):
    try:
        expression = parse(text, SCHEMA)
    except TypeMismatch:
        return
    assert parse(str(expression), SCHEMA) == expression


def test_zones_end_at_18_hours():
    with pytest.raises(TypeMismatch):
        parse("at = TIMESTAMP '2024-01-01 00:00:00+18:30'", SCHEMA)


@pytest.mark.parametrize("text", ["'2024' BETWEEN at AND 'z'", "'2024' BETWEEN at AND '2025'"])
def test_a_string_between_a_timestamp_and_a_string_prints_back(text):
    try:
        expression = parse(text, SCHEMA)
    except TypeMismatch:
        return
    assert parse(str(expression), SCHEMA) == expression


# 9 classical logic
@each(
    ("call", "like"),
    [
        ("contains(s, 'a') IS NULL", "(s LIKE '%a%') IS NULL"),
        ("contains(s, 'a') = FALSE", "(s LIKE '%a%') = FALSE"),
        ("startswith(s, 'a') <=> NULL", "(s LIKE 'a%') <=> NULL"),
    ],
)
def test_functions_that_are_tests_are_true_or_false_in_classical_logic(call, like):
    assert answer(call, {}, Logic.CLASSICAL) is answer(like, {}, Logic.CLASSICAL)


# 10 small things
@pytest.mark.parametrize("word", ["LIKE", "RLIKE"])
def test_a_pattern_that_is_too_long_is_a_limit(word):
    with pytest.raises(LimitError):
        parse(f"s {word} '{'a' * 10_001}'", SCHEMA)


def test_the_column_of_an_open_parenthesis_counts_from_its_line():
    with pytest.raises(ParseError) as caught:
        parse("TRUE AND\n (i = 1", SCHEMA)
    assert "column 2" in caught.value.hint


def test_null_div_null():
    assert answer("NULL DIV NULL IS NULL") is True
