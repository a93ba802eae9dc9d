from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from strategies import STRINGS
from tamis.language.ast import Literal
from tamis.language.literals import (
    BadLiteral,
    decimal_size,
    number_literal,
    string_text,
    string_value,
)
from tamis.language.tokens import TokenKind, tokenize
from tamis.types import DOUBLE, INT, INT32, decimal_type


@each(
    ("text", "value", "type_"),
    [
        ("0", 0, INT32),
        ("007", 7, INT32),
        ("2147483647", 2**31 - 1, INT32),
        ("2147483648", 2**31, INT),
        ("9223372036854775807", 2**63 - 1, INT),
        ("9223372036854775808", Decimal(2**63), decimal_type(19, 0)),
        ("10L", 10, INT),
        ("10l", 10, INT),
        ("9223372036854775807L", 2**63 - 1, INT),
        ("1.5", Decimal("1.5"), decimal_type(2, 1)),
        ("1.50", Decimal("1.50"), decimal_type(3, 2)),
        ("1.", Decimal(1), decimal_type(1, 0)),
        (".5", Decimal("0.5"), decimal_type(1, 1)),
        ("0.5", Decimal("0.5"), decimal_type(1, 1)),
        ("0.05", Decimal("0.05"), decimal_type(2, 2)),
        ("0.0", Decimal("0.0"), decimal_type(1, 1)),
        ("5BD", Decimal(5), decimal_type(1, 0)),
        ("5bd", Decimal(5), decimal_type(1, 0)),
        ("1e3BD", Decimal(1000), decimal_type(4, 0)),
        ("1.5e-3BD", Decimal("0.0015"), decimal_type(4, 4)),
        ("1e27BD", Decimal(10**27), decimal_type(28, 0)),
        ("1e-38BD", Decimal("1e-38"), decimal_type(38, 38)),
        ("1e0", 1.0, DOUBLE),
        ("1E+2", 100.0, DOUBLE),
        ("1.5e-3", 0.0015, DOUBLE),
        ("1.e1", 10.0, DOUBLE),
        ("0.1D", 0.1, DOUBLE),
        ("5d", 5.0, DOUBLE),
        ("1e5d", 1e5, DOUBLE),
        ("5e-324", 5e-324, DOUBLE),
        ("1e-999", 0.0, DOUBLE),
        ("1.7976931348623157e308", 1.7976931348623157e308, DOUBLE),
        ("123456789012345678901234567890D", 123456789012345678901234567890.0, DOUBLE),
    ],
)
def test_numbers_have_the_value_and_type_of_spark(text, value, type_):
    assert number_literal(text) == Literal(value, type_)


@each(
    ("text", "value", "type_"),
    [
        ("0", 0, INT32),
        ("2147483648", -(2**31), INT32),
        ("2147483649", -(2**31) - 1, INT),
        ("9223372036854775808", -(2**63), INT),
        ("9223372036854775808L", -(2**63), INT),
        ("9223372036854775809", Decimal(-(2**63) - 1), decimal_type(19, 0)),
        ("1.5", Decimal("-1.5"), decimal_type(2, 1)),
        ("0.0", Decimal("0.0"), decimal_type(1, 1)),
        ("0.0D", -0.0, DOUBLE),
        ("0e0", -0.0, DOUBLE),
    ],
)
def test_the_sign_belongs_to_the_number(text, value, type_):
    assert number_literal(text, negative=True) == Literal(value, type_)


@each(
    ("text", "problem"),
    [
        ("1.5L", "the suffix L is for whole numbers"),
        ("1e5L", "the suffix L is for whole numbers"),
        ("9223372036854775809L", "does not fit in 64 bits"),
        ("1" + "0" * 38, "at most 38 digits"),
        ("1" + "0" * 100_000, "at most 38 digits"),
        ("1" * 39 + ".5", "at most 38 digits"),
        ("0." + "1" * 39, "at most 38 digits"),
        ("1e38BD", "at most 38 digits"),
        ("1e-39BD", "at most 38 digits"),
        ("1e1001BD", "at most 38 digits"),
        ("1e-999999999BD", "at most 38 digits"),
        ("1e999999999999BD", "at most 38 digits"),
        ("1e309", "too large for a double"),
        ("1e99999999999", "too large for a double"),
        ("1" + "0" * 400 + "D", "too large for a double"),
    ],
)
@each("negative", [False, True])
def test_numbers_that_fit_no_type_are_refused(text, negative, problem):
    with pytest.raises(BadLiteral, match=problem):
        number_literal(text, negative=negative)


