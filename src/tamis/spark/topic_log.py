"""The log of a broker's topic as a DataFrame."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import MissingDependency
from tamis.schema import Schema
from tamis.spark.session.failures import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

logger = logging.getLogger("tamis")


def read_topic(spark: "SparkSession", data: str | Path, topic: str) -> "DataFrame":
    """The events of a topic, as they are in the folder `data` of its broker, running or not.

    Columns are ``_offset``, ``_time``, ``_id``, ``_headers`` and ``_body``, then the attributes,
    null where an event was published before there was such an attribute. Sealed segments are read
    by Spark from their files, which executors must reach; what is newer is in the frame itself.
    Events that come later are not in it.
    """
    try:
        from tamis.broker.log.columns import own_names
        from tamis.broker.log.log_snapshot import log_snapshot
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"reading a topic needs {error.name}: pip install 'tamis[broker]'"
        ) from None

    log = log_snapshot(Path(data) / "topics" / topic)
    for damage in log.damage:
        if damage.lost:
            logger.warning("topic %s: %s", topic, damage)
    with spark_errors():
        # Old segments may have other names for the columns of the log, if an attribute that came
        # later has one of them.
        sealed: dict[Schema, list[str]] = {}
        for file in log.sealed:
            sealed.setdefault(file.schema, []).append(str(file.path.resolve()))
        parts = [
            (spark.read.schema(_spark_schema(schema)).parquet(*paths), schema)
            for schema, paths in sealed.items()
        ]
        parts += [(spark.createDataFrame(tail.table), tail.schema) for tail in log.tail]
        if not parts:
            return spark.createDataFrame([], _spark_schema(log.schema))
        names = own_names(log.schema)
        frames = [_renamed(frame, own_names(schema), names) for frame, schema in parts]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame, allowMissingColumns=True)
        return whole.select(*_spark_schema(log.schema).names)


def _renamed(frame: "DataFrame", old: Any, new: Any) -> "DataFrame":
    return frame.withColumnsRenamed(dict(zip(old, new, strict=True))) if old != new else frame


def _spark_schema(schema: Schema) -> "StructType":
    from pyspark.sql.pandas.types import from_arrow_schema

    from tamis.broker.log.columns import arrow_schema

    return from_arrow_schema(arrow_schema(schema))
