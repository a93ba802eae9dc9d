"""Fixtures of the whole suite."""

import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings

import kernel_locks
from spark_answers import INTERPRETED
from tamis.engines import auto

# The suite is the same every time: a run that fails can be run again. `make quick` tries fewer
# cases, `make fuzz` many more and other ones.
settings.register_profile(
    "steady",
    max_examples=40,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("steady"), max_examples=20)
settings.register_profile(
    "fuzz",
    max_examples=2000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("TAMIS_HYPOTHESIS", "steady"))

# JVMs of tests do not live long enough for the second compiler of Java to pay, nor for checking
# the bytecode of Spark: without the compiler the whole pipeline on a cluster takes 67 seconds of
# processor time instead of 156, and without the check a session starts in 4.9 instead of 5.7. With
# room for compiled code and for young objects, batches and streams take a fourteenth less.
SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -Xms1g -Xmn600m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)

# The queries of tests are small and each is asked once, so Spark interprets them instead of
# compiling them, and plans them once: in every process of the tests, whatever starts Spark there.
# On a cluster and through Connect this takes 69 seconds of processor time instead of 163. Where
# Spark is the oracle, `spark_answers.settings_of_filters` lets it compile.
SMALL_QUERIES = INTERPRETED | {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
}
SETTINGS = SMALL_QUERIES | {
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
}
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS",
    " ".join(f'--conf "{name}={setting}"' for name, setting in SETTINGS.items()) + " pyspark-shell",
)

TESTS = Path(__file__).parent
# Folders and files whose tests take minutes where the kernels are not compiled.
COMPILED = {
    "kernels",
    "engines",
    "diagrams",
    "benchmarks",
    "events/test_chunks.py",
    "subscriptions/test_bulk.py",
    "subscriptions/test_bulk_failures.py",
    "test_compaction.py",
    "test_matcher_threads.py",
    "test_rules_absorb.py",
    "test_rules_damage.py",
    "test_rules_file.py",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The one Spark session of the run, started by the first test that needs it."""
    from tamis.spark import spark_session

    session = spark_session("tamis-tests", "local[2]", SMALL_QUERIES, warm_up=False)
    # PySpark logs every error it raises; the tests that provoke errors look at the errors.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    yield session
    session.stop()


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write a file of text, bytes or a table, and give its path."""

    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def pytest_configure() -> None:
    # Which engine `auto` uses must not depend on whether an earlier run has compiled the kernels,
    # or an earlier test has loaded them.
    auto.MOST_WAITING = auto.MOST_WAITING_EVALUATIONS = 0
    auto.MOST_EVALUATIONS_LOADED = auto.MOST_EVALUATIONS
    # A run that was started in the background ignores Ctrl-C, and so would the processes of tests.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" in os.environ and os.environ.get("NUMBA_DISABLE_JIT", "0") == "0":
        kernel_locks.install()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # or DuckDB complains, at the end, of objects that nobody has released


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process per core, and one more for Spark, which waits most of the time."""
    return min(os.cpu_count() or 1, 4) + (0 if config.getoption("--quick") else 1)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_slow = collection_path.is_relative_to(TESTS) and (
        collection_path.relative_to(TESTS).as_posix() in COMPILED
    )
    return True if is_slow and config.getoption("--quick") else None


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say what runs together when there are several processes, and what runs first."""
    turns = {item: turn_and_group(item) for item in items}
    for item, (turn, group) in turns.items():
        if turn == 0:
            item.add_marker(pytest.mark.spark)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: turns[item][0])  # stable: otherwise the order is that of the files
    if config.getoption("--quick"):
        config.hook.pytest_deselected(items=[item for item in items if not is_quick(item)])
        items[:] = [item for item in items if is_quick(item)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freeze what there is; stop where xdist has lost the groups: each would start a Spark."""
    collect_garbage_less_often()
    for item in session.items if getattr(session.config.option, "loadgroup", False) else ():
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError("this pytest-xdist does not know groups with this pytest")


def collect_garbage_less_often() -> None:
    """Leave the tests and their modules out of all collections; look at new objects less often.

    Collecting garbage took a third of the time of tests in plain Python.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def turn_and_group(item: pytest.Item) -> tuple[int, str | None]:
    """The longest groups come first, so that no process is left alone with one at the end."""
    if "spark" in getattr(item, "fixturenames", ()):
        return 0, "the Spark session of the run"
    if item.get_closest_marker("spark"):
        return 1, "processes with a Spark of their own"
    if item.get_closest_marker("long"):
        return 2, None  # on its own
    return 3, item.nodeid.partition("::")[0]  # fixtures of a module are made once


def is_quick(item: pytest.Item) -> bool:
    return not (item.get_closest_marker("spark") or item.get_closest_marker("long"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="only tests that need neither Spark nor the compiler"
    )
    parser.addoption("--engine", help="the only engine to run the conformance suite on")
