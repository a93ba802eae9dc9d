"""A demonstration: generated stock quotes, matched by a batch job and by a stream with changes.

The stream starts with the subscriptions of the batch job. While it runs, changes are put into its
changelog, so that there are three versions. Afterwards the matches of every micro-batch are
compared with those that a batch job finds with the subscriptions of its version.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import TamisError
from tamis.spark.batch.job import MatchJob
from tamis.spark.demo.agreement import MicroBatch, PairSums, batch_of, differences, sums
from tamis.spark.source.data_source import register
from tamis.spark.stream.metrics import BatchMetrics, StreamMetrics, metrics_of
from tamis.spark.stream.query import AVAILABLE_NOW, match_stream
from tamis.spark.stream.versions import Versions
from tamis.workloads import workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORKLOAD = "stock"
MICRO_BATCHES = 10
MOMENTS = (2, 5)  # micro-batches after which subscriptions change
SOME = 300  # subscriptions that are added, replaced and removed by each change
HOTTEST = 10
TASKS = 16  # per micro-batch, at most

Tell = Callable[[str], object]


class Sizes(NamedTuple):
    """How much is generated."""

    events: int
    subscriptions: int
    seed: int = 1


class ChangeFile(NamedTuple):
    """A file of changes: the new filter of each id, None for one that is removed."""

    file: str
    filters: dict[int, str | None]


class HotSubscription(NamedTuple):
    """A subscription with many matches."""

    subscription: int
    matches: int
    filter: str


class BatchRun(NamedTuple):
    """The result of the batch job; compiling and matching took `seconds` together."""

    matches: int
    compiling: float
    seconds: float
    frequencies: dict[int, int]  # by number of matches, how many events have that many
    hottest: tuple[HotSubscription, ...]
    plan: str
    by_batch: dict[int, PairSums]  # of all events, by the micro-batches of the stream


class StreamRun(NamedTuple):
    """The result of the stream; `seconds` are those from its start to its end."""

    seconds: float
    batches: tuple[BatchMetrics, ...]
    files: dict[int, frozenset[str]]  # of changes, in each version
    by_batch: dict[int, PairSums]

    @property
    def matches(self) -> int:
        return sum(batch.matches for batch in self.batches)


class Demonstration(NamedTuple):
    """The result of a demonstration."""

    sizes: Sizes
    batch: BatchRun
    stream: StreamRun
    changes: int
    disagreements: tuple[str, ...]


def demonstrate(
    spark: "SparkSession", sizes: Sizes, folder: Path, tell: Tell = lambda _: None
) -> Demonstration:
    """Run the demonstration in an empty folder; `tell` is called with a line about each step."""
    register(spark)
    tell(f"generating {sizes.subscriptions:,} subscriptions and {sizes.events:,} events")
    data = DemoData(spark, sizes, folder)
    changes = make_changes(sizes)
    tell("batch: compiling the subscriptions, matching the events")
    job, compiling, seconds = run_batch(data)
    tell(f"stream: the same events in {MICRO_BATCHES} micro-batches, with changes in between")
    stream = run_stream(data, changes, tell)
    tell("counting matches")
    batch = summed_up(data, job, (compiling, seconds), stream)
    tell("checking: batch jobs with the subscriptions of each version")
    found = disagreements(data, changes, batch, stream)
    made = sum(len(change.filters) for change in changes if change.file in _taken(stream))
    return Demonstration(sizes, batch, stream, made, tuple(found))


class DemoData:
    """The generated data, and the folders of a demonstration."""

    def __init__(self, spark: "SparkSession", sizes: Sizes, folder: Path) -> None:
        self.spark = spark
        self.sizes = sizes
        self.pairs = str(folder / "batch")
        self.changelog = folder / "changelog"
        self.checkpoint = str(folder / "checkpoint")
        self.out = str(folder / "stream")
        self._tasks = min(TASKS, int(spark.conf.get("spark.sql.shuffle.partitions") or TASKS))
        # The first file of the changelog is the table of the batch job.
        self.changelog.mkdir()
        self._first = self.changelog / "0001.parquet"
        rows = self._generated(spark.read, table="subscriptions", rows=sizes.subscriptions)
        self.filters = rows.toArrow().sort_by("id")
        pq.write_table(self.filters, self._first)

    def events(self) -> "DataFrame":
        return self._generated(self.spark.read, rows=self.sizes.events, partitions=self._tasks)

    def stream(self) -> "DataFrame":
        at_once = -(-self.sizes.events // MICRO_BATCHES)
        return self._generated(
            self.spark.readStream, rows=self.sizes.events, partitions=self._tasks,
            maxRowsPerBatch=at_once,
        )  # fmt: skip

    def subscriptions(self, changed: Mapping[int, str | None]) -> "DataFrame":
        """The subscriptions after some changes."""
        from pyspark.sql import functions as f

        frame = self.spark.read.parquet(str(self._first))
        if not changed:
            return frame
        table = pa.table({"id": list(changed), "filter": pa.array(changed.values(), pa.string())})
        new = self.spark.createDataFrame(table)
        kept = frame.join(f.broadcast(new.select("id")), "id", "left_anti")
        return kept.unionByName(new.where("filter IS NOT NULL"))

    def _generated(self, reader: Any, **options: Any) -> "DataFrame":
        source = reader.format("tamis").options(workload=WORKLOAD, seed=self.sizes.seed, **options)
        frame: DataFrame = source.load()
        return frame


def make_changes(sizes: Sizes) -> list[ChangeFile]:
    """For each moment: some subscriptions are added, some replaced, some removed."""
    chance = random.Random(sizes.seed)  # noqa: S311 - a demonstration, not a secret
    some = min(SOME, sizes.subscriptions // 10)
    come = max(some, 1)  # a change is never empty
    many = (come + some) * len(MOMENTS)
    fresh = iter(workload(WORKLOAD).subscriptions(many, sizes.seed + 1)["filter"].to_pylist())
    live = set(range(sizes.subscriptions))
    next_id = sizes.subscriptions
    gone: list[int] = []
    changes = []
    for number, _ in enumerate(MOMENTS, 2):
        chosen = chance.sample(sorted(live), 2 * some)
        back = gone[: come // 2]  # some removed ones come back
        added = [*back, *range(next_id, next_id + come - len(back))]
        gone, replaced = chosen[:some], chosen[some:]
        filters: dict[int, str | None] = dict.fromkeys(gone)
        filters |= {subscription: next(fresh) for subscription in (*replaced, *added)}
        live = (live - set(gone)) | set(added)
        next_id = max(next_id, 1 + max(added))
        changes.append(ChangeFile(f"{number:04}.parquet", filters))
    return changes


def run_batch(data: DemoData) -> tuple[MatchJob, float, float]:
    """Match everything and write the pairs; returns the seconds of compiling, and in total."""
    begin = time.monotonic()
    job = MatchJob(data.events(), data.subscriptions({}))
    matches = job.matches  # compiles
    compiling = time.monotonic() - begin
    matches.write.parquet(data.pairs)
    return job, compiling, time.monotonic() - begin


def run_stream(data: DemoData, changes: Sequence[ChangeFile], tell: Tell) -> StreamRun:
    """Match everything again, while subscriptions change."""
    from pyspark.sql import functions as f

    waiting = list(zip(MOMENTS, changes, strict=True))

    def report(batch: BatchMetrics) -> None:
        tell(f"  {batch}")
        # Only after the previous change is effective, or both would be in one version.
        if waiting and batch.batch >= waiting[0][0] and batch.version > len(changes) - len(waiting):
            put(data.changelog, waiting.pop(0)[1])

    metrics = StreamMetrics(data.checkpoint, report)
    data.spark.streams.addListener(metrics)
    try:
        begin = time.monotonic()
        query = match_stream(
            data.stream(), data.changelog, data.out, checkpoint=data.checkpoint,
            trigger=AVAILABLE_NOW,
        )  # fmt: skip
        try:
            query.awaitTermination()
        finally:
            query.stop()
        seconds = time.monotonic() - begin
    finally:
        data.spark.streams.removeListener(metrics)
    versions = Versions(f"{data.checkpoint}/tamis")
    batches = tuple(committed(versions))  # a listener may hear of the last ones later
    seen = sum(batch.events for batch in batches)
    if seen != data.sizes.events:
        raise TamisError(f"the stream ended after {seen:,} of {data.sizes.events:,} events")
    files = {n: frozenset(versions.get(n).position) for n in {batch.version for batch in batches}}
    pairs = data.spark.read.parquet(f"{data.out}/matches")
    return StreamRun(seconds, batches, files, sums(pairs, f.col("batch")))


def put(changelog: Path, change: ChangeFile) -> None:
    """Move a file of changes into a changelog."""
    aside = changelog / f".{change.file}"
    table = pa.table(
        {
            "id": list(change.filters),
            "filter": pa.array(change.filters.values(), pa.string()),
            "op": ["delete" if text is None else "upsert" for text in change.filters.values()],
        }
    )
    pq.write_table(table, aside)
    aside.rename(changelog / change.file)


def committed(versions: Versions) -> Iterable[BatchMetrics]:
    """The metrics of all micro-batches that are done."""
    number = 0
    while (facts := versions.committed(number)) is not None:
        yield metrics_of(facts, [])
        number += 1


def summed_up(
    data: DemoData, job: MatchJob, times: tuple[float, float], stream: StreamRun
) -> BatchRun:
    """The result of the batch job, from the pairs that it has written."""
    from pyspark.sql import functions as f

    pairs = data.spark.read.parquet(data.pairs)
    each = pairs.groupBy("event_id").count().groupBy("count").agg(f.count(f.lit(1))).collect()
    frequencies = dict(sorted((row[0], row[1]) for row in each))
    silent = data.sizes.events - sum(frequencies.values())
    hottest = (
        pairs.groupBy("subscription").count().orderBy(f.desc("count"), "subscription")
        .limit(HOTTEST).collect()
    )  # fmt: skip
    texts = data.filters["filter"]
    by_batch = sums(pairs, batch_of(micro_batches(stream)))
    return BatchRun(
        sum(matches * events for matches, events in frequencies.items()), *times,
        ({0: silent} if silent else {}) | frequencies,
        tuple(HotSubscription(row[0], row[1], texts[row[0]].as_py()) for row in hottest),
        job.explain(), by_batch,
    )  # fmt: skip


def micro_batches(stream: StreamRun) -> list[MicroBatch]:
    """Which events were in each micro-batch: the source has them in the order of their ids."""
    found, start = [], 0
    for batch in stream.batches:
        found.append(MicroBatch(batch.batch, batch.version, start, start + batch.events))
        start += batch.events
    return found


def disagreements(
    data: DemoData, changes: Sequence[ChangeFile], batch: BatchRun, stream: StreamRun
) -> list[str]:
    """Where the stream has other matches than batch jobs; none if all is well."""
    expected = batch.by_batch | changed_sums(data, changes, stream)
    return differences(micro_batches(stream), stream.by_batch, expected)


def changed_sums(
    data: DemoData, changes: Sequence[ChangeFile], stream: StreamRun
) -> dict[int, PairSums]:  # fmt: skip
    """What batch jobs find for the micro-batches whose subscriptions had changed."""
    from pyspark.sql import functions as f

    batches = micro_batches(stream)
    found: list[DataFrame] = []
    for version, files in stream.files.items():
        changed: dict[int, str | None] = {}
        for change in changes:
            changed |= change.filters if change.file in files else {}
        if changed:
            its = [batch for batch in batches if batch.version == version]
            row = f.col("id")
            events = data.events().where((row >= its[0].start) & (row < its[-1].end))
            found.append(MatchJob(events, data.subscriptions(changed)).matches)
    if not found:
        return {}
    pairs = found[0]
    for more in found[1:]:
        pairs = pairs.unionByName(more)
    return sums(pairs, batch_of(batches))


def _taken(stream: StreamRun) -> frozenset[str]:
    """The files of changes that were effective in some micro-batch."""
    return frozenset().union(*stream.files.values())
