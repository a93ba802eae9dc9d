"""Files of arrays: what is written comes back, and no other file does any harm."""

import errno
import os
import stat
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from containers import META, contents, refusal, small
from tamis import FileError, container
from tamis.container import (
    ALIGNMENT,
    DTYPES,
    MAGIC,
    open_container,
    write,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rules.tamis"


# --- what is written comes back


@pytest.mark.parametrize("kind", sorted(DTYPES))
def test_arrays_of_every_type(path, kind):
    whole = np.array([0, 1, 2, 127], kind)
    sections = {
        "whole": whole,
        "none": whole[:0],
        "table": np.tile(whole, 6).reshape(2, 3, 4),
        "flat": np.zeros((0, 3), kind),
        "scalar": np.array(7, kind),
        "spread": np.arange(20, dtype=kind)[::3],
        "across": np.arange(6, dtype=kind).reshape(2, 3).T,
        "swapped": whole.astype(f">{kind}"),
    }
    write(path, {}, sections)
    opened = open_container(path)
    assert list(opened) == list(sections)
    for name, array in sections.items():
        read = opened.array(name)
        assert np.array_equal(read, array)
        assert read.shape == array.shape
        assert read.dtype == np.dtype(f"<{kind}")
        assert read.flags.c_contiguous


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, pa.py_buffer])
@pytest.mark.parametrize("content", [b"", b"\0", bytes(range(256)) * 3])
def test_bytes_of_every_kind(path, make, content):
    write(path, {}, {"x": make(content)})
    read = open_container(path).array("x")
    assert read.dtype == np.uint8
    assert read.tobytes() == content


def test_meta(path):
    write(path, META, {})
    opened = open_container(path)
    assert opened.meta == META
    assert opened.path == path
    assert list(opened) == []


def test_names_of_sections(path):
    names = ["", "a.b", "é", "\n", '"', "\ud800"]
    write(path, {}, {name: np.array([i]) for i, name in enumerate(names)})
    opened = open_container(str(path))
    assert [int(opened.array(name)[0]) for name in names] == list(range(len(names)))
    assert "é" in opened
    assert "e" not in opened
    with pytest.raises(FileError, match=r"rules.tamis has no section 'e'"):
        opened.array("e")


def test_arrays_lie_in_the_mapped_file(path):
    opened = open_container(small(path))
    for name in opened:
        array = opened.array(name)
        assert not array.flags.owndata
        assert array.size == 0 or array.ctypes.data % ALIGNMENT == 0


def test_writing_to_an_array_leaves_the_file_alone(path):
    opened = open_container(small(path))
    before = path.read_bytes()
    opened.array("a")[0] += 1
    assert path.read_bytes() == before
    assert open_container(path).array("a")[0] == opened.array("a")[0] - 1


def test_arrays_outlive_the_container(path):
    array = open_container(small(path)).array("a")
    path.unlink()
    assert array.tolist() == list(range(100))


@pytest.mark.parametrize("array", [np.zeros(2, bool), np.zeros(2, "U3"), np.zeros(2, "f4")])
def test_arrays_that_have_no_place(path, array):
    with pytest.raises(TypeError, match="section 'x' is an array of"):
        write(path, {}, {"x": array})
    assert list(path.parent.iterdir()) == []


# --- checksums


def test_a_checksum_is_looked_at_once(path, monkeypatch):
    opened = open_container(small(path))
    looked, crc32 = [], zlib.crc32
    monkeypatch.setattr(container.zlib, "crc32", lambda *args: looked.append(1) or crc32(*args))
    first = opened.array("a")
    assert opened.array("a") is first
    assert len(looked) == 1


def test_damage_is_seen_where_it_is(path):
    write(path, {}, {"first": np.zeros(1000), "second": np.ones(1000)})
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    opened = open_container(path)
    assert opened.array("first").sum() == 0
    for _ in range(2):
        with pytest.raises(FileError, match=r"is damaged in its section 'second'; copy it again"):
            opened.array("second")


# --- files that cannot be read


def test_what_is_not_a_file(path, tmp_path):
    assert refusal(path) == f"{path} does not exist"
    assert refusal(tmp_path) == f"{tmp_path} is a folder, expected a file"
    assert "cannot be read: embedded null" in refusal("a\0b")
    os.mkfifo(path)
    assert refusal(path) == f"{path} is not a regular file"
    assert refusal(path / "below") == f"{path}/below cannot be read: Not a directory"


def test_a_file_that_may_not_be_read(path, monkeypatch):
    small(path)

    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", refuse)  # root may read what it may not
    assert refusal(path) == f"{path} cannot be read: Permission denied"


def test_other_files(path):
    path.write_bytes(b"")
    assert refusal(path) == f"{path} is empty"
    for content in (b"P", b"PAR1" * 100, b"{}", b"\0" * 1000, b"tamis" * 10):
        path.write_bytes(content)
        assert refusal(path) == f"{path} is not a tamis rules file"


