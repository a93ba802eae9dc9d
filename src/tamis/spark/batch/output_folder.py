"""The folder of a batch: matches, dead letters and a summary, all of them or nothing."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.dead_letters import SHOWN, BadLimit, DeadLetter, listing
from tamis.errors import FileError, SubscriptionError
from tamis.spark.dead_letters.job import first_letters
from tamis.spark.files.atomic_folders import (
    DEAD_LETTERS,
    MATCHES,
    SUMMARY,
    check_place,
    whole_folder,
    write_summary,
)
from tamis.spark.files.folders import Folder

if TYPE_CHECKING:
    from tamis.spark.batch.job import MatchJob

logger = logging.getLogger("tamis")

COMMAND = "tamis match"  # in the summary: only folders that it wrote are replaced
_OURS = {MATCHES, DEAD_LETTERS, SUMMARY}


@dataclass(frozen=True)
class MatchSummary:
    """The numbers of a job, and its first dead letters."""

    subscriptions: int
    events: int
    matches: int
    bad_subscriptions: int
    bad_events: int
    replaced: int  # subscriptions, by later rows of the same id
    duplicate_ids: int  # events whose id an event before them has
    semantics: str
    output: str
    mode: str  # whole or sharded
    ran_on: str  # spark or local
    out: str
    letters: tuple[DeadLetter, ...]  # the first ones
    notes: tuple[str, ...] = ()  # what to know about the events

    @property
    def dead_letters(self) -> int:
        """How many rows could not be used."""
        return self.bad_subscriptions + self.bad_events

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON can hold it."""
        letters = [letter._asdict() for letter in self.letters]
        return (
            {"command": COMMAND} | self.__dict__ | {"letters": letters, "notes": list(self.notes)}
        )

    def listing(self) -> str:
        """The first letters, for a message."""
        return listing(list(self.letters), self.dead_letters)


def check_output(out: str, *, overwrite: bool) -> None:
    """Refuse to overwrite a folder, unless `overwrite` is given and we wrote it."""
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
            f"{out} has files that {COMMAND} did not write ({', '.join(foreign[:3])}); "
            "name another folder"
        )
    if folder.is_local and _is_fixed(folder.local):
        raise FileError(f"{out} cannot be replaced as a whole; name a folder inside it")


def _is_summarised(folder: Folder) -> bool:
    """Whether we wrote a folder; on another file system one without a summary was not completed."""
    if not folder.exists(SUMMARY):
        return not folder.is_local
    try:
        content = json.loads(folder.read(SUMMARY))
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("command") == COMMAND


def _is_fixed(folder: Path) -> bool:
    """Whether a folder cannot be renamed: a disk is mounted there, or we work in it."""
    return folder.is_mount() or folder.resolve() == Path.cwd()


def write_job(
    job: "MatchJob", out: str, format: str = "parquet", *, overwrite: bool = False,
    max_bad: BadLimit | str | int | None = None, count_ids: bool = True,
) -> MatchSummary:  # fmt: skip
    """Match, and write the folder: all of it or, on a local file system, nothing.

    With `max_bad`, such as ``"1%"`` or 20, it is an error if more of the subscriptions or more of
    the events cannot be used. `count_ids` counts ids of events that come again, which takes a pass
    over the ids.
    """
    limit = BadLimit.of(max_bad)
    check_output(out, overwrite=overwrite)
    if overwrite and not Folder(out).is_local:
        Folder(out).delete(SUMMARY)  # from now on the folder is not complete
    with whole_folder(out) as place:
        return _write(job, place, out, format, limit, count_ids=count_ids)


def _write(
    job: "MatchJob", place: str, out: str, format: str, limit: BadLimit | None,
    *, count_ids: bool,
) -> MatchSummary:  # fmt: skip
    try:
        compiled = job.compiled.counts
    except SubscriptionError as error:
        raise SubscriptionError("\n".join([str(error), *job.notes()])) from None
    if limit is not None:
        limit.check("subscriptions", compiled.bad, compiled.rows, job.compiled.letters)
    logger.info("compiled %s of %s subscriptions", compiled.good, compiled.rows)
    counted = job.write(place, format)
    logger.info("wrote %s matches of %s events", counted.matches, counted.events)
    if limit is not None and limit.is_exceeded(counted.bad, counted.events):
        some = first_letters(job.bad_events(), SHOWN)
        limit.check("events", counted.bad, counted.events, some)
    letters: list[DeadLetter] = []
    if compiled.bad or counted.bad:
        frame = job.dead_letters
        frame.write.format("json").mode("overwrite").save(f"{place}/{DEAD_LETTERS}")
        written = frame.sparkSession.read.json(f"{place}/{DEAD_LETTERS}")
        letters = first_letters(written, SHOWN)
    summary = MatchSummary(
        subscriptions=compiled.good, events=counted.events, matches=counted.matches,
        bad_subscriptions=compiled.bad, bad_events=counted.bad, replaced=compiled.replaced,
        duplicate_ids=job.duplicate_ids() if count_ids else 0,
        semantics=job.semantics, output=job.output,
        mode="sharded" if job.is_sharded else "whole", ran_on="spark", out=out,
        letters=tuple(letters), notes=tuple(job.notes()),
    )  # fmt: skip
    write_summary(place, json.dumps(summary.to_dict(), indent=2) + "\n")
    return summary
