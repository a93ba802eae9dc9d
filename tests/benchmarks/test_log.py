"""The benchmark of logs runs, and every way reads all events."""

import sys

import pytest

import log


@pytest.mark.long
def test_it_runs(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(log, "BATCHES", (10, 100))
    monkeypatch.setattr(log, "MOST_SYNCS", 2)
    monkeypatch.setattr(
        sys, "argv", ["log.py", "--events", "500", "--rounds", "1", "--folder", str(tmp_path)]
    )
    log.main()
    printed = capsys.readouterr().out
    for way in ("frames, JSON decoded", "Parquet", "Arrow, zstd", "SQLite, JSON decoded"):
        assert f"| {way} |" in printed
