"""``tamis match``: a file of subscriptions, a file of events, a folder of matches."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from tamis.cli.options import add_json, add_schema, add_semantics, read_defaults, read_schema
from tamis.engines import ENGINES
from tamis.errors import (
    BulkError,
    EventError,
    FileError,
    SchemaError,
    SubscriptionError,
    counted,
)
from tamis.events import UNKNOWN_CHOICES, Row
from tamis.files import Record, read_records
from tamis.guessing import schema_of_records
from tamis.matcher import OUTPUTS, Matcher
from tamis.schema import Schema

T = TypeVar("T")

EVENTS_AT_ONCE = 1000
MATCHES = "matches.parquet"
DEAD_LETTERS = "dead_letters.jsonl"
SUMMARY = "summary.json"

_DESCRIPTION = """\
Match every event of a file with every subscription of another. Files are read by extension:
.parquet .json .jsonl .csv .xml. Subscriptions have the columns id and filter; the columns of the
events are their attributes.

The output folder gets matches.parquet (the row number of an event, the id of a subscription),
summary.json, and, if a subscription or an event could not be used, dead_letters.jsonl with the
reason for each. It appears only when it is complete.
"""


class DeadLetter(NamedTuple):
    """A row that could not be used, and why."""

    source: str
    row: int
    id: Any
    reason: str


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "match",
        help="match a file of events with a file of subscriptions",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help="file of id and filter")
    parser.add_argument("events", metavar="EVENTS", help="file of events")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the matches")
    parser.add_argument("--overwrite", action="store_true", help="replace the folder if it exists")
    parser.add_argument(
        "--output", choices=OUTPUTS, default="pairs", help="form of the matches (default: pairs)"
    )
    parser.add_argument(
        "--on-bad",
        choices=("keep", "fail"),
        default="keep",
        help="keep rows that cannot be used as dead letters and go on (default), or fail",
    )
    parser.add_argument(
        "--unknown",
        choices=UNKNOWN_CHOICES,
        default="ignore",
        help="attributes of events that the schema lacks (default: ignore)",
    )
    parser.add_argument(
        "--engine", choices=tuple(ENGINES), default="auto", help="the algorithm (default: auto)"
    )
    add_schema(parser, "found in the events")
    add_semantics(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Read, match, write, and print a summary."""
    out = Path(options.out)
    check_folder(out, overwrite=options.overwrite)
    records = list(progress(read_records(options.events), "reading events"))
    matcher = Matcher(
        read_schema(options.schema)
        if options.schema is not None
        else found_schema(records, options.events),
        engine=options.engine,
        semantics=options.semantics,
        defaults=read_defaults(options.defaults),
        unknown=options.unknown,
    )
    letters = subscribe_file(matcher, options.subscriptions)
    numbers, rows, bad_events = _read(records, matcher)
    letters += bad_events
    if letters and options.on_bad == "fail":
        raise FileError(_listing(letters))
    matches = _match(matcher, rows, numbers, options.output)
    summary = {
        "subscriptions": len(matcher),
        "events": len(records),
        "matches": _count(matches, options.output),
        "dead_letters": len(letters),
        "engine": matcher.engine,
        "semantics": matcher.semantics,
        "out": str(out),
    }
    write_folder(out, matches, letters, summary)
    if options.json:
        say(json.dumps(summary))
        return
    for name, value in summary.items():
        title = name.replace("_", " ")
        say(f"{title:<14} {value:,}" if isinstance(value, int) else f"{title:<14} {value}")
    if letters:
        say(f"\n{_listing(letters)}\nall of them, with their reasons: {out / DEAD_LETTERS}")


def found_schema(records: Iterable[Record], path: str) -> Schema:
    """The schema of events."""

    def readable() -> Iterable[tuple[Any, bool]]:
        for record in records:
            try:
                yield record.mapping(), record.is_text
            except EventError:
                continue  # a dead letter, later

    schema = schema_of_records(readable())
    if not len(schema):
        raise SchemaError(f"{path} has no readable event to find a schema in; give --schema")
    return schema


def subscribe_file(matcher: Matcher, path: str) -> list[DeadLetter]:
    """Subscribe what a file holds; what cannot be used is returned."""
    letters: list[DeadLetter] = []
    good: dict[int, tuple[Any, Any]] = {}
    found = 0
    for row, record in enumerate(progress(read_records(path), "reading subscriptions")):
        subscription = None
        found += 1
        try:
            mapping = record.mapping()
            subscription = mapping.get("id")
            missing = [name for name in ("id", "filter") if mapping.get(name) is None]
            if missing:
                raise SubscriptionError(f"the subscription lacks {' and '.join(missing)}")
            good[row] = mapping["id"], mapping["filter"]
        except (EventError, SubscriptionError) as error:
            letters.append(DeadLetter("subscriptions", row, subscription, str(error)))
    letters += _hold(matcher, good)
    letters.sort(key=lambda letter: letter.row)
    if not found:
        raise FileError(f"{path} has no subscriptions")
    if len(letters) == found:
        raise FileError(f"{path} has no usable subscription: {_listing(letters)}")
    return letters


