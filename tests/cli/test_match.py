"""``tamis match`` from its arguments to its folder.

What both jobs share is tested with ``--local``; tests/local_job/test_agreement.py compares them.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.cli import main

SUBSCRIPTIONS = [("ann", "price < 10"), ("bob", "company IN ('IBM', 'Dell')")]
EVENTS = [(7, "IBM", 5.0), (8, "Dell", 20.5), (9, "Acer", 5.0)]
PAIRS = [(7, "ann"), (7, "bob"), (8, "bob"), (9, "ann")]


def write_records(path, records, tag):
    """Records of one form, in the format that the extension says."""
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(records), path)
            return
        case ".json":
            text = json.dumps(records)
        case ".jsonl":
            text = "".join(json.dumps(record) + "\n" for record in records)
        case ".csv":
            rows = [records[0].keys(), *(record.values() for record in records)]
            text = "".join(",".join(f'"{field}"' for field in row) + "\n" for row in rows)
        case ".xml":
            text = "<all>"
            for record in records:
                fields = (f"<{k}>{str(v).replace('<', '&lt;')}</{k}>" for k, v in record.items())
                text += f"<{tag}>{''.join(fields)}</{tag}>"
            text += "</all>"
    path.write_text(text, encoding="utf-8")


class Place:
    """A folder with two files, and what the command makes of them."""

    def __init__(self, folder, capsys, *where):
        self.folder = folder
        self.capsys = capsys
        self.where = where
        self.out = folder / "out"
        self.use("parquet")

    def use(self, extension):
        """Have the usual subscriptions and events in another format."""
        self.subscriptions = self.folder / f"subscriptions.{extension}"
        self.events = self.folder / f"events.{extension}"
        rows = [{"id": name, "filter": text} for name, text in SUBSCRIPTIONS]
        write_records(self.subscriptions, rows, "subscription")
        rows = [{"id": n, "company": company, "price": price} for n, company, price in EVENTS]
        write_records(self.events, rows, "event")

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, dict):
            pq.write_table(pa.table(content), path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def call(self, *options):
        paths = [str(self.subscriptions), str(self.events)]
        code = main(["match", *paths, "--out", str(self.out), *self.where, *options])
        return code, self.capsys.readouterr()

    def run(self, *options):
        """The text of a run that succeeds; in a pipe nothing but it is shown."""
        code, output = self.call(*options)
        assert output.err == ""
        assert code == 0
        assert not [path for path in self.folder.iterdir() if path.name.startswith(".")]
        return output.out

    def fail(self, *options):
        """The message of a run that fails and leaves no files."""
        before = sorted(self.folder.rglob("*"))
        code, output = self.call(*options)
        assert code == 1
        assert output.out == ""
        assert output.err.startswith("tamis match: ")
        assert "Traceback" not in output.err
        assert sorted(self.folder.rglob("*")) == before
        return output.err.removeprefix("tamis match: ").removesuffix("\n")

    def matches(self):
        rows = pq.read_table(self.out / "matches").to_pylist()
        return sorted(tuple(row.values()) for row in rows)

    def summary(self):
        return json.loads((self.out / "summary.json").read_text(encoding="utf-8"))

    def letters(self):
        files = (self.out / "dead_letters").glob("*.json")
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        found = [json.loads(line) for line in lines]
        return sorted((one["source"], one.get("id", ""), one["reason"]) for one in found)


@pytest.fixture
def place(tmp_path, capsys):
    return Place(tmp_path, capsys, "--local")


@pytest.fixture
def on_spark(spark, tmp_path, capsys):
    assert spark is not None
    return Place(tmp_path, capsys)


# --- what comes out


def test_a_run_without_troubles(on_spark):
    text = on_spark.run()
    assert on_spark.matches() == PAIRS
    assert sorted(path.name for path in on_spark.out.iterdir()) == ["matches", "summary.json"]
    assert text.splitlines() == [
        "subscriptions      2",
        "events             3",
        "matches            4",
        "bad subscriptions  0",
        "bad events         0",
        "replaced           0",
        "duplicate ids      0",
        "semantics          sql",
        "output             pairs",
        "mode               whole",
        "ran on             Spark",
        f"out                {on_spark.out}",
    ]
    # An existing folder is kept, unless it is to be overwritten, whatever fails.
    assert "exists and is not empty; pass --overwrite to replace it" in on_spark.fail()
    on_spark.events = on_spark.write("e.parquet", "PAR1 nothing of use PAR1")
    assert "e.parquet cannot be read" in on_spark.fail("--overwrite")
    assert on_spark.matches() == PAIRS
    on_spark.events = on_spark.write("e.parquet", {"id": [1], "price": [1], "company": ["IBM"]})
    on_spark.run("--overwrite")
    assert on_spark.matches() == [(1, "ann"), (1, "bob")]


@pytest.mark.parametrize("extension", ["json", "jsonl", "csv", "xml"])
def test_every_format(place, extension):
    place.use(extension)
    answer = place.run("--json")
    assert place.matches() == PAIRS
    assert answer.count("\n") == 1
    assert json.loads(answer) == place.summary()
    counts = {name: place.summary()[name] for name in ("subscriptions", "events", "matches")}
    assert counts == {"subscriptions": 2, "events": 3, "matches": 4}


def test_folders_of_compressed_files_and_other_forms_of_matches(on_spark):
    on_spark.write("e/1.jsonl.gz", gzip.compress(b'{"n": "x", "id": 1, "price": 5}\n'))
    on_spark.write("e/2.jsonl.gz", gzip.compress(b'{"n": "y", "id": 2, "price": 50}\n'))
    on_spark.events = on_spark.folder / "e"
    on_spark.subscriptions = on_spark.write(
        "s.csv.gz", gzip.compress(b"id,filter\n1,price < 9\n2,TRUE\n")
    )
    on_spark.run("--event-id", "n", "--keep", "price", "--keep", "id", "--output", "lists")
    assert on_spark.matches() == [("x", [1, 2], 5, 1), ("y", [2], 50, 2)]
    assert on_spark.summary()["matches"] == 3
    on_spark.run("--output", "counts", "--format", "csv", "--overwrite")
    files = (on_spark.out / "matches").glob("*.csv")
    assert sorted(file.read_text(encoding="utf-8") for file in files) == [
        "event_id,count\n1,2\n", "event_id,count\n2,1\n",
    ]  # fmt: skip
    assert on_spark.summary()["matches"] == 3


def test_events_without_ids_are_numbered(on_spark):
    on_spark.events = on_spark.write("e.jsonl", '{"row": 7}\n{"x": 2}\n{"row": 0}\n')
    on_spark.subscriptions = on_spark.write("s.csv", "id,filter\na,row = 0\nb,row_ = 0\n")
    on_spark.run("--semantics", "default", "--defaults", '{"row": 0, "x": 0}')
    assert on_spark.matches() == [(1, "a"), (2, "a")]
    ((_, _, reason),) = on_spark.letters()
    assert "unknown attribute 'row_'" in reason  # the column of numbers is none
    assert on_spark.summary()["semantics"] == "default"


def test_shards_and_a_profile_find_the_same(on_spark):
    profile = on_spark.folder / "events.profile"
    assert main(["profile", str(on_spark.events), "--out", str(profile)]) == 0
    on_spark.capsys.readouterr()
    on_spark.run("--shards", "2", "--profile", str(profile))
    assert on_spark.matches() == PAIRS
    assert on_spark.summary()["mode"] == "sharded"
    assert [on_spark.summary()[name] for name in ("events", "matches", "bad_events")] == [3, 4, 0]


# --- schemas


def test_a_schema_decides_how_text_is_read(place):
    place.events = place.write(
        "e.csv", "id,zip,price,level\n1,01234,5,1\n2,01234,x,1\n3,00000,5,9\n4,01234,,1\n"
    )
    place.subscriptions = place.write("s.csv", "id,filter\na,zip = '01234' AND price < 9\n")
    schema = place.write(
        "schema.json", '{"zip": "string", "price": "double", "level": "int(1, 5)"}'
    )
    place.run("--schema", str(schema))
    assert place.matches() == [(1, "a")]
    (second, third) = place.letters()
    assert second[:2] == ("events", "2")
    assert second[2] == (
        "the row cannot be read, column price is 'x', expected double: 2,01234,x,1"
    )
    assert third == ("events", "3", "attribute level: 9 (int) lies outside the domain int(1, 5)")


def test_no_events_are_not_a_failure_if_the_schema_is_known(place):
    place.events = place.write("e.csv", "id,company,price\n")
    place.run("--schema", "company:string,price:double", "--semantics", "total")
    assert place.matches() == []
    assert place.summary()["events"] == 0


# --- rows that cannot be used


BAD_SUBSCRIPTIONS = """\
id,filter,at
ann,price < 10,2
bob,prise < 10,1
,price < 10,1
ann,price > 10,1
eve,,1
"""


def test_bad_rows_become_dead_letters(on_spark):
    on_spark.subscriptions = on_spark.write("s.csv", BAD_SUBSCRIPTIONS)
    on_spark.events = on_spark.write(
        "e.jsonl", '{"id": 1, "price": 5}\nno JSON\n{"price": 5}\n{"id": 2, "price": 50}\n'
    )
    text = on_spark.run("--order", "at")
    assert on_spark.matches() == [(1, "ann")]
    counted = {name: count for name, count in on_spark.summary().items() if type(count) is int}
    assert counted == {
        "subscriptions": 1, "events": 4, "matches": 1, "bad_subscriptions": 3, "bad_events": 2,
        "replaced": 1, "duplicate_ids": 0,
    }  # fmt: skip
    letters = on_spark.letters()
    assert [letter[:2] for letter in letters] == [
        ("events", ""),
        ("events", ""),
        ("subscriptions", ""),
        ("subscriptions", "bob"),
        ("subscriptions", "eve"),
    ]
    reasons = [reason.partition("\n")[0] for _, _, reason in letters]
    assert reasons == [
        "the event has no id",
        "the row cannot be read, it is not valid JSON (expecting value at character 1): no JSON",
        "the id is null",
        "unknown attribute 'prise'; did you mean 'price'? (line 1, column 1)",
        "the filter is null",
    ]
    assert "5 rows cannot be used:" in text
    assert text.endswith(f"all of them: {on_spark.out / 'dead_letters'}\n")
    assert {letter["reason"] for letter in on_spark.summary()["letters"]} == {
        reason for _, _, reason in letters
    }


def test_bad_rows_fail_on_demand(place):
    fail = ["--on-bad", "fail"]
    place.events = place.write("e.jsonl", '{"id": 1, "price": 5}\nno JSON\n')
    place.subscriptions = place.write("s.csv", "id,filter\nann,price < 10\n")
    assert "the row cannot be read, it is not valid JSON" in place.fail(*fail)
    place.subscriptions = place.write("s.csv", BAD_SUBSCRIPTIONS)
    message = place.fail(*fail)
    assert message.startswith("subscriptions: 3 rows cannot be used:")
    assert "subscriptions, id bob: unknown attribute 'prise'; did you mean 'price'?" in message
    assert "such as 'ann'; make ids unique" in place.fail("--duplicates", "error")


# --- what cannot be used at all


def test_options_that_do_not_fit(place):
    cases = [
        (["--schema", "company"], "expected NAME:TYPE, got 'company'"),
        (["--schema", "price:money"], "has the unknown type 'money'"),
        (["--schema", "nowhere.json"], "No such file"),
        (["--schema", "price:string"], "column price is of type double, expected string"),
        (["--semantics", "default"], "needs defaults"),
        (["--semantics", "default", "--defaults", "{"], "--defaults is not valid JSON"),
        (["--semantics", "default", "--defaults", '{"price": 1}'], "defaults lack id, company"),
        (["--defaults", "{}"], "defaults belong to"),
        (["--event-id", "no"], "the events have no column 'no'"),
        (["--keep", "no"], "the events have no column 'no'"),
        (["--order", "no"], "the subscriptions need exactly one column 'no'"),
        (["--profile", "no"], "profile: no does not exist"),
        (["--profile", str(place.events)], "profile: "),
    ]
    for options, message in cases:
        assert message in place.fail(*options)


def most_of(path):
    """A file that was not copied completely."""
    return path.read_bytes()[:-1]


def test_events_that_cannot_be_used(on_spark):
    on_spark.write("mixed/a.csv", "id\n")
    on_spark.write("mixed/b.jsonl", "{}\n")
    on_spark.write("drift/a.parquet", {"id": [1], "price": [1.0]})
    on_spark.write("drift/b.parquet", {"id": [2], "price": ["cheap"]})
    (on_spark.folder / "empty").mkdir()
    on_spark.write("most.parquet", most_of(on_spark.events))
    on_spark.write("nothing.csv", "")
    on_spark.write("nothing.jsonl", "no JSON\n")
    on_spark.write("e.txt", "")
    cases = {
        "most.parquet": "most.parquet cannot be read: is not a Parquet file",
        "drift": "drift: column price is double in some files, such as ",
        "mixed": "mixed has files with several extensions (.csv, .jsonl)",
        "empty": "empty: it has no files",
        "nothing.csv": "nothing.csv has no row to infer columns from",
        "nothing.jsonl": "nothing.jsonl has nothing that can be read as jsonl",
        "nowhere.csv": "nowhere.csv does not exist",
        "e.txt": "e.txt: the extension '.txt' is unknown",
    }
    for name, message in cases.items():
        on_spark.events = on_spark.folder / name
        found = on_spark.fail()
        assert message in found
        assert "\n" not in found


def test_columns_that_come_later_are_not_drift(place):
    place.write("e/a.parquet", {"id": [1, None], "price": [5.0, 5.0]})
    place.write("e/b.parquet", {"id": [2], "price": [50.0], "company": ["IBM"]})
    place.events = place.folder / "e"
    place.run()
    assert place.matches() == [(1, "ann"), (2, "bob")]
    assert place.letters() == [("events", "", "the event has no id")]


def test_subscriptions_that_cannot_be_used(place):
    place.write("head.csv", "id,filter\n")
    place.write("bad.csv", "id,filter\na,prise < 3\n")
    place.write("names.csv", "id,filters\na,price < 3\n")
    place.write("most.parquet", most_of(place.subscriptions))
    cases = {
        "head.csv": "the table of subscriptions has no rows",
        "bad.csv": "no subscription can be used: 1 row cannot be used:\n  subscriptions, id a: ",
        "names.csv": "expected the columns id and filter, found no filter; did you mean 'filters'?",
        "most.parquet": "most.parquet cannot be read: is not a Parquet file",
        "nowhere.csv": "nowhere.csv does not exist",
    }
    for name, message in cases.items():
        place.subscriptions = place.folder / name
        assert message in place.fail()


def test_places_that_are_refused_before_anything_is_read(place):
    place.events = place.folder / "nowhere.csv"
    place.out = place.write("file", "mine")
    assert "exists and is not a folder" in place.fail("--overwrite")
    place.out = place.out / "out"
    assert "file is not a folder" in place.fail()
    place.out = place.folder
    assert "has files that tamis match did not write" in place.fail("--overwrite")


# --- as a process


@pytest.mark.spark
def test_a_process_without_java_says_nothing_but_the_answer(tmp_path, capsys):
    """Where there is no Java, the wheel brings one, without a word."""
    place = Place(tmp_path, capsys)
    command = [sys.executable, "-m", "tamis", "match", "subscriptions.parquet", "events.parquet"]
    command += ["--out", "out", "--json", "--master", "local[1]"]
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment["PATH"] = path_without_java(tmp_path / "bin")
    done = subprocess.run(
        command, cwd=place.folder, capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == place.summary()
    assert place.matches() == PAIRS
    assert sorted(path.name for path in place.folder.iterdir()) == [
        "bin", "events.parquet", "out", "subscriptions.parquet",
    ]  # fmt: skip


def path_without_java(folder):
    """A folder of the commands that Spark's scripts call, and nothing else."""
    folder.mkdir()
    for name in ("bash", "env", "dirname", "basename", "cat", "uname", "readlink", "ps", "sh"):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    assert shutil.which("java", path=str(folder)) is None
    return str(folder)
