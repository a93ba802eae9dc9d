"""Functions give the values and the types that Spark gives them."""

import pytest

from function_differences import accepted, differences, events
from spark.test_promise import event_table

pytestmark = pytest.mark.spark

TERMS = 600


def test_values_and_types_agree_with_spark(spark):
    settings = {
        "spark.sql.ansi.enabled": "false", "spark.sql.subexpressionElimination.enabled": "false",
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }  # fmt: skip
    for name, setting in settings.items():
        spark.conf.set(name, setting)
    try:
        rows = events(3)
        frame = spark.createDataFrame(event_table(rows)).coalesce(1)
        assert list(differences(frame, rows, list(accepted(TERMS, 3)))) == []
    finally:
        for name in settings:
            spark.conf.unset(name)
