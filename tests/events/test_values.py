import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from strategies import values
from tamis import EventError, Schema
from tamis.events.values import check_domain, text_reader, value_reader
from tamis.timestamps import EPOCH

NEW_YEAR = 1_704_067_200_000_000


def read(kind, value):
    return value_reader(Schema({"a": kind})["a"])(value)


def read_text(kind, text):
    return text_reader(Schema({"a": kind})["a"])(text)


# --- values of Python


@each("kind", ["int", "double", "string", "bool", "timestamp", "int(1, 5)"])
def test_none_is_missing(kind):
    assert read(kind, None) is None


@each("value", [0, -1, 2**63 - 1, -(2**63), np.int8(5), np.uint64(5)])
def test_integers(value):
    result = read("int", value)
    assert result == value
    assert type(result) is int


@each("value", [True, 1.0, math.nan, "1", b"1", Decimal(1), [1], np.float64(1), np.bool_(True), 1j])
def test_what_is_not_an_integer(value):
    with pytest.raises(EventError, match="attribute a expects int, got "):
        read("int", value)


@each("value", [2**63, -(2**63) - 1, 10**100, np.uint64(2**63)])
def test_an_integer_beyond_64_bits(value):
    with pytest.raises(EventError, match="it does not fit in 64 bits"):
        read("int", value)


@each(
    ("value", "double"),
    [
        (0.5, 0.5),
        (3, 3.0),
        (2**53 + 1, 2.0**53),
        (10**300, 1e300),
        (Decimal("0.1"), 0.1),
        (Fraction(1, 4), 0.25),
        (np.float32(0.5), 0.5),
        (np.int16(7), 7.0),
        (math.inf, math.inf),
        (-math.inf, -math.inf),
    ],
)
def test_doubles(value, double):
    result = read("double", value)
    assert result == double
    assert type(result) is float


@each("value", [math.nan, Decimal("NaN"), np.float64("nan")])
def test_nan_is_a_value_and_not_missing(value):
    assert math.isnan(read("double", value))


def test_the_sign_of_zero_is_kept():
    assert math.copysign(1, read("double", -0.0)) == -1


@each("value", [True, "1.5", b"1", [], 1j, np.bool_(False), Decimal("sNaN")])
def test_what_is_not_a_double(value):
    with pytest.raises(EventError, match="attribute a expects double, got "):
        read("double", value)


def test_an_integer_that_no_double_can_hold():
    with pytest.raises(EventError, match=r"attribute a expects double, got 1000.*\.\.\. \(int\)"):
        read("double", 10**400)


@each("value", ["", "a", "é", "😀", "\x00", "a\nb", np.str_("x")])
def test_strings(value):
    result = read("string", value)
    assert result == value
    assert type(result) is str


@each("value", [5, True, b"a", ["a"], object()])
def test_what_is_not_a_string(value):
    with pytest.raises(EventError, match="attribute a expects string, got "):
        read("string", value)


@each("value", ["\ud800", "a\udcff", "\ude00\ud83d"])
def test_lone_surrogates_are_refused(value):
    with pytest.raises(EventError, match="it is not valid Unicode text") as caught:
        read("string", value)
    str(caught.value).encode()  # the message can be printed


@each("value", [True, False, np.bool_(True), np.bool_(False)])
def test_bools(value):
    assert read("bool", value) is bool(value)


@each("value", [0, 1, 1.0, "true", "", [], np.int8(1)])
def test_what_is_not_a_bool(value):
    with pytest.raises(EventError, match="attribute a expects bool, got "):
        read("bool", value)


@each(
    "value",
    [
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 1, 1),  # noqa: DTZ001 - no zone means UTC
        datetime(2024, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        date(2024, 1, 1),
        "2024-01-01",
        "2024-01-01T01:00:00+01:00",
        "2024-01-01 00:00:00Z",
        pd.Timestamp("2024-01-01"),
        pd.Timestamp("2024-01-01 01:00", tz="Europe/Paris"),
    ],
)
def test_timestamps(value):
    result = read("timestamp", value)
    assert result == NEW_YEAR
    assert type(result) is int


def test_nat_of_pandas_is_missing():
    assert read("timestamp", pd.NaT) is None


