import json
import signal
import subprocess
import sys

import pytest

from tamis.cli import main

EVENTS = [(str(n), {"symbol": "IBM", "price": float(n)}) for n in range(20)]


def test_events_are_lines(broker, capsys):
    broker.events["quotes"] = list(EVENTS)
    assert main(["subscribe", "quotes", "price < 3", "--from-start", "--count", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["price"] for line in lines] == [0.0, 1.0]
    assert broker.subscriptions == {}


def test_json_tells_the_offset_too(broker, capsys):
    broker.events["quotes"] = list(EVENTS)
    assert main(["subscribe", "quotes", "--from", "4", "--count", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "offset": 4, "event": EVENTS[4][1], "redelivered": False, "id": "4",
        "time": "2025-01-01T00:00:00Z",
    }  # fmt: skip


def test_a_durable_subscription_goes_on_where_it_was(broker, capsys):
    broker.events["quotes"] = list(EVENTS)
    command = ["subscribe", "quotes", "--durable", "mine", "--count", "2"]
    assert main([*command, "price > 3", "--from-start"]) == 0
    assert main(command) == 0  # with the filter that it has
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["price"] for line in lines] == [4.0, 5.0, 6.0, 7.0]
    assert main(["subscribe", "quotes", "--durable", "mine", "--delete"]) == 0
    assert broker.subscriptions == {}


def test_a_bad_filter(broker, capsys):
    del broker
    assert main(["subscribe", "quotes", "prise < 3"]) == 1
    assert "unknown attribute 'prise'; did you mean 'price'?" in capsys.readouterr().err


def test_a_value_cannot_command_a_terminal(broker, capsys, monkeypatch):
    broker.events["quotes"] = [("a", {"symbol": "\x9b31m ü"})]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["subscribe", "quotes", "--from-start", "--count", "1"]) == 0
    assert capsys.readouterr().out == '{"symbol": "\\u009b31m ü"}\n'


@pytest.fixture
def started():
    """Start `tamis subscribe quotes`; what still runs at the end is killed."""
    processes = []

    def start(*arguments):
        command = [sys.executable, "-m", "tamis", "subscribe", "quotes", *arguments]
        pipe = subprocess.PIPE
        processes.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_an_interruption_and_a_reader_that_went(broker, started):
    broker.events["quotes"] = list(EVENTS)
    stopped = started("--from-start", "--durable", "mine")
    left = started("--from-start")
    for _ in EVENTS:
        assert json.loads(stopped.stdout.readline())["symbol"] == "IBM"
    while broker.acknowledged.get() < len(EVENTS):
        pass
    stopped.send_signal(signal.SIGINT)
    _, errors = stopped.communicate()
    assert (stopped.returncode, errors) == (130, "interrupted\n")
    left.stdout.readline()
    left.stdout.close()  # no event comes any more, and yet it ends
    assert left.wait() == 1
    assert left.stderr.read() == ""
