"""``tamis profile``: describes past events, so that future ones are matched faster."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.argument_types import positive
from tamis.cli.input_files import read_typed
from tamis.cli.interruption import interruptible
from tamis.cli.options import add_json, add_schema, read_schema
from tamis.cli.session import add_spark, command_session
from tamis.errors import FileError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.profiles import Profile

_DESCRIPTION = """\
Read past events once, and report which attributes they have, which values are frequent, how values
are distributed and which attributes occur together. The file of --out tells tamis which predicates
are rarely true: use it with `tamis match --profile FILE` or Matcher(options={"profile": FILE}).
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "profile",
        help="describe past events, to match future ones faster",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("events", metavar="EVENTS", help="file or folder of events")
    parser.add_argument("--out", metavar="FILE", help="file for the profile")
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    parser.add_argument(
        "--top", type=positive, default=100, metavar="N",
        help="values more frequent than 1 in N are always listed (default: 100)",
    )  # fmt: skip
    parser.add_argument(
        "--sample", type=positive, default=16384, metavar="N",
        help="number of events to keep as examples (default: 16384)",
    )  # fmt: skip
    add_schema(parser, "inferred from the events")
    add_spark(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Read the events once, save the profile and print the report."""
    out = None if options.out is None else Path(options.out)
    if out is not None and out.exists() and not options.overwrite:
        raise FileError(f"{out} exists; pass --overwrite to replace it")
    if out is not None and not out.parent.is_dir():
        raise FileError(f"{out} cannot be written: {out.parent} is not a folder")
    settings = {
        "schema": None if options.schema is None else read_schema(options.schema),
        "top": options.top, "sample": options.sample,
    }  # fmt: skip
    with command_session(options, "profile") as spark:
        found = interruptible(spark, lambda: _profile(spark, options.events, settings))
    if out is not None:
        found.save(out)
    print(json.dumps(found.to_dict()) if options.json else found.report())


def _profile(spark: "SparkSession", path: str, settings: dict[str, Any]) -> "Profile":
    from tamis.file_tables.input_files import CORRUPT
    from tamis.spark.files.readers import read_events
    from tamis.spark.profiles import profile

    events = read_typed(lambda **types: read_events(spark, path, **types), settings)
    if CORRUPT not in events.columns:
        return profile(events, **settings)
    return _profile_of_text(events, settings)


def _profile_of_text(events: "DataFrame", settings: dict[str, Any]) -> "Profile":
    """The profile of events read from text; rows that cannot be read count as refused."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    from tamis.file_tables.input_files import CORRUPT
    from tamis.spark.profiles import profile

    seen = Observation()
    unread = f.col(CORRUPT).isNotNull()
    read = events.observe(seen, f.count_if(unread).alias("unread")).where(~unread).drop(CORRUPT)
    found = profile(read, **settings)
    return replace(found, refused=found.refused + seen.get["unread"])
