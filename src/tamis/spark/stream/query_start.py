"""The start of a streaming query, which a busy machine may delay."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

STARTS = 5
LATE = "Python worker failed to connect back"


def start_query(writer: "DataStreamWriter") -> "StreamingQuery":
    """Start a query, again if its Python process was late; returns the running query.

    With Connect, a query that calls a function has a Python process of its own. It must answer
    within ten seconds, which no setting changes, and has to load PySpark first: where a machine is
    busy, that takes longer. A query whose process was late has not begun.
    """
    from pyspark.errors import PySparkException

    for _ in range(STARTS - 1):
        try:
            return writer.start()
        except PySparkException as error:
            if LATE not in str(error):
                raise
    return writer.start()
