"""What the hops of a broker have asked for, and which of them an event goes to.

A hop is a client of the broker or a neighbour. Filters are held as their printed texts, so equal
ones are equal.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.events import Row
from tamis.matcher import Matcher
from tamis.routing.filter_cache import Reading


class Filters:
    """Filters of one kind by hop and id."""

    def __init__(self) -> None:
        self._by_hop: dict[str, dict[str, str]] = {}

    def of(self, hop: str) -> dict[str, str]:
        """The filters of a hop by their ids."""
        return self._by_hop.get(hop, {})

    def put(self, hop: str, id_: str, text: str) -> None:
        """Hold a filter."""
        self._by_hop.setdefault(hop, {})[id_] = text

    def take(self, hop: str, id_: str) -> str:
        """Let a filter go."""
        held = self._by_hop[hop]
        text = held.pop(id_)
        if not held:
            del self._by_hop[hop]
        return text

    def elsewhere(self, hop: str) -> Iterator[str]:
        """The filters of all other hops."""
        for other, held in self._by_hop.items():
            if other != hop:
                yield from held.values()

    def __len__(self) -> int:
        return sum(map(len, self._by_hop.values()))

    def texts(self) -> dict[str, tuple[str, ...]]:
        """The filters of each hop."""
        return {hop: tuple(held.values()) for hop, held in self._by_hop.items()}


class Subscriptions(Filters):
    """Filters that events are matched with."""

    def __init__(self, reading: Reading) -> None:
        super().__init__()
        self._reading = reading
        self._matcher = Matcher(
            reading.schema, semantics=reading.meaning.name, defaults=reading.defaults
        )
        self._numbers: dict[tuple[str, str], int] = {}
        self._holders: dict[int, tuple[str, str]] = {}
        self._last = 0

    def put(self, hop: str, id_: str, text: str) -> None:
        number = self._numbers.get((hop, id_))
        if number is None:
            number = self._last = self._last + 1
            self._numbers[hop, id_], self._holders[number] = number, (hop, id_)
        self._matcher.subscribe(number, self._reading.read(text))
        super().put(hop, id_, text)

    def take(self, hop: str, id_: str) -> str:
        number = self._numbers.pop((hop, id_))
        del self._holders[number]
        self._matcher.unsubscribe(number)
        return super().take(hop, id_)

    def row(self, event: Mapping[str, Any]) -> Row:
        """The row of an event; an EventError if schema and semantics do not allow it."""
        return self._matcher.meaning.prepare(self._matcher.reader.row(event))

    def match(self, event: Mapping[str, Any]) -> dict[str, list[str]]:
        """The ids that an event matches, by hop."""
        found: dict[str, list[str]] = {}
        for number in self._matcher.match(event):
            hop, id_ = self._holders[int(number)]
            found.setdefault(hop, []).append(id_)
        return found
