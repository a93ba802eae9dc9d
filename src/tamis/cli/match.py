"""``tamis match``: matches events with subscriptions and writes a folder of matches."""

import argparse
import importlib.util
import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.argument_types import bad_limit, moment, positive, size
from tamis.cli.input_files import read_typed
from tamis.cli.interruption import interruptible
from tamis.cli.options import (
    add_duplicates,
    add_format,
    add_json,
    add_on_bad,
    add_report,
    add_schema,
    add_semantics,
    check_report,
    read_defaults,
    read_schema,
)
from tamis.cli.session import add_spark, command_session
from tamis.errors import MissingDependency, counted
from tamis.matcher import OUTPUTS
from tamis.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.spark.batch.output_folder import MatchSummary

_DESCRIPTION = """\
Match events with subscriptions. Files are read by extension: .parquet .json .jsonl .csv .xml, text
formats also compressed (.csv.gz); a path may be a folder of such files, a pattern in quotes, or
table:NAME. Subscriptions have the columns id and filter; the columns of the events are their
attributes. An XML file has elements <subscription> or <event>.

The output folder gets matches (event id, subscription id), summary.json and, if there are any,
dead_letters with the rows that could not be used and the reason for each. It appears only when it
is complete: a command that failed or was stopped can simply be run again.
"""

_RAN_ON = {"spark": "Spark", "local": "this process, without Spark"}


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "match",
        help="match events with subscriptions",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help="table of id and filter")
    parser.add_argument("events", metavar="EVENTS", help="file or folder of events")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the matches")
    parser.add_argument("--overwrite", action="store_true", help="replace the folder if it exists")
    parser.add_argument(
        "--local",
        action="store_true",
        help="run in this process, without Spark, as it does anyway if PySpark is not installed",
    )
    add_matching(parser, "default: id; if there is none, events are numbered")
    parser.add_argument(
        "--keep-rules",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column of the subscriptions to copy into pairs; may be given several times",
    )
    parser.add_argument(
        "--keep-id-name",
        action="store_true",
        help="name the ids of events in the matches as in the events, instead of event_id",
    )
    parser.add_argument(
        "--max-bad",
        type=bad_limit,
        metavar="LIMIT",
        help="fail if more than 1%% (or 20) of the events, or of the subscriptions, are bad",
    )
    parser.add_argument(
        "--now",
        type=moment,
        metavar="TIME",
        help="what now() is in filters: 2024-01-31T12:30:00 (default: when the command begins)",
    )
    add_duplicates(parser)
    add_sharding(parser)
    add_schema(parser, "inferred from the events")
    add_semantics(parser)
    add_spark(parser)
    add_report(parser, "the numbers, who matched most, and why rows were bad")
    add_json(parser)
    parser.set_defaults(run=run)


def add_sharding(parser: argparse.ArgumentParser) -> None:
    """Options about subscriptions that are too many for one executor."""
    parser.add_argument(
        "--budget",
        type=size,
        metavar="SIZE",
        help="compiled subscriptions beyond this size are divided into shards (default: 512m)",
    )
    parser.add_argument(
        "--shards",
        type=positive,
        metavar="N",
        help="divide them into about N shards, whatever their size",
    )


def add_matching(parser: argparse.ArgumentParser, event_id: str) -> None:
    """Options of the commands that match events; `event_id` says what the default is."""
    parser.add_argument(
        "--output", choices=OUTPUTS, default="pairs", help="form of the matches (default: pairs)"
    )
    parser.add_argument(
        "--event-id",
        metavar="COLUMN",
        help=f"column that identifies an event ({event_id})",
    )
    parser.add_argument(
        "--keep",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column of the events to copy into the matches; may be given several times",
    )
    add_on_bad(parser)
    add_format(parser)
    parser.add_argument(
        "--profile", metavar="FILE", help="profile of such events, from `tamis profile`"
    )
    parser.set_defaults(misused=parser.error)