@each(
    ("value", "size"),
    [
        ("0", (1, 0)),
        ("10", (2, 0)),
        ("1e1", (2, 0)),
        ("0.1", (1, 1)),
        ("0.001", (3, 3)),
        ("-12.50", (4, 2)),
        ("0e-3", (3, 3)),
    ],
)
def test_the_smallest_decimal_that_holds_a_value(value, size):
    assert decimal_size(Decimal(value)) == size


@each(
    ("text", "value"),
    [
        ("''", ""),
        ("'a'", "a"),
        ('"a"', "a"),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("''''''", "''"),
        ('"a""b"', 'a"b'),
        ('"it\'s"', "it's"),
        ("\"it''s\"", "it''s"),
        ("'a\"b'", 'a"b'),
        ("'a\"\"b'", 'a""b'),
        (r"'it\'s'", "it's"),
        (r"'\"'", '"'),
        (r"'a\\b'", "a\\b"),
        (r"'\\\\'", "\\\\"),
        (r"'\\n'", "\\n"),
        (r"'\0'", "\0"),
        (r"'\b\n\r\t\Z'", "\b\n\r\t\x1a"),
        (r"'\f\v\a\x'", "fvax"),
        (r"'\%\_'", "\\%\\_"),
        (r"'\\%'", "\\%"),
        (r"'\u00e9'", "é"),
        (r"'\u00E9x'", "éx"),
        (r"'\u12'", "u12"),
        (r"'\u12g4'", "u12g4"),
        (r"'\\u0041'", "\\u0041"),
        (r"'\U0001F600'", "😀"),
        (r"'\U1F600'", "U1F600"),
        (r"'\ud83d\ude00'", "😀"),
        (r"'\101'", "A"),
        (r"'\177'", "\x7f"),
        (r"'\1011'", "A1"),
        (r"'\200'", "200"),
        (r"'\08'", "\x008"),
        (r"'\é'", "é"),
        ("'\\\n'", "\n"),
        ("'a\nb'", "a\nb"),
        ("r'a'", "a"),
        (r"R'\n\'", "\\n\\"),
        (r'r"\d+\"', "\\d+\\"),
        ("r'\"'", '"'),
        ("r''", ""),
        (r"'\ufeffa'", "\ufeffa"),
    ],
)
def test_strings_say_what_they_say_in_spark(text, value):
    assert string_value(text) == value
    assert string_value(text) == value


@each(
    ("text", "problem"),
    [
        (r"'\ud800'", "half of a surrogate pair"),
        (r"'\ude00\ud83d'", "half of a surrogate pair"),
        (r"'\U0000D800'", "half of a surrogate pair"),
        (r"'\U00110000'", r"there is no character \\U00110000"),
        (r"'\UFFFFFFFF'", r"there is no character \\UFFFFFFFF"),
    ],
)
def test_escapes_of_no_character_are_refused(text, problem):
    with pytest.raises(BadLiteral, match=problem):
        string_value(text)


@each(
    ("value", "text"),
    [
        ("", "''"),
        ("it's", r"'it\'s'"),
        ('"', "'\"'"),
        ("a\\b", r"'a\\b'"),
        ("a\nb", r"'a\u000ab'"),
        ("\0", r"'\u0000'"),
        ("é😀", "'é😀'"),
        ("a%", "'a%'"),
    ],
)
def test_how_strings_are_written(value, text):
    assert string_text(value) == text


@given(st.sampled_from(STRINGS) | st.text() | st.text(alphabet="a'\"\\%_nu0\n`", max_size=12))
def test_a_written_string_is_one_token_and_reads_back(value):
    token, end = tokenize(string_text(value))
    assert (token.kind, end.kind) == (TokenKind.STRING, TokenKind.END)
    assert string_value(token.text) == value


@given(st.text(alphabet="ab'\" ", max_size=12))
def test_a_doubled_quote_is_a_quote(value):
    assert string_value("'" + value.replace("'", "''") + "'") == value
    assert string_value('"' + value.replace('"', '""') + '"') == value
