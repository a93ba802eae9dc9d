"""``tamis match``: subscriptions, events, a folder of matches."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.interruption import interruptible
from tamis.cli.options import add_json, add_schema, add_semantics, read_defaults, read_schema
from tamis.cli.session import add_spark, spark_of
from tamis.matcher import OUTPUTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.spark.output import Summary

_DESCRIPTION = """\
Match events with subscriptions. Files are read by extension: .parquet .json .jsonl .csv .xml, each
also a folder of them, or table:NAME. Subscriptions have the columns id and filter; the columns of
the events are their attributes.

The output folder gets matches (the id of an event, the id of a subscription), dead_letters with the
rows that could not be used and the reason for each, if there are any, and summary.json. It appears
only when it is complete: a command that failed, or was stopped, can simply be given again.
"""


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
    add_matching(parser)
    parser.add_argument(
        "--duplicates",
        choices=("last", "error"),
        default="last",
        help="of subscriptions with one id the last row counts (default), or fail",
    )
    parser.add_argument(
        "--order", metavar="COLUMN", help="of the subscriptions: says which row is later"
    )
    parser.add_argument(
        "--budget",
        metavar="SIZE",
        default="512m",
        help="compiled subscriptions beyond this size are divided into shards (default: 512m)",
    )
    parser.add_argument(
        "--shards", type=int, metavar="N", help="divide them into about N shards in any case"
    )
    add_schema(parser, "found in the events")
    add_semantics(parser)
    add_spark(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def add_matching(parser: argparse.ArgumentParser) -> None:
    """Options of whatever matches events."""
    parser.add_argument(
        "--output", choices=OUTPUTS, default="pairs", help="form of the matches (default: pairs)"
    )
    parser.add_argument(
        "--event-id",
        metavar="COLUMN",
        help="tells events apart (default: id; without it events are numbered)",
    )
    parser.add_argument(
        "--keep",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column of the events that the matches shall have, too; several times if need be",
    )
    parser.add_argument(
        "--on-bad",
        choices=("keep", "fail"),
        default="keep",
        help="keep rows that cannot be used as dead letters and go on (default), or fail",
    )
    parser.add_argument(
        "--format",
        choices=("parquet", "json", "csv", "orc"),
        default="parquet",
        help="of the matches (default: parquet)",
    )
    parser.add_argument(
        "--profile", metavar="FILE", help="of events like these, from `tamis profile`"
    )


def run(options: argparse.Namespace) -> None:
    """Read, match, write, and print a summary."""
    from tamis.spark.output import check_output

    check_output(options.out, overwrite=options.overwrite)  # before Spark is started for nothing
    settings: dict[str, Any] = {
        "semantics": options.semantics, "defaults": read_defaults(options.defaults),
        "schema": None if options.schema is None else read_schema(options.schema),
        "output": options.output, "keep": options.keep, "on_bad": options.on_bad,
        "duplicates": options.duplicates, "order": options.order, "budget": options.budget,
        "shards": options.shards, "profile": options.profile,
    }  # fmt: skip
    with spark_of(options, "match") as spark:
        summary = interruptible(spark, lambda: _match(spark, options, settings))
    if options.json:
        print(json.dumps(summary.to_dict()))
    else:
        print("\n".join(lines_of(summary, options.out)))


def _match(
    spark: "SparkSession", options: argparse.Namespace, settings: dict[str, Any]
) -> "Summary":
    from tamis.spark.batch import MatchJob
    from tamis.spark.files import read_events, read_subscriptions
    from tamis.spark.output import write_job

    events, event_id = numbered(read_events(spark, options.events), options.event_id)
    subscriptions = read_subscriptions(spark, options.subscriptions)
    job = MatchJob(events, subscriptions, event_id, **settings)
    return write_job(job, options.out, options.format, overwrite=options.overwrite)


def numbered(events: "DataFrame", event_id: str | None) -> "tuple[DataFrame, str]":
    """The events and the column of their ids, which are row numbers if there is none."""
    if event_id is not None or "id" in events.columns:
        return events, event_id or "id"
    from pyspark.sql import functions as f

    name = "row"
    while name in events.columns:
        name += "_"
    return events.select(f.monotonically_increasing_id().alias(name), "*"), name


def lines_of(summary: "Summary", out: str) -> list[str]:
    """The summary for people."""
    lines = []
    for name, value in summary.to_dict().items():
        if name != "letters":
            title = name.replace("_", " ")
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            lines.append(f"{title:<18} {shown}")
    if summary.dead_letters:
        lines += ["", summary.listing(), f"all of them: {Path(out) / 'dead_letters'}"]
    return lines
