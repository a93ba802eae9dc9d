from datetime import UTC, date, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.timestamps import (
    EPOCH,
    timestamp_from_datetime,
    timestamp_from_text,
    timestamp_text,
)

SECOND = 1_000_000
NEW_YEAR = 1_704_067_200 * SECOND  # 2024-01-01 in UTC
FIRST = -62_135_596_800 * SECOND  # 0001-01-01
LAST = 253_402_300_799_999_999  # the end of 9999


@each(
    ("text", "moment"),
    [
        ("1970-01-01", 0),
        ("2024", NEW_YEAR),
        ("2024-01", NEW_YEAR),
        ("2024-1-1", NEW_YEAR),
        ("2024-01-01 00:00", NEW_YEAR),
        ("2024-01-01T00:00:01", NEW_YEAR + SECOND),
        ("2024-01-01 0:0:1", NEW_YEAR + SECOND),
        ("2024-01-01 00:00:00.5", NEW_YEAR + SECOND // 2),
        ("2024-01-01 00:00:00.000001", NEW_YEAR + 1),
        ("2024-01-01 00:00:00Z", NEW_YEAR),
        ("2024-01-01 00:00:00 UTC", NEW_YEAR),
        ("2024-01-01 01:00:00+01:00", NEW_YEAR),
        ("2023-12-31 19:30:00-04:30", NEW_YEAR),
        ("2024-01-01 18:00:00+18:00", NEW_YEAR),
        ("  2024-01-01\n", NEW_YEAR),
        ("0001-01-01", FIRST),
        ("9999-12-31 23:59:59.999999", LAST),
        ("1969-12-31 23:59:59.999999", -1),
        ("2024-02-29", NEW_YEAR + 59 * 86_400 * SECOND),
    ],
)
def test_texts_of_timestamps(text, moment):
    assert timestamp_from_text(text) == moment


def test_digits_beyond_microseconds_are_cut_off():
    assert timestamp_from_text("1970-01-01 00:00:00.123456999") == 123_456


@each(
    "text",
    [
        "", "today", "24-01-01", "20240-01-01", "2024-13-01", "2024-02-30", "2023-02-29",
        "2024-01-01 24:00:00", "2024-01-01 00:60:00", "2024-01-01 00:00:60", "0000-01-01",
        "2024-01-01 00", "2024-01-01 00:00:00+25:00", "2024-01-01 00:00:00+01:60", "2024-01-01Z",
        "2024-01-01 00:00:00+18:01", "0001-01-01 00:00:00+01:00", "9999-12-31 23:59:59-01:00",
        "2024-01-01 00:00:00.", "2024-01-01 00:00:00.1234567890", "2024/01/01", "٢٠٢٤-01-01",
        "2024-01-01 00:00:00 CET", "2024-01-01; DROP", "-2024-01-01", "1704067200",
    ],
)  # fmt: skip
def test_texts_that_are_not_timestamps(text):
    assert timestamp_from_text(text) is None


@each(
    ("moment", "expected"),
    [
        (datetime(2024, 1, 1, tzinfo=UTC), NEW_YEAR),
        (datetime(2024, 1, 1), NEW_YEAR),  # noqa: DTZ001 - no zone means UTC
        (date(2024, 1, 1), NEW_YEAR),
        (datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), NEW_YEAR),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
    ],
)
def test_datetimes_and_dates(moment, expected):
    assert timestamp_from_datetime(moment) == expected


@each(
    ("moment", "text"),
    [
        (0, "1970-01-01 00:00:00Z"),
        (-1, "1969-12-31 23:59:59.999999Z"),
        (NEW_YEAR + SECOND // 2, "2024-01-01 00:00:00.5Z"),
        (FIRST, "0001-01-01 00:00:00Z"),
        (LAST + 1, "+10000-01-01 00:00:00Z"),
    ],
)
def test_timestamps_are_written_in_utc(moment, text):
    assert timestamp_text(moment) == text


@given(st.integers(FIRST, LAST))
def test_every_timestamp_survives_being_written(moment):
    assert timestamp_from_text(timestamp_text(moment)) == moment


@given(st.integers(FIRST, LAST))
def test_datetimes_keep_every_microsecond(moment):
    assert timestamp_from_datetime(EPOCH + timedelta(microseconds=moment)) == moment
