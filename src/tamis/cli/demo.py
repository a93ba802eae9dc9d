"""``tamis demo``: stock quotes through Spark, as a batch and as a stream, with a report."""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.argument_types import positive, seed
from tamis.cli.interruption import interruptible
from tamis.cli.options import add_json
from tamis.cli.output_folders import output_folder
from tamis.cli.session import add_spark, command_session
from tamis.errors import FileError, TamisError

if TYPE_CHECKING:
    from tamis.spark.demo.demonstration import Demonstration

EVENTS, SUBSCRIPTIONS = 400_000, 100_000
OUT = "tamis-demo"
REPORT, SUMMARY = "report.html", "summary.json"
COMMAND = "tamis demo"  # in the summary, to recognise a folder that this command wrote

Progress = Callable[[str], object]  # called with a line for each step

_DESCRIPTION = """\
Generate stock quotes and subscriptions to them, match them on Spark as a batch and then as a stream
whose subscriptions change meanwhile, and check that both find the same matches.

The output folder gets report.html, for any browser, and summary.json; a folder that an earlier demo
wrote is replaced. Everything else is in a temporary folder, which is removed at the end.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "demo",
        help="match stock quotes on Spark, as a batch and as a stream, and write a report",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--events", type=positive, default=EVENTS, metavar="N",
        help=f"number of stock quotes (default: {EVENTS:,})",
    )  # fmt: skip
    parser.add_argument(
        "--subscriptions", type=positive, default=SUBSCRIPTIONS, metavar="N",
        help=f"number of subscriptions at the beginning (default: {SUBSCRIPTIONS:,})",
    )  # fmt: skip
    parser.add_argument(
        "--out", default=OUT, metavar="DIR", help=f"folder for the report (default: {OUT})"
    )
    parser.add_argument(
        "--seed", type=seed, default=1, help="seed of everything that is random (default: 1)"
    )
    add_spark(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the demonstration, write the report and print a summary."""
    from tamis.cli.demo_page import report_page

    begin = time.monotonic()
    with output_folder(Path(options.out), COMMAND, (REPORT, SUMMARY), _is_ours) as out:
        is_watched = sys.stderr.isatty() and not options.json
        found = perform(options, _print_progress if is_watched else _no_progress)
        summary = summary_of(found, time.monotonic() - begin, str(out / REPORT))
        report_page(found).write(out / REPORT)
        write_summary(out / SUMMARY, summary)
    if options.json:
        print(json.dumps(summary))
    else:
        print("\n".join(summary_lines(found, summary)))
    if found.disagreements:
        # The summary is still printed, because it is needed to see what went wrong.
        sys.stdout.flush()
        raise TamisError("batch and stream disagree:\n  " + "\n  ".join(found.disagreements[:5]))


def perform(options: argparse.Namespace, progress: Progress) -> "Demonstration":
    """Start Spark and run the demonstration, in a temporary folder."""
    progress("starting Spark")
    # Spark's own bar would write over our lines.
    options.conf = [("spark.ui.showConsoleProgress", "false"), *options.conf]
    with (
        tempfile.TemporaryDirectory(prefix="tamis-demo-", ignore_cleanup_errors=True) as folder,
        command_session(options, "demo") as spark,
    ):
        from tamis.spark.demo.demonstration import Sizes, demonstrate

        sizes = Sizes(options.events, options.subscriptions, options.seed)
        return interruptible(spark, lambda: demonstrate(spark, sizes, Path(folder), progress))


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _no_progress(_: str) -> None:
    """Nothing is printed into a pipe, or beside JSON."""


# --- the output folder


def _is_ours(out: Path) -> bool:
    try:
        content = json.loads((out / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("command") == COMMAND


def write_summary(path: Path, summary: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from None


# --- the summary


def summary_of(found: "Demonstration", seconds: float, report: str) -> dict[str, Any]:
    """The summary as JSON data."""
    batch, stream = found.batch, found.stream
    return {
        "command": COMMAND,
        **found.sizes._asdict(),
        "batch": {
            "matches": batch.matches,
            **_rates(found.sizes.events, batch.matches, batch.seconds),
            "compiling_seconds": round(batch.compiling, 3),
        },
        "stream": {
            "matches": stream.matches,
            **_rates(found.sizes.events, stream.matches, stream.seconds),
            "versions": len(stream.files),
            "changes": found.changes,
            "micro_batches": [
                {
                    "batch": one.batch, "version": one.version, "events": one.events,
                    "matches": one.matches, "seconds": round(one.seconds, 3),
                }
                for one in stream.batches
            ],
        },
        "agree": not found.disagreements,
        "disagreements": list(found.disagreements),
        "seconds": round(seconds, 3),
        "report": report,
    }  # fmt: skip


def _rates(events: int, matches: int, seconds: float) -> dict[str, float]:
    return {
        "seconds": round(seconds, 3),
        "events_per_second": round(events / seconds, 1),
        "matches_per_second": round(matches / seconds, 1),
    }


def summary_lines(found: "Demonstration", summary: dict[str, Any]) -> Iterable[str]:
    """The summary as lines of text."""
    batch, stream = summary["batch"], summary["stream"]
    rows = [
        ("", "batch", "stream"),
        ("events", *2 * [f"{found.sizes.events:,}"]),
        ("subscriptions", *2 * [f"{found.sizes.subscriptions:,}"]),
        ("versions of them", "1", f"{stream['versions']:,}"),
        ("changes", "-", f"{stream['changes']:,}"),
        ("micro-batches", "-", f"{len(stream['micro_batches']):,}"),
        ("matches", f"{batch['matches']:,}", f"{stream['matches']:,}"),
        ("seconds", f"{batch['seconds']:,.1f}", f"{stream['seconds']:,.1f}"),
        ("events/s", *(f"{one['events_per_second']:,.0f}" for one in (batch, stream))),
        ("matches/s", *(f"{one['matches_per_second']:,.0f}" for one in (batch, stream))),
    ]
    for title, *values in rows:
        yield (f"{title:<18}" + "".join(f"{value:>14}" for value in values)).rstrip()
    yield ""
    yield "times are from reading the subscriptions to writing the matches, without starting Spark"
    if found.disagreements:
        yield "BATCH AND STREAM DISAGREE"
    else:
        yield f"batch and stream agree in all {len(found.stream.batches)} micro-batches"
    yield f"report: {summary['report']}"
