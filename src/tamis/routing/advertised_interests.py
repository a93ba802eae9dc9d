"""Which subscriptions concern whom: those that may match what a neighbour has advertised.

What each neighbour has advertised is an index, in which a subscription looks for an advertisement
that it may match. The subscriptions are one, too, in which an advertisement looks for those that it
concerns; it is made when there is an advertisement that does not concern them all.
"""

from collections import Counter
from collections.abc import Iterable

from tamis.relations.tables.intersections import IntersectionTable
from tamis.routing.filter_cache import FilterCache


class AdvertisedInterests:
    """The advertisements of each neighbour, and the subscriptions, as texts."""

    def __init__(self, cache: FilterCache) -> None:
        self._cache = cache
        self._advertised: dict[str, Counter[str]] = {}
        self._tables: dict[str, IntersectionTable[str]] = {}
        self._counts: Counter[str] = Counter()  # of the subscriptions, if there is a table of them
        self._subscribed: IntersectionTable[str] | None = None

    # --- advertisements

    def advertise(self, hop: str, text: str) -> bool:
        """A hop advertises a filter; False if it does so already."""
        counts = self._advertised.setdefault(hop, Counter())
        counts[text] += 1
        if counts[text] > 1:
            return False
        if hop not in self._tables:
            self._tables[hop] = self._table()
        self._tables[hop].add(text, self._cache.prepare(text))
        return True

    def unadvertise(self, hop: str, text: str) -> bool:
        """A hop does not advertise a filter any more; False if it still does."""
        counts = self._advertised[hop]
        counts[text] -= 1
        if counts[text]:
            return False
        del counts[text]
        self._tables[hop].remove(text)
        if not counts:
            del self._advertised[hop], self._tables[hop]
        return True

    def concerns(self, hop: str, text: str) -> bool:
        """Whether a subscription may match what a hop advertises."""
        table = self._tables.get(hop)
        if table is None:
            return False
        return next(table.meeting(text, self._cache.prepare(text)), None) is not None

    # --- subscriptions

    def subscribe(self, text: str) -> None:
        """There is one more subscription."""
        if self._subscribed is not None:
            self._counts[text] += 1
            if self._counts[text] == 1:
                self._subscribed.add(text, self._cache.prepare(text))

    def unsubscribe(self, text: str) -> None:
        """There is one subscription less."""
        if self._subscribed is not None:
            self._counts[text] -= 1
            if not self._counts[text]:
                del self._counts[text]
                self._subscribed.remove(text)

    def concerned(self, text: str, subscriptions: Iterable[str]) -> list[str] | None:
        """The subscriptions that an advertisement may concern; None if it may concern all.

        `subscriptions` are all that there are.
        """
        prepared = self._cache.prepare(text)
        if prepared is not None and prepared.constraints == ():
            return None
        if self._subscribed is None:
            self._subscribed = self._table()
            for one in subscriptions:
                self.subscribe(one)
        return list(self._subscribed.meeting(text, prepared))

    def _table(self) -> IntersectionTable[str]:
        return IntersectionTable(self._cache.schema, self._cache.may_intersect)
