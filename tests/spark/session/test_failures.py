"""Errors of Spark as errors of tamis."""

import os

import pytest

from cases import each
from tamis.errors import EventError, FileError, ParseError, TamisError
from tamis.spark.session.failures import as_tamis_error, shown_path, spark_errors


def raising(error):
    def work(batches):
        raise error
        yield from batches

    return work


def dying():
    # A function inside a function travels to the workers, who cannot import this module.
    def work(batches):
        os._exit(3)
        yield from batches

    return work


@pytest.mark.spark
@pytest.mark.parametrize(
    ("work", "kind", "message"),
    [
        (raising(FileError("rules.tamis is gone")), FileError, "^rules.tamis is gone$"),
        (
            raising(ParseError("expected )", "(a", 2)),
            TamisError,
            r"^expected \).*column 3\)\n  \(a",
        ),
        (raising(EventError("no number", 3)), TamisError, "^event 3: no number$"),
        (raising(KeyError("x")), TamisError, "^a Python worker failed: KeyError: 'x'$"),
        (
            raising(ModuleNotFoundError("No module named 'tamis'")),
            TamisError,
            "^the Python workers of the executors do not have tamis; install .* spark.archives=",
        ),
        (raising(OSError(28, "No space left on device")), FileError, "^the disk is full"),
        (dying(), TamisError, "^a Python worker died"),
    ],
)
def test_errors_of_workers_say_their_reason(spark, work, kind, message, capfd):
    frame = spark.range(0, 1, numPartitions=1).mapInArrow(work, "a LONG")
    with pytest.raises(TamisError, match=message) as caught, spark_errors():
        frame.collect()
    assert type(caught.value) is kind
    assert capfd.readouterr().err == ""


@pytest.mark.spark
def test_errors_of_queries_and_files_say_their_reason(spark, tmp_path, capfd):
    failing = (
        (lambda: spark.range(1).select("ix"), TamisError, "with name `ix` cannot be resolved"),
        (lambda: spark.sql("SELECT 1 / 0").collect(), TamisError, "failed: Division by zero"),
        (lambda: spark.range(1).write.csv(str(tmp_path)), FileError, f"{tmp_path} already exists"),
        (lambda: spark.read.csv("/nothing/at/all"), FileError, "^/nothing/at/all does not exist$"),
    )
    for action, kind, message in failing:
        with pytest.raises(TamisError, match=message) as caught, spark_errors():
            action()
        assert type(caught.value) is kind
        assert "SQLSTATE" not in str(caught.value)
    assert capfd.readouterr().err == ""


@pytest.mark.spark
def test_errors_of_streams_say_their_reason(spark, tmp_path):
    (tmp_path / "e.parquet").write_bytes(b"PAR1 and nothing else")
    stream = spark.readStream.schema("a LONG").parquet(str(tmp_path))
    writer = stream.writeStream.format("noop").trigger(availableNow=True)
    with pytest.raises(FileError, match=r"/e\.parquet cannot be read: is not a"), spark_errors():
        writer.option("checkpointLocation", str(tmp_path / "_state")).start().awaitTermination()


def test_other_errors_are_left_alone():
    with pytest.raises(ZeroDivisionError), spark_errors():
        1 / 0  # noqa: B018 - it raises
    with pytest.raises(FileError, match="mine"), spark_errors():
        raise FileError("mine")
    assert as_tamis_error(ValueError("x")) is None


JOB = """\
Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: \
Lost task 0.3 in stage 1.0 (host executor 1): java.io.IOException: Mkdirs failed to create /x
\tat org.apache.hadoop.fs.FileSystem.create(FileSystem.java:1)
"""
QUERY = """\
Query [id = 1, runId = 2] terminated with exception: [SOME_CONDITION] It went wrong. \
SQLSTATE: 42000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier
"""


def of_spark(text):
    from pyspark.errors import PySparkException

    return as_tamis_error(PySparkException(text))


@each(
    ("text", "kind", "message"),
    [
        (
            "(java.io.IOException) No space left on device\n\nJVM stacktrace:\njava.io.IOException",
            FileError,
            "the disk is full",
        ),
        (
            JOB,
            FileError,
            "Spark failed: Mkdirs failed to create /x",
        ),
        (
            QUERY,
            TamisError,
            "Spark failed: It went wrong.",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", TamisError, "ran out of memory"),
        ("x" * 10_000, TamisError, "x" * 600 + "..."),
    ],
)
def test_texts_of_spark_connect_are_unwrapped(text, kind, message):
    error = of_spark(text)
    assert type(error) is kind
    assert message in str(error)
    assert len(str(error)) < 700
    assert "\n" not in str(error)


def test_paths_of_this_machine_are_shown_as_people_write_them():
    assert shown_path("file:///a/b") == shown_path("file:/a/b") == "/a/b"
    assert shown_path("hdfs://host/a") == "hdfs://host/a"


class OfSpark(Exception):
    """An error like those that come from Spark."""

    __module__ = "pyspark.errors"


@each(
    ("last", "message"),
    [
        (
            (
                "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
                "version: 3.10 than that in driver: 3.11, PySpark cannot run with different minor "
                "versions."
            ),
            "the executors and the driver have different versions of Python (3.10 and 3.11); give",
        ),
        (
            "AttributeError: Can't get attribute 'MatchTask' on <module 'tamis.spark.batch.worker'",
            "the executors have another version of tamis than the driver; install the same one",
        ),
        ("ModuleNotFoundError: No module named 'numba'", "do not have the package numba; install"),
    ],
)
def test_workers_with_another_environment_get_the_way_out(last, message):
    error = OfSpark(f"Traceback (most recent call last):\n  File x\n{last}\n")
    found = str(as_tamis_error(error))
    assert message in found
    assert "spark.pyspark.python=env/bin/python" in found
    assert "\n" not in found


def test_a_python_that_executors_do_not_have_is_named():
    error = OfSpark('java.io.IOException: Cannot run program "/opt/py/bin/python3": error=2')
    assert "do not have the Python /opt/py/bin/python3; name one" in str(as_tamis_error(error))
