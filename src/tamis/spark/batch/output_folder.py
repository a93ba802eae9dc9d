"""The folder of a batch: matches, dead letters and a summary, all of them or nothing."""

import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import FileError, OptionError
from tamis.spark.batch.sinks import DEAD_LETTERS, MATCHES
from tamis.spark.dead_letters.letters import SHOWN, Letter, listing
from tamis.spark.files.folders import Folder
from tamis.spark.session.failures import spark_errors

if TYPE_CHECKING:
    from tamis.spark.batch.job import MatchJob

COMMAND = "tamis match"  # by which its own summaries are known
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
        letters = [letter._asdict() for letter in self.letters]
        return {"command": COMMAND} | self.__dict__ | {"letters": letters}

    def listing(self) -> str:
        """The first letters, for people."""
        return listing(list(self.letters), self.dead_letters)


def check_place(out: str) -> None:
    """Refuse what can never be a folder."""
    if not out.strip():
        raise OptionError("the name of the output folder is empty")
    folder = Folder(out)
    if folder.is_file(""):
        raise FileError(f"{out} exists and is no folder")
    if folder.is_local and not (above := _nearest(folder.local)).is_dir():
        raise FileError(f"{out} cannot be written: {above} is no folder")


def check_output(out: str, *, overwrite: bool) -> None:
    """Refuse to write over something that was there before."""
    check_place(out)
    folder = Folder(out)
    if not folder.exists(""):
        return
    found = folder.entries()
    if found and not overwrite:
        raise FileError(f"{out} exists and is not empty; pass --overwrite to replace it")
    foreign = [name for name in found if name not in _OURS]
    if found and not foreign and not _is_summarised(folder):
        foreign = found
    if foreign:
        raise FileError(
            f"{out} holds files that {COMMAND} did not write ({', '.join(foreign[:3])}); "
            "name another folder"
        )
    if folder.is_local and _is_fixed(folder.local):
        raise FileError(f"{out} cannot be replaced as a whole; name a folder in it")


def _is_summarised(folder: Folder) -> bool:
    """Whether a folder has our summary; elsewhere than here, one that never was completed none."""
    if not folder.exists(SUMMARY):
        return not folder.is_local
    try:
        content = json.loads(folder.read(SUMMARY))
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("command") == COMMAND


def _is_fixed(folder: Path) -> bool:
    """Whether a folder cannot be moved away: a disk is mounted there, or somebody is in it."""
    return folder.is_mount() or folder.resolve() == Path.cwd()


def _nearest(path: Path) -> Path:
    """The folder above a path that is there."""
    return next(above for above in path.parents if above.exists())


def write_job(
    job: "MatchJob", out: str, format: str = "parquet", *, overwrite: bool = False  # noqa: A002 - Spark's name
) -> Summary:  # fmt: skip
    """Match, and write the folder.

    On a local file system everything is written aside and moved to its place at the end.
    Elsewhere it is written in place, and the summary, which comes last, says that it is complete.
    """
    check_output(out, overwrite=overwrite)
    folder = Folder(out)
    if not folder.is_local:
        if overwrite:
            folder.delete(SUMMARY)
        folder.make()
        return _write(job, out, out, format)
    target = folder.local.resolve()
    # Above folders that are still to be made: if this fails, they are not made.
    aside = _nearest(target) / f".{target.name}-{uuid.uuid4().hex}"
    try:
        aside.mkdir()
        with spark_errors():
            summary = _write(job, f"file:{aside}", out, format)
        _move(aside, target)
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror}") from None
    except FileError as error:  # of files that nobody has heard of
        raise FileError(str(error).replace(str(aside), out)) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return summary


def _move(aside: Path, target: Path) -> None:
    """Put a folder into its place; one that is there stays if that fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        aside.rename(target)
        return
    old = aside.with_name(f"{aside.name}-old")
    target.rename(old)
    try:
        aside.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


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
