"""The job in this process: without Spark, in bounded memory, with the same manners."""

import gzip
import json
import subprocess
import sys
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cases import each
from tamis.cli import main
from tamis.errors import FileError, MissingDependency, OptionError, SubscriptionError
from tamis.file_tables import lines
from tamis.local_job import LocalJob
from tamis.local_job.job import _matches_in

SUBSCRIPTIONS = "id,filter,owner\nann,price < 10,o1\nbob,company = 'IBM',o2\n"
EVENTS = "id,company,price\n1,IBM,5\n2,Dell,50\n3,IBM,50\n"
PAIRS = [{"event_id": 1, "subscription": "ann"}, {"event_id": 1, "subscription": "bob"},
         {"event_id": 3, "subscription": "bob"}]  # fmt: skip


def local_arguments(put, events, folder):
    """The arguments of ``tamis match`` for the usual subscriptions and some events."""
    paths = [str(put("s.csv", SUBSCRIPTIONS)), str(put("e.csv", events))]
    return [*paths, "--out", str(folder / "out"), "--local"]


def rows(job):
    return [row for batch in job.matches() for row in batch.to_pylist()]


def test_matches_are_those_of_the_files(put):
    job = LocalJob(put("e.csv", EVENTS), put("s.csv", SUBSCRIPTIONS))
    assert rows(job) == PAIRS
    assert rows(job) == PAIRS  # files are read again


