"""A loaded process takes the place of Spark's daemon; Spark and what is loaded are not started."""

import json
import os
import socket
import subprocess
import sys

import pytest

from tamis.spark import loaded_process

SERVER = """
import json, os, signal, sys, types
from tamis.spark import worker_daemon

def manager():
    said = [sys.argv, os.getcwd(), os.environ.get("HERE"), "added" in sys.path, sys.stdin.read()]
    os.write(1, json.dumps(said).encode() + b"\\n")
    if "waits" in sys.argv:
        signal.pause()
    sys.exit(3)

worker_daemon.load = lambda: None
sys.modules["pyspark.daemon"] = types.SimpleNamespace(manager=manager)
worker_daemon.main()
"""
DAEMON = """
import os, sys
from tamis.spark.loaded_process import ADDRESS, became_daemon

sys.path.append("added")
print(became_daemon(), ADDRESS in os.environ)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A loaded process, and its address."""
    address = str(tmp_path_factory.mktemp("s") / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, loaded_process.LOADED, str(listener.fileno())],
            stdin=subprocess.PIPE, pass_fds=[listener.fileno()],
            env=os.environ | {loaded_process.THREADS: "1"},
        )  # fmt: skip
    yield process, address
    process.kill()
    process.wait()
    process.stdin.close()


def daemon(address, folder, *arguments, threads="1"):
    """A process as Spark starts it."""
    return subprocess.Popen(
        [sys.executable, "-c", DAEMON, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
        env=os.environ
        | {loaded_process.ADDRESS: address, loaded_process.THREADS: threads, "HERE": "yes"},
    )  # fmt: skip


def test_a_loaded_process_becomes_the_daemon_with_its_streams_and_settings(server, tmp_path):
    said, _ = daemon(server[1], tmp_path, "pyspark.worker").communicate("from Spark")
    found, answer = said.splitlines()
    expected = [["-c", "pyspark.worker"], str(tmp_path), "yes", True, "from Spark"]
    assert json.loads(found) == expected
    assert answer == "True False"  # and ends with it; workers do not see the address


def test_ending_the_process_that_spark_started_ends_the_daemon(server, tmp_path):
    with daemon(server[1], tmp_path, "waits") as started:
        started.stdin.close()
        assert "waits" in started.stdout.readline()
        started.terminate()
        assert started.stdout.read() == "True False\n"


def test_a_daemon_loads_by_itself_where_libraries_would_load_otherwise(server, tmp_path):
    said, _ = daemon(server[1], tmp_path, threads="7").communicate("")
    assert said == "False False\n"


def test_a_daemon_loads_by_itself_where_nobody_answers(monkeypatch, tmp_path):
    monkeypatch.delenv(loaded_process.ADDRESS, raising=False)
    assert not loaded_process.became_daemon()
    monkeypatch.setenv(loaded_process.ADDRESS, str(tmp_path / "nobody"))
    assert not loaded_process.became_daemon()


def test_the_loaded_process_ends_with_the_driver(server):
    process, _ = server
    process.stdin.close()
    assert process.wait() == 0
