"""The Spark session: local, with settings of the user, on a Connect server."""

import os
import subprocess
import sys

import pytest

from tamis.errors import MissingDependency
from tamis.spark import spark_session
from tamis.spark.session import session

pytestmark = pytest.mark.spark


def run(code, folder, **variables):
    """A process of its own: a process has one JVM and one session."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | variables, capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip


def test_the_session_runs_locally_on_loopback(spark):
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.range(10).count() == 10


def test_zoneless_timestamps_mean_utc(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_asking_again_gives_the_running_session(spark):
    assert spark_session() is spark


def test_asking_from_another_thread_gives_the_running_session(spark):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(spark_session).result()
    assert other.sparkContext is spark.sparkContext


def test_settings_of_a_running_session_are_changed_where_spark_allows_it(spark):
    before = spark.conf.get("spark.sql.ansi.enabled")
    try:
        spark_session(conf={"spark.sql.ansi.enabled": "false", "spark.driver.memory": "9g"})
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
        assert spark.conf.get("spark.driver.memory") != "9g"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_the_settings_of_the_user_win(tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.app.name mine\nspark.sql.session.timeZone Europe/Berlin\nspark.master local[1]\n",
        encoding="utf-8",
    )
    code = (
        "from tamis.spark import spark_session\n"
        "spark = spark_session(conf={'spark.sql.shuffle.partitions': '7'}, warm_up=False)\n"
        "for name in ('app.name', 'master', 'sql.session.timeZone', 'sql.shuffle.partitions',\n"
        "             'driver.memory', 'ui.enabled', 'driver.host'):\n"
        "    print(spark.conf.get('spark.' + name))\n"
    )
    answer = run(
        code, tmp_path,
        SPARK_CONF_DIR=str(tmp_path), PYSPARK_SUBMIT_ARGS="--driver-memory 600m pyspark-shell",
    )  # fmt: skip
    values = ["mine", "local[1]", "Europe/Berlin", "7", "600m", "false", "127.0.0.1"]
    assert (answer.stdout.splitlines(), answer.stderr) == (values, "")


def test_a_java_that_does_not_start_is_one_error_with_its_last_words(tmp_path):
    code = (
        "from tamis import TamisError\n"
        "from tamis.spark import spark_session\n"
        "try:\n"
        "    spark_session()\n"
        "except TamisError as error:\n"
        "    print(error)\n"
    )
    answer = run(code, tmp_path, PYSPARK_SUBMIT_ARGS="--driver-memory 600x pyspark-shell")
    assert "Spark's Java process did not start" in answer.stdout
    assert "Invalid maximum heap size: -Xmx600x" in answer.stdout
    assert answer.stderr == ""


def test_a_server_that_does_not_answer_is_one_error_and_needs_no_java(tmp_path):
    code = (
        "from tamis import TamisError\n"
        "from tamis.spark import spark_session\n"
        "try:\n"
        "    spark_session()\n"
        "except TamisError as error:\n"
        "    print(error)\n"
    )
    variables = {"SPARK_REMOTE": "sc://127.0.0.1:1", "JAVA_HOME": str(tmp_path)}
    answer = run(code, tmp_path, **variables, http_proxy="", https_proxy="", grpc_proxy="")
    assert "no Spark Connect server answers at sc://127.0.0.1:1" in answer.stdout
    assert answer.stderr == ""


def test_without_grpc_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: name != "grpc" or None)
    with pytest.raises(MissingDependency, match=r"module grpc: pip install 'tamis\[connect\]'"):
        spark_session(master="sc://host")


def test_without_pyspark_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=r"pip install 'tamis\[spark\]'"):
        spark_session()


CONNECT = """
from tamis import TamisError
from tamis.spark import spark_session
from tamis.spark.session.failures import spark_errors
from tamis.spark.files.readers import read_event_stream, read_events


def fail(batches):
    raise TamisError("no rules for this batch")
    yield


def main(spark, given):
    said = [type(spark).__module__, spark_session() is spark]
    said += [spark.conf.get(f"spark.sql.{name}") for name in given]
    said.append(str(read_events(spark, "events.json").orderBy("a").collect()))
    said.append(read_event_stream(spark, "events.json").schema.simpleString())
    for failing in (
        lambda: read_events(spark, "nothing.csv"),
        lambda: read_events(spark, "broken.parquet"),
        lambda: spark.range(1).mapInArrow(fail, "a long").collect(),
    ):
        try:
            with spark_errors():
                failing()
        except TamisError as error:
            said.append(f"{type(error).__name__} {error}".partition(". ")[0])
    return said
"""


def test_a_connect_server_in_this_process_serves_as_well(connect):
    folder = connect.folder
    (folder / "events.json").write_text('[\n{"a": 1},\n{"a": 2}]', encoding="utf-8")
    (folder / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    said, _ = connect.run(CONNECT, ["session.timeZone", "shuffle.partitions"])
    assert said == [
        "pyspark.sql.connect.session",
        True,
        "UTC",
        "3",
        "[Row(a=1, _corrupt_record=None), Row(a=2, _corrupt_record=None)]",
        "struct<a:bigint,_corrupt_record:string>",
        f"FileError {folder}/nothing.csv does not exist",
        f"FileError {folder}/broken.parquet cannot be read: is not a Parquet file",
        "TamisError no rules for this batch",
    ]