def test_a_transfer_in_text_mode(path):
    content = small(path).read_bytes()
    for damaged in (content.replace(b"\r\n", b"\n"), content.replace(b"\n", b"\r\n")):
        path.write_bytes(damaged)
        assert "damaged by a transfer in text mode" in refusal(path)


def test_truncated_files(path):
    content = small(path).read_bytes()
    for length in range(1, len(content)):
        path.write_bytes(content[:length])
        message = refusal(path)
        if length < 32:
            assert f"the file ends after {length} bytes, in its header" in message
        else:
            assert f"the file ends after {length:,} of {len(content):,} bytes" in message
        assert "copy it again, or save it again" in message
    path.write_bytes(content + b"\0")
    assert f"has {len(content) + 1:,} bytes, {len(content):,} were written" in refusal(path)


def test_versions(path, monkeypatch):
    content = small(path).read_bytes()
    # Of another format only magic and version are known.
    for rest in (content[12:], b"", b"something else"):
        path.write_bytes(MAGIC + struct.pack("<I", 3) + rest)
        assert refusal(path) == (
            f"{path} was written by a newer tamis; format 3, this one reads up to 1"
        )
        path.write_bytes(MAGIC + struct.pack("<I", 0) + rest)
        assert "was written by an older tamis; format 0, this one reads from 1 on" in refusal(path)
    path.write_bytes(content)
    monkeypatch.setattr(container, "VERSION", 2)
    assert contents(path)[0] == META


# --- replacing


def test_a_replaced_file_stays_mapped(path):
    write(path, {"n": 1}, {"x": np.full(100_000, 1)})
    old = open_container(path)
    write(path, {"n": 2}, {"x": np.full(50_000, 2), "y": b""})
    new = open_container(path)
    assert (old.meta, new.meta) == ({"n": 1}, {"n": 2})
    assert old.array("x").sum() == new.array("x").sum() == 100_000
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file(path, monkeypatch, error, step):
    before = contents(small(path))

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)
        expected = FileError if isinstance(error, OSError) else KeyboardInterrupt
        with pytest.raises(expected) as caught:
            write(path, {}, {"x": np.zeros(1000)})
    if expected is FileError:
        assert str(caught.value) == f"{path} cannot be written: No space left"
    assert contents(path) == before
    assert list(path.parent.iterdir()) == [path]


def test_places_that_cannot_be_written(path, tmp_path):
    with pytest.raises(FileError, match="cannot be written: its folder does not exist"):
        write(path / "below", {}, {})
    with pytest.raises(FileError, match="cannot be written: it is a folder, expected a file"):
        write(tmp_path, {}, {})
    with pytest.raises(FileError, match="cannot be written: embedded null"):
        write(f"{path}\0", {}, {})
    small(path)
    with pytest.raises(FileError, match="cannot be written: Not a directory"):
        write(path / "below", {}, {})
    with pytest.raises(TypeError):
        write(path, {"x": object()}, {})
    assert list(tmp_path.iterdir()) == [path]
    longest = tmp_path / ("x" * 255)
    assert contents(small(longest))[0] == META


def test_a_folder_that_cannot_be_flushed(path, monkeypatch):
    """The file is in its place by then."""

    def fail(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(container.os, "open", fail)
    assert contents(small(path))[0] == META


def test_rights(path):
    before = os.umask(0o027)
    try:
        assert stat.S_IMODE(small(path).stat().st_mode) == 0o640
        path.chmod(0o604)
        assert stat.S_IMODE(small(path).stat().st_mode) == 0o604
    finally:
        os.umask(before)


def test_links_stay_links(path, tmp_path):
    link = tmp_path / "current.tamis"
    link.symlink_to(path.name)
    small(link)
    assert link.is_symlink()
    assert contents(path) == contents(link)


# --- sharing

OTHER = """
import sys
from tamis.container import open_container
array = open_container(sys.argv[1]).array("x")
lines = open("/proc/self/smaps").read().splitlines()
begin = next(i for i, line in enumerate(lines) if line.endswith("rules.tamis"))
print("\\n".join(lines[begin + 1 : begin + 20]))
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc/self/smaps here")
def test_processes_share_the_pages(path):
    write(path, {}, {"x": np.arange(1_000_000)})
    array = open_container(path).array("x")  # whose checksum has touched every page
    answer = subprocess.run(
        [sys.executable, "-c", OTHER, path], capture_output=True, text=True, check=True
    )
    lines = (line.split() for line in answer.stdout.splitlines())
    sizes = {line[0]: int(line[1]) * 1024 for line in lines if line[-1] == "kB"}
    assert sizes["Rss:"] >= array.nbytes
    assert sizes["Shared_Clean:"] + sizes["Shared_Dirty:"] >= array.nbytes
    assert sizes["Private_Dirty:"] == 0
    assert sizes["Pss:"] <= 0.6 * sizes["Rss:"]
