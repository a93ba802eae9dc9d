"""The columns of matches that were asked for, and subscriptions that come from elsewhere."""

import json

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tamis import OptionError, TamisError
from tamis.spark import MatchJob
from tamis.spark.batch.output_folder import write_job
from tamis.spark.files.readers import read_events

pytestmark = pytest.mark.spark

RULES = pd.DataFrame(
    {
        "id": ["ann", "bob", "ann", "ann"],
        "filter": ["price < 5", "price < 100", "price < 10", "prise < 1"],
        "at": [1, 1, 2, 3],
        "owner": ["o1", "o2", "o3", "o4"],
    }
)


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_rules_of_pandas_keep_their_columns_and_ids_their_name(spark):
    events = spark.createDataFrame([(1, 7.0), (2, 70.0)], "nr int, price double")
    job = MatchJob(
        events, RULES, "nr", keep=["price"], keep_rules=["owner"], keep_id_name=True, order="at"
    )
    assert job.matches is job.matches
    assert job.matches.columns == ["nr", "subscription", "price", "owner"]
    assert rows(job.matches) == [
        (1, "ann", 7.0, "o3"),
        (1, "bob", 7.0, "o2"),
        (2, "bob", 70.0, "o2"),
    ]
    sharded = MatchJob(events, RULES, "nr", keep_rules=["owner"], shards=2, order="at")
    assert rows(sharded.matches) == [(1, "ann", "o3"), (1, "bob", "o2"), (2, "bob", "o2")]
    sharded.release()
    for settings, message in (
        ({"keep_rules": ["ower"]}, "no column 'ower'; did you mean 'owner'"),
        ({"keep_rules": ["owner"], "output": "counts"}, "use 'pairs'"),
        (
            {"keep": ["price"], "keep_rules": ["id", "price"]},
            "would have two columns named 'price'",
        ),
    ):
        with pytest.raises(OptionError, match=message):
            MatchJob(events, RULES, "nr", **settings)
    with pytest.raises(OptionError, match="must be a Spark DataFrame, not int"):
        MatchJob(events, 5, "nr")


def test_workers_write_ids_under_their_name(spark, tmp_path):
    events = spark.createDataFrame([(1, 7.0), (2, 70.0)], "nr int, price double")
    for place, settings in (("whole", {}), ("sharded", {"shards": 2}), ("lists", {})):
        output = place if place == "lists" else "pairs"
        job = MatchJob(
            events, RULES, "nr", keep_id_name=True, order="at", output=output, **settings
        )
        counts = job.write(str(tmp_path / place), "parquet")
        assert (counts.events, counts.matches) == (2, 3)
        table = pq.read_table(tmp_path / place / "matches").sort_by("nr")
        assert table.column_names[0] == "nr"
        assert table["nr"].to_pylist() == ([1, 2] if place == "lists" else [1, 1, 2])
        assert not list((tmp_path / place).rglob("*.snappy.parquet"))  # as Spark names its files
        job.release()
    nothing = MatchJob(events.where("nr > 5"), RULES, "nr", keep_id_name=True, order="at")
    nothing.write(str(tmp_path / "nothing"), "parquet")
    assert pq.read_table(tmp_path / "nothing/matches").column_names == ["nr", "subscription"]


def test_times_may_be_texts_if_the_schema_says_so(spark):
    events = spark.createDataFrame(
        [(1, "2024-05-01"), (2, "2024-01-01T10:00:00Z"), (3, "soon"), (4, None)],
        "id int, at string",
    )
    rules = pd.DataFrame({"id": ["late"], "filter": ["at >= TIMESTAMP '2024-03-01'"]})
    job = MatchJob(events, rules, schema={"at": "timestamp"})
    assert rows(job.matches) == [(1, "late")]
    (letter,) = job.bad_events().collect()
    assert letter.id == "3"
    assert "at" in letter.reason


def test_ids_that_come_again_and_too_many_bad_rows(spark, tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text('{"id": 1, "price": 5}\n[]\n{"id": 1, "price": 6}\n', encoding="utf-8")
    job = MatchJob(read_events(spark, path), RULES, order="at")
    out = str(tmp_path / "out")
    with pytest.raises(TamisError, match="subscriptions: 1 of 4 rows cannot be used") as caught:
        write_job(job, out, max_bad="1%")
    assert "unknown attribute 'prise'" in str(caught.value)
    with pytest.raises(
        TamisError, match="events: 1 of 3 rows cannot be used, and at most 30%"
    ) as c:
        write_job(job, out, max_bad="30%")
    assert "it is an empty array: []" in str(c.value)
    assert not (tmp_path / "out").exists()
    summary = write_job(job, out, "csv", max_bad="40%")
    assert (summary.events, summary.bad_events, summary.duplicate_ids) == (3, 1, 1)
    texts = [file.read_text() for file in (tmp_path / "out/matches").glob("*.csv")]
    assert texts[0].startswith("event_id,subscription\n1,")
    assert json.loads((tmp_path / "out/summary.json").read_text())["ran_on"] == "spark"
