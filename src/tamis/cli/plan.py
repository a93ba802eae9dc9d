"""``tamis explain --plan``: how the subscriptions of a file are matched."""

import argparse
import json
from pathlib import Path

from tamis.cli.input_files import schema_of_file, subscribe_file
from tamis.cli.options import read_defaults, read_schema
from tamis.errors import EventError, counted
from tamis.events.event_reader import Row
from tamis.events.files import FileRecord, read_records
from tamis.matcher import Matcher


def explain_plan(options: argparse.Namespace) -> None:
    """Print the plan of a matcher; with events, after they were matched once."""
    for name in ("filter", "event", "graph"):
        if getattr(options, name) is not None:
            options.misused(
                "--plan explains a file of subscriptions; leave out FILTER, --event and --graph"
            )
    records = [] if options.events is None else list(read_records(options.events))
    unusable = 0
    if Path(options.plan).suffix.lower() == ".tamis":
        matcher = Matcher.load(options.plan)
    else:
        if options.schema is None and not records:
            options.misused("--plan needs --schema, or --events to infer the schema from")
        schema = (
            read_schema(options.schema)
            if options.schema is not None
            else schema_of_file(records, options.events)
        )
        defaults = read_defaults(options.defaults)
        matcher = Matcher(schema, semantics=options.semantics, defaults=defaults)
        unusable = subscribe_file(matcher, options.plan)
    rows = _rows(matcher, records)
    for _ in range(2 if rows else 0):  # the first run loads the kernels
        matcher.match_rows(rows, "counts")
    plan = matcher.explain()
    if options.json:
        print(json.dumps(plan.to_dict() | {"unusable": unusable}))
        return
    print(plan)
    if unusable:
        print(f"{counted(unusable, 'subscription')} cannot be used; tamis match says why")


def _rows(matcher: Matcher, records: list[FileRecord]) -> list[Row]:
    rows = []
    for record in records:
        try:
            rows.append(matcher.meaning.prepare(record.row(matcher.reader)))
        except EventError:
            continue  # `tamis match` reports it as a dead letter
    return rows
