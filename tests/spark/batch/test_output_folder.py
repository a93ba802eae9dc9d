"""The folder of a batch, written by a job that needs no Spark."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tamis.errors import FileError, OptionError
from tamis.spark.batch.match_counts import MatchCounts
from tamis.spark.batch.output_folder import MatchSummary, check_output, write_job
from tamis.spark.compile.task_reports import RowCounts
from tamis.spark.files.atomic_folders import check_place
from tamis.spark.files.folders import Folder


class Job:
    """A job whose matches are a text, or the error of a disk."""

    semantics, output, is_sharded = "sql", "pairs", False
    compiled = SimpleNamespace(counts=RowCounts(rows=3, good=2, bad=0, replaced=1))

    def __init__(self, rows="one", error=None):
        self._rows = rows
        self._error = error

    def write(self, place, format):  # noqa: ARG002 - as a job has it
        folder = Path(place.removeprefix("file:")) / "matches"
        folder.mkdir(parents=True)
        (folder / "part-0").write_text(self._rows, encoding="utf-8")
        if self._error is not None:
            raise self._error
        return MatchCounts(events=4, matches=5, bad=0)

    def duplicate_ids(self):
        return 2

    def notes(self):
        return ["price is text"]


FULL = OSError(28, "No space left on device")


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def matches(out):
    return (out / "matches" / "part-0").read_text(encoding="utf-8")


def test_the_folder_and_its_summary(out):
    summary = write_job(Job(), str(out))
    numbers = 2, 4, 5, 0, 0, 1, 2
    assert summary == MatchSummary(
        *numbers, "sql", "pairs", "whole", "spark", str(out), (), ("price is text",)
    )
    assert everything(out.parent) == [
        "out", "out/matches", "out/matches/part-0", "out/summary.json",
    ]  # fmt: skip
    written = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert written == summary.to_dict()
    assert (written["command"], written["letters"]) == ("tamis match", [])


def test_folders_above_are_made_when_all_is_there(out):
    deep = out / "a" / "b"
    with pytest.raises(FileError):
        write_job(Job(error=FULL), str(deep))
    assert everything(out.parent) == []
    write_job(Job(), str(deep))
    assert matches(deep) == "one"
    assert everything(out.parent)[:3] == ["out", "out/a", "out/a/b"]


def test_what_is_there_is_replaced_on_demand_only(out):
    out.mkdir()
    write_job(Job(), str(out))  # an empty folder is as good as none
    with pytest.raises(FileError, match="out exists and is not empty; pass --overwrite"):
        write_job(Job("two"), str(out))
    assert matches(out) == "one"
    (out / "dead_letters").mkdir()
    write_job(Job("two"), str(out), overwrite=True)
    assert matches(out) == "two"
    assert sorted(path.name for path in out.iterdir()) == ["matches", "summary.json"]
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("is_full_at_the_end", [False, True])
def test_a_full_disk_leaves_what_was_there(out, monkeypatch, is_full_at_the_end):
    write_job(Job(), str(out))
    before = everything(out.parent)
    job = Job("two", None if is_full_at_the_end else FULL)
    if is_full_at_the_end:  # the summary is the last file
        monkeypatch.setattr(Folder, "_aside", lambda *_: "/dev/full")
    with pytest.raises(FileError, match=r"cannot be written: .*No space left on device") as caught:
        write_job(job, str(out), overwrite=True)
    assert str(caught.value).startswith(str(out))  # and not with the name of a hidden folder
    assert everything(out.parent) == before
    assert matches(out) == "one"


def test_a_folder_that_cannot_be_moved_to_its_place_leaves_what_was_there(out, monkeypatch):
    write_job(Job(), str(out))
    rename = Path.rename

    def fail_once(path, target):
        if Path(target) == out:
            monkeypatch.setattr(Path, "rename", rename)
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(FileError, match="out cannot be written: Input/output error"):
        write_job(Job("two"), str(out), overwrite=True)
    assert matches(out) == "one"
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["thesis.txt", ".hidden"])
def test_files_of_others_are_never_replaced(out, name):
    write_job(Job(), str(out))
    (out / name).write_text("mine", encoding="utf-8")
    with pytest.raises(FileError, match=f"files that tamis match did not write .{name}.; name"):
        write_job(Job("two"), str(out), overwrite=True)
    assert (out / name).read_text(encoding="utf-8") == "mine"
    assert matches(out) == "one"


@pytest.mark.parametrize("content", [None, "no JSON", "[]", '{"command": "tamis demo"}'])
def test_a_folder_of_the_same_names_is_not_taken_for_ours(out, content):
    (out / "matches").mkdir(parents=True)
    if content is not None:
        (out / "summary.json").write_text(content, encoding="utf-8")
    before = everything(out)
    with pytest.raises(FileError, match="that tamis match did not write"):
        write_job(Job(), str(out), overwrite=True)
    assert everything(out) == before


def test_a_link_to_a_folder_stays_one(out):
    real = out.with_name("real")
    real.mkdir()
    out.symlink_to(real)
    write_job(Job(), str(out))
    write_job(Job("two"), str(out), overwrite=True)
    assert out.is_symlink()
    assert matches(real) == "two"


def test_the_folder_that_one_is_in_is_not_taken_away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match="cannot be replaced as a whole; name a folder inside it"):
        check_output(".", overwrite=False)
    monkeypatch.setattr(Path, "is_mount", lambda _: True)
    (tmp_path / "disk").mkdir()
    with pytest.raises(FileError, match="disk cannot be replaced as a whole"):
        check_output("disk", overwrite=False)


def test_places_that_are_none(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(FileError, match="file exists and is not a folder"):
        check_place(str(file))
    with pytest.raises(FileError, match=r"out cannot be written: .*file is not a folder"):
        check_place(str(file / "a" / "out"))
    with pytest.raises(OptionError, match="name of the output folder is empty"):
        check_place(" ")
    with pytest.raises(FileError, match="cannot be reached"):
        check_place("nowhere://at/all")
    check_place(str(tmp_path / "a" / "out"))


def test_elsewhere_the_summary_comes_last(out, monkeypatch):
    """As on a file system that cannot rename folders."""
    monkeypatch.setattr(Folder, "is_local", False)
    with pytest.raises(OSError, match="No space"):
        write_job(Job(error=FULL), str(out))
    assert everything(out) == ["matches", "matches/part-0"]
    (out / "matches" / "part-0").unlink()
    (out / "matches").rmdir()  # as Spark does when it overwrites
    write_job(Job("two"), str(out), overwrite=True)
    assert everything(out) == ["matches", "matches/part-0", "summary.json"]
    (out / "matches" / "part-0").unlink()
    (out / "matches").rmdir()
    with pytest.raises(OSError, match="No space"):
        write_job(Job(error=FULL), str(out), overwrite=True)
    assert not (out / "summary.json").exists()
