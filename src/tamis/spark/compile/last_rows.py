"""Subscriptions of a task that are all read before anything is said of them.

The last row of an id counts, so nothing can be said before all have been seen.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.bulk import Rows, check_ids, collector_paused, read_all
from tamis.errors import BulkError
from tamis.spark.compile.compilation import EXAMPLES, Counts, Meaning, bulks, explained
from tamis.spark.dead_letters.letters import Letter, filter_letter


class Held(NamedTuple):
    """What was read; no filters if ids stand twice and must not."""

    filters: dict[Any, Any]  # id -> what is to be known of its filter
    reports: list[tuple[str, str, int]]  # kind, text and number, as the outcome of compiling


def hold(
    batches: Iterable[pa.RecordBatch],
    meaning: Meaning,
    duplicates: str,
    use: Callable[[int, Any, str], Any],
) -> Held:
    """Read subscriptions; `use` says of a row, an id and a text what is held, or raises."""
    held: dict[Any, Any] = {}
    counts, letters, twice, seen = Counts(), list[Letter](), list[Any](), set[Any]()
    for ids, filters, rows in bulks(batches):
        if duplicates == "error":
            twice += [one for one in ids if one in seen or seen.add(one)]  # type: ignore[func-returns-value]  # None: not seen
        before = len(held)
        found = list(_read(meaning, ids, filters, rows, held, use))
        letters += found[: EXAMPLES - len(letters)]
        new = len(held) - before
        counts += (len(ids), new, len(found), len(ids) - len(found) - new)
    twice = [one for one in twice if one is not None]
    if twice:
        return Held({}, [("twice", json.dumps(twice[:EXAMPLES]), len(twice))])
    reports = [("counts", json.dumps(counts), 0)]
    reports += [("letter", json.dumps(letter), 0) for letter in letters]
    return Held(held, reports)


def _read(
    meaning: Meaning,
    ids: list[Any],
    filters: list[Any],
    positions: list[int],
    held: dict[Any, Any],
    use: Callable[[int, Any, str], Any],
) -> Iterator[Letter]:
    """Hold all that can be used; letters about the others."""
    rows = Rows(ids, filters, {})
    check_ids(rows, None)

    def read(row: int, text: Any) -> None:
        held[rows.ids[row]] = use(positions[row], rows.ids[row], text)

    try:
        with collector_paused():
            read_all(rows, read, None)
    except BulkError as error:
        for row, _, problem in error.failures:
            letter = filter_letter(positions[row], ids[row], filters[row], problem)
            yield explained(letter, meaning.skipped)
