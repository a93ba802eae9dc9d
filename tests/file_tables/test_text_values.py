"""Texts as numbers, as Spark's readers of text files take them."""

import pyarrow as pa
import pytest

from cases import each
from tamis.file_tables.text_values import text_reader

read = text_reader(pa.decimal128(5, 2), is_inferred=False)


@each(
    ("text", "expected"),
    [
        ("0.125", "0.13"), ("-0.125", "-0.13"), ("1e2", "100.00"), ("+5", "5.00"),
        ("0.1234567", "0.12"), ("999.994", "999.99"), (".5", "0.50"), ("1e-999999999", "0.00"),
        ("0." + "1" * 500, "0.11"),
    ],
)  # fmt: skip
def test_digits_after_the_point_are_rounded(text, expected):
    assert str(read(text)) == expected


@each("text", ["999.995", "12345", " 7 ", "1_0", "x", "", "NaN", "1e999999999", "1e9999999999"])
def test_what_is_not_a_decimal_of_the_type(text):
    with pytest.raises(ValueError, match=r"^$"):
        read(text)


@each("kind, bits", [(pa.int32(), 31), (pa.int64(), 63)])
def test_whole_numbers_are_those_of_the_type(kind, bits):
    whole = text_reader(kind, is_inferred=False)
    ends = -(2**bits), 2**bits - 1
    assert [whole(str(end)) for end in ends] == list(ends)
    for beyond in (ends[0] - 1, ends[1] + 1, ends[1] + 2):
        with pytest.raises(ValueError, match=r"^$"):
            whole(str(beyond))
