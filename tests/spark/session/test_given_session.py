"""What happens to a session that the user has started."""

import sys
from types import SimpleNamespace

import pytest

from tamis.errors import TamisError
from tamis.spark.session.given_session import prepare


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


def session(master="local[2]", python="python3", settings=(), context="running"):
    conf = SimpleNamespace(contains=lambda name: name in settings)
    found = SimpleNamespace(
        master=master, pythonExec=python, getConf=lambda: conf,
        _jsc=None if context == "stopped" else object(),
    )  # fmt: skip
    return SimpleNamespace(_sc=found)


def python_of(given):
    prepare(given)
    return given._sc.pythonExec


def test_workers_on_this_machine_run_the_python_of_the_driver():
    assert python_of(session()) == sys.executable
    assert python_of(session("local-cluster[2,1,1024]")) == sys.executable


def test_what_was_chosen_stays(monkeypatch):
    assert python_of(session(python="/opt/python")) == "/opt/python"
    assert python_of(session(settings=["spark.pyspark.python"])) == "python3"
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    assert python_of(session()) == "python3"


def test_other_machines_have_a_python_of_their_own():
    assert python_of(session("spark://host:7077")) == "python3"
    assert python_of(session("yarn")) == "python3"


def test_a_session_that_was_stopped_is_refused():
    with pytest.raises(TamisError, match="the Spark session was stopped"):
        prepare(session(context="stopped"))


def test_a_client_of_a_server_has_nothing_to_prepare():
    prepare(SimpleNamespace())
