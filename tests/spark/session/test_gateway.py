"""What a JVM says while it starts, and what becomes of the environment."""

import os

from tamis.spark.session import gateway


def test_what_a_jvm_says_is_held_back_until_it_runs(capfd):
    relay = gateway._Relay()
    end = os.dup(relay.entrance)  # as the JVM has one
    os.write(end, b"before\n")
    assert capfd.readouterr().err == ""
    relay.release()
    os.write(end, b"WARNING: Using incubator modules: jdk.incubator.vector\n[Stage 0:>\r")
    os.close(end)
    relay._thread.join()
    assert capfd.readouterr().err == "before\n[Stage 0:>\r"


def test_what_a_jvm_said_that_did_not_start_is_the_reason(capfd):
    relay = gateway._Relay()
    os.write(relay.entrance, b"Error: no heap\n\tat Main.main\n")
    said = relay.finish()
    assert gateway._why(RuntimeError("gone"), said).endswith("its last words:\n  Error: no heap")
    assert gateway._why(RuntimeError("gone"), "").endswith("  gone")
    assert capfd.readouterr().err == ""


def test_variables_are_for_the_jvm_and_yield_to_the_users(monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.1")
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    with gateway._variables({"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DRIVER_MEMORY": "1g"}):
        assert os.environ["SPARK_LOCAL_IP"] == "10.0.0.1"
        assert os.environ["SPARK_DRIVER_MEMORY"] == "1g"
        assert "SPARK_REMOTE" not in os.environ
    assert "SPARK_DRIVER_MEMORY" not in os.environ
    assert os.environ["SPARK_REMOTE"] == "sc://host"
