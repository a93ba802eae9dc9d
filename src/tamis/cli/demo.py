"""``tamis demo``: stock quotes through Spark, as a batch and as a stream, with a report."""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.interruption import interruptible
from tamis.cli.options import add_json
from tamis.cli.session import add_spark, spark_of
from tamis.errors import FileError, TamisError

if TYPE_CHECKING:
    from tamis.spark.demo.demonstration import Demonstration

EVENTS, SUBSCRIPTIONS = 400_000, 100_000
OUT = "tamis-demo"
REPORT, SUMMARY = "report.html", "summary.json"
COMMAND = "tamis demo"  # in a summary: who has written the folder

Tell = Callable[[str], object]

_DESCRIPTION = """\
Generate stock quotes and subscriptions to them, match them on Spark as a batch and then as a stream
whose subscriptions change meanwhile, and check that both find the same.

The output folder gets report.html, which any browser opens, and summary.json. If a demo before has
written it, it is replaced. Everything else is in a temporary folder, which goes at the end.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "demo",
        help="match stock quotes on Spark, as a batch and as a stream, and write a report",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--events", type=number, default=EVENTS, metavar="N",
        help=f"stock quotes (default: {EVENTS:,})",
    )  # fmt: skip
    parser.add_argument(
        "--subscriptions", type=number, default=SUBSCRIPTIONS, metavar="N",
        help=f"subscriptions at the beginning (default: {SUBSCRIPTIONS:,})",
    )  # fmt: skip
    parser.add_argument(
        "--out", default=OUT, metavar="DIR", help=f"folder for the report (default: {OUT})"
    )
    parser.add_argument("--seed", type=seed, default=1, help="of all that is random (default: 1)")
    add_spark(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def number(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or not 0 < int(text[:20]) < 10**9:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal() or not int(text[:20]) < 2**62:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, got {text!r}")
    return int(text)


def run(options: argparse.Namespace) -> None:
    """Show it, and write the report."""
    from tamis.cli.demo_page import page_of

    begin = time.monotonic()
    with prepared(Path(options.out)) as out:
        found = perform(options, _tell if sys.stderr.isatty() and not options.json else _hush)
        summary = summary_of(found, time.monotonic() - begin, str(out / REPORT))
        page_of(found).write(out / REPORT)
        write_summary(out / SUMMARY, summary)
    if options.json:
        print(json.dumps(summary))
    else:
        print("\n".join(lines_of(found, summary)))
    if found.disagreements:
        # What was found is shown all the same: it is what one wants to look at now.
        sys.stdout.flush()
        raise TamisError("batch and stream disagree:\n  " + "\n  ".join(found.disagreements[:5]))


def perform(options: argparse.Namespace, tell: Tell) -> "Demonstration":
    """Start Spark and demonstrate, in a folder that goes at the end."""
    tell("starting Spark")
    # Spark's own bar would write over our lines.
    options.conf = [("spark.ui.showConsoleProgress", "false"), *options.conf]
    with (
        tempfile.TemporaryDirectory(prefix="tamis-demo-", ignore_cleanup_errors=True) as folder,
        spark_of(options, "demo") as spark,
    ):
        from tamis.spark.demo.demonstration import Sizes, demonstrate

        sizes = Sizes(options.events, options.subscriptions, options.seed)
        return interruptible(spark, lambda: demonstrate(spark, sizes, Path(folder), tell))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _hush(_: str) -> None:
    """Nobody looks at a pipe while it fills."""


# --- the folder


@contextlib.contextmanager
def prepared(out: Path) -> Iterator[Path]:
    """The output folder, made now, so that one that cannot be written is told of at once."""
    check_folder(out)
    try:
        is_new = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror}") from None
    try:
        yield out
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # not empty: all went well
                out.rmdir()


def check_folder(out: Path) -> None:
    """Refuse a folder with anything but what a demo has written."""
    try:
        names = {path.name for path in out.iterdir()} if out.exists() else set()
    except NotADirectoryError:
        raise FileError(f"{out} exists and is no folder; name another one by --out") from None
    except OSError as error:  # a name that is too long, a folder of somebody else
        raise FileError(f"{out} cannot be written: {error.strerror}") from None
    foreign = sorted(names - {REPORT, SUMMARY})
    if not foreign and names and not _is_ours(out / SUMMARY):
        foreign = sorted(names)
    if foreign:
        raise FileError(
            f"{out} holds files that tamis demo did not write ({', '.join(foreign[:3])}); "
            "name another folder by --out"
        )


def _is_ours(summary: Path) -> bool:
    try:
        content = json.loads(summary.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("command") == COMMAND


def write_summary(path: Path, summary: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from None


# --- what is said of it


def summary_of(found: "Demonstration", seconds: float, report: str) -> dict[str, Any]:
    """The numbers, for machines."""
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


def lines_of(found: "Demonstration", summary: dict[str, Any]) -> Iterable[str]:
    """The summary, for people."""
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
    yield "times: from subscriptions in a file to matches in files, without the start of Spark"
    if found.disagreements:
        yield "BATCH AND STREAM DISAGREE"
    else:
        yield f"batch and stream agree in all {len(found.stream.batches)} micro-batches"
    yield f"report: {summary['report']}"
