"""What the tables of routers must be like when nothing happens any more."""

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.routing.simulation.filters import may_share_events
from tamis.routing.simulation.topology import Topology

Finding = tuple[str, str]  # the kind of a violation, and its explanation


def differences(topology: Topology, tables: Mapping[str, Any]) -> Iterator[Finding]:
    """Neighbours agree on what one has told the other."""
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


def needless(topology: Topology, tables: Mapping[str, Any], semantics: str) -> Iterator[Finding]:
    """With advertisements, a subscription is held only where something may be published."""
    for broker, mine in tables.items():
        for other in topology.neighbours[broker]:
            offers = mine.advertisements.get(other, ())
            for text in mine.sent_subscriptions.get(other, ()):
                if not any(may_share_events(text, offer, semantics) for offer in offers):
                    told = f"{broker} has told {other} of {text!r}"
                    yield "needless", f"{told}, but there is only advertised: {list(offers)}"


def remains(tables: Mapping[str, Any]) -> Iterator[Finding]:
    """When everybody has left, all tables are empty."""
    for broker, mine in tables.items():
        for what in ("subscriptions", "advertisements", "sent_subscriptions",
                     "sent_advertisements"):  # fmt: skip
            for hop, filters in getattr(mine, what).items():
                if filters:
                    yield (
                        "left over",
                        f"everybody has left, but {what} of {broker} and {hop}: {list(filters)}",
                    )
