"""A catalogue in memory: what is committed stays, what fails may come back after a crash."""

import sqlite3
from random import Random

import pytest

from tamis.broker.peer_rows import PeerRow, peers, put_peer
from tamis.broker.simulation.simulated_catalogue import SimulatedCatalogue
from tamis.broker.simulation.simulated_disk import Stopped


def row(position):
    return PeerRow(1, "b2", position)


def test_what_is_committed_is_there_for_the_next_process():
    disk = SimulatedCatalogue(Random(1))  # noqa: S311 - to be repeated
    first = disk.open()
    first.commit([put_peer(row(3))])
    first.close()
    assert peers(disk.open(), 1) == [row(3)]


def test_a_commit_that_failed_may_be_found_after_a_crash_unless_another_one_was_made():
    found = set()
    for seed in range(20):
        disk = SimulatedCatalogue(Random(seed))  # noqa: S311 - to be repeated
        tables = disk.open()
        disk.failing = 1.0
        with pytest.raises(sqlite3.OperationalError):
            tables.commit([put_peer(row(3))])
        assert peers(tables, 1) == []
        disk.failing = 0.0
        found |= {one.position for one in peers(disk.open(), 1)} or {None}
        tables.commit([put_peer(row(5))])
        assert peers(disk.open(), 1) == [row(5)]
    assert found == {3, None}


def test_a_process_that_ends_in_a_commit_has_made_it_or_not():
    found = set()
    for seed in range(20):
        disk = SimulatedCatalogue(Random(seed))  # noqa: S311 - to be repeated
        tables = disk.open()
        disk.stop_after = 2
        tables.commit([put_peer(row(1))])
        with pytest.raises(Stopped):
            tables.commit([put_peer(row(2))])
        found |= {one.position for one in peers(disk.open(), 1)}
    assert found == {1, 2}
