"""The folder of a compacted table: subscriptions, the mapping, and what was left out."""

import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.compaction import Report
from tamis.errors import FileError
from tamis.spark.batch.output_folder import SUMMARY, check_place
from tamis.spark.batch.sinks import DEAD_LETTERS
from tamis.spark.compaction.job import CompactJob
from tamis.spark.dead_letters.letters import SHOWN, Letter, listing
from tamis.spark.files.folders import Folder
from tamis.spark.session.failures import spark_errors

COMMAND = "tamis compact"
SUBSCRIPTIONS, MAPPING, NEVER = "subscriptions", "mapping", "never"


@dataclass(frozen=True)
class Summary:
    """What a table has come to."""

    report: Report
    bad: int
    replaced: int  # by later rows of the same id
    semantics: str
    out: str
    letters: tuple[Letter, ...]  # the first ones

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
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
    """Refuse to write over something that was there before."""
    check_place(out)
    folder = Folder(out)
    if folder.exists("") and folder.entries():
        raise FileError(f"{out} exists and is not empty; name another folder, or remove it first")


def write_compacted(job: CompactJob, out: str, format: str = "parquet") -> Summary:  # noqa: A002 - Spark's name
    """Compact, and write the folder.

    On a local file system everything is written aside and moved to its place at the end.
    Elsewhere it is written in place, and the summary, which comes last, says that it is complete.
    """
    check_folder(out)
    folder = Folder(out)
    if not folder.is_local:
        folder.make()
        return _write(job, out, out, format)
    target = folder.local.resolve()
    above = next(path for path in target.parents if path.exists())
    aside = above / f".{target.name}-{uuid.uuid4().hex}"
    try:
        aside.mkdir()
        with spark_errors():
            summary = _write(job, f"file:{aside}", out, format)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.rename(target)
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror}") from None
    except FileError as error:  # of files that nobody has heard of
        raise FileError(str(error).replace(str(aside), out)) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return summary


def _write(job: CompactJob, place: str, out: str, format: str) -> Summary:  # noqa: A002 - Spark's name
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
    summary = Summary(
        report, counts.bad, counts.replaced, job.semantics, out, tuple(job.letters[:SHOWN])
    )
    text = json.dumps(summary.to_dict(), indent=2) + "\n"
    where = Path(place.removeprefix("file:")) if place.startswith("file:") else place
    Folder(where).write(SUMMARY, text.encode())
    return summary
