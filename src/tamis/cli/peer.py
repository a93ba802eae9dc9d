"""``tamis peer``: the brokers that a broker is linked with."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from tamis.cli.broker_options import connected, finish_action
from tamis.errors import counted
from tamis.visible_text import visible

_COUNTED = ("bytes", "frames", "events", "filters")
_SAVED = {"all": "all", "not covered": "covering", "announced": "announced"}
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
    listing.add_argument(
        "--savings", action="store_true",
        help="also show what covering and merging save of the filters that they are told",
    )  # fmt: skip
    finish_action(listing, _list)
    remove = actions.add_parser(
        "remove", help="forget one that is gone for good", description=_REMOVE
    )
    remove.add_argument("name", metavar="NAME")
    finish_action(remove, _remove)


def _list(options: argparse.Namespace) -> None:
    with connected(options) as broker:
        found = broker.peers()
        if options.savings:
            for peer in found:
                peer["topics"] = broker.peer(peer["name"])["topics"]
    if options.json:
        print(json.dumps(found))
        return
    for peer in found:
        print(_line(peer))
        if options.traffic:
            print("\n".join(_traffic(peer)))
        for topic in peer.get("topics", []):
            print(_savings(topic))


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


def _savings(topic: dict[str, Any]) -> str:
    """What a peer would be told of the subscriptions to a topic, and what it was told."""
    parts = (
        f"{name} {counted(topic[key]['entries'], 'filter')} of {topic[key]['bytes']:,} bytes"
        for name, key in _SAVED.items()
    )
    mergers = counted(topic["mergers"], "merger")
    return f"  {visible(topic['topic'])}: {', '.join(parts)} with {mergers}"


def _remove(options: argparse.Namespace) -> None:
    with connected(options) as broker:
        broker.remove_peer(options.name)
    print(json.dumps({"removed": options.name}) if options.json else f"{options.name} removed")
