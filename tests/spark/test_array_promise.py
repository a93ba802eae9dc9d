"""Arrays and maps: conditions have the truth, and filters keep the rows, that Spark says."""

import pytest

from array_differences import differences, drawn, event_table
from array_strategies import ARRAYS
from tamis import Matcher, Schema
from tamis.spark import match

pytestmark = pytest.mark.spark

FILTERS, EVENTS = 400, 60


@pytest.fixture(scope="module")
def cases(spark):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    texts, events = drawn(FILTERS, 20261118)
    events = events[-EVENTS:]
    frame = spark.createDataFrame(event_table(events)).coalesce(1).cache()
    yield texts, events, frame
    frame.unpersist()
    spark.conf.unset("spark.sql.subexpressionElimination.enabled")
    spark.conf.unset("spark.sql.ansi.enabled")


def test_conditions_have_the_truth_that_spark_gives_them(cases):
    texts, events, frame = cases
    assert len(texts) >= FILTERS // 3
    assert list(differences(frame, texts, events)) == []


def test_a_job_matches_arrays_and_maps(spark, cases):
    texts, events, frame = cases
    rules = spark.createDataFrame(list(enumerate(texts[:80])), "id int, filter string")
    found = match(frame, rules, event_id="n").collect()
    matcher = Matcher(ARRAYS)
    matcher.subscribe_many(enumerate(texts[:80]))
    pairs = matcher.match_batch(event_table(events)).to_pydict()
    expected = set(zip(pairs["event"], pairs["subscription"], strict=True))
    assert {(row["event_id"], row["subscription"]) for row in found} == expected
    assert expected


def test_a_schema_is_taken_from_a_spark_frame(cases):
    _, _, frame = cases
    found = Schema.from_spark(frame.drop("n").schema)
    assert dict(found) == dict(ARRAYS)
