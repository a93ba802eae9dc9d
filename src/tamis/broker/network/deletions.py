"""Topics that were deleted somewhere in the network, so that nobody makes them again.

A topic has a *birth*: an id that is made with it, and goes along when a peer makes the same topic.
Two brokers that have each made a topic of one name before they were linked share it with both
births. Whoever deletes a topic remembers all of its births, and tells them to all peers, now and
whenever a link is new; so does whoever is told. A broker that was away deletes its topic when it
hears that all births of it are deleted. A topic of the same name that is made later has another
birth, and so has one that the deleting broker did not know of: both stay.
"""

from collections.abc import Iterable, Sequence

from tamis.broker import peer_rows
from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.network.messages import Deleted
from tamis.broker.peer_rows import RowSource, put_deletion


class Deletions:
    """The births of all topics that were deleted, by the names of the topics."""

    def __init__(self, tables: RowSource) -> None:
        self._births: dict[str, set[str]] = {}
        for topic, birth in peer_rows.deletions(tables):
            self._births.setdefault(topic, set()).add(birth)

    def has_all(self, topic: str, births: Sequence[str]) -> bool:
        """Whether a topic with these births was deleted."""
        return bool(births) and self._births.get(topic, set()).issuperset(births)

    def new(self, topic: str, births: Iterable[str]) -> list[str]:
        """Those births that are not known to be deleted."""
        return sorted(set(births) - self._births.get(topic, set()))

    def changes(self, topic: str, births: Iterable[str]) -> list[CatalogueChange]:
        """What the catalogue is to remember."""
        return [put_deletion(topic, birth) for birth in self.new(topic, births)]

    def add(self, topic: str, births: Iterable[str]) -> None:
        """Note that a topic with these births was deleted; the catalogue has it."""
        self._births.setdefault(topic, set()).update(births)

    def messages(self) -> list[Deleted]:
        """What a new link is told."""
        return [Deleted(topic, sorted(births)) for topic, births in self._births.items()]
