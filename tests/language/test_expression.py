import pickle

import pytest
from hypothesis import assume, given

import tamis
from cases import each
from strategies import SCHEMA, filters
from tamis import Expression, Schema, parse
from tamis.errors import (
    ExpressionError,
    LimitError,
    ParseError,
    SchemaError,
    TamisError,
    TypeMismatch,
)
from tamis.language import ast
from tamis.language.expression import parse_with


def test_a_schema_may_be_a_mapping():
    expression = parse("price < 10", {"price": "double"})
    assert expression.schema == Schema({"price": "double"})


@each("schema", [None, "price double", ["price"], 5])
def test_anything_else_is_not_a_schema(schema):
    with pytest.raises(SchemaError, match="a schema is a"):
        parse("TRUE", schema)


def test_an_expression_prints_back():
    expression = parse("i<10 and not s='IBM'", SCHEMA)
    assert str(expression) == "i < 10 AND NOT s = 'IBM'"
    assert repr(expression) == "Expression(\"i < 10 AND NOT s = 'IBM'\")"


@each(
    ("left", "right"),
    [
        ("i=1", "i = 1"),
        ("i = 1", "(i) = (1)"),
        ("i <> 1", "i != 1"),
        ("s = 'a'", 's = "a"'),
        ("i IN [1, 2]", "i BETWEEN 1 AND 2"),
        ("b IS UNKNOWN", "b IS NULL"),
        ("x = 0.0D", "x = 0e0"),
    ],
)
def test_expressions_of_equal_structure_are_equal(left, right):
    assert parse(left, SCHEMA) == parse(right, SCHEMA)
    assert len({parse(left, SCHEMA), parse(right, SCHEMA)}) == 1


@each(
    ("left", "right"),
    [
        ("i = 1", "i = 1L"),
        ("i = 1", "1 = i"),
        ("x = 0.5", "x = 0.50"),
        ("x = 0.0D", "x = -0.0D"),
        ("b = TRUE", "b"),
        ("b = TRUE", "b = FALSE"),
        ("b AND c", "c AND b"),
        ("b AND c", "b OR c"),
        ("s LIKE 'a'", "s RLIKE 'a'"),
        ("s LIKE 'a'", "s LIKE 'a' ESCAPE '!'"),
        ("i = 1", "j = 1"),
    ],
)
def test_expressions_of_other_structure_are_not(left, right):
    assert parse(left, SCHEMA) != parse(right, SCHEMA)


def test_expressions_over_other_schemas_are_not_equal():
    assert parse("i = 1", {"i": "int"}) != parse("i = 1", {"i": "int", "j": "int"})


@each("other", [None, "b", 5, ast.TRUE])
def test_an_expression_equals_nothing_else(other):
    assert parse("b", SCHEMA) != other


@each(
    ("text", "paths"),
    [
        ("TRUE", set()),
        ("i = 1 AND i = 2", {("i",)}),
        ("i + j > abs(x)", {("i",), ("j",), ("x",)}),
        ("r.name LIKE 'a' OR NOT b", {("r", "name"), ("b",)}),
        ("i BETWEEN j AND r.k", {("i",), ("j",), ("r", "k")}),
        ("s IN (t, 'a')", {("s",), ("t",)}),
        ("`odd ``name``.` IS NULL", {("odd `name`.",)}),
        ("(b IS TRUE) = contains(s, lower(t))", {("b",), ("s",), ("t",)}),
    ],
)
def test_the_attributes_of_an_expression(text, paths):
    assert parse(text, SCHEMA).attributes == paths


@given(filters(depth=1))
def test_an_expression_can_be_pickled(text):
    try:
        expression = parse(text, SCHEMA)
    except TypeMismatch as error:  # the one thing a generated filter may do wrong
        assume("38 digits" not in (error.hint or ""))
        raise
    copied = pickle.loads(pickle.dumps(expression))
    assert copied == expression
    assert str(copied) == str(expression)
    assert copied.attributes == expression.attributes


@each(
    ("text", "kind"),
    [("i =", ParseError), ("i = 's'", TypeMismatch), ("(" * 1000, LimitError)],
)
def test_an_error_can_be_pickled(text, kind):
    with pytest.raises(kind) as caught:
        parse(text, SCHEMA)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is kind
    assert str(copied) == str(caught.value)
    assert (copied.text, copied.start, copied.end) == (
        text, caught.value.start, caught.value.end
    )  # fmt: skip


@each("kind", [ParseError, TypeMismatch, LimitError])
def test_one_class_catches_all_errors_of_filters(kind):
    assert issubclass(kind, ExpressionError)
    assert issubclass(kind, TamisError)


@each("value", [None, 5, b"b"])
def test_a_filter_must_be_a_string(value):
    with pytest.raises(ParseError, match="a filter is a string"):
        parse(value, SCHEMA)


def test_a_filter_may_be_of_a_class_of_strings():
    class Text(str):
        __slots__ = ()

    assert parse(Text("b"), SCHEMA) == parse("b", SCHEMA)


def test_what_the_package_offers():
    assert tamis.parse is parse
    assert tamis.Expression is Expression
    assert isinstance(parse_with("b", SCHEMA), Expression)
