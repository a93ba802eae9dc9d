"""What Spark answers to many conditions about the same events, compared with what tamis answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from tamis import Matcher, Schema, parse
from tamis.language.evaluation import compile_tree

FILTERS_PER_JOB = 100
LEAST_ANSWERED = 0.95  # of the filters; Spark refuses few that tamis accepts
# A hundred filters of one job have parts in common, which a filter alone has not.
SETTINGS = {
    "spark.sql.ansi.enabled": "false", "spark.sql.subexpressionElimination.enabled": "false",
}  # fmt: skip
# Spark interprets what it would compile: compiling hundreds of long conditions takes a minute.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}  # fmt: skip
COMPILED = {
    "spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK",
}  # fmt: skip


class Events(NamedTuple):
    """The same events as rows of the schema, and as the table that Spark is given."""

    schema: Schema
    rows: list[tuple[Any, ...]]
    table: pa.Table
    number: str  # the column with the numbers of the events


class Difference(NamedTuple):
    """A filter and the first event that shows it."""

    filter: str
    event: dict[str, Any]
    ours: bool | None  # by the definition of the language
    is_matched: bool  # by a matcher that was given the table
    sparks: bool | None


@contextmanager
def settings_of_filters(spark: Any, *, is_interpreted: bool = False) -> Iterator[None]:
    """Let Spark answer conditions as its `filter` does."""
    chosen = SETTINGS | (INTERPRETED if is_interpreted else COMPILED)
    before = {name: spark.conf.get(name) for name in chosen}
    for name, setting in chosen.items():
        spark.conf.set(name, setting)
    try:
        yield
    finally:
        for name, setting in before.items():
            spark.conf.set(name, setting)


def answered(frame: Any, texts: list[str], number: str) -> Iterator[tuple[str, list[bool | None]]]:
    """Conditions that Spark takes, with their truth of each event."""
    for start in range(0, len(texts), FILTERS_PER_JOB):
        yield from _answered(frame, texts[start : start + FILTERS_PER_JOB], number)


def _answered(frame: Any, texts: list[str], number: str) -> Iterator[tuple[str, list[bool | None]]]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        made = frame.selectExpr(number, *(f"({text}) AS c{k}" for k, text in enumerate(texts)))
        found = made.toArrow().sort_by(number)
    except (PySparkException, Py4JJavaError):  # refused, or a value that is too large
        if len(texts) > 1:
            yield from _answered(frame, texts[: len(texts) // 2], number)
            yield from _answered(frame, texts[len(texts) // 2 :], number)
        else:
            print("Spark refuses", texts[0])  # noqa: T201 - for whoever runs it by hand
    else:
        for k, text in enumerate(texts):
            yield text, found[f"c{k}"].to_pylist()


def differences(
    frame: Any, events: Events, texts: list[str], engine: str = "sliced"
) -> Iterator[Difference]:
    """Filters that Spark answers otherwise than the definition of the language, or an engine."""
    known = list(answered(frame, texts, events.number))
    if len(known) < LEAST_ANSWERED * len(texts):
        raise AssertionError(f"Spark took only {len(known)} of {len(texts)} filters")
    matcher = Matcher(events.schema, engine=engine)
    matcher.subscribe_many([(k, text) for k, (text, _) in enumerate(known)])
    pairs = matcher.match_batch(events.table).to_pydict()
    matched = set(zip(pairs["event"], pairs["subscription"], strict=True))
    for k, (text, truths) in enumerate(known):
        condition = compile_tree(parse(text, events.schema).tree, events.schema)
        for place, (row, sparks) in enumerate(zip(events.rows, truths, strict=True)):
            ours, is_matched = condition(row), (place, k) in matched
            if ours is not sparks or is_matched is not (sparks is True):
                event = dict(zip(map(str, events.schema), row, strict=True))
                yield Difference(text, event, ours, is_matched, sparks)
                break
