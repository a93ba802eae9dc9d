"""Appending, syncing, sealing, expiring and reading at the same time."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tamis import Schema
from tamis.broker.log.disk import LocalDisk
from tamis.broker.log.file_limits import LogOptions
from tamis.broker.log.frames import NewRecord
from tamis.broker.log.topic_log import TopicLog

SCHEMA = Schema({"n": "int"})
EVENTS = 1000


@pytest.mark.long
def test_threads_do_not_disturb_each_other(tmp_path):
    log = TopicLog.open(LocalDisk(), tmp_path, SCHEMA, options=LogOptions(segment_events=100))

    def publish():
        for n in range(0, EVENTS, 10):
            new = [
                NewRecord(k, f"id{k}", b"", json.dumps({"n": k}).encode()) for k in range(n, n + 10)
            ]
            log.append(new)
            log.sync(n + 10)

    def seal():
        while log.synced_offset < EVENTS:
            log.seal_if_due()

    def read():
        at = 0
        while at < EVENTS:
            chunk = log.read(at, most_events=70)
            assert chunk.offsets.tolist() == list(range(at, chunk.next_offset))
            if len(chunk.offsets):
                assert chunk.table.column("n").to_pylist() == chunk.offsets.tolist()
            assert [one.offset for one in chunk.records] == chunk.offsets.tolist()
            at = chunk.next_offset

    def look_up():
        while (end := log.synced_offset) < EVENTS:
            ids = [f"id{n}" for n in range(0, end, 97)]
            assert log.find_ids(ids) == {name: int(name[2:]) for name in ids}

    with ThreadPoolExecutor(5) as pool:
        running = [pool.submit(work) for work in (publish, seal, read, read, look_up)]
        for one in running:
            one.result()
    assert log.expire(0, max_events=300).first_offset <= EVENTS - 300
    assert log.damage == []
