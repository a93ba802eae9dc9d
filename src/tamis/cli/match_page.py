"""The report of ``tamis match``: the numbers, who matched most, and why rows could not be used."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis import __version__
from tamis.report import Page, doubling
from tamis.spark.files.atomic_folders import DEAD_LETTERS, MATCHES
from tamis.spark.files.folders import Folder

if TYPE_CHECKING:
    from tamis.spark.batch.output_folder import MatchSummary

TOP = 20  # subscriptions and reasons that are listed


@dataclass
class MatchStatistics:
    """What is counted in the folder of matches."""

    subscriptions: Counter[str] = field(default_factory=Counter)  # how many matches each has
    frequencies: Counter[int] = field(default_factory=Counter)  # events, by number of matches
    reasons: Counter[str] = field(default_factory=Counter)  # of dead letters, without the details

    @property
    def matched(self) -> int:
        """How many events have a match."""
        return sum(events for matches, events in self.frequencies.items() if matches)


def report_page(summary: "MatchSummary", format: str, seconds: float) -> Page:
    """The report about a folder that was just written."""
    found = read_statistics(summary, format)
    where = "on Spark" if summary.ran_on == "spark" else "in one process, without Spark"
    page = Page(
        "tamis match", f"Events matched with subscriptions {where}, written to {summary.out}.",
        footer=f"tamis {__version__}",
    )  # fmt: skip
    page.facts(
        [
            ("events", summary.events), ("subscriptions", summary.subscriptions),
            ("matches", summary.matches), ("bad events", summary.bad_events),
            ("bad subscriptions", summary.bad_subscriptions), ("replaced", summary.replaced),
            ("duplicate ids", summary.duplicate_ids), ("seconds", seconds),
            ("events/s", round(summary.events / seconds) if seconds else None),
        ]
    )  # fmt: skip
    if found.frequencies:
        silent = summary.events - summary.bad_events - sum(found.frequencies.values())
        edges, counts = doubling(({0: silent} if silent > 0 else {}) | dict(found.frequencies))
        page.histogram("Matches per event", edges, counts, axes=("matches", "events"))
    if found.subscriptions:
        top = found.subscriptions.most_common(TOP)
        page.bars(
            "Subscriptions with the most matches", [name for name, _ in top],
            [count for _, count in top], headings=("subscription", "matches", ""),
            note=f"{len(found.subscriptions):,} of {summary.subscriptions:,} have a match.",
        )  # fmt: skip
    if found.reasons:
        page.part("Rows that could not be used", f"All of them are in {summary.out}/dead_letters.")
        page.table(
            "Reasons", ("rows", "reason"), [(n, r) for r, n in found.reasons.most_common(TOP)]
        )
        rows = [(one.source, one.row, one.id, one.reason, one.value) for one in summary.letters]
        page.table(
            "The first ones", ("table", "row", "id", "reason", "value"), rows, code=("value",)
        )
    for note in summary.notes:
        page.text("Note", note)
    page.table(
        "Settings", ("setting", "value"),
        [(name, getattr(summary, name)) for name in ("semantics", "output", "mode", "ran_on")],
    )  # fmt: skip
    return page


def read_statistics(summary: "MatchSummary", format: str) -> MatchStatistics:
    """Count what is in the folder, batch by batch."""
    found = MatchStatistics()
    folder = Folder(f"{summary.out}/{MATCHES}")
    for name in folder.names():
        last: tuple[object, int] | None = None  # an event at the end of a batch may go on
        for batch in folder.dataset(name, format).to_batches():
            if not batch.num_rows:
                continue
            if summary.output == "pairs":
                found.subscriptions.update(_counted(batch.column("subscription")))
                if summary.mode == "whole":  # with shards, the matches of an event are scattered
                    last = _count_runs(batch.column(0), last, found.frequencies)
            elif summary.output == "lists":
                lists = batch.column("subscriptions")
                found.subscriptions.update(_counted(pc.list_flatten(lists)))
                found.frequencies.update(_counted_numbers(pc.list_value_length(lists)))
            else:
                found.frequencies.update(_counted_numbers(batch.column("count")))
        if last is not None:
            found.frequencies[last[1]] += 1
    if summary.dead_letters:
        letters = Folder(f"{summary.out}/{DEAD_LETTERS}")
        for name in letters.names():
            for batch in letters.dataset(name, "json").to_batches(columns=["source", "reason"]):
                for source, reason in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                    found.reasons[f"{source}: {_short(reason)}"] += 1
    return found


def _short(reason: str) -> str:
    """A reason without what differs from row to row: the place, and the text of the row."""
    first = reason.partition("\n")[0].partition(" (line ")[0]
    return first.partition(": ")[0] if first.startswith("the row cannot be read") else first


def _counted(ids: pa.Array) -> dict[str, int]:
    counts = pc.value_counts(ids)
    names = (str(one) for one in counts.field("values").to_pylist())
    return dict(zip(names, counts.field("counts").to_pylist(), strict=True))


def _counted_numbers(numbers: pa.Array) -> dict[int, int]:
    counts = pc.value_counts(numbers)
    return dict(
        zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    )


def _count_runs(
    ids: pa.Array, last: tuple[object, int] | None, frequencies: Counter[int]
) -> tuple[object, int]:
    """Count the events of pairs, which follow each other; returns the last one, which may go on."""
    differ = pc.fill_null(pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1)), True)
    ends = np.append(np.flatnonzero(np.asarray(differ)) + 1, len(ids))
    lengths = np.diff(np.append(0, ends))
    if last is not None and last[0] == ids[0].as_py():
        lengths[0] += last[1]
    elif last is not None:
        frequencies[last[1]] += 1
    values, counts = np.unique(lengths[:-1], return_counts=True)
    frequencies.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
    return ids[-1].as_py(), int(lengths[-1])
