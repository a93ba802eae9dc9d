"""Spark's Python daemon, which loads what workers need before it makes the first of them.

A worker is a copy of the daemon. Spark's own has loaded nothing, so each worker imports numpy,
Arrow, the compiler and tamis, and loads the compiled kernels: seconds in which all cores do the
same. Here that is done once, and the copies share the memory. `spark_session` sets
``spark.python.daemon.module`` to this module for sessions on this machine, and begins to load
while the JVM starts, in a process that becomes the daemon (`loaded_process`).

Spark runs a daemon for each kind of worker. Only those that run functions of DataFrames get
anything loaded: not those of Python data sources, nor those that turn lists of Python into rows.
"""

import gc
import importlib
import os
import sys
from contextlib import redirect_stdout

from tamis.spark.loaded_process import LOADED, became_daemon, serve

WORKER = "pyspark.worker"
OF_FRAMES = "SPARK_SIMPLIFIED_TRACEBACK"  # a variable that Spark sets for workers of DataFrames
MODULES = (
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pyarrow.parquet",
    "tamis.rules_file",
    "tamis.spark.batch.worker",
    "tamis.spark.compile.worker",
    "tamis.spark.dead_letters.worker",
    "tamis.spark.parquet.worker",
    "tamis.spark.stream.worker",
)


def load() -> None:
    """Import what workers use, and load the kernels by matching two events."""
    for name in MODULES:
        importlib.import_module(name)
    import pyarrow as pa

    from tamis.matcher import Matcher

    matcher = Matcher({"s": "string", "x": "double", "n": "int"}, engine="sliced")
    filters = ["s = 'a' AND x < 1", "s LIKE 'a%' AND n BETWEEN 1 AND 2", "n = 1 OR x > 5"]
    matcher.subscribe_many(list(enumerate(filters)))
    matcher.match_batch(pa.table({"s": ["a", None], "x": [0.5, 7.0], "n": [1, 3]}))


def main() -> None:
    """Load, and be Spark's daemon from then on, unless a loaded process is."""
    if sys.argv[1:2] == [LOADED]:
        load()
        _keep_loaded()
        serve(int(sys.argv[2]))
        return
    is_of_frames = WORKER in sys.argv[1:] and OF_FRAMES in os.environ
    if is_of_frames and became_daemon():
        return
    from pyspark.daemon import manager

    if is_of_frames:
        with redirect_stdout(sys.stderr):  # Spark reads the port of the daemon from the other
            try:
                load()
            except Exception as error:  # noqa: BLE001 - a worker will say what is wrong, in a task
                sys.stderr.write(f"tamis: workers will start slowly: {error}\n")
        _keep_loaded()
    manager()


def _keep_loaded() -> None:
    """Let workers, which collect garbage after each task, leave alone what is loaded."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main()
