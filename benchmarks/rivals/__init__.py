"""The contestants of `field.py`."""

from collections.abc import Callable
from importlib import import_module

from rivals.base import Contestant, LeftOut
from tamis.workloads import Workload

PAPERS = (
    "counting-list", "counting-bits", "counting-bytes", "tree", "bdd", "mbd", "sql-scan",
    "sql-grouped",
)  # fmt: skip
TAMIS = ("auto", "sliced", *PAPERS)
# Imported on demand: each of them is heavy, and memory is measured.
RIVALS = {
    "numpy": ("rivals.numpy_scan", "NumpyScan"),
    "duckdb": ("rivals.duckdb_join", "DuckdbJoin"),
    "duckdb-tuned": ("rivals.duckdb_join", "TunedDuckdbJoin"),
    "polars": ("rivals.polars_join", "PolarsJoin"),
    "polars-tuned": ("rivals.polars_join", "TunedPolarsJoin"),
    "spark": ("rivals.spark_join", "SparkJoin"),
    "spark-tuned": ("rivals.spark_join", "TunedSparkJoin"),
}
CONTESTANTS = (*TAMIS, *RIVALS)

__all__ = ["CONTESTANTS", "PAPERS", "RIVALS", "TAMIS", "Contestant", "LeftOut", "contestant"]


def contestant(name: str) -> Callable[[Workload], Contestant]:
    """The class, or function, that makes a contestant for a workload."""
    if name in RIVALS:
        module, class_name = RIVALS[name]
        made: Callable[[Workload], Contestant] = getattr(import_module(module), class_name)
        return made
    from rivals.engines import tamis_with

    return tamis_with(name)
