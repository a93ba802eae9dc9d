"""``tamis publish``: publishes the events of a file, or of standard input, to a topic."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.cli.broker_options import connected, finish_action
from tamis.cli.event_files import InputBatch, batches_of, batches_of_input
from tamis.errors import TamisError, counted
from tamis.visible_text import visible

if TYPE_CHECKING:
    from tamis.broker.records import Refusal
    from tamis.client.blocking import Publisher

STANDARD_INPUT = "-"
SHOWN = 10  # refused events that are shown

_DESCRIPTION = """\
Publish events to a topic and print how many were accepted: they are safe on the broker's disk. FILE
ends in .jsonl .json .csv .parquet or .xml, or is a folder of such files; - is standard input, with
one JSON object per line, which is published as it comes. Events that do not fit the topic are
refused and shown, the others are published, and the exit code is 1.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "publish",
        help="publish events to a topic of a broker",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("file", metavar="FILE", help="file of events, or - for standard input")
    parser.add_argument(
        "--quench", action="store_true",
        help="drop events that nobody wants, now and anywhere, instead of storing them",
    )  # fmt: skip
    finish_action(parser, run)


class _Outcome(NamedTuple):
    accepted: int
    offset: int | None
    refused: "list[Refusal]"
    dropped: int


def run(options: argparse.Namespace) -> None:
    """Publish all events and print what became of them."""
    with connected(options) as broker:
        if options.file == STANDARD_INPUT:
            batches = batches_of_input(sys.stdin.buffer)
        else:
            schema = broker.topics.get(options.topic)["schema"]
            batches = batches_of(options.file, schema)
        is_watched = sys.stderr.isatty() and not options.json and options.file != STANDARD_INPUT
        shown = _watched(batches) if is_watched else batches
        with broker.publisher(options.topic, quench=options.quench) as publisher:
            found = _publish(publisher, shown)
    _print(options, found)


def _publish(publisher: "Publisher", batches: Iterator[InputBatch]) -> _Outcome:
    from tamis.broker.records import Refusal
    from tamis.client.error_answers import RefusedEvents

    accepted, offset = 0, None
    refused: list[Refusal] = []
    for batch in batches:
        refused += batch.unreadable
        bad: Any = ()
        if len(batch.rows):
            try:
                published = publisher.publish_many(batch.events)
                accepted += published.accepted
                offset = published.offset if published.offset is not None else offset
                bad = published.refused
            except RefusedEvents as error:
                bad = error.refused
        refused += [Refusal(batch.rows[row], reason) for row, reason in bad]
    return _Outcome(accepted, offset, sorted(refused), publisher.dropped)


def _watched(batches: Iterator[InputBatch]) -> Iterator[InputBatch]:
    """The batches, with a progress bar on standard error."""
    from tqdm import tqdm

    with tqdm(unit=" events", unit_scale=True, leave=False) as bar:
        for batch in batches:
            yield batch
            bar.update(len(batch.rows))


def _print(options: argparse.Namespace, found: _Outcome) -> None:
    accepted, offset, refused, dropped = found
    if options.json:
        listed = [refusal._asdict() for refusal in refused]
        said: dict[str, Any] = {"accepted": accepted, "offset": offset, "refused": listed}
        print(json.dumps(said | ({"dropped": dropped} if options.quench else {})))
    else:
        more = f", {dropped:,} dropped: nobody wants them" if options.quench else ""
        print(f"{counted(accepted, 'event')} accepted{more}")
    if not refused:
        return
    sys.stdout.flush()
    if not options.json:
        for row, reason in refused[:SHOWN]:
            print(visible(f"event {row}: {reason}"), file=sys.stderr)
        if len(refused) > SHOWN:
            print(f"... and {len(refused) - SHOWN:,} more", file=sys.stderr)
    total = accepted + dropped + len(refused)
    raise TamisError(f"{len(refused):,} of {counted(total, 'event')} refused")
