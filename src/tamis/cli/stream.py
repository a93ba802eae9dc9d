"""``tamis stream``: a changelog of subscriptions, a stream of events, matches as they come."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.input_files import read_typed
from tamis.cli.interruption import interruptible
from tamis.cli.match import add_matching, matching_settings, positive, size
from tamis.cli.options import add_json, add_schema, add_semantics
from tamis.cli.session import add_spark, spark_of
from tamis.errors import FileError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DESCRIPTION = """\
Match events as they come with subscriptions that change meanwhile. EVENTS is a folder to which
files are moved; CHANGES is a folder to which files of changes are moved, or table:NAME. A change
is a row of id, filter and perhaps op (upsert, delete); without an op, a row without a filter
removes. It is effective from the next micro-batch on.

The output folder gets matches/batch=N and dead_letters/batch=N. The checkpoint says how far the
command has come: given again, with the same folders, it goes on where it was, however it ended, and
every match is there once.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "stream",
        help="match events as they come, with subscriptions that change",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("changes", metavar="CHANGES", help="folder of changes, or table:NAME")
    parser.add_argument("events", metavar="EVENTS", help="folder of events")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the matches")
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="where to note the progress (default: OUT-checkpoint)"
    )
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--once", action="store_true", help="stop when all that is there was matched")
    pace.add_argument(
        "--every", metavar="INTERVAL", help="a micro-batch each '10 seconds' (default: at once)"
    )
    bound = parser.add_mutually_exclusive_group()
    bound.add_argument(
        "--max-files", type=positive, metavar="N", help="files of events in a micro-batch, at most"
    )
    bound.add_argument(
        "--max-bytes", type=size, metavar="SIZE", help="their size (64m) in a micro-batch, about"
    )
    parser.add_argument(
        "--event-time", metavar="COLUMN", help="time of an event, to say how old events are"
    )
    parser.add_argument(
        "--version-column",
        metavar="COLUMN",
        default="version",
        help="numbers the changes of a table (default: version)",
    )
    add_matching(parser, "default: id")
    add_schema(parser, "found in the events that are there")
    add_semantics(parser)
    add_spark(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Match until the end of the events, or until it is interrupted."""
    from tamis.spark.batch.output_folder import check_place

    # All that can be refused before Spark is started for nothing.
    settings = matching_settings(options) | {
        "format": options.format, "event_time": options.event_time,
        "version": options.version_column,
    }  # fmt: skip
    options.checkpoint = options.checkpoint or f"{options.out.rstrip('/')}-checkpoint"
    check_changes(options.changes)
    check_place(options.out)
    with spark_of(options, "stream") as spark:

        def follow() -> None:
            _follow(spark, options, settings)

        try:
            interruptible(spark, follow)
        except KeyboardInterrupt:
            print("the same command goes on from here", file=sys.stderr)
            raise


def check_changes(changes: str) -> None:
    """Refuse a changelog that is not there, or is one file; addresses are for Spark to look at."""
    if ":" in changes:
        return
    if not Path(changes).exists():
        raise FileError(f"{changes} does not exist; CHANGES is a folder, or table:NAME")
    if not Path(changes).is_dir():
        raise FileError(f"{changes} is no folder; move the file to a folder of changes, name that")


def _follow(spark: "SparkSession", options: argparse.Namespace, settings: dict[str, Any]) -> None:
    from tamis.spark.files.readers import read_event_stream
    from tamis.spark.stream.metrics import StreamMetrics
    from tamis.spark.stream.query import match_stream

    bounds = {"max_files": options.max_files, "max_bytes": options.max_bytes}
    events = read_typed(
        lambda **types: read_event_stream(spark, options.events, **bounds, **types), settings
    )
    metrics = StreamMetrics(options.checkpoint, lambda found: tell(found, is_json=options.json))
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
    if not metrics.batches and not options.json:
        print("nothing new to match")


def tell(found: Any, *, is_json: bool) -> None:
    """A line for each micro-batch: for machines, or for people who watch."""
    if is_json:
        print(json.dumps(found._asdict()), flush=True)
    else:
        print(found, flush=True)
