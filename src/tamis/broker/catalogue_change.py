"""A change of the catalogue."""

from typing import Any, NamedTuple


class CatalogueChange(NamedTuple):
    """One statement of a transaction."""

    statement: str
    values: tuple[Any, ...]
