"""The folder of a batch: matches, dead letters and a summary, all of them or nothing."""

import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import FileError
from tamis.spark.letters import SHOWN, Letter, listing
from tamis.spark.sinks import DEAD_LETTERS, MATCHES
from tamis.spark.storage import Folder

if TYPE_CHECKING:
    from tamis.spark.batch import MatchJob

SUMMARY = "summary.json"
_OURS = {MATCHES, DEAD_LETTERS, SUMMARY}


@dataclass(frozen=True)
class Summary:
    """What a job has come to."""

    subscriptions: int
    events: int
    matches: int
    bad_subscriptions: int
    bad_events: int
    replaced: int  # subscriptions, by later rows of the same id
    semantics: str
    output: str
    mode: str  # whole or sharded
    out: str
    letters: tuple[Letter, ...]  # the first ones

    @property
    def dead_letters(self) -> int:
        """How many there are."""
        return self.bad_subscriptions + self.bad_events

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self.__dict__ | {"letters": [letter._asdict() for letter in self.letters]}

    def listing(self) -> str:
        """The first letters, for people."""
        return listing(list(self.letters), self.dead_letters)


def check_output(out: str, *, overwrite: bool) -> None:
    """Refuse to write over something that was there before."""
    folder = Folder(out)
    if folder.is_file(""):
        raise FileError(f"{out} exists and is no folder")
    if not folder.exists("") or not (found := folder.entries()):
        return
    if not overwrite:
        raise FileError(f"{out} exists and is not empty; pass --overwrite to replace it")
    foreign = [name for name in found if name not in _OURS]
    if foreign:
        raise FileError(
            f"{out} holds files that tamis match did not write ({', '.join(foreign[:3])}); "
            "name another folder"
        )


def write_job(
    job: "MatchJob", out: str, format: str = "parquet", *, overwrite: bool = False  # noqa: A002 - Spark's name
) -> Summary:  # fmt: skip
    """Match, and write the folder.

    On a local file system everything is written beside the folder and moved there at the end.
    Elsewhere it is written in place, and the summary, which comes last, says that it is complete.
    """
    check_output(out, overwrite=overwrite)
    folder = Folder(out)
    if not folder.is_local:
        if overwrite:
            folder.delete(SUMMARY)
        folder.make()
        return _write(job, out, out, format)
    target = folder.local
    aside = target.parent / f".{target.name}-{uuid.uuid4().hex}"
    try:
        aside.mkdir(parents=True)
        summary = _write(job, f"file:{aside}", out, format)
        if target.exists():
            old = aside.with_name(f"{aside.name}-old")
            target.rename(old)
            aside.rename(target)
            shutil.rmtree(old)
        else:
            aside.rename(target)
    except OSError as error:
        raise FileError(f"{error.filename or out} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return summary


def _write(job: "MatchJob", place: str, out: str, format: str) -> Summary:  # noqa: A002 - Spark's name
    matched = job.counted()
    matched.frame.write.format(format).mode("overwrite").save(f"{place}/{MATCHES}")
    counted, compiled = matched.counted(), job.compiled.counts
    letters: list[Letter] = []
    if compiled.bad or counted.bad:
        frame = job.dead_letters
        frame.write.format("json").mode("overwrite").save(f"{place}/{DEAD_LETTERS}")
        written = frame.sparkSession.read.json(f"{place}/{DEAD_LETTERS}")
        rows = [row.asDict() for row in written.limit(SHOWN).collect()]
        letters = [Letter(*(row.get(name) for name in Letter._fields)) for row in rows]  # type: ignore[arg-type]  # as they were written
    summary = Summary(
        subscriptions=compiled.good, events=counted.events, matches=counted.matches,
        bad_subscriptions=compiled.bad, bad_events=counted.bad, replaced=compiled.replaced,
        semantics=job.semantics, output=job.output,
        mode="sharded" if job.is_sharded else "whole", out=out, letters=tuple(letters),
    )  # fmt: skip
    text = json.dumps(summary.to_dict(), indent=2) + "\n"
    where = Path(place.removeprefix("file:")) if place.startswith("file:") else place
    Folder(where).write(SUMMARY, text.encode())
    return summary
