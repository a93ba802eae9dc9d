"""Files that were changed, cut off or removed: it is said, and what is intact is served."""

import copy
import json
import os
from pathlib import Path
from random import Random

import pytest

from cases import each
from tamis import Schema
from tamis.broker.log.file_limits import LogOptions
from tamis.broker.log.frames import NewRecord
from tamis.broker.log.topic_log import TopicLog
from tamis.broker.simulation.simulated_disk import SimulatedDisk

FOLDER = Path("/topics/quotes")
SCHEMA = Schema({"n": "int", "symbol": "string"})
STEP = int(os.environ.get("TAMIS_LOG_STEP", "61"))  # one byte in this many is changed


def opened(disk, options=None):
    return TopicLog.open(disk, FOLDER, SCHEMA, options=options or LogOptions())


def record(n):
    return NewRecord(n, f"id{n}", b"", json.dumps({"n": n, "symbol": "ABC"[n % 3]}).encode())


def everything(log):
    found, at = {}, 0
    while True:
        chunk = log.read(at)
        if not len(chunk.offsets):
            return found
        columns = chunk.table.column("n").to_pylist()
        for one, n in zip(chunk.records, columns, strict=True):
            assert (json.loads(one.body)["n"], one.id) == (n, f"id{n}")
            found[one.offset] = n
        at = chunk.next_offset


@pytest.fixture(scope="module")
def healthy():
    """A log with each kind of file: two segments, two files of frames, both marks."""
    disk = SimulatedDisk(Random(1))  # noqa: S311 - to be repeated
    log = opened(disk, LogOptions(segment_events=20))
    for n in range(0, 75, 5):
        log.append([record(k) for k in range(n, n + 5)])
        log.sync()
    while log.seal_if_due():
        pass
    log.expire(0, max_events=40)
    log.close()
    log = opened(disk)
    log.append([record(k) for k in range(75, 80)])
    log.append([record(80)])
    log.close()
    assert sorted(path.suffix for path in files(disk)) == [
        ".frames", ".frames", ".ids", ".ids", ".mark", ".mark", ".parquet", ".parquet",
    ]  # fmt: skip
    assert everything(log) == {n: n for n in range(20, 81)}
    return disk


def files(disk):
    return sorted(FOLDER / name for name in disk.names(FOLDER))


def look(disk, what):
    """Open a damaged log: it says what is lost, and serves the rest."""
    log = opened(disk)
    found = everything(log)
    ids = log.find_ids([f"id{n}" for n in range(90)])
    lost = {offset for one in log.damage for offset in range(one.first, one.end)}
    assert all(offset == n for offset, n in found.items()), what
    assert set(range(20, 81)) - found.keys() <= lost, what
    assert not lost & found.keys(), what
    assert ids == {f"id{n}": n for n in found}, what
    assert log.append([record(81)]) == 81, what
    log.sync()
    assert everything(opened(disk)) == {**found, 81: 81}, what
    return log.damage


@pytest.mark.long
def test_a_changed_bit_anywhere_is_found(healthy):
    random = Random(2)  # noqa: S311 - to be repeated
    for path in files(healthy):
        for position in range(random.randrange(STEP), healthy.size(path), STEP):
            disk = copy.deepcopy(healthy)
            disk.flip(path, position, random.randrange(8))
            assert look(disk, (path.name, position)), (path.name, position)


def test_a_file_that_was_cut_off_is_found(healthy):
    random = Random(3)  # noqa: S311 - to be repeated
    for path in files(healthy):
        size = healthy.size(path)
        for length in {0, 1, size - 1, *(random.randrange(size) for _ in range(3))}:
            disk = copy.deepcopy(healthy)
            disk.truncate(path, length)
            assert look(disk, (path.name, length)), (path.name, length)


def test_frames_that_were_cut_off_between_two_are_missed(healthy):
    last = files(healthy)[-3]
    assert last.suffix == ".frames"
    disk = copy.deepcopy(healthy)
    data = disk.read(last, 0, disk.size(last))
    disk.truncate(last, data.rindex(b"\xffTAMIS"))
    damage = look(disk, "between two frames")
    assert [str(one) for one in damage] == [f"{last.name}: it ends at offset 80; offset 80 is lost"]


def test_a_frame_that_was_cut_in_two_is_said(healthy):
    last = files(healthy)[-3]
    disk = copy.deepcopy(healthy)
    disk.truncate(last, disk.size(last) - 3)
    (damage,) = look(disk, "a part of a frame")
    assert "it ends at offset 80, and " in str(damage)
    assert "bytes after them are not a whole frame" in str(damage)


@each("suffix", [".frames", ".parquet"])
def test_a_file_that_was_removed_is_missed(healthy, suffix):
    for path in [one for one in files(healthy) if one.suffix == suffix]:
        disk = copy.deepcopy(healthy)
        disk.remove(path)
        assert sum(one.lost for one in look(disk, path.name)) > 0


def test_a_frame_in_the_middle_costs_only_its_events(healthy):
    path = next(one for one in files(healthy) if one.suffix == ".frames")
    disk = copy.deepcopy(healthy)
    data = disk.read(path, 0, disk.size(path))
    disk.flip(path, data.index(b'{"n": 66'), 3)
    damage = look(disk, "a frame in the middle")
    assert [str(one) for one in damage] == [
        f"{path.name}: a frame cannot be read; offsets 65 to 69 are lost"
    ]


def test_damaged_frames_are_put_aside_when_they_are_sealed(healthy):
    path = next(one for one in files(healthy) if one.suffix == ".frames")
    disk = copy.deepcopy(healthy)
    disk.flip(path, disk.size(path) // 2, 3)
    log = opened(disk)
    before = everything(log)
    assert log.seal_if_due(now=10**12)
    assert everything(log) == everything(opened(disk)) == before
    assert path.with_name(f"{path.name}.damaged") in files(disk)
