"""``tamis compact``: a table of subscriptions without what is not needed."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from tamis.cli.interruption import interruptible
from tamis.cli.match import unwarned
from tamis.cli.options import (
    add_json,
    add_later_rows,
    add_schema,
    add_semantics,
    read_defaults,
    read_schema,
)
from tamis.cli.session import add_spark, spark_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.spark.compaction.output_folder import Summary

_DESCRIPTION = """\
Remove duplicate and covered subscriptions from a table, and merge those that one filter can replace
exactly. Files are those of `tamis match`; the attributes are the columns of --events, or those of
--schema.

The output folder gets subscriptions (id, filter), mapping (subscription, original, exact, filter),
never with those that can match no event and dead_letters with the rows that could not be used, if
there are any, and summary.json. An original that is not exact, which is covered or merged, matches
only if its subscription does, and has its filter in the mapping; every other matches whenever it
does. The folder appears only when it is complete.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "compact",
        help="remove subscriptions that others make unnecessary",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help="table of id and filter")
    parser.add_argument("--events", metavar="EVENTS", help="events with the attributes")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the result")
    parser.add_argument(
        "--no-merge", dest="merge", action="store_false", help="keep to filters that are there"
    )
    add_later_rows(parser)
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
        help="of the tables (default: parquet)",
    )
    add_schema(parser, "the columns of --events")
    add_semantics(parser)
    add_spark(parser)
    add_json(parser)
    parser.set_defaults(run=run, misused=parser.error)


def run(options: argparse.Namespace) -> None:
    """Read, compact, write, and print the report."""
    # All that can be refused before Spark is started for nothing.
    if (options.events is None) == (options.schema is None):
        options.misused("the attributes are those of --events or of --schema: give one of them")
    from tamis.spark.compaction.output_folder import check_folder

    settings = {
        "semantics": options.semantics, "defaults": read_defaults(options.defaults),
        "merge": options.merge, "duplicates": options.duplicates, "order": options.order,
        "on_bad": options.on_bad,
    }  # fmt: skip
    schema = None if options.schema is None else read_schema(options.schema)
    check_folder(options.out)
    with spark_of(options, "compact") as spark:
        summary = interruptible(spark, lambda: _compact(spark, options, schema, settings))
    print(json.dumps(summary.to_dict()) if options.json else summary)


def _compact(
    spark: "SparkSession", options: argparse.Namespace, schema: Any, settings: dict[str, Any]
) -> "Summary":
    from tamis.spark.compaction.job import compact
    from tamis.spark.compaction.output_folder import write_compacted
    from tamis.spark.files.readers import read_events, read_subscriptions

    if schema is None:
        schema = read_events(spark, options.events)
    job = compact(read_subscriptions(spark, options.subscriptions), schema, **settings)
    try:
        with unwarned():
            return write_compacted(job, options.out, options.format)
    finally:
        job.release()