def matching_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of the matching functions, from the options of `add_matching`."""
    if options.format == "csv" and options.output == "lists":
        options.misused("a CSV file has no lists: choose another --format, or --output pairs")
    return {
        "semantics": options.semantics, "defaults": read_defaults(options.defaults),
        "schema": None if options.schema is None else read_schema(options.schema),
        "output": options.output, "keep": options.keep, "on_bad": options.on_bad,
        "profile": options.profile,
    }  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Read, match, write, and print a summary."""
    from tamis.spark.batch.output_folder import check_output

    # Everything that can fail without Spark is checked before it is started.
    settings = matching_settings(options) | {
        "duplicates": options.duplicates, "order": options.order,
        "keep_rules": options.keep_rules, "keep_id_name": options.keep_id_name,
        "now": options.now,
    }  # fmt: skip
    check_output(options.out, overwrite=options.overwrite)
    check_report(options.report)
    begun = time.perf_counter()
    if is_local(options):
        summary = _match_here(options, settings)
    else:
        with command_session(options, "match") as spark:
            summary = interruptible(spark, lambda: _match(spark, options, settings))
    if options.report is not None:
        from tamis.cli.match_page import report_page

        seconds = time.perf_counter() - begun
        report_page(summary, options.format, seconds).write(options.report)
    if options.json:
        print(json.dumps(summary.to_dict()))
    else:
        print("\n".join(summary_lines(summary, options.out)))


def is_local(options: argparse.Namespace) -> bool:
    """Whether to match in this process: on demand, or because there is no PySpark."""
    of_spark = {
        "--master": options.master, "--conf": options.conf, "--shards": options.shards,
        "--budget": options.budget,
    }  # fmt: skip
    needed = [name for name, value in of_spark.items() if value]
    if options.local:
        if needed:
            options.misused(f"{needed[0]} is for Spark, and --local is without Spark: choose one")
        return True
    if importlib.util.find_spec("pyspark") is not None:
        return False
    if needed:
        raise MissingDependency(
            f"{needed[0]} is for Spark, which is not installed; leave it out to match in this "
            "process, or pip install 'tamis[spark]'"
        )
    return True


def _match_here(options: argparse.Namespace, settings: dict[str, Any]) -> "MatchSummary":
    from tqdm import tqdm

    from tamis.local_job.job import LocalJob

    job = LocalJob(options.events, options.subscriptions, event_id=options.event_id, **settings)
    silent = options.json or not sys.stderr.isatty()
    with without_warnings(), tqdm(unit="event", leave=False, disable=silent) as bar:
        return job.write(
            options.out, options.format, overwrite=options.overwrite, max_bad=options.max_bad,
            progress=bar.update,
        )  # fmt: skip


def _match(
    spark: "SparkSession", options: argparse.Namespace, settings: dict[str, Any]
) -> "MatchSummary":
    from tamis.spark.batch.job import MatchJob
    from tamis.spark.batch.output_folder import write_job
    from tamis.spark.files.readers import read_events, read_subscriptions
    from tamis.spark.files.row_numbers import with_row_numbers
    from tamis.spark.shards.budget import BUDGET

    events = read_typed(lambda **types: read_events(spark, options.events, **types), settings)
    event_id = options.event_id or "id"
    is_numbered = options.event_id is None and "id" not in events.columns
    if is_numbered:
        settings["schema"] = settings["schema"] or event_schema(events)  # without the row numbers
        events, event_id = with_row_numbers(events)
        settings["keep_id_name"] = False  # the numbers have no name of their own
    subscriptions = read_subscriptions(spark, options.subscriptions)
    job = MatchJob(
        events, subscriptions, event_id, budget=options.budget or BUDGET, shards=options.shards,
        **settings,
    )  # fmt: skip
    with without_warnings():
        return write_job(
            job, options.out, options.format, overwrite=options.overwrite, max_bad=options.max_bad,
            count_ids=not is_numbered,
        )  # fmt: skip


@contextmanager
def without_warnings() -> Iterator[None]:
    """No warnings about bad subscriptions, because the summary reports them.

    A level that was asked for stays.
    """
    logger = logging.getLogger("tamis")
    level = logger.level
    if level == logging.NOTSET:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def event_schema(events: "DataFrame") -> Schema:
    """The schema of the events: the columns that filters can test."""
    from tamis.file_tables.input_files import CORRUPT

    return Schema.from_spark(events.drop(CORRUPT).schema, unsupported="skip")


def summary_lines(summary: "MatchSummary", out: str) -> list[str]:
    """The summary as lines of text."""
    lines = []
    for name, value in summary.to_dict().items():
        if name not in {"command", "letters", "notes"}:
            title = name.replace("_", " ")
            shown = f"{value:,}" if isinstance(value, int) else _RAN_ON.get(value, str(value))
            lines.append(f"{title:<18} {shown}")
    if summary.duplicate_ids:
        lines += [
            "",
            f"the ids of {counted(summary.duplicate_ids, 'event')} are those of earlier events",
        ]
    if summary.notes:
        lines += ["", *summary.notes]
    if summary.dead_letters:
        lines += ["", summary.listing(), f"all of them: {Path(out) / 'dead_letters'}"]
    return lines
