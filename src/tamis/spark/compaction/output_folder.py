"""The folder of a compacted table: subscriptions, the mapping, and those that never match."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.compaction import Report
from tamis.dead_letters import SHOWN, DeadLetter, listing
from tamis.errors import FileError
from tamis.spark.compaction.job import CompactJob
from tamis.spark.files.atomic_folders import (
    DEAD_LETTERS,
    check_place,
    whole_folder,
    write_summary,
)
from tamis.spark.files.folders import Folder

COMMAND = "tamis compact"
SUBSCRIPTIONS, MAPPING, NEVER = "subscriptions", "mapping", "never"


@dataclass(frozen=True)
class CompactionSummary:
    """The numbers of a compaction, and its first dead letters."""

    report: Report
    bad: int
    replaced: int  # by later rows of the same id
    semantics: str
    out: str
    letters: tuple[DeadLetter, ...]  # the first ones

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON can hold it."""
        numbers = self.report.to_dict() | {"bad": self.bad, "replaced": self.replaced}
        letters = [letter._asdict() for letter in self.letters]
        named = {"semantics": self.semantics, "out": self.out, "letters": letters}
        return {"command": COMMAND} | numbers | named

    def __str__(self) -> str:
        lines = [
            f"{self.report}.",
            f"The table and the mapping to the originals are in {self.out}.",
        ]
        if self.bad:
            letters = Path(self.out) / DEAD_LETTERS
            lines += ["", listing(list(self.letters), self.bad), f"all of them: {letters}"]
        return "\n".join(lines)


def check_folder(out: str) -> None:
    """Refuse a folder that is not empty."""
    check_place(out)
    folder = Folder(out)
    if folder.exists("") and folder.entries():
        raise FileError(f"{out} exists and is not empty; name another folder, or remove it first")


def write_compacted(job: CompactJob, out: str, format: str = "parquet") -> CompactionSummary:
    """Compact, and write the folder: all of it or, on a local file system, nothing."""
    check_folder(out)
    with whole_folder(out) as place:
        return _write(job, place, out, format)


def _write(job: CompactJob, place: str, out: str, format: str) -> CompactionSummary:
    report, counts = job.report, job.counts
    frames = {SUBSCRIPTIONS: job.subscriptions, MAPPING: job.mapping}
    if report.never:
        frames[NEVER] = job.never
    for name, frame in frames.items():
        writer = frame.write.format(format).mode("overwrite")
        if format == "csv":  # as `read_subscriptions` reads it
            writer = writer.options(header=True, escape='"')
        writer.save(f"{place}/{name}")
    if counts.bad:
        job.dead_letters.write.format("json").mode("overwrite").save(f"{place}/{DEAD_LETTERS}")
    summary = CompactionSummary(
        report, counts.bad, counts.replaced, job.semantics, out, tuple(job.letters[:SHOWN])
    )
    write_summary(place, json.dumps(summary.to_dict(), indent=2) + "\n")
    return summary
