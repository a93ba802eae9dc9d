import io
import json
import os

import pytest

from cases import each
from tamis.cli import main
from tamis.cli.event_files import batches_of, batches_of_input
from tamis.errors import FileError

ROWS = [{"symbol": "IBM", "price": 9.5}, {"symbol": "Dell", "price": 20.0}]

XML = "".join(
    f"<event><symbol>{row['symbol']}</symbol><price>{row['price']}</price></event>" for row in ROWS
)


def published(broker):
    return [event for _, event in broker.events["quotes"]]


@each(
    ("name", "content"),
    [
        ("events.jsonl", "\ufeff" + "\n\n".join(map(json.dumps, ROWS))),
        ("events.json", json.dumps(ROWS)),
        ("events.csv", "symbol,price\nIBM,9.5\nDell,20\n"),
        ("events.xml", f"<r>{XML}</r>"),
    ],
)
def test_files(name, content, broker, put, capsys):
    broker.events["quotes"] = []
    assert main(["publish", "quotes", str(put(name, content))]) == 0
    assert capsys.readouterr().out == "2 events accepted\n"
    assert published(broker) == ROWS


def test_json_tells_the_offset(broker, put, capsys):
    path = put("events.jsonl", "\n".join(map(json.dumps, ROWS)))
    assert main(["publish", "quotes", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"accepted": 2, "offset": 1, "refused": []}
    assert len(published(broker)) == 2


def test_refused_events_are_shown_and_the_others_published(broker, put, capsys):
    path = put("events.jsonl", '{"price": 1.0}\n\nnonsense\n{"price": 2.0}\n[]')
    assert main(["publish", "quotes", str(path)]) == 1
    output = capsys.readouterr()
    assert output.out == "2 events accepted\n"
    assert output.err.splitlines() == [
        "event 2: it is not a JSON object",
        "event 4: it is not a JSON object",
        "tamis publish: 2 of 4 events refused",
    ]
    assert len(published(broker)) == 2


def test_rows_that_cannot_be_read_are_told_with_those_that_are_refused(broker, put, capsys):
    path = put("events.csv", "symbol,price\nIBM,cheap\nDell,20\n")
    assert main(["publish", "quotes", str(path), "--json"]) == 1
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (first["accepted"], [one["row"] for one in first["refused"]]) == (1, [0])
    assert "cheap" in first["refused"][0]["reason"]
    assert published(broker) == ROWS[1:]


def test_nothing_but_refused_events(broker, put, capsys):
    assert main(["publish", "quotes", str(put("events.jsonl", "nonsense"))]) == 1
    assert capsys.readouterr().out == "0 events accepted\n"
    assert published(broker) == []


def test_standard_input_is_published_as_it_comes(broker, monkeypatch, capsys):
    reading, writing = os.pipe()
    os.write(writing, b'{"price": 1.0}\n{"pri')
    os.write(writing, b'ce": 2.0}')
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert main(["publish", "quotes", "-"]) == 0
    assert capsys.readouterr().out == "2 events accepted\n"
    assert [event["price"] for event in published(broker)] == [1.0, 2.0]


def test_what_has_come_does_not_wait_for_more():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as file, os.fdopen(writing, "wb", buffering=0) as other:
        batches = batches_of_input(file)
        other.write(b'{"a": 1}\n{"a"')
        assert next(batches).events == [b'{"a": 1}']
        other.write(b": 2}\n")
        assert next(batches) == ([b'{"a": 2}'], [1], ())


def test_a_file_that_is_not_there():
    with pytest.raises(FileError, match="does not exist"):
        next(batches_of("nowhere.jsonl", {"a": "int"}))
