"""Files that are replaced as a whole, and what killed writers leave behind."""

import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tamis import FileError, Matcher, atomic_files
from tamis.atomic_files import ABANDONED, remove_leftovers, replacing


def written(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


KILLED = """
import os, signal, sys
from pathlib import Path
from tamis.atomic_files import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "rules"
    path.write_bytes(b"old")
    path.chmod(0o640)
    written(path)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_after_an_error_nothing_is_left(tmp_path):
    path = tmp_path / "rules"
    path.write_bytes(b"old")
    with suppress(KeyError), replacing(path) as file:
        file.write(b"half")
        raise KeyError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "rules"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    written(path)
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_being_written_stays(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    with replacing(one) as file:
        file.write(b"first ")
        written(other)
        remove_leftovers(tmp_path)
        file.write(b"second")
    assert one.read_bytes() == b"first second"
    assert sorted(tmp_path.iterdir()) == [one, other]


def test_what_another_machine_left_is_removed_after_a_day(tmp_path):
    foreign = tmp_path / ".tamis-0000ffff-0123456789abcdef.tmp"
    foreign.write_bytes(b"half")
    unnamed = tmp_path / ".tamis-0123456789abcdef.tmp"
    unnamed.write_bytes(b"half")
    remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [foreign, unnamed]
    past = time.time() - ABANDONED - 60
    os.utime(foreign, (past, past))
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [unnamed]


def test_nothing_else_is_removed(tmp_path):
    names = [".tamis-a.txt", "tamis-b.tmp", ".other-c.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".tamis-folder.tmp").mkdir()
    (tmp_path / ".tamis-link.tmp").symlink_to(tmp_path / names[0])
    before = sorted(tmp_path.iterdir())
    remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_that_is_removed_before_it_is_locked(tmp_path, monkeypatch):
    """Another writer may take a new file, which is not locked yet, for one that was left."""
    locks, real = [], atomic_files._lock

    def late(file):
        locks.append(file)
        if len(locks) == 1:
            Path(file.name).unlink()
        return real(file)

    monkeypatch.setattr(atomic_files, "_lock", late)
    written(tmp_path / "rules")
    assert (tmp_path / "rules").read_bytes() == b"new"
    assert len(locks) == 2


def test_files_that_cannot_be_locked_are_written_and_never_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "fcntl", None)
    left = tmp_path / f".tamis-{atomic_files._machine()}-0123.tmp"
    left.write_bytes(b"half")
    written(tmp_path / "rules")
    assert left.exists()


def test_only_regular_files_are_replaced(tmp_path):
    matcher = Matcher({"i": "int"})
    matcher.subscribe("a", "i > 1")
    pipe, device = tmp_path / "pipe", tmp_path / "null"
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    for path in (pipe, device):
        with pytest.raises(FileError, match=f"{path} cannot be written: it is not a regular"):
            matcher.save(path)
    with pytest.raises(FileError, match="is a folder, expected a file"):
        matcher.save(tmp_path)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert sorted(tmp_path.iterdir()) == [device, pipe]
