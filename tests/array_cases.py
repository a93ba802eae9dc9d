"""Random filters over arrays and maps, and events, to be compared with what Spark says."""

from typing import Any

import pyarrow as pa

from array_strategies import ARRAYS, array_filters, array_rows
from plain_cases import gathered
from spark_answers import Events
from tamis.events.column_values import plain_type

MOMENT = pa.timestamp("us", "UTC")


def drawn(filters: int, events: int, number: int) -> tuple[list[str], Events]:
    """Distinct filters that tamis accepts, and events."""
    texts, rows = gathered(ARRAYS, array_filters(), array_rows(), filters, number)
    rows = rows[-events:]
    return texts, Events(ARRAYS, rows, event_table(rows), "n")


def event_table(events: list[tuple[Any, ...]]) -> pa.Table:
    """The events with their numbers, as Spark reads them."""
    columns: dict[str, pa.Array] = {"n": pa.array(range(len(events)), pa.int64())}
    for place, attribute in enumerate(ARRAYS.attributes):
        values = [event[place] for event in events]
        column = pa.array(values, plain_type(attribute), from_pandas=False)
        if "timestamp" in str(attribute.type):
            column = column.cast(pa.list_(MOMENT))
        columns[attribute.name] = column
    words = columns.pop("r.words")
    return pa.table(columns | {"r": pa.StructArray.from_arrays([words], ["words"])})
