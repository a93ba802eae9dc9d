import pytest

from cases import each
from tamis import Schema, parse
from tamis.errors import ParseError, TypeMismatch
from tamis.language import ast
from tamis.types import BOOL, DOUBLE, INT, INT32, NULL, STRING, TIMESTAMP, decimal_type

SCHEMA = Schema(
    {
        "i": "int", "j": "int", "x": "double", "s": "string", "b": "bool", "at": "timestamp",
        "level": "int(1, 250)", "side": "enum('buy', 'sell', 'it''s')", "address.city": "string",
        "address.zip": "int", "amount": "decimal(38, 30)",
    }
)  # fmt: skip


def refusal(text, schema=SCHEMA):
    with pytest.raises(TypeMismatch) as caught:
        parse(text, schema)
    return caught.value


def sides(text):
    tree = parse(text, SCHEMA).tree
    return tree.left, tree.right


# --- where an error points, and what it says

MISMATCHES = [
    # filter, the part at fault, the problem, the hint
    ("i = 'a'", "'a'", "= cannot compare int with string", None),
    ("i = '10'", "'10'", "= cannot compare int with string", "write 10 without quotes"),
    ("x < '-1.5'", "'-1.5'", "< cannot compare double with string", "write -1.5 without quotes"),
    ("'10' = i", "i", "= cannot compare string with int", "write 10 without quotes"),
    ("i <> s", "s", "<> cannot compare int with string", None),
    ("b = 'true'", "'true'", "= cannot compare bool with string", "TRUE or FALSE without quotes"),
    ("b = 1", "1", "= cannot compare bool with int", "write TRUE or FALSE"),
    ("at > 5", "5", "> cannot compare timestamp with int", None),
    ("at = s", "s", "= cannot compare timestamp with string", "write CAST(... AS TIMESTAMP)"),
    ("i BETWEEN 1 AND 'b'", "'b'", "<= cannot compare int with string", None),
    ("i BETWEEN s AND 2", "s", ">= cannot compare int with string", None),
    ("i IN [1, 'b']", "'b'", "<= cannot compare int with string", None),
    ("i IN (1, 'b')", "'b'", "IN cannot compare int with string", None),
    ("s IN {'a', 1}", "1", "IN cannot compare string with int", None),
    ("at IN ('2024-01-01')", "'2024-01-01'", "IN cannot compare timestamp with", "TIMESTAMP"),
    ("at = 'soon'", "'soon'", "'soon' is not a timestamp", "expected '2024-01-31 12:30:00'"),
    ("at = TIMESTAMP '2024-13-01'", "'2024-13-01'", "'2024-13-01' is not a timestamp", "expected"),
    ("at = DATE '2023-02-29'", "'2023-02-29'", "'2023-02-29' is not a date", "expected"),
    ("s + 1 = 2", "s", "+ needs a number, but this is of type string", None),
    ("1 * b = 2", "b", "* needs a number, but this is of type bool", None),
    ("-s = 'a'", "s", "- needs a number, but this is of type string", None),
    ("+at = at", "at", "+ needs a number, but this is of type timestamp", None),
    ("x DIV 2 = 1", "x DIV 2", "DIV divides whole numbers, not double and int", "write / instead"),
    ("i DIV 0.5 = 1", "i DIV 0.5", "not int and decimal(1, 1)", "write / instead"),
    ("abs(s) = 1", "s", "abs needs a number, but this is of type string", None),
    ("length(i) = 1", "i", "length takes a value of type string here", "CAST(... AS STRING)"),
    ("contains(s, 1)", "1", "contains takes a value of type string here", "CAST(... AS STRING)"),
    ("lower(b) = 'a'", "b", "lower takes a value of type string here", "CAST(... AS STRING)"),
    ("abs() = 1", "abs()", "abs takes one argument, not 0", None),
    ("length(s, s) = 1", "length(s, s)", "length takes one argument, not 2", None),
    ("contains(s)", "contains(s)", "contains takes 2 arguments, not 1", None),
    ("lenght(s) = 1", "lenght", "unknown function 'lenght'", "did you mean 'length'?"),
    ("qqq(no) = 1", "qqq", "unknown function 'qqq'", "docs/language.md lists all functions"),
    ("transform(s, v -> v) = 1", "transform", "unknown function", "exists(a, t -> condition)"),
    ("s = ANY(s)", "ANY", "unknown function 'ANY'", "write array_contains(a, x)"),
    ("s IN (SELECT 1)", "SELECT", "unknown attribute 'SELECT'", "a filter has no subqueries"),
    ("x = 'NaN'", "'NaN'", "= cannot compare double with string", "write isnan(x) for NaN"),
    ("isnull()", "isnull()", "isnull takes one argument, not 0", None),
    ("isnan(s)", "s", "isnan takes a value of type double here", None),
    ("date(b)", "b", "date does not convert bool", None),
    ("i LIKE 'a'", "i", "the left side of LIKE must be of type string", None),
    ("b RLIKE 'a'", "b", "the left side of RLIKE must be of type string", None),
    ("'a' SUBSTRING OF i", "i", "the right side of SUBSTRING OF must be of type string", None),
    ("i SUBSTRING OF s", "i", "the left side of SUBSTRING OF must be of type string", None),
    ("i", "i", "a filter needs a condition, but this is a value of type int", "compare it"),
    ("1", "1", "a filter needs a condition", "write TRUE or FALSE"),
    ("b AND i", "i", "AND needs a condition, but this is a value of type int", "compare it"),
    ("s OR b", "s", "OR needs a condition, but this is a value of type string", "compare it"),
    ("NOT x", "x", "NOT needs a condition, but this is a value of type double", "compare it"),
    ("i IS TRUE", "i", "IS TRUE needs a condition", "compare it with something"),
    ("i IS NOT UNKNOWN", "i", "IS UNKNOWN needs a condition", "compare it with something"),
    ("b AND (i + 1)", "(i + 1)", "AND needs a condition", "compare it with something"),
    ("prize = 1", "prize", "unknown attribute 'prize'", "available: 'i', 'j'"),
    ("lvel = 1", "lvel", "unknown attribute 'lvel'", "did you mean 'level'?"),
    ("I = 1", "I", "unknown attribute 'I'", "did you mean 'i'?"),
    ("address.town = 'a'", "address.town", "unknown attribute 'address.town'", "address.city"),
    ("address = 'a'", "address", "address is a record, not a value", "such as address.city"),
    ("s.city = 'a'", "s.city", "unknown attribute 's.city'", "did you mean 'address.city'?"),
    ("level = 251", "251", "251 lies outside the domain int(1, 250) of level", None),
    ("0 < level", "0", "0 lies outside the domain int(1, 250) of level", None),
    ("level = 1.5", "1.5", "1.5 lies outside the domain", None),
    ("level >= 1e300", "1e300", "1e+300 lies outside the domain", None),
    ("level IN (1, 2, 300)", "300", "300 lies outside the domain", None),
    ("level BETWEEN 1 AND 300", "300", "300 lies outside the domain", None),
    ("side = 'bye'", "'bye'", "'bye' lies outside the domain enum('buy', 'sell', 'it''s')", "buy"),
    ("side IN ('buy', 'Sell')", "'Sell'", "'Sell' lies outside", "did you mean 'sell'?"),
]  # fmt: skip


