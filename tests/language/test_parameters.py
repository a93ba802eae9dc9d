import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import LimitError, Matcher, OptionError, ParseError, Schema, TypeMismatch, parse
from tamis.errors import BulkError, SubscriptionError
from tamis.language.parameters import constant_text, fill

SCHEMA = Schema(
    {"price": "double", "symbol": "string", "n": "int", "ok": "bool", "at": "timestamp"}
)
NOON = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)


@each(
    ("value", "text"),
    [
        (10, "10"),
        (-3, "-3"),
        (2**40, "1099511627776"),
        (2**70, "1180591620717411303424"),
        (np.int32(7), "7"),
        (1.5, "1.5D"),
        (-0.0, "-0.0D"),
        (1e22, "1e+22D"),
        (np.float32(0.5), "0.5D"),
        (Fraction(1, 4), "0.25D"),
        (math.nan, "CAST('nan' AS DOUBLE)"),
        (-math.inf, "CAST('-inf' AS DOUBLE)"),
        (Decimal("1.50"), "1.50BD"),
        (Decimal(3), "3BD"),
        ("it's \\ 100%", r"'it\'s \\ 100%'"),
        (True, "TRUE"),
        (np.bool_(0), "FALSE"),
        (None, "NULL"),
        (pd.NA, "NULL"),
        (pd.NaT, "NULL"),
        (NOON, "TIMESTAMP '2024-01-31 12:00:00Z'"),
        (pd.Timestamp(NOON), "TIMESTAMP '2024-01-31 12:00:00Z'"),
        (NOON.replace(tzinfo=None, hour=0), "TIMESTAMP '2024-01-31 00:00:00Z'"),
        (dt.date(2024, 1, 31), "DATE '2024-01-31'"),
    ],
)
def test_a_value_is_written_as_a_constant(value, text):
    assert constant_text(value) == text


@each(
    ("text", "parameters", "same"),
    [
        ("n < :limit AND symbol = :s", {"limit": 10, "s": "IBM"}, "n < 10 AND symbol = 'IBM'"),
        ("n=:x", {"x": -1}, "n = -1"),
        ("n -:x = 0", {"x": -1}, "n - (-1) = 0"),
        ("n - :x = 0", {"x": 5}, "n - 5 = 0"),
        ("n = -:x", {"x": 2**31}, "n = -(2147483648)"),
        ("n BETWEEN:a AND:b", {"a": 1, "b": 2}, "n BETWEEN 1 AND 2"),
        ("n IN (:a,:b)", {"a": 1, "b": 2}, "n IN (1, 2)"),
        ("symbol LIKE :p ESCAPE :e", {"p": "a/%%", "e": "/"}, "symbol LIKE 'a/%%' ESCAPE '/'"),
        ("symbol RLIKE :p", {"p": r"^\d+$"}, r"symbol RLIKE r'^\d+$'"),
        ("symbol = ':x' AND n = :x", {"x": 1}, "symbol = ':x' AND n = 1"),
        ("symbol = :a OR :a = symbol", {"a": "' OR"}, r"symbol = '\' OR' OR '\' OR' = symbol"),
        ("at >= :day", {"day": dt.date(2024, 1, 31)}, "at >= DATE '2024-01-31'"),
        ("at >= :text", {"text": "2024-01-31"}, "at >= '2024-01-31'"),
        ("ok = :yes", {"yes": True}, "ok = TRUE"),
        (":yes", {"yes": True}, "TRUE"),
        ("n <=> :x", {"x": None}, "n <=> NULL"),
        ("n = 1", {}, "n = 1"),
        ("price = :x", {"x": math.inf}, "price = CAST('inf' AS DOUBLE)"),
    ],
)  # fmt: skip
def test_a_filter_with_parameters_is_one_with_constants(text, parameters, same):
    expression = parse(text, SCHEMA, parameters)
    assert expression == parse(same, SCHEMA)
    assert parse(str(expression), SCHEMA) == expression


