"""Compiling many changes of subscriptions, in the workers."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.dead_letters import DeadLetter, filter_letter
from tamis.errors import TamisError
from tamis.matcher import Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.spark.compile.task_reports import RowCounts, file_rows, report_row
from tamis.spark.compile.worker import ONE_THREAD
from tamis.spark.dead_letters.worker import subscribe_good
from tamis.spark.stream.changes import is_removal
from tamis.spark.tables.arrow_batches import subscription_rows, task_number

LETTERS = 1000  # that one task keeps of a large change; all of them are counted


@dataclass(frozen=True)
class CompileChangesTask:
    """The function of `mapInArrow` that compiles many changes; all of an id are in one task.

    Beside the rows of `tamis.spark.compile.task_reports` there is one of the kind ``removed``, with
    the ids that were removed at any time.
    """

    settings: MatcherSettings

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = task_number()
        matcher = self.settings.matcher(ONE_THREAD)
        letters: list[DeadLetter] = []
        removed: dict[Any, None] = {}
        rows = 0
        for ids, filters, places, ops in subscription_rows(batches):
            rows += len(ids)
            letters += apply(matcher, ids, filters, places, ops, removed, self.settings.skipped)
        counts = RowCounts(rows, len(matcher), len(letters))
        yield report_row(task, "counts", text=json.dumps(counts))
        yield report_row(task, "removed", text=json.dumps(list(removed)))
        for letter in letters[:LETTERS]:
            yield report_row(task, "letter", text=json.dumps(letter))
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            yield from file_rows(task, matcher, Path(folder))


def apply(
    matcher: Matcher, ids: list[Any], filters: list[Any], places: list[int], ops: list[str | None],
    removed: dict[Any, None], skipped: Mapping[str, str] | None,
) -> list[DeadLetter]:  # fmt: skip
    """Make changes in their order in the matcher of a task; removed ids are added to `removed`.

    Of an id, only the changes after its last removal matter.
    """
    letters: list[DeadLetter] = []
    gone: dict[Any, int] = {}
    for row, (subscription, text, op) in enumerate(zip(ids, filters, ops, strict=True)):
        try:
            if is_removal(subscription, text, op):
                gone[subscription] = row
        except TamisError as error:
            letters.append(filter_letter(places[row], subscription, text, error))
    bad = {letter.row for letter in letters}
    for subscription in gone:
        removed[subscription] = None
        if subscription in matcher:
            matcher.unsubscribe(subscription)
    kept = [
        row
        for row, subscription in enumerate(ids)
        if row > gone.get(subscription, -1) and places[row] not in bad
    ]
    return letters + subscribe_good(
        matcher, [ids[row] for row in kept], [filters[row] for row in kept],
        [places[row] for row in kept], skipped,
    )  # fmt: skip
