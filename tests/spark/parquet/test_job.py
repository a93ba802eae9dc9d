"""Files that attempts of tasks write, and what of them is committed; Spark is played by a list.

What Spark promises is that the driver gets the report of one successful attempt of each task. How
many others there were, how far they came, and whether they still run, it does not say.
"""

from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.errors import FileError
from tamis.spark.files.folders import Folder, workers_can_write
from tamis.spark.parquet.job import write_matches
from tamis.spark.parquet.worker import TableMatches, plain_matches

IDS = pa.array(["a", "b", "c"])


class Killed(BaseException):
    """What ends a worker: not even `except Exception` hears of it."""


def table(*pairs):
    codes = pa.array([number for _, number in pairs], pa.int32())
    coded = pa.DictionaryArray.from_arrays(codes, IDS)
    return pa.table({"event_id": [event for event, _ in pairs], "subscription": coded})


class Attempt:
    """A task that finds some matches, and may fail after it has written them."""

    def __init__(self, *tables, error=None, events=2, bad=1):
        self.tables, self.error, self.events, self.bad = tables, error, events, bad

    def __call__(self, _batches):
        yield TableMatches(iter(self.tables), self.events, self.bad)
        if self.error is not None:
            raise self.error


class Frame:
    """Attempts of tasks: of each task the last one is the one that Spark reports."""

    def __init__(self, *tasks, meanwhile=None):
        self._tasks = tasks
        self._meanwhile = meanwhile
        self.zombies = []

    def mapInArrow(self, task, _schema):  # noqa: N802 - Spark's name
        reports = []
        for attempts in self._tasks:
            for attempt in attempts:
                run = replace(task, matches=attempt)
                self.zombies.append(run)
                try:
                    found = list(run(iter(())))
                except (OSError, Killed):
                    continue
            reports += found
        if self._meanwhile is not None:
            self._meanwhile(task.folder)
        return SimpleNamespace(toArrow=lambda: pa.Table.from_batches(reports))


SCHEMA = pa.schema([("event_id", pa.int64()), ("subscription", pa.string())])


@pytest.fixture
def empty_schema(monkeypatch):
    """A schema that needs no PySpark."""
    import sys

    types = SimpleNamespace(to_arrow_schema=lambda schema, timezone: schema)  # noqa: ARG005 - as PySpark calls it
    monkeypatch.setitem(sys.modules, "pyspark.sql.pandas.types", types)
    return SCHEMA


def write(frame, place, name="matches"):
    return write_matches(frame, None, "pairs", SCHEMA, f"file:{place}", name)


def found(folder):
    rows = pq.read_table(folder).to_pylist()  # a reader that was told nothing
    return sorted((row["event_id"], row["subscription"]) for row in rows)


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


def test_each_match_once_however_often_tasks_were_tried(tmp_path):
    good = Attempt(table((1, 0), (1, 2)), table((2, 1)))
    frame = Frame(
        [Attempt(table((1, 0)), error=OSError(5, "lost")), good],  # failed, and was tried again
        [Attempt(table((3, 0))), Attempt(table((3, 0)))],  # two attempts have finished
        [Attempt(table((4, 1)), error=Killed()), Attempt(table((4, 1)))],
        [Attempt()],  # nothing to write
    )
    assert write(frame, tmp_path) == (8, 4, 5)
    assert found(tmp_path / "matches") == [(1, "a"), (1, "c"), (2, "b"), (3, "a"), (4, "b")]
    assert entries(tmp_path) == ["matches"]
    assert len(entries(tmp_path / "matches")) == 4  # three files and _SUCCESS
    # An attempt that nobody has stopped cannot write any more, neither here nor there.
    for zombie in frame.zombies[:3]:
        with pytest.raises((FileError, OSError)):
            list(zombie(iter(())))
    assert entries(tmp_path) == ["matches"]
    assert len(found(tmp_path / "matches")) == 5


def test_an_attempt_that_still_writes_during_the_commit_is_not_seen(tmp_path):
    opened = []

    def begin(folder):
        file = Folder(folder).create("part-00000-late.parquet")
        file.write(b"half of a file")
        opened.append(file)

    write(Frame([Attempt(table((1, 0)))], meanwhile=begin), tmp_path)
    opened[0].close()
    assert entries(tmp_path) == ["matches"]
    assert found(tmp_path / "matches") == [(1, "a")]


def test_a_job_that_fails_leaves_nothing_and_changes_nothing(tmp_path):
    write(Frame([Attempt(table((1, 0)))]), tmp_path)

    def fail(_folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write(Frame([Attempt(table((2, 0)))], meanwhile=fail), tmp_path)
    assert entries(tmp_path) == ["matches"]
    assert found(tmp_path / "matches") == [(1, "a")]
    write(Frame([Attempt(table((2, 0)))]), tmp_path)
    assert found(tmp_path / "matches") == [(2, "a")]


def test_what_a_driver_that_died_has_left_is_removed(tmp_path):
    (tmp_path / "_attempts-matches-0123").mkdir()
    (tmp_path / "_attempts-matches-0123" / "part-0.parquet").write_text("half", encoding="utf-8")
    (tmp_path / "_attempts-others-0123").mkdir()
    write(Frame([Attempt(table((1, 0)))]), tmp_path)
    assert entries(tmp_path) == ["_attempts-others-0123", "matches"]


def test_where_nothing_can_be_renamed_it_is_the_same(tmp_path, monkeypatch):
    """An object store: no folder is local, files are copied, and several at once."""
    monkeypatch.setattr(Folder, "is_local", False)
    tasks = [[Attempt(table((n, 0))), Attempt(table((n, 0)))] for n in range(40)]
    write(Frame(*tasks), tmp_path)
    assert found(tmp_path / "matches") == [(n, "a") for n in range(40)]
    assert "_SUCCESS" in entries(tmp_path / "matches")
    assert entries(tmp_path) == ["matches"]


def test_without_matches_there_is_an_empty_table(tmp_path, empty_schema):
    assert write(Frame([Attempt()], [Attempt()]), tmp_path) == (4, 2, 0)
    found = pq.read_table(tmp_path / "matches")
    assert (found.num_rows, found.schema.names) == (0, empty_schema.names)


def test_executors_with_another_file_system_are_noticed(tmp_path):
    def vanish(folder):
        for path in (tmp_path / folder.rpartition("/")[2]).iterdir():
            path.unlink()

    with pytest.raises(FileError, match="name a folder that all machines share"):
        write(Frame([Attempt(table((1, 0)))], meanwhile=vanish), tmp_path)


def test_matches_that_spark_has_are_written_as_they_are(tmp_path):
    batches = table((1, 0), (2, 1)).to_batches()

    class Plain(Frame):
        def mapInArrow(self, task, _schema):  # noqa: N802 - Spark's name
            return SimpleNamespace(toArrow=lambda: pa.Table.from_batches(list(task(batches))))

    counts = write_matches(Plain(), plain_matches, "pairs", SCHEMA, f"file:{tmp_path}", "m")
    assert (counts.matches, found(tmp_path / "m")) == (2, [(1, "a"), (2, "b")])


def test_who_writes_where():
    for path in ("/data/out", "out", "file:/data/out", "s3://b/out", "gs://b/out", "a:b"):
        assert workers_can_write(path), path
    for path in ("hdfs://host/out", "s3a://bucket/out", "viewfs://x/out"):
        assert not workers_can_write(path), path
