"""A log on a real disk: what is appended is read again, before and after it is sealed."""

import json
from pathlib import Path
from random import Random

import pytest

from tamis import Matcher, Schema
from tamis.broker.log import active_file
from tamis.broker.log.disk import LocalDisk
from tamis.broker.log.file_limits import LogOptions
from tamis.broker.log.frames import NewRecord
from tamis.broker.log.topic_log import Expired, TopicLog
from tamis.broker.records import Record
from tamis.broker.simulation.simulated_disk import SimulatedDisk

SCHEMA = Schema(
    {"symbol": "string", "price": "double", "n": "int", "at": "timestamp", "place.city": "string"}
)
SMALL = LogOptions(segment_events=100)
SECOND = 1_000_000


def event(n, **more):
    return {"symbol": "AB"[n % 2], "price": n / 2, "n": n, "place": {"city": f"c{n}"}, **more}


def records(first, end, **more):
    return [
        NewRecord(n * SECOND, f"id{n}", b"", json.dumps(event(n, **more)).encode())
        for n in range(first, end)
    ]


def publish(log, first, end, step=10):
    for n in range(first, end, step):
        log.append(records(n, min(end, n + step)))
        log.sync()


def everything(log, **limits):
    found, at = [], 0
    while True:
        chunk = log.read(at, **limits)
        if not len(chunk.offsets):
            return found
        found += chunk.records
        at = chunk.next_offset


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "topics" / "quotes"


def opened(folder, schema=SCHEMA, options=SMALL, **more):
    return TopicLog.open(LocalDisk(), folder, schema, options=options, **more)


def test_what_is_appended_is_read_in_its_order(folder):
    log = opened(folder)
    assert log.append(records(0, 3)) == 0
    assert log.append(records(3, 4)) == 3
    assert (log.first_offset, log.synced_offset, log.next_offset) == (0, 0, 4)
    assert everything(log) == []  # it is not safe yet
    log.sync()
    assert everything(log) == [Record(n, *one) for n, one in enumerate(records(0, 4))]
    assert log.read(4).next_offset == 4


def test_a_chunk_has_columns_for_matching(folder):
    log = opened(folder)
    publish(log, 0, 350)
    matcher = Matcher(SCHEMA)
    matcher.subscribe("alice", "symbol = 'B' AND price < 10 AND place.city <> 'c3'")
    for is_sealed in (False, True):
        if is_sealed:
            assert log.seal_if_due()
        chunk = log.read(0, most_events=50)
        pairs = matcher.match_batch(chunk.table, event_id="_offset")
        assert pairs["event_id"].to_pylist() == [1, 5, 7, 9, 11, 13, 15, 17, 19]
        assert [one.id for one in chunk.take([1, 5])] == ["id1", "id5"]
        assert (len(chunk.offsets), chunk.next_offset) == (50, 50)


def test_limits_of_a_chunk(folder):
    log = opened(folder)
    publish(log, 0, 120)
    for _ in range(2):
        assert len(log.read(5, most_events=7).offsets) == 7
        assert len(log.read(5, most_bytes=1).offsets) == 1
        few = log.read(0, most_bytes=300)
        assert 1 < len(few.offsets) < 10
        assert [one.offset for one in everything(log, most_events=9)] == list(range(120))
        log.seal_if_due()


def test_files_are_sealed_and_the_log_is_the_same(folder):
    log = opened(folder)
    publish(log, 0, 350)
    before = everything(log)
    while log.seal_if_due():
        pass
    assert sorted(path.name[:41] for path in folder.glob("*.parquet")) == [
        f"{n:020d}-{n + 100:020d}" for n in (0, 100, 200)
    ]
    assert len(list(folder.glob("*.frames"))) == 1
    assert everything(log) == before
    log.close()
    again = opened(folder)
    assert again.damage == []
    assert everything(again) == before
    assert again.append(records(350, 351)) == 350


def test_old_small_files_are_sealed_when_they_are_old(folder):
    log = opened(folder)
    publish(log, 0, 20)
    assert not log.seal_if_due()
    assert not log.seal_if_due(now=SECOND)
    assert log.seal_if_due(now=4000 * SECOND)
    assert len(everything(log)) == 20


def test_many_restarts_do_not_leave_many_files(folder):
    for n in range(20):
        log = opened(folder)
        publish(log, n, n + 1)
        log.seal_if_due()
        log.close()
    assert len(list(folder.glob("*.frames"))) < 10
    assert [one.offset for one in everything(opened(folder))] == list(range(20))


def test_ids_are_found_wherever_they_are(folder):
    log = opened(folder)
    publish(log, 0, 250)
    ids = ["id0", "id99", "id100", "id249", "id250", ""]
    found = {"id0": 0, "id99": 99, "id100": 100, "id249": 249}
    assert log.find_ids(ids) == found
    log.seal_if_due()
    assert log.find_ids(ids) == found
    again = opened(folder)
    assert again.find_ids(ids) == found
    again.append(records(250, 251))
    assert again.find_ids(["id250"]) == {"id250": 250}
    next(folder.glob("*.ids")).unlink()  # they are made again from the segment
    assert opened(folder).find_ids(ids) == found | {"id250": 250}


