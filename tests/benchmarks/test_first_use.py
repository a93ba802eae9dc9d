"""The benchmark of first use: every part is measured, and tables show all rounds."""

import sys
import tempfile

import pytest

import first_use
from tamis.kernels import kernel_cache


def test_an_answer_is_measured_in_its_parts():
    found = first_use.answer("naive", 0.002)
    assert list(found)[-1] == "together, s"
    assert all(seconds > 0 for seconds in found.values())


def test_tables_have_the_median_and_the_limits(capsys):
    first_use.table("engine", {"sliced": [{"s": 1.0}, {"s": 4.0}, {"s": 2.0}]})
    assert "| sliced | 2.00 (1.00 to 4.00) |" in capsys.readouterr().out


def test_where_nothing_is_compiled_nothing_of_other_processes_is_found(monkeypatch, tmp_path):
    for name, value in first_use.only_kept_in(tmp_path / "kernels").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", None)  # asks the environment again
    for place in (kernel_cache._user_folder, kernel_cache._temporary_folder):
        assert place().is_relative_to(tmp_path / "kernels")


@pytest.mark.long
def test_answers_come_from_processes_of_their_own(monkeypatch, capsys):
    monkeypatch.setattr(first_use, "ENGINES", ("naive",))
    command = ["first_use.py", "answers", "--rounds", "1", "--scale", "0.002"]
    monkeypatch.setattr(sys, "argv", command)
    first_use.main()
    out = capsys.readouterr().out
    assert "naive, nothing compiled" in out
    assert "naive, compiled before" in out


@pytest.mark.spark
def test_jobs_of_a_session(spark, monkeypatch, tmp_path):
    monkeypatch.setattr("tamis.spark.spark_session", lambda **_: spark)
    found = first_use.session(str(tmp_path), 0, 30, 12)
    assert set(found) == {"session"} | {
        f"{job}, {part}" for job in first_use.JOBS for part in ("compiling", "matching")
    }
