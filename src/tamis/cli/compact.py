"""``tamis compact``: makes a table of subscriptions smaller without changing its matches."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from tamis.cli.interruption import interruptible
from tamis.cli.match import without_warnings
from tamis.cli.options import (
    add_duplicates,
    add_format,
    add_json,
    add_on_bad,
    add_schema,
    add_semantics,
    read_defaults,
    read_schema,
)
from tamis.cli.session import add_spark, command_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.spark.compaction.output_folder import CompactionSummary

_DESCRIPTION = """\
Remove duplicate and covered subscriptions from a table, and merge those that one filter can replace
exactly. Files are those of `tamis match`; the attributes are the columns of --events, or those of
--schema.

The output folder gets subscriptions (id, filter), mapping (subscription, original, exact, filter),
summary.json and, if there are any, never with the subscriptions that can match no event and
dead_letters with the rows that could not be used. An exact original matches whenever its
subscription does. Any other original was covered or merged: it matches if its subscription does and
its own filter, which is in the mapping, is true. The folder appears only when it is complete.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "compact",
        help="remove and merge subscriptions without changing the matches",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help="table of id and filter")
    parser.add_argument(
        "--events", metavar="EVENTS", help="events whose columns are the attributes"
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the result")
    parser.add_argument(
        "--no-merge", dest="merge", action="store_false", help="do not make new filters by merging"
    )
    add_duplicates(parser)
    add_on_bad(parser)
    add_format(parser)
    add_schema(parser, "the columns of --events")
    add_semantics(parser)
    add_spark(parser)
    add_json(parser)
    parser.set_defaults(run=run, misused=parser.error)


def run(options: argparse.Namespace) -> None:
    """Read, compact, write, and print a summary."""
    # Everything that can fail without Spark is checked before it is started.
    if (options.events is None) == (options.schema is None):
        options.misused("the attributes come from --events or from --schema: give one of the two")
    from tamis.spark.compaction.output_folder import check_folder

    settings = {
        "semantics": options.semantics, "defaults": read_defaults(options.defaults),
        "merge": options.merge, "duplicates": options.duplicates, "order": options.order,
        "on_bad": options.on_bad,
    }  # fmt: skip
    schema = None if options.schema is None else read_schema(options.schema)
    check_folder(options.out)
    with command_session(options, "compact") as spark:
        summary = interruptible(spark, lambda: _compact(spark, options, schema, settings))
    print(json.dumps(summary.to_dict()) if options.json else summary)


def _compact(
    spark: "SparkSession", options: argparse.Namespace, schema: Any, settings: dict[str, Any]
) -> "CompactionSummary":
    from tamis.spark.compaction.job import compact
    from tamis.spark.compaction.output_folder import write_compacted
    from tamis.spark.files.readers import read_events, read_subscriptions

    if schema is None:
        schema = read_events(spark, options.events)
    job = compact(read_subscriptions(spark, options.subscriptions), schema, **settings)
    try:
        with without_warnings():
            return write_compacted(job, options.out, options.format)
    finally:
        job.release()
