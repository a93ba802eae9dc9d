"""What a table needs of a search for covering among its roots; roots have numbers."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from tamis.relations.tables.prepared_filters import PreparedFilter


class SearchResult(NamedTuple):
    """The root that covers a new filter, or else the roots that the new filter covers.

    If a root covers it, the others are not looked for: that root would cover them already.
    """

    covering: int | None
    covered: list[int]


class CoverSearch(Protocol):
    """Boxes under numbers, and the covering relations of a new box with them."""

    def find(self, new: PreparedFilter) -> SearchResult:
        """Find a box that covers a new one, or else the boxes that the new one covers."""
        ...

    def add(self, box: int, prepared: PreparedFilter) -> None:
        """Add a box that is not there. A failed call changes nothing."""
        ...

    def remove(self, box: int, prepared: PreparedFilter) -> None:
        """Remove a box."""
        ...

    def covering(self, new: PreparedFilter) -> Iterable[int]:
        """All boxes that cover a new one."""
        ...

    def testing(self, mask: int) -> Iterable[int]:
        """All boxes that test some attributes, and maybe others."""
        ...
