"""tamis on Spark: matching, compacting and profiling tables and streams, and generating them.

Packages, in the order in which they use each other: `session`, `files`, `tables`, `parquet`,
`dead_letters`, `compile`, `shards`, `batch`, then `stream` and `compaction`; beside them `source`
and `demo`. In each, `job` (or `query`) is what the driver does, and `worker` what Python workers of
executors do.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.spark.batch.job import MatchJob, match
    from tamis.spark.compaction.job import CompactJob, compact
    from tamis.spark.profiles import profile
    from tamis.spark.session.session import spark_session
    from tamis.spark.source.data_source import register
    from tamis.spark.stream.metrics import StreamMetrics
    from tamis.spark.stream.query import match_stream
    from tamis.spark.topic_log import read_topic

__all__ = [
    "CompactJob",
    "MatchJob",
    "StreamMetrics",
    "compact",
    "match",
    "match_stream",
    "profile",
    "read_topic",
    "register",
    "spark_session",
]

_HOMES = {
    "CompactJob": "compaction.job",
    "MatchJob": "batch.job",
    "StreamMetrics": "stream.metrics",
    "compact": "compaction.job",
    "match": "batch.job",
    "match_stream": "stream.query",
    "profile": "profiles",
    "read_topic": "topic_log",
    "register": "source.data_source",
    "spark_session": "session.session",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a driver that only needs a session loads no compiler."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tamis.spark.{_HOMES[name]}"), name)
