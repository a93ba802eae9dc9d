"""Fixtures of the whole suite."""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# The suite is the same every time: a run that fails can be run again. `make fuzz` looks further.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz",
    max_examples=2000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("TAMIS_HYPOTHESIS", "steady"))


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The one Spark session of the run, started by the first test that needs it."""
    from tamis.spark import spark_session

    session = spark_session(
        "tamis-tests",
        master="local[2]",
        conf={"spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2"},
    )
    # PySpark logs every error it raises; the tests that provoke errors look at the errors.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say what runs together when there are several processes, and what runs first.

    All tests of the one Spark session are a group, which begins first: it is the longest. A test
    that starts a process of its own waits for it most of the time, so such tests come next, each
    alone. Every other file is a group, so that fixtures of a module are made once.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_turn)  # stable: otherwise the order is that of the files


def _group(item: pytest.Item) -> str:
    if "spark" in getattr(item, "fixturenames", ()):
        return "spark"
    return item.nodeid if item.get_closest_marker("process") else item.nodeid.partition("::")[0]


def _turn(item: pytest.Item) -> int:
    if "spark" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if item.get_closest_marker("process") else 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", help="the only engine to run the conformance suite on")
