"""The Spark session of a command: ``--master`` and ``--conf``, and a progress bar."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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


def setting(text: str) -> tuple[str, str]:
    """``KEY=VALUE``."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    return key.strip(), value


@contextmanager
def spark_of(options: argparse.Namespace, name: str) -> "Iterator[SparkSession]":
    """A session for one command; Spark's failures become tamis' errors.

    A session that was there before stays there, as in the tests and in a notebook.
    """
    from tamis.spark.session.failures import spark_errors
    from tamis.spark.session.session import running_session, spark_session

    conf = dict(options.conf)
    # Spark's own bar, on a terminal only.
    conf.setdefault(
        "spark.ui.showConsoleProgress", str(sys.stderr.isatty() and not options.json).lower()
    )
    before = running_session()
    spark = spark_session(f"tamis {name}", master=options.master, conf=conf)
    try:
        with spark_errors():
            yield spark
    finally:
        if before is None:
            spark.stop()
