"""The rows of a task, read in their order, in the workers: the last row of an id counts.

So a task says nothing about an id before it has seen all of its rows.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from tamis.dead_letters import DeadLetter, filter_letter
from tamis.errors import BulkError
from tamis.matcher_settings import MatcherSettings
from tamis.spark.compile.task_reports import EXAMPLES, RowCounts
from tamis.spark.dead_letters.worker import explained
from tamis.spark.tables.arrow_batches import subscription_rows
from tamis.subscriptions.bulk import BulkRows, check_ids, collector_paused, read_all


class SubscriptionStore(Protocol):
    """Something that keeps subscriptions by id, such that a later row replaces an earlier one.

    Implementers: `MatcherStore`, `FilterStore`.
    """

    def put(self, ids: list[Any], filters: list[Any], rows: list[int]) -> list[DeadLetter]:
        """Keep all good subscriptions; returns letters about the others."""

    def __len__(self) -> int: ...


class RowsReport(NamedTuple):
    """What a task says of the rows that it has read."""

    counts: RowCounts
    letters: list[DeadLetter]  # the first ones
    repeated: list[Any]  # ids that came again, if they must not

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """The kind, text and number of each row of a report."""
        if self.repeated:
            yield "twice", json.dumps(self.repeated[:EXAMPLES]), len(self.repeated)
            return
        yield "counts", json.dumps(self.counts), 0
        for letter in self.letters:
            yield "letter", json.dumps(letter), 0


def read_last_rows(
    batches: Iterable[pa.RecordBatch], duplicates: str, store: SubscriptionStore
) -> RowsReport:
    """Put the subscriptions of a task into a store, and report on them."""
    counts, letters = RowCounts(), list[DeadLetter]()
    seen, repeated = set[Any](), list[Any]()
    for ids, filters, rows in subscription_rows(batches):
        if duplicates == "error":
            known = (one for one in ids if one is not None)
            repeated += [one for one in known if one in seen or seen.add(one)]  # type: ignore[func-returns-value]  # None: not seen
        before = len(store)
        bad = store.put(ids, filters, rows)
        letters += bad[: EXAMPLES - len(letters)]
        new = len(store) - before
        counts += (len(ids), new, len(bad), len(ids) - len(bad) - new)
    return RowsReport(counts, letters, repeated)


class FilterStore:
    """By id, what `read` returns for the position, the id and the text of a filter, or refuses."""

    def __init__(self, settings: MatcherSettings, read: Callable[[int, Any, str], Any]) -> None:
        self.filters: dict[Any, Any] = {}
        self._settings = settings
        self._read = read

    def __len__(self) -> int:
        return len(self.filters)

    def put(self, ids: list[Any], filters: list[Any], rows: list[int]) -> list[DeadLetter]:
        checked = BulkRows(ids, filters, {}, {})
        check_ids(checked, None)

        def read(row: int, text: Any) -> None:
            subscription = checked.ids[row]
            self.filters[subscription] = self._read(rows[row], subscription, text)

        try:
            with collector_paused():
                read_all(checked, read, None)
        except BulkError as error:
            return [
                explained(
                    filter_letter(rows[row], ids[row], filters[row], problem),
                    self._settings.skipped,
                )
                for row, _, problem in error.failures
            ]
        return []