@each(("text", "part", "problem", "hint"), MISMATCHES)
def test_a_mismatch_points_at_its_place(text, part, problem, hint):
    error = refusal(text)
    assert problem in error.problem
    assert text[error.start : error.end] == part
    assert error.hint is None if hint is None else hint in error.hint


@each(
    ("text", "line", "column", "start", "end"),
    [
        ("i = 's'", 1, 5, 4, 7),
        ("i = 1\nAND s > 5", 2, 9, 14, 15),
        ("\n\n  s > 5", 3, 7, 8, 9),
        ("'é😀' = s AND s = 5", 1, 18, 17, 18),
        ("s = 'a\nb' AND s = 5", 2, 12, 18, 19),
    ],
)
def test_places_are_counted_in_lines_and_columns(text, line, column, start, end):
    error = refusal(text)
    assert (error.line, error.column, error.start, error.end) == (line, column, start, end)
    assert error.text == text


def test_the_message_draws_the_line_at_fault():
    assert str(refusal("b AND\ni = 'ten' OR b")) == (
        "= cannot compare int with string (line 2, column 5)\n"
        "  i = 'ten' OR b\n"
        "      ^^^^^"
    )  # fmt: skip


def test_the_message_carries_the_hint():
    assert str(refusal("i = '10'")).startswith(
        "= cannot compare int with string; write 10 without quotes"
    )


