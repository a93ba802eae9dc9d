"""The session of a command, without Spark."""

import argparse

import pytest
from pyspark.errors import AnalysisException

from tamis.cli.session import add_spark, command_session
from tamis.errors import FileError
from tamis.spark.session import session


def options_of(*arguments, is_json=False):
    parser = argparse.ArgumentParser()
    add_spark(parser)
    options = parser.parse_args(arguments)
    options.json, options.log_level = is_json, None
    return options


class Session:
    """A session that records how it was requested, and that it was stopped."""

    def __init__(self):
        self.asked = None
        self.is_stopped = False

    def stop(self):
        self.is_stopped = True


@pytest.fixture
def started(monkeypatch):
    """The session that is started when none is running."""
    made = Session()

    def start(name, **settings):
        made.asked = (name, settings["master"], settings["conf"])
        return made

    monkeypatch.setattr(session, "running_session", lambda: None)
    monkeypatch.setattr(session, "spark_session", start)
    return made


def test_master_and_settings(started):
    options = options_of("--master", "local[2]", "--conf", "a.b = x=y ", "--conf", "c=")
    with command_session(options, "match") as spark:
        assert spark is started
        assert not started.is_stopped
    assert started.asked == (
        "tamis match",
        "local[2]",
        {"a.b": " x=y ", "c": "", "spark.ui.showConsoleProgress": "false"},
    )
    assert started.is_stopped


@pytest.mark.parametrize(
    ("is_terminal", "is_json", "arguments", "shown"),
    [
        (True, False, [], "true"),
        (True, True, [], "false"),
        (False, False, [], "false"),
        (False, True, ["--conf", "spark.ui.showConsoleProgress=true"], "true"),
    ],
)
def test_a_bar_on_a_terminal_only(started, monkeypatch, is_terminal, is_json, arguments, shown):
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    with command_session(options_of(*arguments, is_json=is_json), "match"):
        pass
    assert started.asked[2] == {"spark.ui.showConsoleProgress": shown}


def test_a_session_that_was_there_before_stays(started, monkeypatch):
    monkeypatch.setattr(session, "running_session", lambda: started)
    with command_session(options_of(), "match") as spark:
        assert spark is started
    assert not started.is_stopped


def test_failures_of_spark_are_ours_and_end_the_session(started):
    text = "[PATH_NOT_FOUND] Path does not exist: file:/data/e.csv. SQLSTATE: 42K03"
    with pytest.raises(FileError) as caught, command_session(options_of(), "match"):
        raise AnalysisException(text)
    assert str(caught.value) == "/data/e.csv does not exist"
    assert started.is_stopped


@pytest.mark.parametrize("text", ["spark.x", "=1", " = 1", ""])
def test_a_setting_is_a_key_and_a_value(text, capsys):
    with pytest.raises(SystemExit) as caught:
        options_of("--conf", text)
    assert caught.value.code == 2
    assert f"argument --conf: expected KEY=VALUE, got {text!r}" in capsys.readouterr().err
