"""Segments are Parquet files that others read."""

import json

import duckdb
import pandas as pd
import pyarrow.parquet as pq

from tamis import Schema
from tamis.broker.log import segment_writer
from tamis.broker.log.active_file import ActiveFile
from tamis.broker.log.disk import LocalDisk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.file_limits import LogOptions
from tamis.broker.log.frames import NewRecord
from tamis.broker.log.sealed_segment import RowGroups, SealedSegment
from tamis.broker.log.topic_log import TopicLog

SCHEMA = Schema({"symbol": "string", "price": "double", "at": "timestamp", "place.city": "string"})


def sealed(folder, count):
    log = TopicLog.open(LocalDisk(), folder, SCHEMA, options=LogOptions(segment_events=count))
    event = {"price": 1.5, "at": "2024-01-31T12:30:00Z", "place": {"city": "Rome"}}
    log.append(
        [
            NewRecord(n, f"id{n}", b"{}", json.dumps({"symbol": f"s{n}", **event}).encode())
            for n in range(count)
        ]
    )
    log.sync()
    assert log.seal_if_due()
    return log, str(next(folder.glob("*.parquet")))


def test_other_readers_read_a_segment(tmp_path):
    _, path = sealed(tmp_path, 10)
    frame = pd.read_parquet(path)
    assert list(frame["_offset"]) == list(range(10))
    assert frame["at"][0] == pd.Timestamp("2024-01-31T12:30:00Z")
    rows = duckdb.read_parquet(path).filter("_offset >= 8").select("symbol", "place.city")
    assert rows.fetchall() == [("s8", "Rome"), ("s9", "Rome")]
    assert json.loads(frame["_body"][3])["symbol"] == "s3"


def test_a_segment_has_row_groups_and_is_read_one_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(segment_writer, "GROUP_EVENTS", 4)
    log, path = sealed(tmp_path, 10)
    assert pq.read_metadata(path).num_row_groups == 3
    assert [log.read(n).offsets.tolist() for n in (0, 5, 8)] == [[0, 1, 2, 3], [5, 6, 7], [8, 9]]
    assert log.read(9).records[0].id == "id9"


def test_a_file_that_only_says_what_does_not_count_is_sealed(tmp_path):
    disk = LocalDisk()
    file = ActiveFile.begin(disk, tmp_path, 1, 0, EventDecoder(SCHEMA))
    path = segment_writer.seal(disk, tmp_path, [file], 0, 1)
    segment = SealedSegment(disk, path, RowGroups(1000))
    assert (segment.first, segment.end, segment.events) == (0, 1, 0)
