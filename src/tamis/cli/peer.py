"""``tamis peer``: the brokers that a broker is linked with."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from tamis.cli.broker_options import add_broker, connected
from tamis.cli.options import add_json
from tamis.errors import counted
from tamis.visible_text import visible

_COUNTED = ("bytes", "frames", "events", "filters")
_REMOVE = """\
Forget a broker that is gone for good: its filters, and the events that wait for it. Until then they
wait, as long as the retention of the topics keeps them. It must not be linked, nor be in the
settings of the broker that is asked.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "peer",
        help="list the brokers that a broker is linked with, or remove one",
        description="The brokers next to a broker in its network (docs/network.md).",
    )
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    listing = actions.add_parser("list", help="list them, and how far behind they are")
    listing.add_argument(
        "--traffic", action="store_true", help="also show what was sent and received, and filters"
    )
    _finish(listing, _list)
    remove = actions.add_parser(
        "remove", help="forget one that is gone for good", description=_REMOVE
    )
    remove.add_argument("name", metavar="NAME")
    _finish(remove, _remove)


def _finish(parser: argparse.ArgumentParser, run: Any) -> None:
    add_broker(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def _list(options: argparse.Namespace) -> None:
    with connected(options) as broker:
        found = broker.peers()
    if options.json:
        print(json.dumps(found))
        return
    for peer in found:
        print(_line(peer))
        if options.traffic:
            print("\n".join(_traffic(peer)))


def _line(peer: dict[str, Any]) -> str:
    state = "linked" if peer["linked"] else "not linked"
    lost = f", {counted(peer['lost'], 'event')} expired before" if peer["lost"] else ""
    return f"{visible(peer['name'])}  {state}, {counted(peer['lag'], 'event')} behind{lost}"


def _traffic(peer: dict[str, Any]) -> Iterator[str]:
    """What was counted since the broker started."""
    held, announced = peer["filters_held"], peer["filters_announced"]
    yield f"  filters   {held:,} held of it, {announced:,} announced"
    for way in ("sent", "received"):
        counts = (f"{peer[f'{what}_{way}']:,} {what}" for what in _COUNTED)
        yield f"  {way:9} {', '.join(counts)}"
    yield f"  unwanted  {counted(peer['false_positives'], 'event')} of it"


def _remove(options: argparse.Namespace) -> None:
    with connected(options) as broker:
        broker.remove_peer(options.name)
    print(json.dumps({"removed": options.name}) if options.json else f"{options.name} removed")
