"""tamis on Spark."""

from tamis.spark.session import spark_session

__all__ = ["spark_session"]
