"""tamis on Spark."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.spark.batch import MatchJob, match
    from tamis.spark.session import spark_session

__all__ = ["MatchJob", "match", "spark_session"]

_HOMES = {"MatchJob": "batch", "match": "batch", "spark_session": "session"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: a driver that only wants a session loads no compiler."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tamis.spark.{_HOMES[name]}"), name)
