"""The Spark session of a command: ``--master`` and ``--conf``, and a progress bar."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tamis.cli.argument_types import setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_spark(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--master",
        metavar="URL",
        help="where to run: local[4], spark://host:7077, yarn, sc://host (default: this machine)",
    )
    group.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=setting,
        help="a setting of Spark; may be given several times",
    )


@contextmanager
def command_session(options: argparse.Namespace, name: str) -> "Iterator[SparkSession]":
    """The Spark session of one command; Spark's failures become errors of tamis.

    A session that was already running is not stopped, as in tests and notebooks.
    """
    from tamis.spark.session.failures import spark_errors
    from tamis.spark.session.session import running_session, spark_session

    conf = dict(options.conf)
    # Spark's progress bar, only on a terminal.
    conf.setdefault(
        "spark.ui.showConsoleProgress", str(sys.stderr.isatty() and not options.json).lower()
    )
    if options.log_level is not None:
        conf.setdefault("spark.log.level", options.log_level.replace("warning", "warn").upper())
    before = running_session()
    spark = spark_session(f"tamis {name}", master=options.master, conf=conf)
    try:
        with spark_errors():
            yield spark
    finally:
        if before is None:
            spark.stop()
