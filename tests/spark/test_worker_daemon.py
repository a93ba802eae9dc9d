"""Spark's daemon with everything loaded; Spark itself is not started."""

import gc
import sys
from types import SimpleNamespace

import pytest

from tamis.spark import worker_daemon
from tamis.spark.session import settings

DAEMON = "spark.python.daemon.module"


@pytest.fixture
def started(monkeypatch):
    """What happened before the daemon served, in its order."""
    seen = []
    daemon = SimpleNamespace(manager=lambda: seen.append("serves"))
    monkeypatch.setitem(sys.modules, "pyspark.daemon", daemon)
    monkeypatch.setenv(worker_daemon.OF_FRAMES, "1")
    monkeypatch.setattr(gc, "freeze", lambda: seen.append("freezes"))
    monkeypatch.setattr(
        worker_daemon, "load", lambda: seen.append("loads") or sys.stdout.write("noise\n")
    )
    return seen


def test_a_daemon_of_workers_loads_before_it_serves(started, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["worker_daemon", "pyspark.worker"])
    worker_daemon.main()
    assert started == ["loads", "freezes", "serves"]
    assert capsys.readouterr() == ("", "noise\n")  # Spark reads a port from the other


def test_other_daemons_load_nothing(started, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["worker_daemon", "pyspark.sql.worker.create_data_source"])
    worker_daemon.main()
    monkeypatch.setattr(sys, "argv", ["worker_daemon", "pyspark.worker"])
    monkeypatch.delenv(worker_daemon.OF_FRAMES)  # workers of RDDs
    worker_daemon.main()
    assert started == ["serves", "serves"]


def test_a_daemon_that_cannot_load_serves_all_the_same(started, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["worker_daemon", "pyspark.worker"])
    monkeypatch.setattr(worker_daemon, "load", lambda: 1 / 0)
    worker_daemon.main()
    assert started == ["freezes", "serves"]
    assert "workers will start slowly: division by zero" in capsys.readouterr().err


def test_only_sessions_of_this_machine_have_it(monkeypatch):
    home = str(settings.Path(settings.__file__).parents[3])
    monkeypatch.setenv("PYTHONPATH", home)
    assert settings.context_defaults("local[2]")[DAEMON] == worker_daemon.__name__
    assert DAEMON not in settings.context_defaults("spark://host:7077")

    def none(_):
        raise settings.metadata.PackageNotFoundError

    monkeypatch.setattr(settings.metadata, "version", none)
    assert settings.workers_find_tamis()
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    assert not settings.workers_find_tamis()  # Spark's own daemon does not need tamis
    assert DAEMON not in settings.context_defaults("local[2]")


def test_what_it_loads_is_there():
    worker_daemon.load()
    assert all(name in sys.modules for name in worker_daemon.MODULES)
