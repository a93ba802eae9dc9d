"""Checks of the routing tables when the network is settled."""

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.routing.simulation.filters import may_share_events
from tamis.routing.simulation.topology import Topology

Finding = tuple[str, str]  # the kind of a violation, and its explanation


def disagreements(topology: Topology, tables: Mapping[str, Any]) -> Iterator[Finding]:
    """Filters that a broker has told a neighbour of and that it does not hold, or the reverse."""
    for broker, mine in tables.items():
        for other in topology.neighbours[broker]:
            for what in ("subscriptions", "advertisements"):
                sent = sorted(getattr(mine, f"sent_{what}").get(other, ()))
                held = sorted(getattr(tables[other], what).get(broker, ()))
                if sent != held:
                    yield (
                        "disagreement",
                        f"{broker} has told {other} of the {what} {sent}, but {other} holds {held}",
                    )


def needless_filters(
    topology: Topology, tables: Mapping[str, Any], semantics: str
) -> Iterator[Finding]:
    """With advertisements: subscriptions sent to where no event for them is advertised."""
    for broker, mine in tables.items():
        for other in topology.neighbours[broker]:
            advertised = mine.advertisements.get(other, ())
            for text in mine.sent_subscriptions.get(other, ()):
                if not any(may_share_events(text, one, semantics) for one in advertised):
                    told = f"{broker} has told {other} of {text!r}"
                    yield "needless", f"{told}, which has only advertised {list(advertised)}"


def leftovers(tables: Mapping[str, Any]) -> Iterator[Finding]:
    """Filters that remain after all clients have left."""
    for broker, mine in tables.items():
        for what in ("subscriptions", "advertisements", "sent_subscriptions",
                     "sent_advertisements"):  # fmt: skip
            for hop, filters in getattr(mine, what).items():
                if filters:
                    yield (
                        "left over",
                        f"all clients left, but {broker} keeps {what} of {hop}: {list(filters)}",
                    )
