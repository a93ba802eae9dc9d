"""Which publishers may drop events at the source, by which version of a filter, and until when.

It is pure: the time is passed in. By these rules, no event is dropped that matches an acknowledged
subscription (docs/decisions/0024):

1. A publisher *confirms* a version, and may then drop for a while: a lease, counted here from the
   moment at which the confirmation came, and by the publisher from the moment before it was sent.
   So it ends there before it ends here.
2. A confirmation of a version that is not the current one extends nothing.
3. Whoever needs a version to be known waits until each publisher has confirmed it, or a later one,
   or has no lease any more. That a connection is lost says nothing: the publisher may not know it.
"""

from collections.abc import Hashable
from typing import NamedTuple


class Lease(NamedTuple):
    """What a publisher has confirmed, and until when it may drop."""

    version: int
    until: float


class Leases:
    """The leases of all publishers of one topic."""

    def __init__(self) -> None:
        self._by_publisher: dict[Hashable, Lease] = {}

    def __len__(self) -> int:
        return len(self._by_publisher)

    def __contains__(self, publisher: object) -> bool:
        return publisher in self._by_publisher

    def confirm(self, publisher: Hashable, version: int, until: float) -> None:
        """A publisher has confirmed the current version."""
        self._by_publisher[publisher] = Lease(version, until)

    def end(self, publisher: Hashable) -> None:
        """A publisher drops nothing any more; it says so itself."""
        self._by_publisher.pop(publisher, None)

    def expire(self, now: float) -> None:
        """Forget those who may not drop any more."""
        self._by_publisher = {p: one for p, one in self._by_publisher.items() if one.until > now}

    def waits_until(self, version: int, now: float) -> float | None:
        """When nobody can drop by an earlier version any more; None: nobody can now."""
        late = [
            one.until
            for one in self._by_publisher.values()
            if one.version < version and one.until > now
        ]
        return max(late, default=None)
