"""A cluster of two executors on this machine: each a process, with files of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

CODE = """
import os
import pyarrow as pa
from pyspark import SparkFiles
from tamis.spark import spark_session

# Two tasks for two executors of one core each, and not before both are there.
conf = {
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "1h",
}
spark = spark_session(master="local-cluster[2,1,1024]", conf=conf)
with open("shipped.txt", "w") as file:
    file.write("shipped")
spark.addArtifacts("shipped.txt", file=True)


def look(batches):
    rows = sum(batch.num_rows for batch in batches)
    path = SparkFiles.get("shipped.txt")
    seen = {"parent": [os.getppid()], "path": [path], "text": [open(path).read()], "rows": [rows]}
    yield pa.record_batch(seen)


frame = spark.range(0, 10, numPartitions=2)
rows = frame.mapInArrow(look, "parent long, path string, text string, rows long").collect()
print(len({row.parent for row in rows}), len({row.path for row in rows}))
print({row.text for row in rows}, sum(row.rows for row in rows))
print(spark.conf.get("spark.driver.host"))
"""


def test_two_executors_match_in_processes_of_their_own(tmp_path):
    import pyspark

    installed = Path(pyspark.__file__).parent
    before = sorted(path.name for path in installed.iterdir())
    script = tmp_path / "look.py"
    script.write_text(CODE, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k != "SPARK_HOME"}
    answer = subprocess.run(
        [sys.executable, script],
        env=environment, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    lines = ["2 2", "{'shipped'} 10", "127.0.0.1"]
    assert (answer.stdout.splitlines(), answer.stderr) == (lines, "")
    # What executors leave behind is left nowhere.
    assert sorted(path.name for path in installed.iterdir()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["look.py", "shipped.txt"]
