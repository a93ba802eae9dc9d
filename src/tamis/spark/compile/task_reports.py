"""What tasks that read subscriptions report to the driver: rows of ``REPORT``.

==========  ==========================  =====================================================
kind        number                      text, data
==========  ==========================  =====================================================
counts                                  `RowCounts`
letter                                  a `DeadLetter`
twice       rows whose id came before   some of these ids
file        subscriptions in the file   its size in bytes, and the attributes that it tests
rules       a counter                   a piece of the file, as data
==========  ==========================  =====================================================
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.dead_letters import DeadLetter, listing
from tamis.errors import SubscriptionError, counted
from tamis.matcher import Matcher

REPORT = "task int, kind string, number bigint, text string, data binary"
EXAMPLES = 20  # letters that a task reports; `dead_letters` has them all
PIECE = 8 << 20  # bytes of a file in one row


class RowCounts(NamedTuple):
    """How many rows of a table of subscriptions were good, bad or replaced."""

    rows: int = 0
    good: int = 0
    bad: int = 0
    replaced: int = 0  # rows whose id comes again later

    def __add__(self, other: "tuple[int, ...]") -> "RowCounts":  # type: ignore[override]  # sums, no longer tuple
        return RowCounts(*(a + b for a, b in zip(self, other, strict=True)))


class RulesReport(NamedTuple):
    """What a task says of the file that it has compiled."""

    subscriptions: int
    bytes: int
    attributes: tuple[str, ...]  # that its filters test


# --- in the workers


def report_row(
    task: int, kind: str, number: int = 0, text: str | None = None, data: bytes | None = None
) -> pa.RecordBatch:
    """One row of the report of a task."""
    return pa.record_batch(
        {
            "task": pa.array([task], pa.int32()), "kind": [kind],
            "number": pa.array([number], pa.int64()), "text": pa.array([text], pa.string()),
            "data": pa.array([data], pa.binary()),
        }
    )  # fmt: skip


def file_rows(task: int, matcher: Matcher, folder: Path) -> Iterator[pa.RecordBatch]:
    """The compiled file of a matcher, and what is in it; no rows if it has no subscriptions."""
    if not len(matcher):
        return
    path = folder / f"{task}.tamis"
    matcher.save(path)
    content = [path.stat().st_size, sorted(matcher.attributes())]
    yield report_row(task, "file", len(matcher), json.dumps(content))
    with path.open("rb") as file:
        number = 0
        while data := file.read(PIECE):
            yield report_row(task, "rules", number, data=data)
            number += 1
    path.unlink()


# --- on the driver


def read_reports(found: pa.Table) -> tuple[RowCounts, list[DeadLetter]]:
    """The counts and letters of all tasks; an error if no row can be used, or ids come twice."""
    twice, ids = 0, list[Any]()
    for text, number in _rows(found, "twice"):
        twice += number
        ids += json.loads(text)
    counts, letters = read_counts(found)
    check_rows(counts, letters, ids, twice)
    return counts, letters


def check_rows(
    counts: RowCounts, letters: list[DeadLetter], repeated: list[Any], twice: int
) -> None:
    """An error if no row can be used, or if `twice` rows have ids that came before."""
    if twice:
        raise SubscriptionError(
            f"ids of subscriptions come again in {counted(twice, 'row')}, such as "
            f"{', '.join(map(repr, repeated[:3]))}; make ids unique, or let the last row of an id "
            "count (duplicates='last')"
        )
    if not counts.rows:
        raise SubscriptionError("the table of subscriptions has no rows")
    if not counts.good:
        raise SubscriptionError(f"no subscription can be used: {listing(letters, counts.bad)}")


def read_counts(found: pa.Table) -> tuple[RowCounts, list[DeadLetter]]:
    """The sums of the counts of all tasks, and their letters, in the order of the rows."""
    counts = RowCounts()
    for text, _ in _rows(found, "counts"):
        counts += json.loads(text)
    letters = [DeadLetter(*json.loads(text)) for text, _ in _rows(found, "letter")]
    return counts, sorted(letters, key=lambda letter: letter.row)


def read_file_reports(found: pa.Table) -> dict[int, RulesReport]:
    """By task, what it says of its compiled file."""
    files = found.filter(_is(found, "file")).select(["task", "number", "text"])
    reports = {}
    for task, number, text in zip(*files.to_pydict().values(), strict=True):
        size, attributes = json.loads(text)
        reports[task] = RulesReport(number, size, tuple(attributes))
    return dict(sorted(reports.items()))


def write_files(found: pa.Table, folder: Path) -> list[Path]:
    """Write the compiled files of the tasks to a folder."""
    import numpy as np

    rows = np.flatnonzero(np.asarray(_is(found, "rules")))
    keys = found.select(["task", "number"]).take(rows).to_pydict()
    paths: list[Path] = []
    # Sorted rows, not a sorted table: Arrow would join all data, and cannot beyond 2 GB.
    for task, _, row in sorted(zip(keys["task"], keys["number"], rows.tolist(), strict=True)):
        path = folder / f"part-{task}.tamis"
        if not paths or paths[-1] != path:
            paths.append(path)
        with path.open("ab") as file:
            file.write(found["data"][row].as_buffer())
    return paths


def read_texts(found: pa.Table, kind: str) -> list[str]:
    """The texts of all rows of a kind."""
    return [text for text, _ in _rows(found, kind)]


def _rows(found: pa.Table, kind: str) -> Iterator[tuple[str, int]]:
    """Texts and numbers of the rows of a kind."""
    some = found.select(["text", "number"]).filter(_is(found, kind)).to_pydict()
    yield from zip(some["text"], some["number"], strict=True)


def _is(found: pa.Table, kind: str) -> Any:
    import pyarrow.compute as pc

    return pc.equal(found["kind"], kind)
