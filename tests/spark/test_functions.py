"""Functions give the values and the types that Spark gives them."""

import pytest

from function_differences import accepted, differences, events
from plain_cases import event_table
from spark_answers import settings_of_filters

pytestmark = pytest.mark.spark

TERMS = 600


def test_values_and_types_agree_with_spark(spark):
    rows = events(3)
    with settings_of_filters(spark, is_interpreted=True):
        frame = spark.createDataFrame(event_table(rows)).coalesce(1)
        assert list(differences(frame, rows, list(accepted(TERMS, 3)))) == []