@each("value", [0, 1.5, True, b"2024", [2024]])
def test_what_is_not_a_timestamp(value):
    with pytest.raises(EventError, match=r"expects timestamp, got .*: write a datetime or a text"):
        read("timestamp", value)


@each("value", ["", "soon", "2024-02-30", "2024-01-01 00:00 CET"])
def test_a_text_that_is_not_a_timestamp(value):
    with pytest.raises(EventError, match=r"with a zone Z or \+01:00 if it is not UTC"):
        read("timestamp", value)


@given(st.sampled_from(["int", "double", "string", "bool"]).flatmap(
    lambda kind: st.tuples(st.just(kind), values(kind))
))  # fmt: skip
def test_values_in_the_form_of_engines_are_read_as_they_are(case):
    kind, value = case
    result = read(kind, value)
    assert repr(result) == repr(value)  # repr tells -0.0 from 0.0, and nan is like nan


@given(values("timestamp"))
def test_datetimes_are_read_to_the_microsecond(moment):
    value = None if moment is None else EPOCH + timedelta(microseconds=moment)
    assert read("timestamp", value) == moment


# --- domains


@pytest.mark.parametrize("value", [1, 5])
def test_values_inside_a_range(value):
    assert read("int(1, 5)", value) == value


@each("value", [0, 6, -(2**63)])
def test_values_outside_a_range(value):
    with pytest.raises(EventError, match=r"a: .* \(int\) lies outside the domain int\(1, 5\)$"):
        read("int(1, 5)", value)


def test_an_enumeration_suggests_what_was_meant():
    with pytest.raises(EventError, match=r"'sel' \(str\) lies outside .* did you mean 'sell'\?"):
        read("enum('buy', 'sell')", "sel")


@each("value", ["", "BUY", "buy "])
def test_an_enumeration_is_exact(value):
    with pytest.raises(EventError, match="lies outside the domain"):
        read("enum('buy', 'sell')", value)


@pytest.mark.parametrize(("kind", "value"), [("int(0, 1)", True), ("enum('1')", 1)])
def test_the_type_counts_before_the_domain(kind, value):
    with pytest.raises(EventError, match="expects"):
        read(kind, value)


def test_an_attribute_without_a_domain_takes_everything():
    check_domain(Schema({"a": "int"})["a"], 10**9)


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(EventError) as caught:
        read("int", "x" * 100_000)
    assert len(str(caught.value)) < 200


# --- values as text


@each(
    ("kind", "text", "value"),
    [
        ("int", "5", 5),
        ("int", " -5 ", -5),
        ("int", "+5", 5),
        ("int", str(2**63 - 1), 2**63 - 1),
        ("double", "5", 5.0),
        ("double", "1e3", 1000.0),
        ("double", ".5", 0.5),
        ("double", "inf", math.inf),
        ("double", "-Infinity", -math.inf),
        ("double", "1e-999", 0.0),
        ("string", "", ""),
        ("string", " a ", " a "),
        ("bool", "true", True),
        ("bool", "FALSE", False),
        ("bool", "1", True),
        ("bool", "0", False),
        ("timestamp", "2024-01-01", NEW_YEAR),
        ("int(1, 5)", "5", 5),
        ("enum('5')", "5", "5"),
    ],
)
def test_texts(kind, text, value):
    result = read_text(kind, text)
    assert result == value
    assert type(result) is type(value)


def test_nan_as_text():
    assert math.isnan(read_text("double", "NaN"))


@each("kind", ["int", "double", "bool", "timestamp", "int(1, 5)"])
def test_an_empty_text_is_missing_unless_it_is_a_string(kind):
    assert read_text(kind, "") is None


@each(
    ("kind", "text"),
    [
        ("int", "5.0"),
        ("int", "five"),
        ("int", "1_000"),
        ("int", "1,000"),
        ("int", "0x10"),
        ("int", str(2**63)),
        ("int", "9" * 100_000),
        ("double", "1_0.5"),
        ("double", "1,5"),
        ("double", "five"),
        ("double", "1e999"),
        ("double", "-" + "9" * 400),
        ("bool", "yes"),
        ("bool", "2"),
        ("timestamp", "soon"),
        ("string", "\ud800"),
        ("int(1, 5)", "6"),
        ("enum('a')", "b"),
    ],
)
def test_texts_that_do_not_fit(kind, text):
    with pytest.raises(EventError, match="attribute a"):
        read_text(kind, text)
