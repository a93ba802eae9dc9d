"""Hashes of ids lead to their offsets."""

import numpy as np

from tamis.broker.log import event_ids
from tamis.broker.log.event_ids import IdRun, RecentIds, hashes_of


def run_of(first, names):
    return IdRun.of(first, hashes_of(names), np.arange(first, first + len(names)))


def test_a_run_finds_what_it_has():
    names = [f"id{n}" for n in range(1000)]
    run = run_of(50, names)
    found = dict(run.candidates(hashes_of(["id0", "nothing", "id999"])))
    assert (found[0], found[2]) == (50, 1049)
    again = IdRun.decode(run.encode())
    assert dict(again.candidates(hashes_of(names))) == {n: n + 50 for n in range(1000)}
    assert dict(run_of(0, []).candidates(hashes_of(["a"]))) == {}
    assert len(IdRun.decode(run_of(0, []).encode())) == 0


def test_a_repeated_hash_has_all_its_offsets():
    run = IdRun.of(0, hashes_of(["a", "b", "a"]), np.array([3, 4, 9]))
    assert sorted(run.candidates(hashes_of(["a"]))) == [(0, 3), (0, 9)]


def test_a_damaged_run_is_not_a_run():
    data = bytearray(run_of(0, ["a", "b"]).encode())
    for position in range(len(data)):
        damaged = bytes([*data[:position], data[position] ^ 4, *data[position + 1 :]])
        assert IdRun.decode(damaged) is None
    assert IdRun.decode(b"") is None
    assert IdRun.decode(bytes(data[:-1])) is None


def test_recent_ids_become_runs_that_are_merged(monkeypatch):
    monkeypatch.setattr(event_ids, "MOST_LATEST", 10)
    recent = RecentIds()
    for first in range(0, 2000, 5):
        recent.add(first, [f"id{n}" for n in range(first, first + 5)])
    assert len(recent.runs()) <= event_ids.MOST_RUNS
    offsets = [recent.latest(f"id{n}") for n in range(2000)]
    hashes = hashes_of([f"id{n}" for n in range(2000)])
    for run in recent.runs():
        for number, offset in run.candidates(hashes):
            offsets[number] = offset
    assert offsets == list(range(2000))
    recent.keep_between(500, 600)
    assert sum(len(run) for run in recent.runs()) == 100
    assert recent.latest("id1999") is None
