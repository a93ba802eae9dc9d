"""``tamis stream``: matches a stream of events with subscriptions that change meanwhile."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.argument_types import bad_limit, positive, size
from tamis.cli.input_files import columns_of
from tamis.cli.interruption import interruptible
from tamis.cli.match import add_matching, add_sharding, matching_settings
from tamis.cli.options import add_json, add_report, add_schema, add_semantics, check_report
from tamis.cli.session import add_spark, command_session
from tamis.errors import FileError
from tamis.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from tamis.spark.stream.metrics import BatchMetrics

LOOK = 1.0  # seconds between two looks for the first file of events

_DESCRIPTION = """\
Match events as they arrive, with subscriptions that change meanwhile. EVENTS is a folder to which
files are moved; CHANGES is a folder to which files of changes are moved, or table:NAME. A change
is a row of id, filter and, optionally, op (upsert or delete); without an op, a row without a filter
is a deletion. A change takes effect with the next micro-batch.

The output folder gets matches/batch=N and dead_letters/batch=N. The checkpoint records the
progress: run again with the same folders, the command continues where it was, however it ended, and
every match is written once.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "stream",
        help="match events as they arrive, with subscriptions that change",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("changes", metavar="CHANGES", help="folder of changes, or table:NAME")
    parser.add_argument("events", metavar="EVENTS", help="folder of events")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the matches")
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="folder for the progress (default: OUT-checkpoint)"
    )
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument(
        "--once", action="store_true", help="stop when all events that are there are matched"
    )
    pace.add_argument(
        "--every",
        metavar="INTERVAL",
        help="start a micro-batch every '10 seconds' (default: at once)",
    )
    bound = parser.add_mutually_exclusive_group()
    bound.add_argument(
        "--max-files", type=positive, metavar="N", help="most files of events per micro-batch"
    )
    bound.add_argument(
        "--max-bytes",
        type=size,
        metavar="SIZE",
        help="approximate size of the events per micro-batch, such as 64m",
    )
    parser.add_argument(
        "--event-time",
        metavar="COLUMN",
        help="column with the time of an event, to report how old events are",
    )
    parser.add_argument(
        "--version-column",
        metavar="COLUMN",
        default="version",
        help="column that numbers the changes of a table (default: version)",
    )
    add_matching(parser, "default: id")
    parser.add_argument(
        "--max-bad",
        type=bad_limit,
        metavar="LIMIT",
        help="fail at a micro-batch if more than 1%% (or 20) of its events are bad",
    )
    add_sharding(parser)
    add_schema(parser, "inferred from the events that are there")
    add_semantics(parser)
    add_spark(parser)
    add_report(parser, "the micro-batches so far, after each of them,")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Match until there are no more events, or until interrupted."""
    from tamis.spark.files.atomic_folders import check_place
    from tamis.spark.shards.budget import BUDGET

    # Everything that can fail without Spark is checked before it is started.
    settings = matching_settings(options) | {
        "format": options.format, "event_time": options.event_time,
        "version": options.version_column, "budget": options.budget or BUDGET,
        "shards": options.shards, "max_bad": options.max_bad,
    }  # fmt: skip
    options.checkpoint = options.checkpoint or f"{options.out.rstrip('/')}-checkpoint"
    check_changes(options.changes)
    check_place(options.out)
    check_report(options.report)
    with command_session(options, "stream") as spark:

        def follow() -> None:
            _follow(spark, options, settings)

        try:
            interruptible(spark, follow)
        except KeyboardInterrupt:
            print("run the same command again to continue from here", file=sys.stderr)
            raise


def check_changes(changes: str) -> None:
    """Raise an error for changes that are not a folder; addresses are left to Spark."""
    if ":" in changes:
        return
    if not Path(changes).exists():
        raise FileError(f"{changes} does not exist; CHANGES is a folder, or table:NAME")
    if not Path(changes).is_dir():
        raise FileError(
            f"{changes} is not a folder; move the file to a folder of changes and name the folder"
        )


def _follow(spark: "SparkSession", options: argparse.Namespace, settings: dict[str, Any]) -> None:
    from tamis.spark.files.readers import read_event_stream
    from tamis.spark.stream.metrics import StreamMetrics
    from tamis.spark.stream.query import match_stream

    bounds = {"max_files": options.max_files, "max_bytes": options.max_bytes}
    seen: list[BatchMetrics] = []
    if not wait_for_events(spark, options.events, is_once=options.once):
        write_report(seen, options)
        if not options.json:
            print("nothing new to match")
        return
    columns = columns_to_read(options.checkpoint, settings["schema"])
    events = read_event_stream(spark, options.events, known=columns, **bounds)

    def report(found: "BatchMetrics") -> None:
        print_batch(found, is_json=options.json)
        seen.append(found)
        write_report(seen, options)

    metrics = StreamMetrics(options.checkpoint, report)
    spark.streams.addListener(metrics)
    try:
        query = match_stream(
            events, options.changes, options.out, checkpoint=options.checkpoint,
            event_id=options.event_id or "id",
            trigger="available now" if options.once else options.every, **settings,
        )  # fmt: skip
        query.awaitTermination()
        metrics.catch_up(query)
    finally:
        spark.streams.removeListener(metrics)
    if not metrics.batches:
        write_report(seen, options)
        if not options.json:
            print("nothing new to match")


def write_report(batches: "list[BatchMetrics]", options: argparse.Namespace) -> None:
    """Write the page of ``--report``."""
    if options.report is not None:
        from tamis.cli.stream_page import report_page

        report_page(batches, options.out).write(options.report)


def wait_for_events(spark: "SparkSession", events: str, *, is_once: bool) -> bool:
    """Wait for the first file of events, unless `is_once`; returns whether there is one.

    What the columns of events are, and what format their files have, is not known before.
    """
    from tamis.spark.files.readers import has_files

    is_said = False
    while not has_files(spark, events):
        if is_once:
            return False
        if not is_said:
            print(f"waiting for the first file in {events}", file=sys.stderr, flush=True)
            is_said = True
        time.sleep(LOOK)  # until somebody puts a file there
    return True


def columns_to_read(checkpoint: str, schema: Schema | None) -> "StructType | None":
    """The columns that are known without looking at files: of the checkpoint, of ``--schema``."""
    from tamis.spark.files.known_columns import with_known
    from tamis.spark.stream.event_columns import known_columns

    known = known_columns(checkpoint)
    if schema is None:
        return known
    given = columns_of(schema)
    return given if known is None else with_known(given, known, "parquet")


def print_batch(found: Any, *, is_json: bool) -> None:
    """Print a line for a micro-batch, as JSON or as text."""
    if is_json:
        print(json.dumps(found._asdict()), flush=True)
    else:
        print(found, flush=True)
