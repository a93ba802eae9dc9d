"""Workers take compiled kernels from the driver, if these are for them."""

from functools import partial
from itertools import count
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tamis.kernels import kernel_cache
from tamis.spark.compile import sent_code
from tamis.spark.compile.sent_code import archive_name, send_code

NUMBERS = count()  # a name per test: files and workers outlive it


def look(batches, names):
    """What workers read under the name of a kernel, after they have looked for an archive."""
    from tamis.kernels import kernel_cache
    from tamis.spark.compile import sent_code

    kernel, archive = names
    rows = sum(batch.num_rows for batch in batches)
    usual, sent_code.archive_name = sent_code.archive_name, lambda: archive
    sent_code.take_code()
    sent_code.archive_name = usual  # the worker has other tasks
    found = kernel_cache.read(kernel) or b"nothing"
    yield pa.RecordBatch.from_pydict({"rows": [rows], "found": [found.decode()]})


def seen(spark, names):
    frame = spark.range(4).repartition(2)
    answers = frame.mapInArrow(partial(look, names=names), "rows long, found string")
    return {row.found for row in answers.collect()}


@pytest.fixture
def names(monkeypatch, tmp_path):
    """The names of a kernel that the driver has, and of the archive."""
    number = next(NUMBERS)
    kernel, archive = f"sent{number}{kernel_cache.SUFFIX}", f"test-{number}.zip"
    monkeypatch.setattr(kernel_cache, "_PLACES", (lambda: tmp_path,))
    monkeypatch.setattr("tamis.engines.preparation.batch_preparation.wait", lambda: None)
    monkeypatch.setattr(sent_code, "_archive", None)
    monkeypatch.setattr(sent_code, "_sent", set())
    monkeypatch.setattr(sent_code, "archive_name", lambda: archive)
    monkeypatch.setattr(sent_code, "_shares_files", lambda _: False)
    kernel_cache.write(kernel, b"code", tmp_path / kernel_cache.content_key())
    return kernel, archive


def test_workers_take_the_kernels_of_the_driver(spark, names):
    assert seen(spark, names) == {"nothing"}
    send_code(spark)
    send_code(spark)
    assert seen(spark, names) == {"code"}


def test_workers_with_another_processor_do_not(spark, names, monkeypatch):
    with monkeypatch.context() as another:
        another.setattr(kernel_cache, "content_key", lambda: "of another processor")
        send_code(spark)
    assert seen(spark, names) == {"nothing"}


MASTERS = {
    "local[2]": True, "local": True, "local-cluster[2,1,1024]": False, "yarn": False,
    "spark://host:7077": False,
}  # fmt: skip


def test_workers_on_the_same_machine_need_no_archive():
    for master, here in MASTERS.items():
        session = SimpleNamespace(conf={"spark.master": master})
        assert sent_code._shares_files(session) is here


def test_the_name_says_whom_an_archive_is_for():
    assert kernel_cache.content_key() in archive_name()


@pytest.mark.usefixtures("names")
def test_what_spark_refuses_stops_nothing(caplog):
    class Session:
        def addArtifacts(self, *_paths, file):  # noqa: N802 - Spark's name
            assert file
            raise RuntimeError("duplicated artifact")

    send_code(Session())
    assert "duplicated artifact" in caplog.text