def test_times_lead_to_offsets(folder):
    log = opened(folder)
    publish(log, 0, 250)
    for _ in range(2):
        assert log.offset_at(0) == 0
        assert log.offset_at(42 * SECOND) == 42
        assert log.offset_at(42 * SECOND + 1) == 43
        assert log.offset_at(240 * SECOND) == 240
        assert log.offset_at(250 * SECOND) == 250
        log.seal_if_due()


def test_the_first_of_many_records_of_one_time(folder, monkeypatch):
    monkeypatch.setattr(active_file, "INDEX_STEP", 1)  # an entry for each frame
    log = opened(folder)
    for n in range(60):
        log.append([NewRecord(n // 20 * SECOND, f"id{n}", b"", json.dumps(event(n)).encode())])
        log.sync()
    for time, offset in ((0, 0), (1, 20), (2, 40)):
        assert log.offset_at(time * SECOND) == offset
        assert log.offset_at(time * SECOND - 1) == offset
    assert log.offset_at(2 * SECOND + 1) == 60


def test_whole_files_expire(folder):
    log = opened(folder)
    publish(log, 0, 350)
    while log.seal_if_due():
        pass
    assert log.expire(350 * SECOND, max_events=300) == Expired(0, 0, 0)
    gone = log.expire(350 * SECOND, max_events=250)
    assert (gone.events, gone.first_offset) == (100, 100)
    gone = log.expire(350 * SECOND, max_age=150)
    assert (gone.events, gone.first_offset) == (100, 200)
    assert [one.offset for one in everything(log)] == list(range(200, 350))
    assert log.find_ids(["id99", "id150", "id200"]) == {"id200": 200}
    again = opened(folder)
    assert (again.first_offset, again.damage) == (200, [])
    assert again.expire(10_000 * SECOND, max_age=1).first_offset == 350
    assert (again.next_offset, everything(again)) == (350, [])
    assert [path.name for path in Path(folder).iterdir() if path.suffix == ".ids"] == []
    assert opened(folder).append(records(0, 1)) == 350


def test_a_steady_flow_is_kept_in_parts_that_expire(folder):
    log = opened(folder, options=LogOptions())
    for n in range(400):
        publish(log, n, n + 1)
        log.seal_if_due(n * SECOND)
        log.expire(n * SECOND, max_age=100)
        assert log.first_offset >= n - 170
        assert log.first_offset <= max(0, n - 100)
    assert [one.offset for one in everything(log)] == list(range(log.first_offset, 400))


def test_bytes_expire(folder):
    log = opened(folder)
    publish(log, 0, 350)
    while log.seal_if_due():
        pass
    most = log.size // 2
    assert log.expire(0, max_bytes=most).bytes > 0
    assert log.size >= most


def test_a_wider_schema_is_for_new_events(folder):
    narrow = Schema({"n": "int"})
    log = opened(folder, narrow)
    log.append(records(0, 2))
    log.widen(SCHEMA)
    log.append(records(2, 4))
    log.sync()
    first = log.read(0)
    assert first.table.column_names == ["_offset", "n"]
    names = ["_offset", "symbol", "price", "n", "at", "place"]
    assert log.read(first.next_offset).table.column_names == names
    assert log.seal_if_due()
    assert log.read(0).table.column_names == ["_offset", "n"]
    assert len(everything(opened(folder))) == 4


def test_a_file_that_stayed_empty_on_a_full_disk_is_replaced():
    disk, folder = SimulatedDisk(Random(1)), Path("/topics/quotes")  # noqa: S311 - to be repeated
    log = TopicLog.open(disk, folder, Schema({"n": "int"}), options=SMALL)
    disk.capacity = 120  # the beginning of a file fits
    with pytest.raises(OSError, match="no space left"):
        log.append(records(0, 5))
    assert (log.next_offset, log.synced_offset) == (0, 0)
    disk.capacity = None
    log.seal_if_due(now=4000 * SECOND)  # which leaves the empty file alone
    log.expire(4000 * SECOND, max_age=1)
    assert disk.names(folder) == ["00000000000000000000.frames"]
    log.widen(SCHEMA)
    publish(log, 0, 120)
    while log.seal_if_due(now=4000 * SECOND):
        pass
    again = TopicLog.open(disk, folder, SCHEMA)
    assert [one.offset for one in everything(again)] == list(range(120))


def test_an_attribute_may_have_the_name_of_a_column(folder):
    log = opened(folder, Schema({"_Offset": "int", "id": "string"}))
    log.append([NewRecord(0, "a", b"", b'{"_Offset": 7, "id": "x"}')])
    log.sync()
    row = {"__offset": 0, "_Offset": 7, "id": "x"}
    assert log.read(0).table.to_pylist() == [row]
    log.seal_if_due(now=4000 * SECOND)
    assert log.read(0).table.to_pylist() == [row]


def test_offsets_that_somebody_has_seen_are_not_given_again(folder):
    publish(opened(folder), 0, 10)
    next(folder.glob("*.frames")).unlink()
    (folder / "synced.mark").unlink()
    log = opened(folder, least_next_offset=10)
    assert [(one.first, one.end) for one in log.damage] == [(0, 10)]
    assert log.append(records(10, 11)) == 10


def test_a_log_that_is_removed_is_empty(folder):
    log = opened(folder)
    publish(log, 0, 10)
    log.remove()
    assert list(folder.iterdir()) == []