def _hold(matcher: Matcher, rows: dict[int, tuple[Any, Any]]) -> list[DeadLetter]:
    """Subscribe all that can be; the others by their rows."""
    letters: list[DeadLetter] = []
    while rows:
        numbers = list(rows)
        try:
            with tqdm(
                total=len(rows), desc="compiling", disable=None, leave=False, file=sys.stderr
            ) as bar:
                matcher.subscribe_many(list(rows.values()), progress=bar.update)
                return letters
        except BulkError as error:
            for place, subscription, reason in error.failures:
                del rows[numbers[place]]
                letters.append(
                    DeadLetter("subscriptions", numbers[place], subscription, str(reason))
                )
    return letters


def _read(
    records: Iterable[Record], matcher: Matcher
) -> tuple[list[int], list[Row], list[DeadLetter]]:
    numbers, rows, letters = [], [], []
    for number, record in enumerate(records):
        try:
            rows.append(matcher.meaning.prepare(record.row(matcher.reader)))
            numbers.append(number)
        except EventError as error:
            letters.append(DeadLetter("events", number, None, str(error)))
    return numbers, rows, letters


def _match(matcher: Matcher, rows: list[Row], numbers: list[int], output: str) -> pa.Table:
    starts = range(0, max(len(rows), 1), EVENTS_AT_ONCE)
    return pa.concat_tables(
        matcher.match_rows(
            rows[start : start + EVENTS_AT_ONCE], output, numbers[start : start + EVENTS_AT_ONCE]
        )
        for start in progress(starts, f"matching, {EVENTS_AT_ONCE} events at once")
    )


def _count(matches: pa.Table, output: str) -> int:
    if output == "pairs":
        return int(matches.num_rows)
    if output == "counts":
        return sum(matches["count"].to_pylist())
    return sum(len(found) for found in matches["subscriptions"].to_pylist())


def _listing(letters: list[DeadLetter]) -> str:
    shown = [f"{counted(len(letters), 'row')} cannot be used:"]
    for letter in letters[:5]:
        reason = letter.reason.replace("\n", "\n    ")
        shown.append(f"  {letter.source}, row {letter.row}: {reason}")
    if len(letters) > 5:
        shown.append(f"  ... and {len(letters) - 5} more")
    return "\n".join(shown)


def check_folder(out: Path, *, overwrite: bool) -> None:
    """Refuse to write over something that was there before."""
    try:
        out.exists()
    except OSError as error:  # a name that is too long
        raise FileError(f"{out} cannot be written: {error.strerror}") from None
    if out.exists() and not out.is_dir():
        raise FileError(f"{out} exists and is no folder")
    if out.exists() and any(out.iterdir()):
        if not overwrite:
            raise FileError(f"{out} exists and is not empty; pass --overwrite to replace it")
        foreign = [p.name for p in out.iterdir() if p.name not in {MATCHES, DEAD_LETTERS, SUMMARY}]
        if foreign:
            raise FileError(
                f"{out} holds files that tamis match did not write ({', '.join(foreign[:3])}); "
                "name another folder"
            )


def write_folder(
    out: Path, matches: pa.Table, letters: list[DeadLetter], summary: dict[str, Any]
) -> None:
    """Write everything beside the folder and move it there at the end, so that no half is seen."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as parent:
            folder = Path(parent) / "new"
            folder.mkdir()
            pq.write_table(matches, folder / MATCHES)
            if letters:
                lines = (json.dumps(letter._asdict(), default=str) + "\n" for letter in letters)
                (folder / DEAD_LETTERS).write_text("".join(lines), encoding="utf-8")
            (folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
            if out.exists():
                out.rename(Path(parent) / "old")
            folder.rename(out)
    except OSError as error:
        raise FileError(f"{error.filename or out} cannot be written: {error.strerror}") from None


def progress(items: Iterable[T], what: str) -> Iterable[T]:
    """The items, with a bar on a terminal and silence in a pipe."""
    return tqdm(items, desc=what, disable=None, leave=False, file=sys.stderr)


def say(text: str) -> None:
    print(text)
