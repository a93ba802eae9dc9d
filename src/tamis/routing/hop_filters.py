"""The filters of each hop, and which hops an event goes to.

A hop is a client of the broker or a neighbour. Filters are held as their printed texts, so equal
filters have equal texts.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.events.event_reader import Row
from tamis.matcher import Matcher
from tamis.routing.filter_cache import FilterCache


class HopFilters:
    """Filters of one kind, by hop and id."""

    def __init__(self) -> None:
        self._by_hop: dict[str, dict[str, str]] = {}

    def of(self, hop: str) -> dict[str, str]:
        """The filters of a hop by their ids."""
        return self._by_hop.get(hop, {})

    def texts(self) -> Iterator[str]:
        """The filters of all hops."""
        for filters in self._by_hop.values():
            yield from filters.values()

    def of_others(self, hop: str) -> Iterator[str]:
        """The filters of all other hops."""
        for other, filters in self._by_hop.items():
            if other != hop:
                yield from filters.values()

    def by_hop(self) -> dict[str, tuple[str, ...]]:
        """The filters of each hop."""
        return {hop: tuple(filters.values()) for hop, filters in self._by_hop.items()}

    def put(self, hop: str, id_: str, text: str) -> None:
        """Add a filter, or replace the one with its id."""
        self._by_hop.setdefault(hop, {})[id_] = text

    def take(self, hop: str, id_: str) -> str:
        """Remove a filter, and return its text."""
        filters = self._by_hop[hop]
        text = filters.pop(id_)
        if not filters:
            del self._by_hop[hop]
        return text


class HopSubscriptions(HopFilters):
    """Filters of hops that events are matched with."""

    def __init__(self, cache: FilterCache) -> None:
        super().__init__()
        self._cache = cache
        self._matcher = Matcher(
            cache.schema, semantics=cache.semantics.name, defaults=cache.defaults
        )
        self._numbers: dict[tuple[str, str], int] = {}  # the matcher's ids, by hop and id
        self._owners: dict[int, tuple[str, str]] = {}  # the inverse
        self._last = 0

    def put(self, hop: str, id_: str, text: str) -> None:
        number = self._numbers.get((hop, id_))
        if number is None:
            number = self._last = self._last + 1
            self._numbers[hop, id_], self._owners[number] = number, (hop, id_)
        self._matcher.subscribe(number, self._cache.parse(text))
        super().put(hop, id_, text)

    def take(self, hop: str, id_: str) -> str:
        number = self._numbers.pop((hop, id_))
        del self._owners[number]
        self._matcher.unsubscribe(number)
        return super().take(hop, id_)

    def row(self, event: Mapping[str, Any]) -> Row:
        """The row of an event; an EventError if the schema or the semantics does not allow it."""
        return self._matcher.meaning.prepare(self._matcher.reader.row(event))

    def match(self, event: Mapping[str, Any]) -> dict[str, list[str]]:
        """The ids of the subscriptions that an event matches, by hop."""
        found: dict[str, list[str]] = {}
        for number in self._matcher.match(event):
            hop, id_ = self._owners[int(number)]
            found.setdefault(hop, []).append(id_)
        return found
