"""Dates, timestamps and intervals: values that Spark gave, at the edges of what fits."""

from datetime import UTC, datetime

import pytest

from cases import each
from function_differences import value_tree
from strategies import SCHEMA
from tamis import parse
from tamis.language.evaluation import compile_value
from tamis.language.functions.date_texts import day_of_text, moment_of_text
from tamis.language.printer import print_tree
from tamis.timestamps import date_text, moment_text, timestamp_from_datetime
from tamis.types import INT32_MAX, INT64_MAX, INT64_MIN, Kind

AT = timestamp_from_datetime(datetime(2024, 1, 31, 10, 11, 12, 500_000, tzinfo=UTC))
ROW = tuple(AT if name == "at" else None for name in SCHEMA)


def shown(text):
    """The value of a term, dates and timestamps as texts."""
    tree = value_tree(text)
    value = compile_value(tree, SCHEMA)(ROW)
    if value is None:
        return None
    writers = {Kind.DATE: date_text, Kind.TIMESTAMP: moment_text}
    return writers.get(tree.type.kind, lambda one: one)(value)


@each(
    ("text", "expected"),
    [
        ("unix_seconds(at)", AT // 10**6), ("unix_micros(at)", AT),
        ("unix_millis(TIMESTAMP '1969-12-31 23:59:59.9995')", -1), ("unix_seconds(until)", None),
        ("unix_seconds(DATE '1970-01-02')", 86_400), ("extract(DOW FROM at)", 4),
        ("dayofweek(at)", 4), ("weekday(at)", 2), ("weekofyear('2021-01-03')", 53),
        ("second(at)", 12), ("dayofyear(at)", 31), ("quarter(at)", 1),
        ("until + INTERVAL 1 DAY", None),
        ("date_trunc('hour', at)", "2024-01-31 10:00:00"), ("trunc(at, 'WEEK')", "2024-01-29"),
        ("date_trunc('week', TIMESTAMP '0001-01-03 10:11:12.5')", "0001-01-01 00:00:00"),
        ("date_add(DATE '2024-01-31', 2147483647)", "-5877587-07-21"),
        ("year(date_add(DATE '2024-01-31', 2147483647))", -5_877_587),
        ("add_months(DATE '2024-01-31', 1)", "2024-02-29"), ("last_day(at)", "2024-01-31"),
        ("datediff(DATE '2024-01-31', TIMESTAMP '2024-01-30 23:00:00')", 1),
        ("DATE '2024-01-31' + 1", "2024-02-01"), ("1 + DATE '2024-01-31'", "2024-02-01"),
        ("DATE '2024-01-31' + INTERVAL 24 HOURS", "2024-02-01 00:00:00"),
        ("DATE '2024-01-31' + INTERVAL 1 WEEK", "2024-02-07"),
        ("DATE '2024-01-31' - INTERVAL '1' YEAR", "2023-01-31"),
        ("at + INTERVAL 1 MONTH", "2024-02-29 10:11:12.5"),
        ("INTERVAL 1 DAY 2 HOURS + at", "2024-02-01 12:11:12.5"),
        ("DATE '2024-01-31' - DATE '2024-01-30' < INTERVAL 25 HOURS", True),
        ("CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS INT)", -1),
        ("CAST(TIMESTAMP '9999-12-31 23:59:59.5' AS INT)", None),
        ("CAST(TIMESTAMP '1970-01-01' AS BOOLEAN)", False),
        ("CAST(TIMESTAMP '1970-01-01 00:00:00.000001' AS BOOLEAN)", True),
        ("CAST(TRUE AS TIMESTAMP)", "1970-01-01 00:00:00.000001"),
        ("CAST(1e300 AS TIMESTAMP)", "+294247-01-10 04:00:54.775807"),
        ("TRY_CAST(1e300 AS TIMESTAMP)", None),
        ("CAST(DATE '-0044-01-31' AS STRING)", "-0044-01-31"),
        ("CAST(TIMESTAMP '-0044-01-31 00:00:01.100' AS STRING)", "-0044-01-31 00:00:01.1"),
        ("coalesce(DATE '2024-01-31', at)", "2024-01-31 00:00:00"),
    ],
)  # fmt: skip
def test_what_spark_gives(text, expected):
    assert shown(text) == expected
    assert value_tree(print_tree(value_tree(text))) == value_tree(text)


@each(
    ("text", "expected"),
    [
        ("TIMESTAMP '9999-12-31' + INTERVAL 106751991 DAYS", INT64_MAX),
        ("TIMESTAMP '9999-12-31' - INTERVAL 2000000000 MONTHS", INT64_MIN),
        ("CAST(date_add(DATE '2024-01-31', 2147400000) AS TIMESTAMP)", INT64_MAX),
        ("date_trunc('DAY', CAST(-1e300 AS TIMESTAMP))", INT64_MIN),
    ],
)  # fmt: skip
def test_what_does_not_fit_in_64_bits_is_cut_off(text, expected):
    assert compile_value(value_tree(text), SCHEMA)(ROW) == expected


def test_texts_at_the_ends_of_what_fits():
    assert day_of_text("5881580-07-11") == INT32_MAX
    assert day_of_text("5881580-07-12") is None
    assert moment_of_text("294247-01-10 04:00:54.775807") == INT64_MAX
    assert moment_of_text("294247-01-10 04:00:54.775808") is None
    assert moment_of_text("-290308-12-21 19:59:05.224192") == INT64_MIN
    assert moment_of_text("-290308-12-21 19:59:05.224191") is None


@each("moment", [0, -1, AT, INT64_MIN, INT64_MAX, -(10**17)])
def test_the_text_of_a_moment_is_that_moment(moment):
    assert moment_of_text(moment_text(moment)) == moment


@pytest.mark.parametrize("text", ["interval - 5 > 3", "interval > 3", "date > 1 AND year > 2"])
def test_words_of_dates_stay_names(text):
    assert str(parse(text, {"interval": "int", "date": "int", "year": "int"})) == text
