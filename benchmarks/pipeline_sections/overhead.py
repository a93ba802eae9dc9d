"""What Spark adds to the time of the bare engine, and where it goes.

The bare engine is `Matcher.load` of the same compiled file in this process, with one thread per
core of the session, and `match_batches` over a table that was read before, with all results taken.
The whole is the job of `MatchJob`, from Parquet files to a sink that keeps nothing. Its parts:

* *read*: the JVM reads the events, and keeps nothing.
* *to Python*: how much longer a `mapInArrow` that only counts rows takes.
* *engine*: the bare engine.
* *finishing*: how much longer the workers' function takes than the engine, called without Spark: it
  replaces numbers by ids and codes by values.
* *back*: how much longer a `mapInArrow` that gives as many matches, always the same, takes than one
  that counts rows.

*one event* is the whole job for a single event: planning, and starting tasks. A job of many events
pays this once, so the second ratio leaves it out.

A worker computes while the JVM reads and writes, so parts may overlap; then the rest, which is the
whole minus its parts, is negative.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from pipeline_sections import workload_files
from pipeline_sections.spark_process import Session
from pipeline_sections.timing import ROUNDS, run, seconds_of, spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tamis import Matcher
    from tamis.spark import MatchJob

SAMPLE = 1 << 14  # events that tell how many make a round long enough
SMALL = 1 << 16  # events of the first jobs
SCHEMAS = {
    "pairs": "event_id bigint, subscription bigint",
    "lists": "event_id bigint, subscriptions array<bigint>",
    "counts": "event_id bigint, count bigint",
}

Batches = Iterable[pa.RecordBatch]
Mapping = Callable[[Batches], Iterator[pa.RecordBatch]]
Times = dict[str, list[float]]


# --- functions for mapInArrow; local ones, so that Spark sends them and need not find this file


def counting_rows() -> Mapping:
    """A function that gives one row per partition: how many rows it has."""

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        yield pa.record_batch({"rows": [sum(batch.num_rows for batch in batches)]})

    return count


def giving_back(output: str, matches: float) -> Mapping:
    """A function that gives as many rows as a job with `matches` per event, in equal batches."""
    constant = constant_batch(output, matches)
    each = matches if output == "pairs" else 1.0

    def give(batches: Batches) -> Iterator[pa.RecordBatch]:
        owed = 0.0
        for batch in batches:
            owed += batch.num_rows * each
            while owed >= constant.num_rows:
                yield constant
                owed -= constant.num_rows
        yield constant.slice(0, int(owed))

    return give


def constant_batch(output: str, matches: float) -> pa.RecordBatch:
    """A batch of matches, as large as those of the workers."""
    from tamis.spark.tables.match_batches import BYTES, PAIRS

    if output != "lists":
        numbers = np.arange(PAIRS)
        name = "subscription" if output == "pairs" else "count"
        return pa.record_batch({"event_id": numbers, name: numbers})
    length = max(1, round(matches))
    rows = max(1, min(PAIRS, BYTES // (8 * length)))
    offsets = pa.array(np.arange(rows + 1) * length, pa.int32())
    values = pa.array(np.tile(np.arange(length), rows))
    lists = pa.ListArray.from_arrays(offsets, values)
    return pa.record_batch({"event_id": np.arange(rows), "subscriptions": lists})


# --- calls of the process


def started(session: Session, spec: str, size: int) -> dict[str, Any]:
    """Seconds of the first jobs of a session and of later ones, which find everything loaded."""
    spark, folder = session.spark, session.place.folder
    events = workload_files.frame(spark, workload_files.event_files(folder, spec, SMALL))
    texts = workload_files.frame(spark, workload_files.subscription_files(folder, spec, size))
    jobs: list[MatchJob] = []

    def compile_() -> None:
        from tamis.spark import MatchJob

        jobs.append(MatchJob(events, texts, output="counts"))
        _ = jobs[-1].compiled

    works: dict[str, Callable[[], None]] = {
        "read": lambda: run(events),
        "worker": lambda: run(events.mapInArrow(counting_rows(), "rows bigint")),
        "compile": compile_,
        "match": lambda: run(jobs[0].matches),
    }
    times = {name: [seconds_of(work) for _ in range(ROUNDS)] for name, work in works.items()}
    return {"session": session.seconds, "events": SMALL, "size": size, **times}


def measured(
    session: Session, spec: str, size: int, output: str, count: int | None, most: int, wanted: float
) -> dict[str, Any]:  # fmt: skip
    """Seconds of each round of all parts, for `count` events, or as many as take long enough."""
    from tamis import Matcher

    job, path, compiling = compiled(session, spec, size, output)
    cores = session.place.cores
    bare = Matcher.load(path, options={"threads": cores})
    alone = Matcher.load(path, options={"threads": 1})
    sample = workload_files.events(spec, min(SAMPLE, most)).drop_columns("id")
    matches = answered(bare, sample, output)[1] / sample.num_rows
    if count is None:
        seconds = min(seconds_of(lambda: answered(bare, sample, output)) for _ in range(ROUNDS))
        count = fit(sample.num_rows * wanted / seconds, most)
    files = workload_files.event_files(session.place.folder, spec, count)
    table = ds.dataset(files).to_table()
    works = _works(session, job, files, matches)
    works["bare"] = lambda: answered(bare, table.drop_columns("id"), output)
    for work in works.values():
        work()
    times: Times = {name: [] for name in works}
    for _ in range(ROUNDS):  # in turn, so that a slower moment of the machine is one for all
        for name, work in works.items():
            times[name].append(seconds_of(work))
    times["finishing"] = finishing(alone, table.slice(0, max(1, count // cores)), output)
    return {
        "events": count, "matches": matches, "compile": compiling, "bytes": path.stat().st_size,
        "parts": parts_of(times), "spread": spread(times["whole"]),
        "bare_spread": spread(times["bare"]), "times": times,
    }  # fmt: skip


def compiled(
    session: Session, spec: str, size: int, output: str
) -> "tuple[MatchJob, Path, list[float]]":
    """A job for a few events, its file, and the seconds that two compilations took."""
    from tamis.spark import MatchJob

    spark, folder = session.spark, session.place.folder
    texts = workload_files.frame(spark, workload_files.subscription_files(folder, spec, size))
    few = workload_files.frame(spark, workload_files.event_files(folder, spec, 64))
    jobs = [MatchJob(few, texts, output=output, mode="whole") for _ in range(2)]
    times = [seconds_of(lambda job=job: job.compiled) for job in jobs]  # type: ignore[misc]  # bound now
    found = jobs[0].compiled
    path: Path = found.path  # type: ignore[union-attr]  # as a whole
    return jobs[0], path, times


def fit(events: float, most: int) -> int:
    """At most `most`, in whole thousands."""
    return min(most, max(1000, int(events) // 1000 * 1000))


def answered(matcher: "Matcher", table: pa.Table, output: str) -> tuple[int, int]:
    """Events and matches; all answers were taken."""
    rows = matches = 0
    for found in matcher.match_batches(table, output):
        rows += found.num_rows
        if output == "counts":
            matches += int(np.asarray(found["count"]).sum())
        elif output == "lists":
            matches += sum(len(chunk.flatten()) for chunk in found["subscriptions"].chunks)
        else:
            matches += found.num_rows
    return rows, matches


def _works(
    session: Session, job: "MatchJob", files: Path, matches: float
) -> dict[str, Callable[[], object]]:
    from tamis.spark.tables.event_table import EventTable

    found = workload_files.frame(session.spark, files)
    events = EventTable(found, "id", None, ())
    columns = events.project(events.schema)
    given = columns.mapInArrow(giving_back(job.output, matches), SCHEMAS[job.output])
    frames: dict[str, DataFrame] = {
        "read": columns,
        "in": columns.mapInArrow(counting_rows(), "rows bigint"),
        "out": given,
        "whole": job.matches_of(events),
        "one": job.matches_of(EventTable(found.limit(1), "id", None, ())),
    }
    return {name: partial(run, frame) for name, frame in frames.items()}


def finishing(matcher: "Matcher", table: pa.Table, output: str) -> list[float]:
    """How much longer the workers' function takes than the engine, for the events of one core."""
    from tamis.spark.batch.worker import MatchTask
    from tamis.spark.tables.event_chunks import EVENTS, EventLayout

    names = tuple(table.column_names[1:])
    function = MatchTask(lambda: matcher, EventLayout(names, (), has_corrupt=False), output, "keep")
    batches = table.combine_chunks().to_batches(max_chunksize=EVENTS)

    def all_of() -> int:
        return sum(batch.num_rows for batch in function(batches))

    def engine() -> None:
        for batch in batches:
            answered(matcher, pa.Table.from_batches([batch]).drop_columns("id"), output)

    all_of()
    return [seconds_of(all_of) - seconds_of(engine) for _ in range(ROUNDS)]


def parts_of(times: Times) -> dict[str, float]:
    """The median seconds of each part, and the rest."""
    medians = {name: statistics.median(each) for name, each in times.items()}
    found = {
        "read": medians["read"],
        "to Python": medians["in"] - medians["read"],
        "engine": medians["bare"],
        "finishing": medians["finishing"],
        "back": medians["out"] - medians["in"],
    }
    whole = medians["whole"]
    return {**found, "rest": whole - sum(found.values()), "whole": whole, "one": medians["one"]}
