import json

import pytest

from cases import each
from tamis.cli import main


def test_a_topic_is_made_and_shown(broker, capsys):
    assert main(["topic", "create", "other", "symbol:string,n:int(1, 5)", "--max-age", "7d"]) == 0
    assert broker.topics["other"]["schema"] == {"symbol": "string", "n": "int(1, 5)"}
    assert broker.topics["other"]["retention"] == {"max_age": 604800.0}
    assert capsys.readouterr().out == (
        "other  (symbol string, n int(1, 5))  0 events, 0 durable subscriptions\n"
    )
    assert main(["topic", "list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["quotes", "other"]
    assert main(["topic", "show", "quotes"]) == 0
    assert "attributes     symbol string, price double\n" in capsys.readouterr().out
    assert main(["topic", "show", "quotes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "quotes"


def test_the_broker_reads_a_schema_of_one_line(broker):
    text = "symbol string, kind enum('a:b')"
    assert main(["topic", "create", "other", text]) == 0
    assert broker.topics["other"]["schema"] == text


def test_a_topic_is_deleted(broker, capsys):
    assert main(["topic", "delete", "quotes"]) == 0
    assert capsys.readouterr().out == "quotes deleted\n"
    assert broker.topics == {}


def test_an_unknown_topic_is_an_error(broker, capsys):
    del broker
    assert main(["topic", "show", "nope"]) == 1
    assert capsys.readouterr().err == "tamis topic: there is no topic 'nope'\n"


def test_no_broker_is_an_error(capsys):
    assert main(["topic", "list", "--url", "http://127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == (
        "tamis topic: no broker answers at http://127.0.0.1:1; start one with `tamis serve`\n"
    )


@each(
    "arguments",
    [
        ["topic"],
        ["topic", "create", "x"],
        ["topic", "create", "x", "a int", "--max-age", "long"],
        ["topic", "create", "x", "a int", "--max-age", "0s"],
        ["publish", "x"],
        ["subscribe"],
        ["subscribe", "x", "--count", "0"],
        ["subscribe", "x", "--from-start", "--from", "3"],
        ["subscribe", "x", "--delete"],
    ],
)
def test_misuse(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
