"""A cluster of two executors on this machine: each a process, with files of its own."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
import os
import pyarrow as pa
from pyspark import SparkFiles


def look(batches):
    rows = sum(batch.num_rows for batch in batches)
    path = SparkFiles.get("shipped.txt")
    seen = {"parent": [os.getppid()], "path": [path], "text": [open(path).read()], "rows": [rows]}
    yield pa.record_batch(seen)


def main(spark, given):
    with open("shipped.txt", "w") as file:
        file.write("shipped")
    spark.addArtifacts("shipped.txt", file=True)
    frame = spark.range(0, 10, numPartitions=2)
    rows = frame.mapInArrow(look, "parent long, path string, text string, rows long").collect()
    return {
        "processes": len({row.parent for row in rows}),
        "folders": len({row.path for row in rows}),
        "texts": list({row.text for row in rows}),
        "rows": sum(row.rows for row in rows),
        "host": spark.conf.get("spark.driver.host"),
    }
"""


def test_two_executors_work_in_processes_of_their_own(cluster):
    import pyspark

    said, errors = cluster.run(PROGRAM)
    assert errors == ""
    assert said == {
        "processes": 2, "folders": 2, "texts": ["shipped"], "rows": 10, "host": "127.0.0.1",
    }  # fmt: skip
    # What the executors write is neither beside PySpark nor in the folder of the program.
    assert not (Path(pyspark.__file__).parent / "work").exists()
    assert not (cluster.folder / "work").exists()
