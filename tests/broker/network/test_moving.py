"""A subscriber that moves between processes which are killed, and the same by hand."""

import asyncio
import json
import os

import pytest

import tamis
from broker_process import BrokerProcess, quiet_ports
from moving_subscriber import MovingTrial
from tamis.cli import main
from tamis.errors import Conflict, OptionError

SECONDS = float(os.environ.get("TAMIS_CHAOS", "3"))


@pytest.mark.long
def test_a_subscriber_that_moves_misses_nothing_while_brokers_are_killed(tmp_path):
    trial = MovingTrial(tmp_path, seed=16)
    asyncio.run(trial.run(SECONDS))
    assert trial.problems() == []
    assert trial.moves
    assert trial.kills


@pytest.fixture
def two(tmp_path):
    ports = quiet_ports(2)
    first = BrokerProcess(tmp_path / "b1", "--name", "b1", "--listen", f"127.0.0.1:{ports[0]}")
    more = [
        "--name",
        "b2",
        "--listen",
        f"127.0.0.1:{ports[1]}",
        "--peer",
        f"b1=127.0.0.1:{ports[0]}",
    ]
    last = BrokerProcess(tmp_path / "b2", *more)
    first.spawn()
    last.spawn()
    try:
        first.wait()
        last.wait()
        yield first, last
    finally:
        first.kill()
        last.kill()


def test_clients_and_the_command_move_a_subscription(two, capsys, monkeypatch):
    with tamis.connect(two[0].url) as first, tamis.connect(two[1].url) as last:
        first.topics.create("quotes", {"number": "int"})
        while "quotes" not in [topic["name"] for topic in last.topics()]:
            pass
        first.subscribe("quotes", "number < 100", durable="cheap").close()
        first.publish_many("quotes", [{"number": n} for n in range(6)])
        with pytest.raises(OptionError, match="move_from needs"):
            last.subscribe("quotes", move_from="b1")
        with pytest.raises(Conflict, match="has no subscription 'dear'"):
            last.subscribe("quotes", durable="dear", move_from="b1")
        with last.subscribe("quotes", durable="cheap", move_from="b1", manual_ack=True) as some:
            assert some.filter == "number < 100"
            taken = some.take(6)
            assert [(one.offset, one.event["number"]) for one in taken] == [
                (n - 6, n) for n in range(6)
            ]
            taken[1].ack()
        first.publish("quotes", {"number": 6})
        monkeypatch.setenv("TAMIS_URL", two[0].url)
        arguments = ["subscribe", "quotes", "--durable", "cheap", "--move-from", "b2"]
        assert main([*arguments, "--count", "5"]) == 0
        shown = [json.loads(line)["number"] for line in capsys.readouterr().out.splitlines()]
        assert shown == [2, 3, 4, 5, 6]
        with pytest.raises(SystemExit):
            main(["subscribe", "quotes", "--move-from", "b2"])
        assert "--move-from needs --durable NAME" in capsys.readouterr().err
