"""Conditions on decimals have the truth that Spark gives them."""

import pytest

from decimal_cases import drawn
from spark_answers import differences, settings_of_filters

pytestmark = pytest.mark.spark

FILTERS, EVENTS = 200, 40


def test_conditions_on_decimals_agree_with_spark(spark):
    texts, events = drawn(FILTERS, EVENTS, 11)
    with settings_of_filters(spark, is_interpreted=True):
        frame = spark.createDataFrame(events.table).coalesce(1)
        assert list(differences(frame, events, texts)) == []
