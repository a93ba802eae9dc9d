"""``tamis subscribe``: prints the events of a topic that match a filter, as they come."""

import argparse
import json
import math
import select
import sys
from typing import TYPE_CHECKING

from tamis.cli.argument_types import positive
from tamis.cli.broker_options import add_broker, connected
from tamis.cli.options import allow_options_anywhere
from tamis.visible_text import visible, visible_json

if TYPE_CHECKING:
    from tamis.client.blocking import Connection, Subscription
    from tamis.client.delivery import Delivery

_DESCRIPTION = """\
Print the events of a topic that match FILTER, one JSON object per line, until Ctrl-C or until
--count. If the broker stops or the connection is lost, the command waits for it and goes on where
it was. With --durable, the broker remembers under NAME what was printed, and the next time goes on
after it; without FILTER, a durable subscription keeps the one that it has.
"""
LOOK = 1.0  # seconds after which to look whether somebody still reads the output
AT_ONCE = 1000  # deliveries that are printed together, if that many are waiting


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "subscribe",
        help="print the events of a broker's topic that match a filter",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "filter", metavar="FILTER", nargs="?", help="the filter, in quotes (default: all events)"
    )
    parser.add_argument("--durable", metavar="NAME", help="name of a durable subscription")
    parser.add_argument(
        "--move-from", metavar="BROKER",
        help="fetch the subscription of --durable from this broker of the network, where it is now",
    )  # fmt: skip
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-start", dest="start", action="store_const", const="earliest", default="new",
        help="begin with the oldest event that the topic has (default: with the next that comes)",
    )  # fmt: skip
    start.add_argument(
        "--from", dest="start", metavar="WHERE",
        help="begin at an offset, or at a time such as 2025-01-31T12:00:00Z",
    )  # fmt: skip
    parser.add_argument("--count", type=positive, metavar="N", help="end after N events")
    parser.add_argument(
        "--delete", action="store_true",
        help="delete the durable subscription of --durable, and print nothing",
    )  # fmt: skip
    add_broker(parser)
    allow_options_anywhere(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print objects with offset, event, redelivered, id and time, not only the event",
    )
    parser.set_defaults(run=run, misused=parser.error)


def run(options: argparse.Namespace) -> None:
    """Print deliveries until there were enough, or nobody reads them any more."""
    if options.delete:
        _delete(options)
        return
    if options.move_from is not None and options.durable is None:
        options.misused("--move-from needs --durable NAME")
    # A subscriber waits for its broker as long as it takes; Ctrl-C ends it.
    with (
        connected(options, patience=math.inf) as broker,
        broker.subscribe(
            options.topic, options.filter, durable=options.durable, start=_start(options.start),
            manual_ack=True, move_from=options.move_from,
        ) as deliveries,
    ):  # fmt: skip
        if sys.stderr.isatty() and not options.json:
            print(_greeting(broker, deliveries), file=sys.stderr, flush=True)
        _print_all(deliveries, math.inf if options.count is None else options.count, options)


def _delete(options: argparse.Namespace) -> None:
    if options.durable is None:
        options.misused("--delete needs --durable NAME")
    with connected(options) as broker:
        broker.unsubscribe(options.topic, options.durable)
    print(
        json.dumps({"deleted": options.durable}) if options.json else f"{options.durable} deleted"
    )


def _start(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdecimal() else text


def _greeting(broker: "Connection", deliveries: "Subscription") -> str:
    name = "" if deliveries.durable is None else f", durable as {deliveries.durable}"
    return visible(
        f"listening to {deliveries.topic} at {broker.url} for {deliveries.filter}{name}; "
        "Ctrl-C ends it"
    )


def _print_all(deliveries: "Subscription", left: float, options: argparse.Namespace) -> None:
    while left:
        taken = deliveries.take(int(min(AT_ONCE, left)), timeout=LOOK)
        if not taken:
            _check_reader()
            continue
        lines = [_line(delivery, options) for delivery in taken]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        taken[-1].ack()  # only now: what was not written comes again
        left -= len(taken)


def _line(delivery: "Delivery", options: argparse.Namespace) -> str:
    shown = delivery.to_dict() if options.json else delivery.event
    # A value must not command a terminal; a pipe gets what was published.
    if sys.stdout.isatty():
        return visible_json(shown)
    try:
        return json.dumps(shown, ensure_ascii=False)
    except TypeError:  # a decimal
        from tamis.client.publications import event_text

        return event_text(shown).decode()


def _check_reader() -> None:
    """Raise BrokenPipeError if the reader of a pipe is gone, which writing would tell too late."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        is_gone = any(event & select.POLLERR for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):  # a system without poll, an output of a test
        return
    if is_gone:
        raise BrokenPipeError