@each(
    ("text", "parameters", "kind", "says", "place"),
    [
        ("price < :limit", {}, ParseError, "no value for the parameter :limit", ":limit"),
        ("price < :limit", {"limmit": 1}, ParseError, "did you mean 'limmit'?", ":limit"),
        ("price < :limit", None, ParseError, "{'limit': ...}", ":limit"),
        ("n = 1", {"limit": 1}, ParseError, "write :limit where its value belongs", ""),
        ("n = :a", {"a": 1, "b": 2}, ParseError, "no parameter :b", ""),
        ("n = :a", {"a": 1, 2: 2}, ParseError, "is a string, not 2", ""),
        ("n = :a AND price < :b", {"a": 1234567, "b": "ten"}, TypeMismatch, ":b is 'ten'", ":b"),
        ("symbol = :a AND n < 'x'", {"a": "a long text"}, TypeMismatch, "cannot compare", "'x'"),
        ("n = :a", {"a": [1, 2]}, TypeMismatch, "IN (:a, :b)", ":a"),
        ("n = :a", {"a": object()}, TypeMismatch, "it is of type object", ":a"),
        ("n = :a", {"a": 10**50}, TypeMismatch, "at most 38 digits", ":a"),
        ("n = :a", {"a": 10**40}, ParseError, "at most 38 digits", ":a"),
        ("n = :a", {"a": Decimal("1e99999999")}, TypeMismatch, "at most 38 digits", ":a"),
        ("n = :a", {"a": Decimal("nan")}, TypeMismatch, "finite", ":a"),
        ("symbol = :a", {"a": "\ud800"}, TypeMismatch, "not valid Unicode", ":a"),
        ("price::double = 1", {}, ParseError, "write CAST(x AS DOUBLE)", ":"),
        ("price::double = 1", None, ParseError, "write CAST(x AS DOUBLE)", ":"),
        ("symbol RLIKE :p OR b", {"p": "("}, ParseError, ":p is '('", ":p"),
        ("n = :a (", {"a": 12345}, ParseError, "unexpected '('", "("),
        ("'a':p = symbol", {"p": "b"}, ParseError, "unexpected", ":p"),
    ],
)
def test_an_error_is_about_the_filter_as_it_was_given(text, parameters, kind, says, place):
    with pytest.raises(kind) as caught:
        parse(text, SCHEMA, parameters)
    assert says in str(caught.value)
    assert caught.value.text == text
    assert text[caught.value.start : caught.value.end] == place


def test_parameters_are_a_mapping():
    with pytest.raises(OptionError, match="a dict of names and values, not list"):
        parse("n = :a", SCHEMA, [1])
    with pytest.raises(ParseError, match="a filter is a string"):
        parse(5, SCHEMA, {"a": 1})


def test_a_matcher_keeps_the_filter_with_its_values():
    matcher = Matcher(SCHEMA)
    matcher.subscribe(
        "alice", "price < :limit AND symbol = :symbol", {"limit": 10, "symbol": "IBM"}
    )
    assert str(matcher["alice"]) == "price < 10 AND symbol = 'IBM'"
    assert matcher.match({"price": 9.0, "symbol": "IBM"}) == ["alice"]
    with pytest.raises(SubscriptionError, match="give them to parse"):
        matcher.subscribe("bob", matcher["alice"], {"limit": 1})
    assert list(matcher) == ["alice"]


@each("size", [1, 200])
def test_many_subscriptions_with_parameters(size):
    matcher = Matcher(SCHEMA)
    matcher.subscribe_many(
        [(f"a{i}", "n > :least", {"least": i}) for i in range(size)]
        + [{"id": "b", "filter": "symbol = :s", "parameters": {"s": "x"}}, ("c", "n = 3", None)]
    )
    assert str(matcher[f"a{size - 1}"]) == f"n > {size - 1}"
    assert matcher.match({"symbol": "x", "n": 1}) == ["a0", "b"]
    with pytest.raises(BulkError) as caught:
        matcher.subscribe_many(
            [("d", "n > :least", {"least": "a"}), ("e", "n = :a", {}), ("f", "n = 1", {"a": 1})]
            + [("g", matcher["b"], {"s": 1})]
            + [(f"x{i}", "n = 1") for i in range(size)]
        )
    errors = [error for _, _, error in caught.value.failures]
    assert [row for row, _, _ in caught.value.failures] == [0, 1, 2, 3]
    assert (errors[0].text, errors[0].start) == ("n > :least", 4)
    assert "d" not in matcher


def test_limits_hold_for_the_text_with_its_values():
    with pytest.raises(LimitError, match="characters"):
        parse("symbol = :a", SCHEMA, {"a": "x" * 1_000_001})


@given(st.text(), st.text(max_size=8))
def test_any_string_stays_one_constant(value, around):
    expression = parse("symbol = :a AND NOT symbol = :b", SCHEMA, {"a": value, "b": around})
    first, second = expression.tree.items
    assert (first.right.value, second.operand.right.value) == (value, around)


def test_filters_with_the_same_text_are_filled_one_by_one():
    texts = [fill("n = :a", {"a": value}).text for value in (1, 2)]
    assert texts == ["n = 1", "n = 2"]


@each(
    ("values", "printed"),
    [
        (["a", "it's"], "array('a', 'it\\'s')"), (("a", None), "array('a', NULL)"), ([], "array()"),
    ],
)  # fmt: skip
def test_lists_are_arrays(values, printed):
    schema = Schema({"tags": "array<string>"})
    found = parse("arrays_overlap(tags, :wanted)", schema, {"wanted": values})
    assert str(found) == f"arrays_overlap(tags, {printed})"


@each("value", [[["a"]], {"a"}, [object()]])
def test_lists_that_are_not_arrays(value):
    with pytest.raises(TypeMismatch, match="the value of :wanted cannot be used"):
        parse("arrays_overlap(tags, :wanted)", Schema({"tags": "array<string>"}), {"wanted": value})
