"""Reading and compiling many changes of subscriptions, in the workers."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from tamis.spark.stream.stream_schema import StreamSchema
from tamis.spark.tables.arrow_batches import FILTERS_AT_ONCE, subscription_rows, task_number
from tamis.spark.tables.match_schema import ID_TYPES

LETTERS = 1000  # that one task keeps of a large change; all of them are counted


READ = "kind string, number bigint, text string, id {id_type}"  # what `ReadChangesTask` returns


class ChangesOfTask:
    """All changes of some ids, made in their order in a matcher."""

    def __init__(self, settings: MatcherSettings) -> None:
        self.matcher = settings.matcher(ONE_THREAD)
        self.made: dict[Any, str | None] = {}  # the new filter of each id, None if it is removed
        self.letters: list[DeadLetter] = []
        self.rows = 0
        self._skipped = settings.skipped

    def read(self, batches: Iterable[pa.RecordBatch]) -> "ChangesOfTask":
        """Make the changes of record batches."""
        for ids, filters, places, ops in subscription_rows(batches):
            self.rows += len(ids)
            self.letters += apply(self.matcher, ids, filters, places, ops, self.made, self._skipped)
        return self

    def said(self) -> Iterator[tuple[str, str]]:
        """Kinds and texts of the rows of a report."""
        counts = RowCounts(self.rows, len(self.matcher), len(self.letters))
        yield "counts", json.dumps(counts)
        for letter in self.letters[:LETTERS]:
            yield "letter", json.dumps(letter)


@dataclass(frozen=True)
class CompileChangesTask:
    """The function of `mapInArrow` that compiles many changes; all of an id are in one task.

    Beside the rows of `tamis.spark.compile.task_reports` there is one of the kind ``removed``, with
    the ids that are removed.
    """

    settings: MatcherSettings

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, found = task_number(), ChangesOfTask(self.settings).read(batches)
        removed = [subscription for subscription, text in found.made.items() if text is None]
        yield report_row(task, "removed", text=json.dumps(removed))
        for kind, text in found.said():
            yield report_row(task, kind, text=text)
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            yield from file_rows(task, found.matcher, Path(folder))


@dataclass(frozen=True)
class ReadChangesTask:
    """The function of `mapInArrow` that says what many changes come to, without compiling them.

    There is a row of the kind ``change`` for each id, and ``counts`` and ``letter`` as in reports.
    """

    settings: MatcherSettings
    id_type: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = ChangesOfTask(self.settings).read(batches)
        said = [*found.said()]
        yield self._rows([kind for kind, _ in said], [text for _, text in said], [None] * len(said))
        ids, texts = list(found.made), list(found.made.values())
        for start in range(0, len(ids), FILTERS_AT_ONCE):
            some = slice(start, start + FILTERS_AT_ONCE)
            yield self._rows(["change"] * len(ids[some]), texts[some], ids[some])

    def _rows(
        self, kinds: list[str], texts: Sequence[str | None], ids: list[Any]
    ) -> pa.RecordBatch:
        return pa.record_batch(
            {
                "kind": kinds, "number": pa.array([0] * len(kinds), pa.int64()),
                "text": pa.array(texts, pa.string()), "id": pa.array(ids, ID_TYPES[self.id_type]),
            }
        )  # fmt: skip


@dataclass(frozen=True)
class NamedColumnsTask:
    """The function of `mapInArrow` that finds the columns of events that new filters test."""

    schema: StreamSchema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: set[str] = set()
        for (filters,) in subscription_rows(batches):
            found |= self.schema.named(filters)
        yield pa.record_batch({"name": pa.array(sorted(found), pa.string())})


def apply(
    matcher: Matcher, ids: list[Any], filters: list[Any], places: list[int], ops: list[str | None],
    made: dict[Any, str | None], skipped: Mapping[str, str] | None,
) -> list[DeadLetter]:  # fmt: skip
    """Make changes in their order in the matcher of a task; what they come to is put into `made`.

    Of an id, only the changes after its last removal matter. Rows are told apart by their positions
    in the lists: places of different files may be the same.
    """
    letters: list[DeadLetter] = []
    gone: dict[Any, int] = {}
    for row, (subscription, text, op) in enumerate(zip(ids, filters, ops, strict=True)):
        try:
            if is_removal(subscription, text, op):
                gone[subscription] = row
        except TamisError as error:
            letters.append(filter_letter(row, subscription, text, error))
    for subscription in gone:
        made[subscription] = None
        if subscription in matcher:
            matcher.unsubscribe(subscription)
    bad = {letter.row for letter in letters}
    kept = [row for row, one in enumerate(ids) if row > gone.get(one, -1) and row not in bad]
    letters += subscribe_good(
        matcher, [ids[row] for row in kept], [filters[row] for row in kept], kept, skipped
    )
    bad = {letter.row for letter in letters}
    for row in kept:
        if row not in bad:
            made.pop(ids[row], None)
            made[ids[row]] = filters[row]
    return [letter._replace(row=places[letter.row]) for letter in letters]
