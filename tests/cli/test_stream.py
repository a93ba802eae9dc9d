"""``tamis stream`` from its arguments to its folder, with the session of the suite."""

import json
import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from tamis.cli import main, stream
from tamis.spark.stream import query

pytestmark = pytest.mark.spark

LINE = re.compile(
    r"batch (\d+): (\d+) events?, (\d+) match(?:es)? in \d+\.\d s \(.*\), version (\d+)(.*)"
)


class Place:
    """Folders of changes and events, and what the command makes of them."""

    def __init__(self, folder, capsys):
        self.folder = folder
        self.capsys = capsys
        self.out = folder / "out"
        self.time = 1_700_000_000
        for name in ("changes", "events"):
            (folder / name).mkdir()
        self.put("changes/1.jsonl", {"id": "cheap", "filter": "price < 10"})

    def put(self, name, *rows):
        text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
        (self.folder / name).write_text(text, encoding="utf-8")
        self.time += 1  # by which Spark orders files
        os.utime(self.folder / name, (self.time, self.time))

    def call(self, *options, changes="changes", events="events"):
        paths = [str(self.folder / changes), str(self.folder / events), "--out", str(self.out)]
        code = main(["stream", *paths, *options])
        return code, self.capsys.readouterr()

    def run(self, *options):
        """The lines of a run over all that is there."""
        code, output = self.call("--once", *options)
        assert output.err == ""
        assert code == 0
        return output.out.splitlines()

    def fail(self, *options, **paths):
        code, output = self.call(*options, **paths)
        assert code == 1
        assert output.out == ""
        assert output.err.startswith("tamis stream: ")
        assert "Traceback" not in output.err
        return output.err.removeprefix("tamis stream: ").removesuffix("\n")

    def rows(self, kind, batch):
        rows = pq.ParquetDataset(self.out / kind / f"batch={batch}").read().to_pylist()
        return sorted(tuple(row.values())[:4] for row in rows)

    def letters(self, batch):
        files = (self.out / f"dead_letters/batch={batch}").glob("*.json")
        lines = "".join(file.read_text(encoding="utf-8") for file in files).splitlines()
        return sorted(map(json.loads, lines), key=lambda letter: letter["row"])

    def matches(self):
        """The matches by their micro-batch."""
        found = [int(path.name[6:]) for path in (self.out / "matches").glob("batch=*")]
        return {batch: [row[:2] for row in self.rows("matches", batch)] for batch in sorted(found)}


@pytest.fixture
def place(spark, tmp_path, capsys):
    assert spark is not None
    return Place(tmp_path, capsys)


def test_a_stream_goes_on_where_it_was(place):
    place.put("events/a.jsonl", {"id": 1, "price": 5, "at": "2024-01-01T00:00:00Z"})
    place.put("events/b.jsonl", {"id": 2, "price": 50}, "no JSON\n", {"price": 5})
    page = place.folder / "report.html"
    lines = place.run("--max-files", "1", "--report", str(page))
    assert "Throughput: events per second" in page.read_text(encoding="utf-8")
    found = [LINE.fullmatch(line).groups() for line in lines]
    assert sorted(found) == [("0", "1", "1", "1", ""), ("1", "3", "0", "1", ", 2 bad events")]
    assert place.matches() == {0: [(1, "cheap")], 1: []}
    assert [letter["reason"] for letter in place.letters(1)] == [
        "the row cannot be read, it is not valid JSON (expecting value at character 1): no JSON",
        "the event has no id",
    ]
    assert (place.folder / "out-checkpoint").is_dir()

    # Changes count for what comes later; a bad one changes nothing.
    place.put("changes/2.csv", "id,filter,op\ndear,price > 10,\ncheap,prise < 3,\n,TRUE,\n")
    place.put("events/c.jsonl", {"id": 3, "price": 5, "at": "2024-01-01T00:00:00Z"})
    (line,) = place.run("--json", "--event-time", "at")
    told = json.loads(line)
    assert {name: told[name] for name in ("batch", "version", "events", "matches", "bad")} == {
        "batch": 2, "version": 2, "events": 1, "matches": 1, "bad": 0,
    }  # fmt: skip
    assert told["lag"] > 0
    assert place.matches()[2] == [(3, "cheap")]
    assert {letter.get("id") for letter in place.letters(2)} == {"cheap", None}

    before = sorted(place.out.rglob("*"))
    assert place.run() == ["nothing new to match"]
    assert place.run("--json") == []
    other = str(place.folder / "other")
    message = place.fail("--once", "--checkpoint", other)
    assert "out has the matches of another checkpoint; name another folder" in message
    assert sorted(place.out.rglob("*")) == before
    place.out.rename(place.folder / "elsewhere")
    message = place.fail("--once")
    assert "events were matched before with this checkpoint, but" in message
    assert not place.out.exists()


def test_forms_of_matches_and_types_of_text(place):
    (place.folder / "changes/1.jsonl").unlink()
    place.put("changes/1.csv", "id,filter\n1,zip = '01234'\n2,price < 10\n")
    place.put("events/a.csv", "n,zip,price\nx,01234,5\ny,00000,cheap\n")
    place.run(
        "--schema", "zip:string,price:double", "--event-id", "n", "--keep", "zip",
        "--output", "lists", "--format", "json", "--max-bytes", "1m",
    )  # fmt: skip
    (file,) = (place.out / "matches/batch=0").glob("*.json")
    row = {"event_id": "x", "subscriptions": [1, 2], "zip": "01234"}
    assert json.loads(file.read_text(encoding="utf-8")) == row
    files = (place.out / "dead_letters/batch=0").glob("*.json")
    assert "y,00000,cheap" in "".join(file.read_text(encoding="utf-8") for file in files)


