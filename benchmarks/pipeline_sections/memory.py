"""The memory of Python workers that hold compiled subscriptions, as the operating system counts it.

*RSS* is all that a worker has in memory. Pages that several processes share (libraries, what was
loaded before the workers were forked, the file of subscriptions) count in full for each; in *PSS*
they count proportionally, so the sum of PSS is what all workers need together.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_sections import workload_files
from pipeline_sections.growth import rules_file
from pipeline_sections.spark_process import Session

ROW = "task int, stage string, pid int, rss bigint, pss bigint, shared bigint, file bigint"


def looking(name: str, events: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[Any]]:
    """A function for `mapInArrow`; a local one, so that Spark sends it and need not find this file.

    All tasks read their sizes at the same stage, so that they share pages with each other.
    """

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
        import os
        import pathlib

        import pyarrow as pa
        import pyarrow.dataset as ds
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()

        def sizes(path: str) -> dict[str, int]:
            """Sums of the lines ``Rss:  17 kB``, for mappings of files with a name."""
            found = {"Rss": 0, "Pss": 0, "Shared_Clean": 0, "Shared_Dirty": 0}
            wanted = True
            for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
                key, _, rest = line.partition(":")
                if " " in key:  # a mapping begins: addresses, rights, file
                    wanted = path.endswith("rollup") or line.endswith(name)
                elif key in found and wanted:
                    found[key] += int(rest.split()[0]) * 1024
            return found

        def looked(stage: str) -> Any:
            context.barrier()
            whole, file = sizes("/proc/self/smaps_rollup"), sizes("/proc/self/smaps")
            context.barrier()
            shared = whole["Shared_Clean"] + whole["Shared_Dirty"]
            numbers = {"pid": os.getpid(), "rss": whole["Rss"], "pss": whole["Pss"],
                       "shared": shared, "file": file["Rss"]}  # fmt: skip
            types = {"task": pa.int32(), "pid": pa.int32()}
            row = {"task": context.partitionId(), "stage": stage, **numbers}
            return pa.record_batch(
                {key: pa.array([value], types.get(key)) for key, value in row.items()}
            )

        for _ in batches:
            pass
        yield looked("started")
        from tamis.spark.batch.worker import MatchTask
        from tamis.spark.compile.sent_rules import SentRules
        from tamis.spark.tables.event_chunks import EventLayout

        rules = SentRules(name)
        rules()
        yield looked("opened")
        table = ds.dataset(events).to_table()
        layout = EventLayout(tuple(table.column_names[1:]), (), has_corrupt=False)
        for _ in MatchTask(rules, layout, "pairs", "keep")(table.to_batches()):
            pass
        del table
        yield looked("matched")

    return look


def held(session: Session, spec: str, size: int, events: int) -> list[dict[str, Any]]:
    """One row per worker and stage: started, subscriptions opened, events matched."""
    from tamis.spark.compile.sent_rules import send_to_executors

    spark, folder = session.spark, session.place.folder
    path = rules_file(folder, spec, size)
    files = workload_files.event_files(folder, spec, events)
    cores = session.place.cores
    function = looking(send_to_executors(spark, path), str(files))
    frame = spark.range(0, cores, 1, cores).mapInArrow(function, ROW, barrier=True)
    return [row.asDict() for row in frame.collect()]


def compiled(session: Session, spec: str, size: int) -> int:
    """Compile subscriptions, unless that was done before; returns the bytes of the file."""
    from tamis.spark import MatchJob

    spark, folder = session.spark, session.place.folder
    path: Path = rules_file(folder, spec, size)
    if not path.exists():
        texts = workload_files.frame(spark, workload_files.subscription_files(folder, spec, size))
        events = workload_files.frame(spark, workload_files.event_files(folder, spec, 64))
        job = MatchJob(events, texts, mode="whole")
        job.compiled.path.rename(path)  # type: ignore[union-attr]  # as a whole
    return path.stat().st_size
