"""The machine that runs the benchmarks: one of its cores, its memory, its name."""

import os
import platform
import resource
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Environment variables that limit libraries to one thread when they are loaded.
ONE_THREAD = {
    "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}  # fmt: skip
ARRAY = 1 << 28  # bytes, much more than caches hold
ROUNDS = 7
LIBRARIES = ("numpy", "numba", "pyarrow", "duckdb", "polars", "pyspark")


def use_one_core(cpu: int | None) -> int:
    """Keep this process and those that it starts on one core, by default the last one."""
    os.environ.update(ONE_THREAD)
    chosen = max(os.sched_getaffinity(0)) if cpu is None else cpu
    os.sched_setaffinity(0, {chosen})
    return chosen


def limit_memory(gigabytes: float) -> None:
    """Make this process fail before the machine runs out of memory."""
    most = int(gigabytes * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def most_memory() -> float:
    """Three quarters of the machine's memory, in gigabytes."""
    return 0.75 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def described() -> dict[str, Any]:
    """The machine, its libraries and, measured now, its bytes per second."""
    read, written = bandwidth()
    return {
        "cpu": processor(), "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "read": read, "written": written,
    }  # fmt: skip


def bandwidth() -> tuple[float, float]:
    """Bytes per second that one core reads from and writes to memory, the best of some rounds."""
    import numba
    import numpy as np

    @numba.njit
    def total(array: Any) -> Any:
        found = np.uint64(0)
        for n in range(array.size):
            found += array[n]
        return found

    array = np.ones(ARRAY // 8, np.uint64)
    total(array[:8])
    return ARRAY / _best(lambda: total(array)), ARRAY / _best(lambda: array.fill(2))


def _best(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def processor() -> str:
    """The name of the processor."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
