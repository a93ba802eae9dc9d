"""Random filters over plain attributes, and events, to be compared with what Spark says."""

from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from spark_answers import Events
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import ExpressionError, Schema, parse


def drawn(count: int, events: int, number: int) -> tuple[list[str], Events]:
    """Distinct filters that tamis accepts, random events, and all delicate ones."""
    texts, found = gathered(SCHEMA, filters(), rows(), count, number)
    found = found[:: max(1, len(found) // events)][:events] + delicate_rows()
    return texts, Events(SCHEMA, found, event_table(found), "n")


def gathered(
    schema: Schema,
    filters: SearchStrategy[str],
    rows: SearchStrategy[tuple[Any, ...]],
    count: int,
    number: int,
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """What the strategies draw: distinct filters that tamis accepts, and rows."""
    texts: dict[str, None] = {}
    events: list[tuple[Any, ...]] = []

    @seed(number)
    @settings(
        max_examples=count, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(filters, rows)
    def gather(text: str, row: tuple[Any, ...]) -> None:
        texts[text] = None
        events.append(row)

    gather()
    return [text for text in texts if _is_accepted(text, schema)], events


def _is_accepted(text: str, schema: Schema) -> bool:
    """Whether tamis takes the filter; the generators make some that it refuses."""
    try:
        parse(text, schema)
    except ExpressionError:
        return False
    return True


def event_table(events: list[tuple[object, ...]]) -> pa.Table:
    columns = dict(zip(SCHEMA, zip(*events, strict=True), strict=True))
    moment = pa.timestamp("us", "UTC")

    def array(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array(columns[name], kind, from_pandas=False)

    record = pa.StructArray.from_arrays(
        [array("r.k", pa.int64()), array("r.name", pa.string())], ["k", "name"]
    )
    return pa.table(
        {
            "n": pa.array(range(len(events)), pa.int64()),
            "i": array("i", pa.int64()),
            "j": array("j", pa.int64()),
            "x": array("x", pa.float64()),
            "y": array("y", pa.float64()),
            "s": array("s", pa.string()),
            "t": array("t", pa.string()),
            "b": array("b", pa.bool_()),
            "c": array("c", pa.bool_()),
            "at": array("at", pa.int64()).cast(moment),
            "until": array("until", pa.int64()).cast(moment),
            "r": record,
            "odd `name`.": array("`odd ``name``.`", pa.float64()),
            "d": array("d", pa.decimal128(9, 2)),
            "e": array("e", pa.decimal128(38, 10)),
        }
    )
