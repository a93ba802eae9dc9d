"""Conditions on decimals have the truth that Spark gives them."""

import pytest

from decimal_differences import SETTINGS, accepted, differences, events, table_of

pytestmark = pytest.mark.spark

FILTERS, EVENTS = 200, 40


def test_conditions_on_decimals_agree_with_spark(spark):
    for name, setting in SETTINGS.items():
        spark.conf.set(name, setting)
    try:
        rows = events(11, EVENTS)
        frame = spark.createDataFrame(table_of(rows)).coalesce(1)
        assert list(differences(frame, rows, list(accepted(FILTERS, 11)))) == []
    finally:
        for name in SETTINGS:
            spark.conf.unset(name)