def test_a_process_without_pyspark_matches_by_itself(put, tmp_path):
    put("e.csv", EVENTS)
    put("s.csv", SUBSCRIPTIONS)
    code = """
import importlib.util, sys
from tamis.cli import main

class NoSpark:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyspark":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoSpark())
known = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "pyspark" else known(name)
sys.exit(main(["match", "s.csv", "e.csv", "--out", "out"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "ran on             this process, without Spark" in done.stdout
    assert pq.read_table(tmp_path / "out/matches").to_pylist() == PAIRS
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert (summary["ran_on"], summary["matches"], summary["events"]) == ("local", 3, 3)


def test_events_without_ids_are_numbered_in_the_order_of_the_files(put):
    put("e/b.csv", "price\n4\n5\n")
    put("e/a.csv.gz", gzip.compress(b"price\n1\n20\n"))
    folder = put("e/c.csv", "price\n30\n6\n").parent
    job = LocalJob(folder, put("s.csv", SUBSCRIPTIONS))
    assert [row["event_id"] for row in rows(job)] == [0, 2, 3, 5]


def test_columns_of_rules_and_the_name_of_the_id_are_kept(put):
    subscriptions = put(
        "s.csv", SUBSCRIPTIONS + "ann,price < 9,o3\nann,prise < 9,o4\nbob,company IS NULL,\n"
    )
    job = LocalJob(
        put("e.csv", EVENTS), subscriptions, keep_rules=["owner"], keep=["price"],
        keep_id_name=True,
    )  # fmt: skip
    assert rows(job) == [{"id": 1, "subscription": "ann", "price": 5, "owner": "o3"}]
    for settings, message in (
        ({"keep_rules": ["ower"]}, "no column 'ower'; did you mean 'owner'"),
        ({"keep_rules": ["owner"], "output": "lists"}, "use 'pairs'"),
        ({"keep_rules": "owner"}, r"write \['owner'\]"),
        ({"keep": ["subscription"]}, "no column 'subscription'"),
    ):
        with pytest.raises(OptionError, match=message):
            LocalJob(put("e.csv", EVENTS), subscriptions, **settings)


def test_too_many_bad_rows_fail_and_leave_nothing(put, tmp_path):
    events = put("e.csv", EVENTS + "4,IBM\n,IBM,5\n")
    job = LocalJob(events, put("s.csv", SUBSCRIPTIONS))
    out = tmp_path / "out"
    with pytest.raises(Exception, match="events: 2 of 5 rows cannot be used, and at most 1%") as e:
        job.write(str(out), max_bad="1%")
    assert "it has 2 fields, and the header has 3: 4,IBM" in str(e.value)
    assert not out.exists()
    assert job.write(str(out), max_bad=2).bad_events == 2
    with pytest.raises(FileError, match="exists"):
        job.write(str(out), max_bad=2)
    assert job.write(str(out), overwrite=True, max_bad="40%").bad_events == 2


def test_ids_that_come_again_are_counted(put, tmp_path, capsys):
    assert main(["match", *local_arguments(put, EVENTS + "1,IBM,5\n1,IBM,5\n", tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "duplicate ids      2" in text
    assert "the ids of 2 events are those of earlier events" in text


def test_a_value_that_makes_a_column_text_is_shown_with_the_way_out(put, tmp_path, capsys):
    paths = local_arguments(put, EVENTS + "4,IBM,n/a\n", tmp_path)
    assert main(["match", *paths]) == 0
    text = capsys.readouterr().out
    assert (
        "column price was read as text, because 1 of 4 values cannot be read as int, such as 'n/a'"
        in text
    )
    schema = text.partition('--schema "')[2].partition('"')[0]
    assert schema == "id:int,company:string,price:int"
    assert main(["match", *paths, "--overwrite", "--schema", schema]) == 0
    text = capsys.readouterr().out
    assert "matches            3" in text
    assert "column price is 'n/a', expected bigint: 4,IBM,n/a" in text
    only = put("one.csv", "id,filter\nann,price < 10\n")
    with pytest.raises(
        SubscriptionError, match=r"(?s)no subscription can be used.*\ncolumn price was"
    ):
        LocalJob(paths[1], only).write(str(tmp_path / "none"))


def test_what_only_spark_can_do_says_so(put, capsys):
    subscriptions = put("s.csv", SUBSCRIPTIONS)
    for path in ("table:events", "s3a://bucket/e.csv"):
        with pytest.raises(MissingDependency, match="can only be read by Spark"):
            LocalJob(path, subscriptions)
    with pytest.raises(FileError, match="are read only by Spark"):
        LocalJob(put("e.csv.lz4", "x"), subscriptions)
    with pytest.raises(SystemExit):
        main(["match", "s", "e", "--out", "o", "--local", "--shards", "2"])
    assert "--shards is for Spark, and --local is without Spark" in capsys.readouterr().err


def test_every_form_of_output(put, tmp_path):
    job = LocalJob(put("e.csv", EVENTS), put("s.csv", SUBSCRIPTIONS), output="counts")
    job.write(str(tmp_path / "c"), "csv")
    assert (tmp_path / "c/matches/part-00000.csv").read_text() == "event_id,count\n1,2\n2,0\n3,1\n"
    job = LocalJob(put("e.csv", EVENTS), put("s.csv", SUBSCRIPTIONS), output="lists")
    job.write(str(tmp_path / "j"), "json")
    lines = (tmp_path / "j/matches/part-00000.json").read_text().splitlines()
    assert lines[:2] == [
        '{"event_id":1,"subscriptions":["ann","bob"]}', '{"event_id":2,"subscriptions":[]}',
    ]  # fmt: skip


def test_values_in_csv(put, tmp_path):
    events = 'id,price,new,company\n1,5,true,IBM\n2,50,false,"a,b"\n3,60,,\n'
    rules = put("s.csv", "id,filter\nann,price > 1\n")
    job = LocalJob(put("e.csv", events), rules, keep=["new", "company"])
    job.write(str(tmp_path / "c"), "csv")
    assert (tmp_path / "c/matches/part-00000.csv").read_text().splitlines() == [
        "event_id,subscription,new,company", "1,ann,true,IBM", '2,ann,false,"a,b"', "3,ann,,",
    ]  # fmt: skip


def test_memory_does_not_grow_with_the_file(put, monkeypatch):
    monkeypatch.setattr(lines, "LINES", 4096)  # of a batch: many batches of few lines
    subscriptions = put("s.csv", SUBSCRIPTIONS)

    def matched(events):
        path = put("e.jsonl", '{"id": 1, "company": "Dell", "price": 50}\n' * events)
        return sum(batch.num_rows for batch in LocalJob(path, subscriptions).matches())

    def peak(events):
        tracemalloc.start()
        assert matched(events) == 0
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert matched(10) == 0  # what is made once is made now
    assert peak(50_000) < 1.5 * peak(16_500)


@each("output, column", [("counts", [3, 0]), ("lists", [["a", "b", "c"], []])])
def test_matches_are_counted_in_every_output(output, column):
    whole = pa.record_batch({"event_id": [1, 2], "found": column})
    assert _matches_in(whole, output) == 3
    assert _matches_in(whole.slice(1), output) == _matches_in(whole.slice(2), output) == 0


def test_a_page_reports_the_job(put, tmp_path, capsys):
    paths = local_arguments(put, EVENTS + "4,IBM\n", tmp_path)
    page = tmp_path / "report.html"
    for output in ("pairs", "lists", "counts"):
        more = ["--overwrite", "--output", output, "--report", str(page)]
        assert main(["match", *paths, *more]) == 0
        text = page.read_text(encoding="utf-8")
        assert "Matches per event" in text
        assert ("Subscriptions with the most matches" in text) == (output != "counts")
        assert "events: the row cannot be read, it has 2 fields, and the header has 3" in text
    assert main(["match", *paths, "--overwrite", "--report", str(tmp_path)]) == 1
    assert "cannot be written" in capsys.readouterr().err


CLOCK = "id,filter\nfresh,at > now() - INTERVAL 1 DAY\nlate,current_date > DATE '2024-01-01'\n"
TIMES = "id,at\n1,2024-01-01T12:00:00Z\n2,2024-01-02T12:00:00Z\n3,2023-12-31T11:00:00Z\n"


def test_all_events_arrive_at_the_moment_that_is_given(put, tmp_path):
    events, subscriptions = put("e.csv", TIMES), put("s.csv", CLOCK)
    job = LocalJob(events, subscriptions, now="2024-01-01 12:00:00")
    assert [tuple(row.values()) for row in rows(job)] == [(1, "fresh"), (2, "fresh")]
    arguments = [str(subscriptions), str(events), "--out", str(tmp_path / "out"), "--local"]
    assert main(["match", *arguments, "--now", "2024-01-02T12:30:00Z"]) == 0
    found = {tuple(row.values()) for row in pq.read_table(tmp_path / "out/matches").to_pylist()}
    assert found == {(2, "fresh"), (1, "late"), (2, "late"), (3, "late")}


def test_a_moment_that_is_none_is_refused(put, capsys):
    with pytest.raises(OptionError, match="now is a datetime or a text"):
        LocalJob(put("e.csv", TIMES), put("s.csv", CLOCK), now=5)
    with pytest.raises(SystemExit):
        main(["match", "s.csv", "e.csv", "--out", "out", "--now", "soon"])
    assert "expected a time, such as 2024-01-31T12:30:00, got 'soon'" in capsys.readouterr().err
