"""The protocol of contestants."""

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tamis.workloads import Workload

Array = np.ndarray[Any, Any]


class LeftOut(Exception):
    """A contestant does not take part; the message gives the reason."""


class Contestant(Protocol):
    """One way to find the matches of a table of events, on one core.

    Implementers: `engines.Tamis`, `numpy_scan.NumpyScan`, `duckdb_join.DuckdbJoin`,
    `polars_join.PolarsJoin`, `spark_join.SparkJoin`. The first is given filters as texts. The
    others are rivals, written by hand for one workload: they take filters in columns, and making
    these (`read`) is not timed. Everything after that is timed: what a rival does to a table of
    events before and after matching is part of its time.
    """

    def __init__(self, source: Workload) -> None:
        """For the filters of one workload; may raise `LeftOut`."""

    def read(self, subscriptions: pa.Table) -> None:
        """Take the table of ids and filters, in the form that the contestant begins with."""

    def build(self) -> None:
        """Build the structure that matches events."""

    def count(self, events: pa.Table) -> Array:
        """counts[event]."""

    def pairs(self, events: pa.Table) -> pa.Table:
        """A row (event, subscription) for each match, in any order."""

    def bytes(self) -> int | None:
        """The bytes that hold the subscriptions, with ids, if they are known."""

    def close(self) -> None:
        """Release what the garbage collector would not."""


def total(events: pa.Table) -> None:
    """Refuse events that lack an attribute: bounds and masks have no third truth value."""
    if any(column.null_count for column in events.columns):
        raise LeftOut("columns of bounds need events with all attributes")
