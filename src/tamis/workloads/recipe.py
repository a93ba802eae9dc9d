"""What every kind of workload provides."""

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from tamis.workloads.distributions import Column
from tamis.workloads.random_draws import Chance


class Recipe(Protocol):
    """How the filters of a workload are made, and what its events hold.

    Implemented by `Comparisons`, `Equalities`, `Queries` and `Stock`, each a frozen dataclass with
    a class method ``read(config)``.
    """

    @property
    def columns(self) -> tuple[Column, ...]:
        """The attributes, in the order of the schema."""
        ...

    @property
    def pairs(self) -> int:
        """How many of the attributes an event has, before a density thins it out."""
        ...

    @property
    def least(self) -> int:
        """The smallest number of filters that the recipe can make."""
        ...

    def parameters(self, count: int) -> dict[str, Any]:
        """The numbers that shape `count` filters, given and derived."""
        ...

    def filters(self, chance: Chance, count: int) -> Iterator[pa.StringArray]:
        """`count` filters, in pieces."""
        ...
