"""Dead letters, and values that are hard to show."""

import json
from datetime import date

import pyarrow as pa
import pytest

from cases import each
from tamis import Matcher
from tamis.dead_letters import (
    SHOWN,
    VALUE,
    BadLimit,
    DeadLetter,
    filter_letter,
    listing,
    short_text,
)
from tamis.errors import BulkError, OptionError, SubscriptionError
from tamis.events.bad_events import python_value
from tamis.spark.tables.arrow_batches import texts_of


def letter_about(subscription, text):
    with pytest.raises(BulkError) as caught:
        Matcher({"i": "int"}).subscribe_many([(subscription, text)])
    return filter_letter(7, subscription, text, caught.value.failures[0][2])


def test_a_letter_about_a_filter_knows_the_place():
    letter = letter_about("a", "i > 0\n  AND ii < 3")
    assert letter[:3] == ("subscriptions", 7, "a")
    assert (letter.line, letter.column) == (2, 7)
    assert letter.value == "i > 0\n  AND ii < 3"
    assert letter.reason.startswith("unknown attribute 'ii'; did you mean 'i'? (line 2, column 7)")
    assert str(letter).startswith("subscriptions, id a: unknown attribute 'ii'")


def test_letters_about_nulls_and_ids():
    assert letter_about("a", None) == DeadLetter("subscriptions", 7, "a", "the filter is null")
    assert letter_about(None, "i > 0")[2:] == (None, "the id is null", None, None, "i > 0")
    assert letter_about(None, None)[2:] == (None, "the id is null", None, None, None)
    assert str(letter_about(None, None)) == "subscriptions, row 7: the id is null"
    error = SubscriptionError("the ids of this matcher are strings, and 5 is not")
    assert filter_letter(1, 5, "i > 0", error)[2:] == ("5", str(error), None, None, "i > 0")


def test_what_is_not_text_becomes_text():
    letter = letter_about("a\udcff", "i\udcff > 0")
    assert letter.id == "a?"
    letter = letter_about("a", "i\udcff > 0")
    assert letter.value == "i? > 0"
    assert letter.reason.startswith("the filter is not valid Unicode text (line 1, column 2)")
    for text in letter[2], letter.reason, letter.value:
        text.encode()


def test_values_are_cut():
    assert short_text(None) is None
    assert short_text("x" * VALUE) == "x" * VALUE
    assert short_text("x" * (VALUE + 1)) == "x" * VALUE + "..."
    assert short_text({"s": "é", "at": date(2024, 1, 1)}) == '{"s": "é", "at": "2024-01-01"}'
    assert len(short_text({"s": "x" * 5000})) == VALUE + 3


@each("count", [1, SHOWN, SHOWN + 1, 1234])
def test_the_first_letters_are_listed(count):
    letters = [
        DeadLetter("events", row, None, f"reason {row}\nmore") for row in range(min(count, 20))
    ]
    text = listing(letters, count)
    assert text.startswith(f"{count:,} row{'s' * (count > 1)} cannot be used:\n  events, row 0: re")
    assert text.count("reason") == min(count, SHOWN)
    assert text.endswith(f"... and {count - SHOWN:,} more") == (count > SHOWN)


def test_texts_of_columns():
    assert texts_of(pa.chunked_array([["a", None], ["é"]])) == ["a", None, "é"]
    assert texts_of(pa.chunked_array([[1, None]])) == [1, None]
    for kind in (pa.string(), pa.large_string()):
        raw = pa.array([b"a\xff", None, "é".encode()], pa.binary())
        raw = raw.cast(pa.large_binary()) if kind == pa.large_string() else raw
        assert texts_of(pa.chunked_array([raw.view(kind)])) == ["a\udcff", None, "é"]


def test_every_value_can_be_shown():
    bad = pa.array([b"a\xff"], pa.binary()).view(pa.string())
    far = pa.array([2**62], pa.timestamp("us", "America/New_York"))
    record = pa.StructArray.from_arrays([bad, far], ["s", "at"])
    cases = [
        (pa.array([1]), 1),
        (pa.array([None], pa.string()), None),
        (pa.array(["é"]), "é"),
        (bad, "a�"),
        (far, f"timestamp[us, tz=America/New_York] {2**62}"),
        (pa.array([2**31 - 1], pa.date32()), f"date32[day] {2**31 - 1}"),
        (record, {"s": "a�", "at": f"timestamp[us, tz=America/New_York] {2**62}"}),
        (pa.array([None], record.type), None),
        (pa.ListArray.from_arrays([0, 1], bad), "a value of type list<item: string>"),
        (pa.array([b"\xff"]), b"\xff"),
    ]
    for column, expected in cases:
        value = python_value(column[0])
        assert value == expected
        json.dumps(value, default=str)


@each(
    ("limit", "bad", "rows", "exceeded"),
    [
        ("1%", 1, 100, False), ("1%", 2, 100, True), ("0%", 1, 10**9, True), (0, 0, 0, False),
        (20, 20, 30, False), ("20", 21, 30, True), ("0.5%", 1, 100, True), ("100%", 5, 5, False),
    ],
)  # fmt: skip
def test_a_limit_of_bad_rows_is_a_share_or_a_number(limit, bad, rows, exceeded):
    assert BadLimit.of(limit).is_exceeded(bad, rows) == exceeded


def test_limits_that_are_none():
    assert BadLimit.of(None) is None
    for text in ("x", "-1", "1.5", "%", "1%%", True, 1.5):
        with pytest.raises(OptionError, match="such as '1%' or 20"):
            BadLimit.of(text)
