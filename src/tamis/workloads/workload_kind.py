"""The protocol that every kind of workload implements."""

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from tamis.workloads.random_draws import Chance
from tamis.workloads.value_generators import AttributeColumn


class WorkloadKind(Protocol):
    """How the filters of a workload are made, and which attributes its events have.

    Implemented by `Comparisons`, `Equalities`, `Queries`, `Stock`, `Templates` and `Trees`, each a
    frozen dataclass with a class method ``read(config)``.
    """

    @property
    def columns(self) -> tuple[AttributeColumn, ...]:
        """The attributes, in the order of the schema."""
        ...

    @property
    def pairs(self) -> int:
        """How many of the attributes an event has, at a density of 1."""
        ...

    @property
    def least(self) -> int:
        """The smallest number of filters that can be made."""
        ...

    def parameters(self, count: int) -> dict[str, Any]:
        """The parameters of `count` filters, given and derived."""
        ...

    def filters(self, chance: Chance, count: int) -> Iterator[pa.StringArray]:
        """`count` filters, in chunks."""
        ...
