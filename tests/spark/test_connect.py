"""Matching through Spark Connect, whose client has no SparkContext."""

import pytest

from stocks import SMALL, stock_filters, stock_rows
from tamis import Matcher

pytestmark = pytest.mark.spark

PROGRAM = """
from pyspark.errors import PySparkException
from tamis.spark import MatchJob, match


def main(spark, given):
    rows, texts = given
    assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
    kinds = "id string, i bigint, x double, s string, b boolean, side string"
    data = [(f"e{n}", *row) for n, row in enumerate(rows)] + [(None, *rows[0]), ("bad", *rows[0])]
    data[-1] = (*data[-1][:-1], "neither")
    events = spark.createDataFrame(data, kinds).repartition(3)
    subscriptions = spark.createDataFrame(
        [(f"s{n}", text) for n, text in enumerate(texts)] + [("typo", "ii > 0")],
        "id string, filter string",
    )
    schema = {"i": "int", "x": "double", "s": "string", "b": "bool", "side": "enum('sell', 'buy')"}
    said = {}
    for output in ("pairs", "lists", "counts"):
        job = MatchJob(events, subscriptions, schema=schema, output=output, keep=["i"])
        said[output] = [row.asDict() for row in job.matches.collect()]
    said["letters"] = [row.asDict() for row in job.dead_letters.collect()]
    said["plan"] = job.explain()
    try:
        match(events, subscriptions.limit(5), schema=schema, on_bad="fail").collect()
    except PySparkException as error:
        said["failure"] = str(error)
    return said
"""


@pytest.fixture(scope="module")
def said(connect):
    rows = [[None if value != value else value for value in row] for row in stock_rows(3, 60)]  # noqa: PLR0124 - nan
    texts = [*stock_filters(4, 70), "TRUE"]
    found, _ = connect.run(PROGRAM, [rows, texts])
    matcher = Matcher(SMALL)
    matcher.subscribe_many({f"s{n}": text for n, text in enumerate(texts)})
    events = [dict(zip(SMALL, row, strict=True)) for row in rows]
    expected = {f"e{n}": sorted(matcher.match(event)) for n, event in enumerate(events)}
    kept = {f"e{n}": event["i"] for n, event in enumerate(events)}
    return found, expected, kept


def test_every_output(said):
    found, expected, kept = said
    assert sorted((row["event_id"], row["subscription"]) for row in found["pairs"]) == sorted(
        (name, one) for name, ones in expected.items() for one in ones
    )
    assert {row["event_id"]: row["subscriptions"] for row in found["lists"]} == expected
    assert {row["event_id"]: row["count"] for row in found["counts"]} == {
        name: len(ones) for name, ones in expected.items()
    }
    for row in [*found["pairs"], *found["lists"], *found["counts"]]:
        assert row["i"] == kept[row["event_id"]]


def test_what_cannot_be_used(said):
    found, _, _ = said
    letters = {(letter["source"], letter["id"]): letter for letter in found["letters"]}
    assert set(letters) == {("subscriptions", "typo"), ("events", None), ("events", "bad")}
    typo = letters["subscriptions", "typo"]
    assert (typo["line"], typo["column"], typo["value"]) == (1, 1, "ii > 0")
    assert letters["events", None]["reason"] == "the event has no id"
    assert "lies outside the domain enum('sell', 'buy')" in letters["events", "bad"]["reason"]
    assert "EventError: " in found["failure"]


def test_the_plan(said):
    found, _, _ = said
    assert "72 rows: 71 usable, 1 bad" in found["plan"]
    assert "71 subscriptions" in found["plan"]


KERNELS = """
from pathlib import Path
from unittest.mock import patch

from tamis.engines.preparation import batch_preparation
from tamis.kernels import kernel_cache
from tamis.spark.compile import sent_code

NAME, ARCHIVE = "sent.kernel", "kernels-of-the-test.zip"


def look(batches):
    import pyarrow as pa

    from tamis.kernels import kernel_cache
    from tamis.spark.compile import sent_code

    rows = sum(batch.num_rows for batch in batches)
    usual, sent_code.archive_name = sent_code.archive_name, lambda: ARCHIVE
    sent_code.take_code()
    sent_code.archive_name = usual  # the worker has other tasks
    found = kernel_cache.read(NAME) or b"nothing"
    yield pa.RecordBatch.from_pydict({"rows": [rows], "found": [found.decode()]})


def main(spark, given):
    def seen():
        frame = spark.range(4).repartition(2).mapInArrow(look, "rows long, found string")
        return sorted({row.found for row in frame.collect()})

    before, folder = seen(), Path(given)
    with (
        patch.object(sent_code, "_shares_files", lambda _: False),  # as if on other machines
        patch.object(sent_code, "archive_name", lambda: ARCHIVE),
        patch.object(kernel_cache, "_PLACES", (lambda: folder,)),
        patch.object(batch_preparation, "wait", lambda: None),
    ):
        kernel_cache.write(NAME, b"code", folder / kernel_cache.content_key())
        sent_code.send_code(spark)
    return [before, seen()]
"""


def test_workers_take_the_kernels_of_the_driver(connect, tmp_path):
    found, _ = connect.run(KERNELS, str(tmp_path))
    assert found == [["nothing"], ["code"]]
