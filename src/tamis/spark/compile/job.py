"""Compiling a table of subscriptions, on the driver."""

import uuid
from pathlib import Path
from typing import NamedTuple

from tamis.container import fingerprint_of, trust
from tamis.dead_letters import DeadLetter
from tamis.errors import choose
from tamis.matcher import Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.spark.compile.task_reports import (
    REPORT,
    RowCounts,
    read_file_reports,
    read_reports,
    write_files,
)
from tamis.spark.compile.worker import CompileTask
from tamis.spark.tables.subscription_table import DUPLICATES, SubscriptionTable


class CompiledRules(NamedTuple):
    """Subscriptions compiled into one file."""

    path: Path
    counts: RowCounts
    letters: list[DeadLetter]  # the first ones
    attributes: frozenset[str]  # that filters test


def compile_subscriptions(
    subscriptions: SubscriptionTable, settings: MatcherSettings, duplicates: str, folder: Path
) -> CompiledRules:
    """Compile a table of subscriptions on the executors, into one file of a folder."""
    choose("treatment of duplicates", duplicates, DUPLICATES)
    found = subscriptions.spread().mapInArrow(CompileTask(settings, duplicates), REPORT).toArrow()
    counts, letters = read_reports(found)
    attributes = {name for one in read_file_reports(found).values() for name in one.attributes}
    paths = write_files(found, folder)
    del found
    return CompiledRules(
        join_files(paths, folder, settings), counts, letters, frozenset(attributes)
    )


def join_files(parts: list[Path], folder: Path, settings: MatcherSettings) -> Path:
    """One file of several, laid out for events like those of the profile; the parts are deleted."""
    joined = new_file(folder)
    if len(parts) == 1:
        parts[0].rename(joined)
        return joined
    for part in parts:
        trust(fingerprint_of(part))  # the tasks of this job wrote them
    matcher = Matcher.load(parts[0], options=settings.options())
    for part in parts[1:]:
        matcher.absorb(part)
    matcher.save(joined)
    for part in parts:
        part.unlink()
    return joined


def new_file(folder: Path) -> Path:
    """A path for compiled rules; its name is new, since Spark keeps by name what was sent."""
    return folder / f"rules-{uuid.uuid4().hex}.tamis"
