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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", help="the only engine to run the conformance suite on")
