"""Compiled kernels in files: found again by content, never trusted blindly, never in the way."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

import tamis
from cases import each
from tamis.kernels import kernel_cache

NAME = f"some.kernel{kernel_cache.SUFFIX}"


@pytest.fixture
def place(monkeypatch, tmp_path):
    """The only place where kernels are kept."""
    monkeypatch.setattr(kernel_cache, "_PLACES", (lambda: tmp_path / "kept",))
    monkeypatch.setattr(kernel_cache, "_archives", [])
    kernel_cache.usual_folder.cache_clear()
    yield tmp_path / "kept" / kernel_cache.content_key()
    kernel_cache.usual_folder.cache_clear()


def test_what_is_written_is_read(place):
    assert kernel_cache.read(NAME) is None
    assert kernel_cache.usual_folder() == place
    assert kernel_cache.write(NAME, b"code", place)
    assert kernel_cache.read(NAME) == b"code"
    assert [path.name for path in place.iterdir()] == [NAME]  # nothing is left aside


def test_damaged_files_count_as_missing(place):
    kernel_cache.write(NAME, b"code", place)
    whole = (place / NAME).read_bytes()
    for bad in (b"", whole[:-1], whole[:20], b"x" + whole[1:], whole[:-1] + b"x", whole + b"x"):
        (place / NAME).write_bytes(bad)
        assert kernel_cache.read(NAME) is None
    assert kernel_cache.write(NAME, b"code", place)
    assert kernel_cache.read(NAME) == b"code"


def test_a_new_folder_replaces_those_that_nobody_has_used_for_a_month(place, monkeypatch):
    kept = place.parent
    days = {"a" * 32: 31, "b" * 32: 29, "c" * 32: 31, "notes": 400}
    now = kernel_cache.time.time()
    for name, age in days.items():
        (kept / name).mkdir(parents=True)
        kernel_cache.write(NAME, b"code", kept / name)
        os.utime(kept / name, (now, now - age * kernel_cache.DAY))
    with monkeypatch.context() as other:
        other.setattr(kernel_cache, "content_key", lambda: "c" * 32)
        assert kernel_cache.read(NAME) == b"code"  # so it is in use
        assert kernel_cache.usual_folder() == kept / ("c" * 32)  # not new: nothing is removed
    assert {path.name for path in kept.iterdir()} == set(days)
    kernel_cache.usual_folder.cache_clear()
    assert kernel_cache.usual_folder() == place
    assert {path.name for path in kept.iterdir()} == {"b" * 32, "c" * 32, "notes", place.name}


def test_places_that_cannot_be_had_are_passed_over(monkeypatch, tmp_path):
    def fails():
        raise PermissionError

    (tmp_path / "file").write_text("")
    places = (fails, lambda: None, lambda: tmp_path / "file" / "below", lambda: tmp_path / "last")
    monkeypatch.setattr(kernel_cache, "_PLACES", places)
    kernel_cache.usual_folder.cache_clear()
    try:
        assert kernel_cache.usual_folder().parent == tmp_path / "last"
        assert not kernel_cache.write(NAME, b"", tmp_path / "file" / "below")
    finally:
        kernel_cache.usual_folder.cache_clear()


def test_many_write_and_read_at_once(place):
    """Whoever reads sees a whole file or none."""
    kernel_cache.write(NAME, b"0" * 10_000, place)
    seen = []

    def write(number):
        for _ in range(20):
            kernel_cache.write(NAME, b"%d" % number * 10_000, place)
            seen.append(kernel_cache.read(NAME))

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80
    assert all(len(content) == 10_000 and len(set(content)) == 1 for content in seen)


# --- the folder for temporary files, where everyone may write


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no owners of files")
def test_the_private_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = kernel_cache._temporary_folder()
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    assert kernel_cache._temporary_folder() == folder
    folder.chmod(0o750)
    assert kernel_cache._temporary_folder() is None
    folder.chmod(0o700)
    if os.geteuid() == 0:  # only root can give files away
        os.chown(folder, 12345, 12345)
        assert kernel_cache._temporary_folder() is None
        os.chown(folder, 0, 0)
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert kernel_cache._temporary_folder() is None


# --- archives


def test_an_archive_of_another_process(place, tmp_path):
    path = tmp_path / "kernels.zip"
    kernel_cache.write(NAME, b"code", place)
    assert kernel_cache.write_archive(path) == 1
    shutil.rmtree(place)
    assert kernel_cache.read(NAME) is None
    assert kernel_cache.take_archive(path)
    assert kernel_cache.take_archive(path)
    assert kernel_cache.read(NAME) == b"code"
    assert kernel_cache.read("another") is None
    path.unlink()
    assert kernel_cache.read(NAME) is None


def test_archives_that_do_not_fit(monkeypatch, place, tmp_path):
    path = tmp_path / "kernels.zip"
    assert not kernel_cache.take_archive(path)
    path.write_text("not an archive")
    assert not kernel_cache.take_archive(path)
    kernel_cache.write(NAME, b"code", place)
    kernel_cache.write_archive(path)
    monkeypatch.setattr(kernel_cache, "content_key", lambda: "of another processor")
    assert not kernel_cache.take_archive(path)
    assert kernel_cache._archives == []


# --- the key


@each("change", ["source", "version", "setting", "processor"])
def test_the_key_is_that_of_the_content(change):
    """Whatever compiled code depends on is part of the key."""
    with pytest.MonkeyPatch.context() as patch:
        key, settings = kernel_cache.content_key.__wrapped__, kernel_cache.config
        before = key()
        if change == "source":
            patch.setattr(kernel_cache, "__file__", tamis.__file__)
        elif change == "version":
            patch.setattr(np, "__version__", "0")
        elif change == "setting":
            patch.setattr(settings, "OPT", settings.OPT.__class__("0"))
        else:
            codegen = kernel_cache.cpu_target.target_context.codegen()
            patch.setattr(type(codegen), "magic_tuple", lambda _: ("another",))
        assert key() != before
    assert key() == before


# --- as a user who can write nothing

USE = """
import json, sys
import tamis
from tamis.kernels import kernel_cache
from tamis.kernels.compilations import compilations
if "nowhere" in sys.argv:
    kernel_cache._PLACES = ()
