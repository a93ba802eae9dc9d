"""Sessions that users have started themselves, before our functions run in them."""

import os
import sys
from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError
from tamis.spark.session.settings import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANY = "python3"  # which PySpark lets workers run if nobody says otherwise


def prepare(spark: "SparkSession") -> None:
    """Refuse a session that was stopped, and let workers on this machine run this Python.

    In an environment that is not activated, ``python3`` is another Python, without tamis. What
    ``PYSPARK_PYTHON`` or ``spark.pyspark.python`` name is left alone.
    """
    context: Any = getattr(spark, "_sc", None)
    if context is None:  # a client of a Connect server
        return
    if context._jsc is None:  # noqa: SLF001 - there is no other way to ask
        raise TamisError("the Spark session was stopped; start another one, and read the data anew")
    is_chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if is_local(context.master) and context.pythonExec == _ANY and not is_chosen:
        context.pythonExec = sys.executable
