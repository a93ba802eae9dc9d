"""Seconds of compiling and matching as events and subscriptions grow."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from pipeline_sections import workload_files
from pipeline_sections.spark_process import Session
from pipeline_sections.timing import rounds, run, seconds_of

WARM = 4096  # events before the clock starts


def grown(session: Session, spec: str, events: int, size: int, longest: float) -> dict[str, Any]:
    """All pairs of some events and subscriptions, from Parquet files to a sink that keeps none."""
    from tamis.spark import MatchJob
    from tamis.spark.tables.event_table import EventTable

    spark, folder = session.spark, session.place.folder
    texts = workload_files.frame(spark, workload_files.subscription_files(folder, spec, size))
    frame = workload_files.frame(spark, workload_files.event_files(folder, spec, events))
    job = MatchJob(frame, texts, mode="whole")
    compiling = seconds_of(lambda: job.compiled)
    few = workload_files.frame(spark, workload_files.event_files(folder, spec, min(WARM, events)))
    found = job.matches_of(EventTable(few, "id", None, ())).count()
    times = rounds(lambda: seconds_of(partial(run, job.matches)), longest)
    kept = rules_file(folder, spec, size)
    if not kept.exists():
        shutil.copyfile(job.compiled.path, kept)  # type: ignore[union-attr]  # as a whole
    return {
        "events": events, "size": size, "compile": compiling, "match": times,
        "matches": found / min(WARM, events), "bytes": kept.stat().st_size,
    }  # fmt: skip


def rules_file(folder: Path, spec: str, size: int) -> Path:
    """Where compiled subscriptions are kept for later calls."""
    return folder / f"rules-{spec}-{size}.tamis"