def test_the_drawing_of_a_long_line_is_cut():
    problem, shown, carets = str(refusal("b OR " * 50 + "i = '10'" + " OR b" * 50)).splitlines()
    assert "line 1, column 255" in problem
    assert shown.startswith("  ...")
    assert shown.endswith("...")
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "'10'"
    assert len(shown) < 90


@each(
    ("text", "part", "problem"),
    [
        (r"s LIKE 'a\\'", r"'a\\'", "ends with its escape character"),
        (r"s LIKE '\\a'", r"'\\a'", "is before 'a'"),
        ("s LIKE 'a!b' ESCAPE '!'", "'a!b'", "is before 'b'"),
        ("s RLIKE '('", "'('", "RE2 refuses the pattern"),
        ("s REGEXP '(?=a)'", "'(?=a)'", "no look-around"),
        ("s RLIKE 'a$b'", "'a$b'", "$ is supported only at the end"),
    ],
)
def test_bad_patterns_are_errors_of_the_grammar(text, part, problem):
    with pytest.raises(ParseError) as caught:
        parse(text, SCHEMA)
    assert problem in caught.value.problem
    assert text[caught.value.start : caught.value.end] == part


# --- what is allowed


@each(
    "text",
    [
        "level = 250", "level = 1.0", "level <> 2e0", "level = NULL", "level IN (1, NULL)",
        "level = i", "level + 1 = 300", "level BETWEEN 1 AND 250", "side = 'it\\'s'", "side <> s",
        "upper(side) = 'BUY'", "side LIKE 'x%'", "level * 2 < 1000", "abs(level) = 999",
    ],
)  # fmt: skip
def test_a_domain_binds_only_constants_beside_its_attribute(text):
    assert ast.attributes(parse(text, SCHEMA).tree)


@each("name", ["LENGTH", "Length", "length"])
def test_functions_are_found_in_any_case(name):
    assert str(parse(f"{name}(s) = 1", SCHEMA)) == "length(s) = 1"


# --- conversions

I, X = ast.Attribute(("i",), INT), ast.Attribute(("x",), DOUBLE)
ONE = ast.Literal(1, INT32)


@each(
    ("text", "left", "right"),
    [
        ("i = 1", I, ast.Cast(ONE, INT)),
        ("i = 1L", I, ast.Literal(1, INT)),
        ("i = x", ast.Cast(I, DOUBLE), X),
        ("x = 1", X, ast.Cast(ONE, DOUBLE)),
        ("1 = i", ast.Cast(ONE, INT), I),
        ("1 = 1", ONE, ONE),
        ("x = NULL", X, ast.Cast(ast.Literal(None, NULL), DOUBLE)),
        ("NULL = NULL", ast.Literal(None, NULL), ast.Literal(None, NULL)),
        ("at = '1970-01-01'", ast.Attribute(("at",), TIMESTAMP), ast.Literal(0, TIMESTAMP)),
        ("'1970' = at", ast.Literal(0, TIMESTAMP), ast.Attribute(("at",), TIMESTAMP)),
    ],
)
def test_both_sides_of_a_comparison_get_one_type(text, left, right):
    assert sides(text) == (left, right)


