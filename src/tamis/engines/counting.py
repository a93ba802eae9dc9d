"""The counting algorithm, with its three forms of association.

It is that of Ashayer et al., "Predicate matching and subscription matching in publish/subscribe
systems" (2002; COUNT for short). Stage one finds the satisfied predicates of an event in the
predicate index; stage two counts, for each conjunction, how many of its predicates are among them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis.engines.associations import Association, Bits, Bytes, Lists
from tamis.engines.base import Options
from tamis.engines.conjunction_engine import ConjunctionEngine
from tamis.errors import choose
from tamis.predicates.comparison_index import FORMS, Ids
from tamis.predicates.index import PredicateIndex
from tamis.semantics import Semantics


@dataclass(frozen=True)
class CountingOptions(Options):
    """The settings of the counting engines.

    * `predicates`: how comparisons with constants are found: ``"lists"`` or ``"tables"`` (COUNT,
      sections 3.1 and 3.2), or ``"auto"``: a table where the domain is small.
    """

    predicates: str = "auto"

    def __post_init__(self) -> None:
        choose("predicates", self.predicates, FORMS)


class CountingEngine(ConjunctionEngine):
    """Counting over one form of association."""

    association: type[Association]
    options_class: ClassVar[type[Options]] = CountingOptions

    def __init__(self, semantics: Semantics, options: CountingOptions) -> None:
        super().__init__(semantics, options)
        self.predicates = PredicateIndex(semantics.schema, options.predicates)
        self._association = self.association()

    def insert(self, slot: int, predicates: Ids) -> None:
        self._association.insert(slot, predicates)

    def delete(self, slot: int, predicates: Ids) -> None:
        self._association.delete(slot, predicates)

    def complete(self, satisfied: Ids) -> Ids:
        return self._association.complete(satisfied)

    def held_conjunctions(self) -> Iterator[tuple[int, Ids]]:
        """The slot and the predicates of every conjunction that has predicates."""
        for slot, packed in enumerate(self._predicates):
            if packed:
                yield slot, np.frombuffer(packed, np.int32)

    @property
    def association_bytes(self) -> int:
        """The bytes of the association, with its hit and count vectors (COUNT, Fig. 4)."""
        return self._association.bytes_of(self._slots.size, self.predicates.size)

    @property
    def deletion_bytes(self) -> int:
        """The bytes of what says which predicates a slot has; it is needed to delete from lists."""
        return sum(map(len, self._predicates))


class ListCounting(CountingEngine):
    """Counting with a list of conjunctions for each predicate."""

    name = "counting-list"
    association = Lists


class BitCounting(CountingEngine):
    """Counting with a matrix of bits."""

    name = "counting-bits"
    association = Bits


class ByteCounting(CountingEngine):
    """Counting with a matrix of bytes."""

    name = "counting-bytes"
    association = Bytes
