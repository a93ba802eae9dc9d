"""What clients want and publish: subscriptions spread over the edges of a network, and events.

The subscriptions and events are those of a workload; every event has a ``number`` as well, which no
filter tests, and by which a delivery is known. One of the two publishers may publish the lower half
of one attribute, and what lacks it; the other one the upper half: these are their grants, and so
what their brokers advertise.
"""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import tamis
from network_sections.shapes import Shape
from tamis.workloads import workload

SUBSCRIPTION_SEED, EVENT_SEED = 1, 2
NUMBER = "number"
CLIENTS = 20  # at each edge; each waits until one subscription is established before the next

Client = tuple[str, int]  # its broker, and its number there


@dataclass(frozen=True)
class InterestSet:
    """A workload, and how its events are divided among publishers."""

    name: str
    attribute: str  # that the grants of publishers test
    middle: int
    density: float  # part of the attributes that an event has

    @property
    def grants(self) -> tuple[str, str]:
        """What the first publisher may publish, and the second one."""
        return (
            f"{self.attribute} <= {self.middle} OR {self.attribute} IS NULL",
            f"{self.attribute} > {self.middle}",
        )

    @cached_property
    def schema(self) -> dict[str, str]:
        """The attributes of events."""
        schema = workload(self.name).schema
        return {name: str(one) for name, one in schema.items()} | {NUMBER: "int"}

    def filters(self, count: int) -> list[str]:
        """The texts of subscriptions."""
        table = workload(self.name).subscriptions(count, SUBSCRIPTION_SEED)
        return [str(text) for text in table["filter"].to_pylist()]

    def events(self, count: int) -> pa.Table:
        """Events with their numbers."""
        table = workload(self.name).events(count, EVENT_SEED, self.density)
        return table.append_column(NUMBER, pa.array(range(count)))


SETS = {
    one.name: one
    for one in (
        InterestSet("mbd-a", "a0", 10, 0.5),
        InterestSet("mbd-b", "a0", 25, 0.5),
        InterestSet("stock", "price", 250, 1.0),
    )
}


class Load:
    """The subscriptions and events of one run: who wants what, who publishes what, who gets it."""

    def __init__(self, interests: InterestSet, shape: Shape, filters: int, events: int) -> None:
        self.interests = interests
        self.filters = dict(enumerate(interests.filters(filters)))
        edges = shape.edges
        self.clients = [(edge, number) for number in range(CLIENTS) for edge in edges]
        self.home = {n: self.clients[n % len(self.clients)] for n in self.filters}
        self.events = interests.events(events)
        self._publishers = shape.publishers

    def wanted_by(self, client: Client) -> dict[int, str]:
        """The subscriptions of a client."""
        return {n: text for n, text in self.filters.items() if self.home[n] == client}

    def published(self, numbers: range) -> dict[str, list[bytes]]:
        """The events with these numbers of each publisher, as JSON."""
        some = self.events.slice(numbers.start, len(numbers))
        above = pc.greater(some[self.interests.attribute], self.interests.middle)
        is_second = pc.fill_null(above, fill_value=False)
        first, second = self._publishers
        return {
            first: _lines(some.filter(pc.invert(is_second))),
            second: _lines(some.filter(is_second)),
        }

    def arriving(self, numbers: range) -> Counter[Client]:
        """How many deliveries each client gets of the events with these numbers."""
        return Counter(self.home[one] for one, event in self.expected if event in numbers)

    @cached_property
    def expected(self) -> Counter[tuple[int, int]]:
        """Who gets what: pairs of the numbers of subscription and event."""
        return expected(self.interests, len(self.filters), len(self.events))


@lru_cache
def expected(interests: InterestSet, filters: int, events: int) -> Counter[tuple[int, int]]:
    """The pairs that match, found by testing every filter with every event."""
    matcher = tamis.Matcher(interests.schema, engine="naive")
    matcher.subscribe_many(enumerate(interests.filters(filters)))
    found = matcher.match_batch(interests.events(events))
    pairs = zip(found["subscription"].to_pylist(), found["event"].to_pylist(), strict=True)
    return Counter(pairs)


def _lines(events: pa.Table) -> list[bytes]:
    return [json.dumps(_present(row)).encode() for row in events.to_pylist()]


def _present(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}
