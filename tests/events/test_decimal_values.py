"""Decimals of events: every digit, or a refusal."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cases import each
from tamis import EventError, Matcher, Schema
from tamis.events.columns import checked_columns
from tamis.events.event_reader import EventReader
from tamis.events.values import text_reader, value_reader
from tamis.schema import Attribute
from tamis.types import decimal_type

D = Decimal
PRICE = Attribute(("price",), decimal_type(5, 2))
SCHEMA = Schema({"price": "decimal(5, 2)"})


@each(
    ("given", "expected"),
    [
        (D("0.1"), "0.10"), (D("0.100"), "0.10"), (D("1e2"), "100.00"), (D("-0.00"), "0.00"),
        (D("999.99"), "999.99"), (3, "3.00"), (np.int64(-7), "-7.00"), ("0.10", "0.10"),
        (" +12.5 ", "12.50"), ("1e1", "10.00"), (".5", "0.50"), (0.1, "0.10"), (2.5, "2.50"),
        (np.float64(0.3), "0.30"), (np.float32(0.3), "0.30"), (-0.0, "0.00"),
    ],
)  # fmt: skip
def test_what_a_decimal_is_read_from(given, expected):
    assert str(value_reader(PRICE)(given)) == expected


@each(
    ("given", "reason"),
    [
        (D("0.125"), "more than 2 digits after the point"), (0.125, "2 digits after the point"),
        (0.1 + 0.2, "2 digits after the point"), (1000, "more than 3 digits before the point"),
        ("1000.0", "3 digits before the point"), (D("1e999999"), "digits before the point"),
        (D("1e-999999"), "digits after the point"), (D("NaN"), "finite"), (float("inf"), "finite"),
        (float("nan"), "finite"), ("x", "write a number such as 0.10"), ("1_0", "write a number"),
        ("", "write a number"), ("1" * 1001, "write a number"), (True, r"True \(bool\)"),
        (np.True_, "bool"), (type(None), "NoneType"), ([1], "list"), (1j, "complex"),
    ],
)  # fmt: skip
def test_what_has_other_digits_is_refused_and_never_rounded(given, reason):
    with pytest.raises(
        EventError, match=r"attribute price expects decimal\(5, 2\), got.*" + reason
    ):
        value_reader(PRICE)(given)


def test_texts_of_csv_and_xml():
    read = text_reader(PRICE)
    assert read("") is None
    assert str(read("7.5")) == "7.50"
    with pytest.raises(EventError, match="digits after the point"):
        read("7.555")
    assert EventReader(SCHEMA).row("<event><price> 7.5 </price></event>") == (D("7.50"),)


def test_numbers_of_json_keep_all_digits():
    reader = EventReader(Schema({"amount": "decimal(38, 18)", "x": "double"}))
    digits = "12345678901234567890.123456789012345678"
    assert reader.row(f'{{"amount": {digits}, "x": 0.1234567890123456789}}') == (
        D(digits), 0.1234567890123456789,
    )  # fmt: skip
    assert reader.row(f'{{"amount": "{digits}"}}')[0] == D(digits)
    assert reader.row('{"amount": 0.30000000000000004}')[0] == D("0.30000000000000004")
    assert reader.row('{"amount": 1.50e1}')[0] == 15
    with pytest.raises(EventError, match="digits after the point"):
        reader.row('{"amount": 1e-300}')


def columns(array, kind="decimal(5, 2)"):
    schema = Schema({"price": kind})
    (found,) = checked_columns(pa.table({"price": array}), schema, refuse_unknown=False)
    return [None if value is None else str(value) for value in found.to_pylist()]


@each(
    "array",
    [
        pa.array([D("0.10"), None, D("7")], pa.decimal128(5, 2)),
        pa.array([D("0.1000"), None, D("7")], pa.decimal128(20, 4)),
        pa.array([D("0.10"), None, D("7")], pa.decimal256(60, 4)),
        pa.array([D("0.10"), None, D("7")], pa.decimal32(5, 2)),
        pa.array([D("0.10"), None, D("7")], pa.decimal128(5, 2)).dictionary_encode(),
        pa.array(["0.1", None, "7"]),
        pa.array(["0.1", None, "7"]).dictionary_encode(),
        pa.array([0.1, None, 7.0], pa.float64()),
    ],
)
def test_columns_that_a_decimal_is_read_from(array):
    assert columns(array) == ["0.10", None, "7.00"]
    assert columns(array.slice(1)) == [None, "7.00"]


def test_columns_of_whole_numbers():
    assert columns(pa.array([7, None], pa.int8())) == ["7.00", None]
    assert columns(pa.nulls(2)) == [None, None]
    assert columns(pa.array([0.5], pa.float16())) == ["0.50"]


@each(
    ("array", "row"),
    [
        (pa.array([D("1"), D("0.125")], pa.decimal128(9, 3)), 1), (pa.array([1, 2, 1000]), 2),
        (pa.array(["1", None, "x"]), 2), (pa.array([0.1, 0.1 + 0.2]), 1),
        (pa.array([D("1e40")], pa.decimal256(50, 0)), 0),
    ],
)  # fmt: skip
def test_a_bad_value_of_a_column_is_named_with_its_row(array, row):
    with pytest.raises(EventError, match="attribute price expects decimal") as caught:
        columns(array)
    assert caught.value.row == row


def test_columns_of_other_types_are_refused():
    with pytest.raises(EventError, match=r"has the type bool, expected decimal\(5, 2\)"):
        columns(pa.array([True]))


def test_a_decimal_column_may_still_be_read_as_doubles():
    assert columns(pa.array([D("0.10")]), "double") == ["0.1"]


def test_frames_of_pandas_and_polars():
    matcher = Matcher({"price": "decimal(5, 2)"})
    matcher.subscribe("a", "price * 3 = 0.3")
    assert len(matcher.match_batch(pd.DataFrame({"price": [D("0.10"), D("0.20")]}))) == 1
    assert len(matcher.match_batch(pd.DataFrame({"price": [0.1, 0.2]}))) == 1
    frame = pl.DataFrame({"price": [D("0.10"), None]}, schema={"price": pl.Decimal(5, 2)})
    assert len(matcher.match_batch(frame)) == 1
    assert Schema.from_arrow(frame.to_arrow().schema) == SCHEMA