@each(
    ("text", "type_"),
    [
        ("i = 0.5", decimal_type(21, 1)),
        ("1 = 0.5", decimal_type(2, 1)),
        ("amount = 5", decimal_type(38, 30)),
        ("amount = i", decimal_type(38, 18)),
        ("i = 0.1234567890123456789", decimal_type(38, 18)),
        ("x = 0.5", DOUBLE),
        ("0.25 = 10.5", decimal_type(4, 2)),
    ],
)
def test_the_type_of_a_comparison(text, type_):
    assert {side.type for side in sides(text)} == {type_}


@each(
    ("value", "type_"),
    [
        ("1 + 1", INT32),
        ("1 + 1L", INT),
        ("i + 1", INT),
        ("length(s) + 1", INT32),
        ("length(s) * i", INT),
        ("i - x", DOUBLE),
        ("1 / 1", DOUBLE),
        ("i / j", DOUBLE),
        ("1 DIV 1", INT),
        ("i DIV j", INT),
        ("1 % 2", INT32),
        ("i % 2", INT),
        ("0.5 + 1", decimal_type(3, 1)),
        ("0.5 + i", decimal_type(22, 1)),
        ("0.5 * 0.5", decimal_type(3, 2)),
        ("0.5 / 2", decimal_type(6, 6)),
        ("0.5 + x", DOUBLE),
        ("0.5 / 1e0", DOUBLE),
        ("NULL + 1", INT32),
        ("NULL + i", INT),
        ("NULL * x", DOUBLE),
        ("NULL + NULL", DOUBLE),
        ("NULL DIV i", INT),
        ("-i", INT),
        ("-(1)", INT32),
        ("+1", INT32),
        ("-0.5", decimal_type(1, 1)),
        ("abs(i)", INT),
        ("abs(-1)", INT32),
        ("abs(0.5)", decimal_type(1, 1)),
        ("abs(x)", DOUBLE),
        ("abs(NULL)", DOUBLE),
        ("length(s)", INT32),
        ("lower(s)", STRING),
        ("contains(s, 'a')", BOOL),
        ("(i = 1)", BOOL),
        ("TIMESTAMP '2024-01-01'", TIMESTAMP),
    ],
)
def test_the_type_of_a_value(value, type_):
    assert parse(f"({value}) IS NULL", SCHEMA).tree.operand.type == type_


def test_between_converts_each_bound_by_itself():
    tree = parse("i BETWEEN 1 AND 2.5", SCHEMA).tree
    assert (tree.operand, tree.low_type, tree.high_type) == (I, INT, decimal_type(21, 1))


def test_a_list_has_one_type_for_all_its_members():
    tree = parse("i IN (1, 2e0, NULL)", SCHEMA).tree
    assert tree.operand == ast.Cast(I, DOUBLE)
    assert {item.type for item in tree.items} == {DOUBLE}


@each("text", ["NULL", "NOT NULL", "b AND NULL", "NULL OR b", "NULL IS TRUE"])
def test_null_is_a_condition(text):
    assert parse(text, SCHEMA).tree.type == BOOL


@each(
    ("text", "printed"),
    [
        ("lower(upper(s)) = 'a'", "lower(s) = 'a'"),
        ("upper(lower(upper(s))) = 'a'", "upper(s) = 'a'"),
        ("lower(upper('ß')) = s", "lower(upper('ß')) = s"),
        ("lower(NULL) = s", "lower(NULL) = s"),
    ],
)
def test_inner_changes_of_case_are_dropped_as_in_spark(text, printed):
    assert str(parse(text, SCHEMA)) == printed


def test_numbers_with_too_many_digits_between_them_lose_some_after_the_point():
    text = "i = CAST(0.1234567890123456789 AS DECIMAL(38, 18))"
    assert str(parse("i = 0.1234567890123456789", SCHEMA)) == text
    assert parse(text, SCHEMA) == parse("i = 0.1234567890123456789", SCHEMA)
    assert str(parse("amount BETWEEN i AND 5", SCHEMA)) == (
        "CAST(amount AS DECIMAL(38, 18)) >= i AND amount <= 5"
    )
