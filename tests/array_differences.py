"""Random filters over arrays and maps, their truth compared with what Spark says.

``python tests/array_differences.py --filters 2000 --events 60 --seed 7`` looks further than the
suite does: Spark computes some hundred conditions over all events in one job, and true, false and
null must all agree.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings

from array_strategies import ARRAYS, array_filters, array_rows
from tamis import ExpressionError, parse
from tamis.events.column_values import plain_type
from tamis.language.evaluation import compile_tree

FILTERS_PER_JOB = 100
MOMENT = pa.timestamp("us", "UTC")


def drawn(filters: int, number: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Distinct filters that tamis accepts, and events."""
    texts: dict[str, None] = {}
    events: list[tuple[Any, ...]] = []

    @seed(number)
    @settings(
        max_examples=filters, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(array_filters(), array_rows())
    def gather(text: str, row: tuple[Any, ...]) -> None:
        texts[text] = None
        events.append(row)

    gather()
    return [text for text in texts if _is_accepted(text)], events


def _is_accepted(text: str) -> bool:
    try:
        parse(text, ARRAYS)
    except ExpressionError:
        return False
    return True


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


def differences(
    frame: Any, texts: list[str], events: list[tuple[Any, ...]]
) -> Iterator[tuple[str, tuple[Any, ...], Any, Any]]:
    """Filters and events that Spark answers otherwise, with both answers."""
    for start in range(0, len(texts), FILTERS_PER_JOB):
        chunk = texts[start : start + FILTERS_PER_JOB]
        columns = [f"({text}) AS c{k}" for k, text in enumerate(chunk)]
        answers = frame.selectExpr("n", *columns).toArrow().sort_by("n")
        for k, text in enumerate(chunk):
            condition = compile_tree(parse(text, ARRAYS).tree, ARRAYS)
            for event, sparks in zip(events, answers[f"c{k}"].to_pylist(), strict=True):
                ours = condition(event)
                if ours is not sparks:
                    yield text, event, ours, sparks


def main() -> None:
    """Compare as many filters and events as the options say."""
    from tamis.spark import spark_session

    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("filters", 1000), ("events", 60), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    texts, events = drawn(options.filters, options.seed)
    events = events[-options.events :]
    spark = spark_session()
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    frame = spark.createDataFrame(event_table(events)).coalesce(1).cache()
    found = list(differences(frame, texts, events))
    for text, event, ours, sparks in found[:20]:
        print(text, event, f"{ours} here, {sparks} in Spark", sep="\n  ")  # noqa: T201 - a program
    pairs = len(texts) * len(events)
    counts = f"{len(texts):,} filters, {len(events)} events, {pairs:,} pairs, {len(found)} differ"
    print(counts)  # noqa: T201 - as above


if __name__ == "__main__":
    main()
