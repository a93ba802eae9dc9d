"""Events and subscriptions of a workload, in memory and in files."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.workloads import BLOCK, workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBSCRIPTION_SEED, EVENT_SEED = 1, 2
FILES = 4  # of a table of events: as many parts at least as there are cores to read them


def parts(spec: str) -> tuple[str, float]:
    """The name of a workload and the density of its events, of ``name`` or ``name:density``."""
    name, _, density = spec.partition(":")
    return name, float(density or 1)


_made: dict[str, pa.Table] = {}  # the longest table of events so far


def events(spec: str, count: int) -> pa.Table:
    """The first `count` events of an endless sequence, with their numbers as ``id``."""
    name, density = parts(spec)
    source = workload(name)
    have = [_made[spec]] if spec in _made else []
    first = have[0].num_rows // BLOCK if have else 0
    more = [source.event_block(block, EVENT_SEED, density)
            for block in range(first, -(-count // BLOCK))]  # fmt: skip
    if more:
        _made.clear()  # one workload at a time
        _made[spec] = pa.concat_tables([*have, *more]).combine_chunks()
    return _made[spec].slice(0, count).add_column(0, "id", pa.array(np.arange(count)))


@lru_cache(maxsize=2)
def subscriptions(spec: str, count: int) -> pa.Table:
    """Ids and filters."""
    return workload(parts(spec)[0]).subscriptions(count, SUBSCRIPTION_SEED)


def event_files(folder: Path, spec: str, count: int) -> Path:
    """A folder of Parquet files with events, written unless it is there."""
    path = folder / f"events-{spec.replace(':', '-')}-{count}"
    if not path.exists():
        _write(path, events(spec, count))
    return path


def subscription_files(folder: Path, spec: str, count: int) -> Path:
    """A folder of Parquet files with subscriptions, written unless it is there."""
    path = folder / f"subscriptions-{parts(spec)[0]}-{count}"
    if not path.exists():
        _write(path, subscriptions(spec, count))
    return path


def _write(path: Path, table: pa.Table) -> None:
    aside = path.with_name(path.name + ".part")  # a process may be ended while it writes
    aside.mkdir(exist_ok=True)
    size = -(-table.num_rows // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * size, size), aside / f"{number}.parquet")
    aside.rename(path)


def frame(spark: "SparkSession", path: Path) -> "DataFrame":
    """The data frame of such a folder."""
    return spark.read.parquet(path.absolute().as_uri())
