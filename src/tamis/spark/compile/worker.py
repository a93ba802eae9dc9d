"""Compiling the subscriptions of a task, in the workers."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.dead_letters import DeadLetter
from tamis.matcher import Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.spark.compile.last_rows import read_last_rows
from tamis.spark.compile.task_reports import file_rows, report_row
from tamis.spark.dead_letters.worker import subscribe_good
from tamis.spark.tables.arrow_batches import task_number

ONE_THREAD = {"threads": 1}  # Spark starts as many workers as there are cores for them


@dataclass(frozen=True)
class MatcherStore:
    """A matcher as a store of subscriptions."""

    settings: MatcherSettings
    matcher: Matcher

    def __len__(self) -> int:
        return len(self.matcher)

    def put(self, ids: list[Any], filters: list[Any], rows: list[int]) -> list[DeadLetter]:
        return subscribe_good(self.matcher, ids, filters, rows, self.settings.skipped)


@dataclass(frozen=True)
class CompileTask:
    """The function of `mapInArrow` that compiles some subscriptions."""

    settings: MatcherSettings
    duplicates: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = task_number()
        matcher = self.settings.matcher(ONE_THREAD)
        report = read_last_rows(batches, self.duplicates, MatcherStore(self.settings, matcher))
        for kind, text, number in report.rows():
            yield report_row(task, kind, number, text)
        if not report.repeated:
            with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
                yield from file_rows(task, matcher, Path(folder))