def test_places_that_cannot_be_used(place):
    place.put("events/a.jsonl", {"id": 1, "price": 5})
    place.put("file", "mine")
    for name in ("empty", "text", "names"):
        (place.folder / name).mkdir()
    place.put("text/1.txt", "id,filter\n")
    place.put("names/1.csv", "name,filter\na,TRUE\n")
    before = sorted(place.folder.rglob("*"))
    cases = [
        ({"events": "nowhere"}, "nowhere does not exist"),
        ({"changes": "nowhere"}, "nowhere does not exist; CHANGES is a folder, or table:NAME"),
        ({"changes": "file"}, "file is not a folder; move the file to a folder of changes"),
    ]
    for paths, message in cases:
        assert message in place.fail("--once", **paths)
    out = place.out
    place.out = place.folder / "file"
    assert "file exists and is not a folder" in place.fail("--once")
    place.out = place.folder / "file/out"
    assert "file is not a folder" in place.fail("--once")
    place.out = out
    for options, message in [
        (["--event-id", "no"], "the events have no column 'no'"),
        (["--event-time", "no"], "event_time: the events have no column 'no'"),
        (["--keep", "no"], "keep: the events have no column 'no'"),
        (["--schema", "price"], "expected NAME:TYPE, got 'price'"),
    ]:
        assert message in place.fail("--once", *options)
    assert sorted(place.folder.rglob("*")) == before  # nothing was begun

    place.out = place.folder / "events"
    assert "events exists and is not empty; name another folder" in place.fail("--once")
    place.out = out
    assert "Error parsing 'now' to interval" in place.fail("--every", "now")
    # What fails in a micro-batch is mended, and the same command given again.
    assert "1.txt has an unknown format" in place.fail("--once", changes="text")
    assert "the changes have no column 'id'" in place.fail("--once", changes="names")
    place.run()
    assert place.matches() == {0: [(1, "cheap")]}


def test_a_stream_begins_before_the_first_event(place, monkeypatch):
    assert place.run() == ["nothing new to match"]
    assert place.run("--json") == []
    assert not place.out.exists()
    looks = []

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 2:
            place.put("events/a.jsonl", {"id": 1, "price": 5})

    monkeypatch.setattr(stream, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(query, "AVAILABLE_NOW", None)  # so that the query ends
    code, output = place.call()
    assert code == 0
    assert output.err.splitlines() == [f"waiting for the first file in {place.folder / 'events'}"]
    assert len(looks) == 2
    assert place.matches() == {0: [(1, "cheap")]}


def test_events_get_another_field(place, caplog):
    place.put("events/a.jsonl", {"id": 1, "price": 5.5, "at": {"city": "Bonn"}})
    place.run()
    # The files of today have only whole numbers, and not all fields: those of before are known.
    (place.folder / "events/a.jsonl").unlink()
    place.put("events/b.jsonl", {"id": 2, "size": 3})
    place.put("events/c.jsonl", {"id": 3, "price": 5, "at": {"city": "Bonn", "zip": "53111"}})
    place.run()
    assert "columns that are not attributes: at.zip (string), size (int); each of" in caplog.text
    place.put("changes/2.jsonl", {"id": "big", "filter": "size > 2 AND at.zip IS NULL"})
    place.put("events/d.jsonl", {"id": 4, "size": 3})
    place.run()
    place.put("events/e.jsonl", {"id": 5, "size": 3, "old": True, "price": 5.5})
    place.run("--schema", "old:bool")
    assert "new attributes: old (bool)" in caplog.text
    assert place.matches() == {
        0: [(1, "cheap")], 1: [(3, "cheap")], 2: [(4, "big")], 3: [(5, "big"), (5, "cheap")],
    }  # fmt: skip


def test_bad_events_fail_on_demand_and_leave_no_matches(place):
    place.put("events/a.jsonl", {"id": 1, "price": 5}, "no JSON\n")
    message = place.fail("--once", "--on-bad", "fail")
    assert "the row cannot be read, it is not valid JSON" in message
    assert "\n" not in message
    message = place.fail("--once", "--max-bad", "20%")
    assert (
        "micro-batch 0, events: 1 of 2 rows cannot be used, and at most 20% may be bad" in message
    )
    assert place.matches() == {}


@pytest.mark.parametrize(
    ("options", "trigger"),
    [([], None), (["--once"], "available now"), (["--every", "10 seconds"], "10 seconds")],
)
def test_the_pace(place, monkeypatch, options, trigger):
    asked = {}

    def start(_events, _changes, _out, **settings):
        asked.update(settings)
        return SimpleNamespace(awaitTermination=lambda: None, recentProgress=[])

    monkeypatch.setattr(query, "match_stream", start)
    place.put("events/a.jsonl", {"id": 1, "price": 5})
    code, output = place.call("--checkpoint", "somewhere", *options)
    assert (code, output.err) == (0, "")
    assert (asked["trigger"], asked["checkpoint"]) == (trigger, "somewhere")


def test_an_interrupted_process_ends_in_few_words_and_goes_on_later(place):
    place.put("events/a.jsonl", {"id": 1, "price": 5})
    command = [sys.executable, "-m", "tamis", "stream", "changes", "events", "--out", "out"]
    with subprocess.Popen(
        [*command, "--master", "local[1]"], cwd=place.folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate()
    assert LINE.fullmatch(line.rstrip("\n")).groups()[:2] == ("0", "1")
    assert (rest, errors) == ("", "run the same command again to continue from here\ninterrupted\n")
    assert process.returncode == 130
    place.put("events/b.jsonl", {"id": 2, "price": 5})
    place.run()
    assert place.matches() == {0: [(1, "cheap")], 1: [(2, "cheap")]}
