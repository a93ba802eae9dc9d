"""A topic's log as a DataFrame: segments and the newest events, on a running or stopped broker."""

import json

import pytest

from tamis import FileError, Schema
from tamis.broker.log.disk import LocalDisk
from tamis.broker.log.file_limits import LogOptions
from tamis.broker.log.frames import NewRecord
from tamis.broker.log.topic_log import TopicLog
from tamis.spark import match, read_topic

SCHEMA = Schema({"id": "string", "price": "double", "at": "timestamp", "place.city": "string"})
WIDER = SCHEMA.with_attributes({"volume": "int"})


def records(first, end):
    return [
        NewRecord(n * 1_000_000, f"id{n}", b"", json.dumps(event(n)).encode())
        for n in range(first, end)
    ]


def event(n):
    return {
        "id": f"e{n}", "price": n / 2, "volume": n, "at": "2024-01-31T12:30:00Z",
        "place": {"city": "AB"[n % 2]},
    }  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The data folder of a broker: a segment, a wider one, and newer events."""
    data = tmp_path_factory.mktemp("data")
    options = LogOptions(segment_events=20)
    log = TopicLog.open(LocalDisk(), data / "topics" / "quotes", SCHEMA, options=options)
    log.append(records(0, 20))
    log.widen(WIDER)
    log.append(records(20, 40))
    log.append(records(40, 45))
    log.sync()
    while log.seal_if_due():
        pass
    log.append(records(45, 46))  # not safe yet
    return data


def test_a_topic_is_a_table(spark, data):
    frame = read_topic(spark, data, "quotes")
    assert frame.columns == [
        "_offset", "_time", "_id", "_headers", "_body", "id", "price", "at", "place", "volume",
    ]  # fmt: skip
    rows = {row["_offset"]: row for row in frame.collect()}
    assert sorted(rows) == list(range(45))
    for n in (0, 19, 20, 39, 40, 44):
        row = rows[n]
        assert (row["id"], row["price"], row["place"]["city"]) == (f"e{n}", n / 2, "AB"[n % 2])
        assert row["volume"] == (n if n >= 20 else None)
        assert json.loads(row["_body"]) == event(n)
        assert (row["_id"], row["_time"].second) == (f"id{n}", n)
        assert row["at"].minute == 30


def test_a_topic_is_matched(spark, data):
    rules = spark.createDataFrame(
        [("a", "price < 1"), ("b", "volume >= 44 AND place.city = 'A'")], "id string, filter string"
    )
    found = match(read_topic(spark, data, "quotes"), rules, event_id="_offset").collect()
    assert sorted(tuple(row) for row in found) == [(0, "a"), (1, "a"), (44, "b")]


def test_a_topic_without_events(spark, tmp_path):
    TopicLog.open(LocalDisk(), tmp_path / "topics" / "quiet", SCHEMA).close()
    assert read_topic(spark, tmp_path, "quiet").count() == 0


def test_a_topic_that_is_not_there(spark, tmp_path):
    with pytest.raises(FileError, match="there is no such folder"):
        read_topic(spark, tmp_path, "nothing")


def test_arrays_maps_and_decimals_of_a_topic(spark, tmp_path):
    schema = Schema(
        {"tags": "array<string>", "props": "map<string, int>", "total": "decimal(20, 2)",
         "seen": "array<timestamp>"}
    )  # fmt: skip
    options = LogOptions(segment_events=3)
    log = TopicLog.open(LocalDisk(), tmp_path / "topics" / "orders", schema, options=options)
    bodies = [
        b'{"tags": ["red", null], "props": {"k": 1}, "total": 123456789012345678.10}',
        b'{"tags": [], "props": {}, "seen": ["2024-01-31 12:00:00"]}',
        b'{"total": "0.30", "props": {"k": null}}',
        b'{"tags": ["blue"], "total": 7}',
    ]
    log.append([NewRecord(n, f"id{n}", b"", body) for n, body in enumerate(bodies)])
    log.sync()
    while log.seal_if_due():  # three are in a segment, the last one is not
        pass
    frame = read_topic(spark, tmp_path, "orders")
    rows = sorted(frame.collect(), key=lambda row: row["_offset"])
    assert [row["tags"] for row in rows] == [["red", None], [], None, ["blue"]]
    assert [row["props"] for row in rows] == [{"k": 1}, {}, {"k": None}, None]
    assert [str(row["total"]) for row in rows] == ["123456789012345678.10", "None", "0.30", "7.00"]
    assert rows[1]["seen"][0].hour == 12
    filters = [
        ("a", "array_contains(tags, 'red') AND props['k'] = 1"), ("b", "total * 10 = 3"),
        ("c", "size(tags) = 0 AND year(seen[0]) = 2024"), ("d", "NOT array_contains(tags, 'red')"),
        ("e", "total = 123456789012345678.1"),
    ]  # fmt: skip
    rules = spark.createDataFrame(filters, "id string, filter string")
    found = match(frame, rules, event_id="_offset").collect()
    expected = [(0, "a"), (0, "e"), (1, "c"), (1, "d"), (2, "b"), (3, "d")]
    assert sorted(tuple(row) for row in found) == expected
