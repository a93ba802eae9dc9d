"""Files to files: who writes the matches, and what a micro-batch of one event costs."""

import json
import shutil
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_sections import workload_files
from pipeline_sections.spark_process import Session
from pipeline_sections.timing import seconds_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tamis.matcher import Matcher

AT_ONCE = 1 << 16  # events that one process reads at once
AT_A_TURN = 5  # micro-batches of one event
EVENT_TYPES = "id bigint, symbol string, price double, volume bigint"


def written(session: Session, spec: str, events: int, size: int, times: int) -> dict[str, Any]:
    """Seconds of each writer, in turns: all pairs, from Parquet to Parquet, compiled before.

    The writers are Spark, the workers of the job, and one process without Spark, with one thread
    and with as many as Spark has. All must write the same number of pairs.
    """
    from tamis.spark import MatchJob

    spark, folder = session.spark, session.place.folder
    texts = workload_files.subscription_files(folder, spec, size)
    source = workload_files.event_files(folder, spec, events)
    job = MatchJob(workload_files.frame(spark, source), workload_files.frame(spark, texts))
    out = folder / "written"
    ways: dict[str, Callable[[], object]] = {
        "Spark's writer": lambda: job.matches.write.mode("overwrite").parquet(str(out / "spark")),
        "workers": lambda: job.write(str(out / "workers"), "parquet"),
    }
    for threads in sorted({1, session.place.cores}):
        name = f"one process, {threads} thread{'s' if threads > 1 else ''}"
        ways[name] = one_process(job.compiled.path, threads, source, out / name)  # type: ignore[union-attr]  # as a whole
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(times + 1):
        for name, way in ways.items():
            taken = seconds_of(way)
            if number:  # the first round starts and loads
                seconds[name].append(taken)
    pairs = {folder.name: _rows(folder) for folder in out.iterdir()}
    if len(set(pairs.values())) > 1:
        raise AssertionError(f"not all writers wrote the same pairs: {pairs}")
    shutil.rmtree(out)
    return {"events": events, "size": size, "pairs": next(iter(pairs.values())), "times": seconds}


def one_process(rules: Path, threads: int, source: Path, out: Path) -> Callable[[], None]:
    """The job without Spark: read, match and write, file by file."""
    from tamis.matcher import Matcher

    matcher = Matcher.load(rules, options={"threads": threads})

    def work() -> None:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for file in sorted(source.glob("*.parquet")):
            _matched(matcher, file, out / file.name)

    return work


def _matched(matcher: "Matcher", source: Path, target: Path) -> None:
    writer: pq.ParquetWriter | None = None
    for batch in pq.ParquetFile(source).iter_batches(AT_ONCE):
        for table in matcher.match_batches(batch, event_id="id"):
            writer = writer or pq.ParquetWriter(target, table.schema)
            writer.write_table(table)
    if writer is not None:
        writer.close()


def _rows(folder: Path) -> int:
    return sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))


def small_batches(session: Session, size: int, number: int) -> dict[str, list[float]]:
    """Seconds of micro-batches of one event: of tamis, and of Spark itself.

    *nothing* is a micro-batch that nobody looks at, *empty function* one whose event goes to Python
    workers and back to the driver, *tamis* one that is matched with `size` subscriptions and
    written. The three take turns: a few events come, and each query takes them, one at a time. The
    first turn is left out, and so is the first micro-batch of each turn, since they start and load.
    """
    from tamis.spark import match_stream

    spark, folder = session.spark, session.place.folder / "small"
    for name in ("events", "changes"):
        (folder / name).mkdir(parents=True)
    at_once = min(AT_A_TURN, number)
    texts = (f"symbol = 'S{k % 50}' AND price < {k}" for k in range(size))
    rows = [json.dumps({"id": k, "filter": text}) + "\n" for k, text in enumerate(texts)]
    (folder / "changes/0.jsonl").write_text("".join(rows), encoding="utf-8")

    def source() -> "DataFrame":
        reader = spark.readStream.schema(EVENT_TYPES).option("maxFilesPerTrigger", 1)
        return reader.json(str(folder / "events"))

    def bare(name: str, look: Callable[["DataFrame", int], None]) -> Any:
        writer = source().writeStream.foreachBatch(look).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(folder / f"{name}-checkpoint")).start()

    queries: dict[str, Callable[[], Any]] = {
        "nothing": lambda: bare("nothing", lambda _frame, _number: None),
        "empty function": lambda: bare("empty", _through_python),
        "tamis": lambda: match_stream(
            source(), folder / "changes", folder / "out", checkpoint=folder / "checkpoint",
            trigger="available now",
        ),
    }  # fmt: skip
    found: dict[str, list[float]] = {name: [] for name in queries}
    for turn in range(1 + -(-number // at_once)):
        for n in range(at_once + 1):
            event = {"id": n, "symbol": "S1", "price": 5.0, "volume": 3}
            file = folder / f"events/{turn:03}-{n}.json"
            file.write_text(json.dumps(event) + "\n", encoding="utf-8")
        for name, start in queries.items():
            query = start()
            query.awaitTermination()
            spent = [one["durationMs"] for one in query.recentProgress]
            taken = [one["triggerExecution"] / 1000 for one in spent if "addBatch" in one]
            found[name] += taken[1:] if turn else []
    shutil.rmtree(folder)
    return found


def _through_python(frame: "DataFrame", _number: int) -> None:
    def unchanged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches  # a function inside another goes to the workers, who cannot import ours

    frame.mapInArrow(unchanged, frame.schema).toArrow()


def lines(found: dict[str, list[float]]) -> list[list[str]]:
    """A row of a table for each way: its name, the median of its seconds, and their limits."""
    return [
        [name, f"{statistics.median(times):.2f}", f"{min(times):.2f}", f"{max(times):.2f}"]
        for name, times in found.items()
    ]
