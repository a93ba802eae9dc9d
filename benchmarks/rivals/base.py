"""What takes part in the contest."""

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tamis.workloads import Workload

Array = np.ndarray[Any, Any]


class LeftOut(Exception):
    """A contestant does not take part in a contest, for the reason that this gives."""


class Contestant(Protocol):
    """One way to find the matches of a table of events, on one core.

    Implementers: `engines.Tamis`, `numpy_scan.NumpyScan`, `duckdb_join.DuckdbJoin`,
    `polars_join.PolarsJoin`, `spark_join.SparkJoin`. The first is given filters as texts. The
    others are rivals, made by hand for one workload: filters come to them in columns, and bringing
    them there (`read`) is not counted. From then on the clock runs: what a rival does to a table of
    events before and after it matches is part of its time.
    """

    def __init__(self, source: Workload) -> None:
        """For the filters of one workload; may raise `LeftOut`."""

    def read(self, subscriptions: pa.Table) -> None:
        """Take the table of ids and filters, in the form to begin with."""

    def build(self) -> None:
        """Make of it what answers questions."""

    def count(self, events: pa.Table) -> Array:
        """counts[event]."""

    def pairs(self, events: pa.Table) -> pa.Table:
        """A row (event, subscription) for each match, in any order."""

    def bytes(self) -> int | None:
        """What holds the subscriptions, ids included, if that is known."""

    def close(self) -> None:
        """Give back what a collector would not."""


def total(events: pa.Table) -> None:
    """Refuse events that lack an attribute: bounds and masks do not know a third truth value."""
    if any(column.null_count for column in events.columns):
        raise LeftOut("columns of bounds need events with all attributes")
