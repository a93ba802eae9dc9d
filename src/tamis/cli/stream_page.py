"""The report of ``tamis stream``: its micro-batches so far."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from tamis import __version__
from tamis.report import Page

if TYPE_CHECKING:
    from tamis.spark.stream.metrics import BatchMetrics

MOST = 500  # micro-batches that are drawn and listed


def report_page(batches: "Sequence[BatchMetrics]", out: str) -> Page:
    """The report about a stream; older micro-batches only count in the sums."""
    page = Page(
        "tamis stream", f"Events matched as they arrived, written to {out}.",
        footer=f"tamis {__version__}",
    )  # fmt: skip
    seconds = sum(one.seconds for one in batches)
    events = sum(one.events for one in batches)
    page.facts(
        [
            ("micro-batches", len(batches)), ("events", events),
            ("matches", sum(one.matches for one in batches)),
            ("bad events", sum(one.bad for one in batches)),
            ("bad subscriptions", sum(one.bad_subscriptions for one in batches)),
            ("version", batches[-1].version if batches else None),
            ("events/s", round(events / seconds) if seconds else None),
        ]
    )  # fmt: skip
    add_batches(page, batches[-MOST:])
    return page


def add_batches(
    page: Page, batches: "Sequence[BatchMetrics]", note: str = "", last: str = ""
) -> None:
    """Add the throughput of micro-batches, and a table of them with the note `last`."""
    marks = {
        float(later.batch): f"version {later.version}"
        for earlier, later in pairwise(batches)
        if later.version != earlier.version
    }
    numbers = [one.batch for one in batches]
    page.lines(
        "Throughput: events per second", numbers,
        {"events/s": [round(one.events_per_second) for one in batches]},
        axes=("micro-batch", "events/s"), marks=marks, note=note,
    )  # fmt: skip
    page.lines(
        "Throughput: matches per second", numbers,
        {"matches/s": [round(one.matches_per_second) for one in batches]},
        axes=("micro-batch", "matches/s"), marks=marks,
    )  # fmt: skip
    page.table(
        "Micro-batches",
        ("micro-batch", "version", "events", "matches", "bad events", "seconds", "events/s"),
        [
            (one.batch, one.version, one.events, one.matches, one.bad, one.seconds,
             one.events_per_second)
            for one in batches
        ],
        note=last,
    )  # fmt: skip
