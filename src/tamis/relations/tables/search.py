"""What a table asks a search for covering among its roots; roots have numbers."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from tamis.relations.tables.prepared_filters import Prepared


class Found(NamedTuple):
    """Who covers a new filter, or whom it covers.

    If someone covers it, nobody else is looked for: whom it covers would be covered already.
    """

    covering: int | None
    covered: list[int]


class Search(Protocol):
    """Boxes under numbers, and the covering relations of a new one with them."""

    def find(self, new: Prepared) -> Found:
        """Who covers a box, or whom it covers."""
        ...

    def add(self, box: int, prepared: Prepared) -> None:
        """Take in a box that is not there. A failed call changes nothing."""
        ...

    def discard(self, box: int, prepared: Prepared) -> None:
        """Forget a box."""
        ...

    def covering(self, new: Prepared) -> Iterable[int]:
        """All boxes that cover one."""
        ...

    def asking(self, mask: int) -> Iterable[int]:
        """All boxes that ask some attributes, and maybe more."""
        ...
