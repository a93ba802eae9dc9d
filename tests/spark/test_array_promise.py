"""Arrays and maps: conditions have the truth, and filters keep the rows, that Spark says."""

import pytest

from array_cases import drawn
from array_strategies import ARRAYS
from spark_answers import differences, settings_of_filters
from tamis import Matcher, Schema
from tamis.spark import match

pytestmark = pytest.mark.spark

FILTERS, EVENTS = 400, 60


@pytest.fixture(scope="module")
def cases(spark):
    texts, events = drawn(FILTERS, EVENTS, 20261118)
    with settings_of_filters(spark):
        frame = spark.createDataFrame(events.table).coalesce(1).cache()
        yield texts, events, frame
        frame.unpersist()


def test_conditions_have_the_truth_that_spark_gives_them(cases):
    texts, events, frame = cases
    assert len(texts) >= FILTERS // 3
    assert list(differences(frame, events, texts)) == []


def test_a_job_matches_arrays_and_maps(spark, cases):
    texts, events, frame = cases
    rules = spark.createDataFrame(list(enumerate(texts[:80])), "id int, filter string")
    found = match(frame, rules, event_id="n").collect()
    matcher = Matcher(ARRAYS)
    matcher.subscribe_many(enumerate(texts[:80]))
    pairs = matcher.match_batch(events.table).to_pydict()
    expected = set(zip(pairs["event"], pairs["subscription"], strict=True))
    assert {(row["event_id"], row["subscription"]) for row in found} == expected
    assert expected


def test_a_schema_is_taken_from_a_spark_frame(cases):
    _, _, frame = cases
    found = Schema.from_spark(frame.drop("n").schema)
    assert dict(found) == dict(ARRAYS)