matcher = tamis.Matcher({"n": "int"}, "counting-bits")  # little to compile
matcher.subscribe_many({k: f"n > {k}" for k in range(99)})
found = matcher.match({"n": 5})
print(json.dumps([found, str(kernel_cache.written_folder()), compilations.count, tamis.__file__]))
"""
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
READS_ALL = [*NOBODY, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


def nobody(environment):
    """How to start Python as a user who may not write anything here."""
    if os.geteuid() != 0:
        return []
    for way in (NOBODY, READS_ALL):  # root's own Python may be where nobody else may read
        try:
            started = subprocess.run(
                [*way, sys.executable, "-c", "import numba"], env=environment, check=False,
                capture_output=True,
            )  # fmt: skip
        except FileNotFoundError:
            pytest.skip("setpriv is needed to start a process of another user")
        if started.returncode == 0:
            return way
    return pytest.skip("another user cannot run this Python")


@pytest.fixture
def installed():
    """Where to install read-only copies, and the environment of a user without a home."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-test-"))  # tmp_path is closed to other users
    folder.chmod(0o755)
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    kept = {"PATH", "LD_LIBRARY_PATH", "LANG", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name in kept}
    environment |= {"HOME": "/nonexistent", "TMPDIR": str(folder / "tmp")}
    yield folder, environment
    shutil.rmtree(folder)


@pytest.mark.long
def test_a_user_who_can_write_nothing(installed):
    """Whoever has neither a home nor a writable package compiles once, wherever tamis is."""
    folder, environment = installed
    source = Path(tamis.__file__).parent
    for name in ("here", "there"):
        shutil.copytree(
            source, folder / name / "tamis", ignore=shutil.ignore_patterns("__pycache__")
        )
        for path in (folder / name).rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)
        (folder / name).chmod(0o555)
    start, answers = nobody(environment), []
    for name, *more in (["here"], ["there"], ["here", "nowhere"]):
        answer = subprocess.run(
            [*start, sys.executable, "-c", USE, *more], check=False, capture_output=True, text=True,
            env=environment | {"PYTHONPATH": str(folder / name)}, cwd=folder,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stderr
        answers.append(json.loads(answer.stdout))
        assert Path(answers[-1][3]).is_relative_to(folder / name)
    assert [found for found, *_ in answers] == [list(range(5))] * 3
    (_, first, compiled, _), (_, second, again, _), (_, nowhere, anew, _) = answers
    assert Path(first).parent.parent == folder / "tmp"
    assert compiled > 0
    assert (second, again) == (first, 0)
    assert (nowhere, anew) == ("None", compiled)
