"""A query is started again if its Python process was late, and only then."""

import pytest
from pyspark.errors import PySparkException

from tamis.spark.stream.query_start import LATE, STARTS, start_query


class Writer:
    """Fails with some messages, one after the other, and then starts."""

    def __init__(self, *messages):
        self.messages = list(messages)

    def start(self):
        if self.messages:
            raise PySparkException(self.messages.pop(0))
        return "the query"


def test_a_process_that_is_late_is_started_again():
    assert start_query(Writer()) == "the query"
    assert start_query(Writer(*[f"{LATE}."] * (STARTS - 1))) == "the query"


def test_it_is_not_started_for_ever():
    writer = Writer(*[LATE] * 9)
    with pytest.raises(PySparkException, match=LATE):
        start_query(writer)
    assert len(writer.messages) == 9 - STARTS


def test_other_failures_are_said_at_once():
    writer = Writer("the path is gone", LATE)
    with pytest.raises(PySparkException, match="the path is gone"):
        start_query(writer)
    assert writer.messages == [LATE]
