"""The report of ``tamis demo``."""

from typing import TYPE_CHECKING

from tamis import __version__
from tamis.cli.stream_page import add_batches
from tamis.report import Page, doubling

if TYPE_CHECKING:
    from tamis.spark.demo.demonstration import Demonstration

_LEAD = (
    "Generated stock quotes, matched on Spark with subscriptions to them: by a batch job, and by a "
    "stream whose subscriptions changed while it ran."
)
_MEASURED = (
    "The batch job was measured from reading the subscriptions to writing the last match: it "
    "compiles the subscriptions, generates the events, matches them and writes the matches. It is "
    "the first one, so it also starts the Python workers and loads compiled code. The stream was "
    "measured from its start to its end. Starting Spark and the check are not included."
)
_CHECKED = (
    "For each micro-batch, the matches that the stream wrote were compared with those of a batch "
    "job with the same events, and with the version of the subscriptions that the micro-batch was "
    "pinned to: their number, and the sum of the hashes of all pairs of event and subscription."
)


def report_page(found: "Demonstration") -> Page:
    """The whole report."""
    page = Page("tamis demo", _LEAD, footer=f"tamis {__version__}, seed {found.sizes.seed}")
    _totals(page, found)
    _batch(page, found)
    _stream(page, found)
    return page


def _totals(page: Page, found: "Demonstration") -> None:
    events, batch, stream = found.sizes.events, found.batch, found.stream
    page.facts(
        [
            ("events", events),
            ("subscriptions", found.sizes.subscriptions),
            ("matches, batch", batch.matches),
            ("matches, stream", stream.matches),
            ("events/s, batch", round(events / batch.seconds)),
            ("events/s, stream", round(events / stream.seconds)),
            ("versions", len(stream.files)),
            ("batch and stream", "disagree" if found.disagreements else "agree"),
        ]
    )
    page.table(
        "Batch and stream",
        ("", "events", "matches", "seconds", "events/s", "matches/s"),
        [
            (
                name,
                events,
                one.matches,
                one.seconds,
                *(n / one.seconds for n in (events, one.matches)),
            )
            for name, one in (("batch", batch), ("stream", stream))
        ],
        note=_MEASURED,
    )
    if found.disagreements:
        page.text("Where they disagree", "\n".join(found.disagreements))


def _batch(page: Page, found: "Demonstration") -> None:
    page.part("Batch")
    edges, counts = doubling(found.batch.frequencies)
    page.histogram("Matches per event", edges, counts, axes=("matches", "events"))
    hottest = found.batch.hottest
    page.bars(
        "Subscriptions with the most matches",
        [hot.subscription for hot in hottest],
        [hot.matches for hot in hottest],
        remarks=[hot.filter for hot in hottest],
        headings=("subscription", "matches", "filter"),
    )
    page.text("Plan", found.batch.plan, note="How each worker holds the subscriptions.")


def _stream(page: Page, found: "Demonstration") -> None:
    batches = found.stream.batches
    page.part("Stream", f"{found.changes:,} changes of subscriptions were made while it ran.")
    first = "The first micro-batch compiles the subscriptions."
    add_batches(page, batches, first, _CHECKED)
