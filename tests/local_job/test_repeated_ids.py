"""Ids that come again are counted, in memory and in files."""

import pyarrow as pa

from tamis.local_job import repeated_ids
from tamis.local_job.repeated_ids import RepeatedIds


def test_ids_that_come_again_are_counted_in_files_too(monkeypatch):
    monkeypatch.setattr(repeated_ids, "IN_MEMORY", 50)
    for ids in (list(range(100)), [f"id {n}" for n in range(100)], [{"n": n} for n in range(100)]):
        found = RepeatedIds()
        for start in range(0, 100, 20):
            found.add(pa.array([*ids[start : start + 20], None]))
        found.add(pa.array(ids[:7]))
        assert found.count() == 7
