"""Filters of which those are found that an event may match together with another filter.

Two boxes have an event in common iff their conditions on each attribute that both test have a value
in common. So each box is kept in the postings of one of its attributes, one with few values if it
has one, and only those under overlapping constraints are compared. General filters are compared one
by one.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from tamis.relations.tables.constraints import Constraint
from tamis.relations.tables.postings import Postings
from tamis.relations.tables.prepared_filters import PreparedFilter
from tamis.schema import Schema

K = TypeVar("K", bound=Hashable)


class IntersectionTable(Generic[K]):
    """Filters under keys; `decide` answers for keys whose filters are not boxes of known values."""

    def __init__(self, schema: Schema, decide: Callable[[K, K], bool]) -> None:
        self._schema = schema
        self._decide = decide
        self._filters: dict[K, PreparedFilter] = {}  # those that may be true
        self._others: dict[K, None] = {}  # general filters, and what is always true
        self._postings: dict[int, Postings[dict[K, None]]] = {}  # by position

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: object) -> bool:
        return key in self._filters

    def add(self, key: K, prepared: PreparedFilter | None) -> None:
        """Add a filter; nothing if it can never be true."""
        if prepared is None:
            return
        self._filters[key] = prepared
        constraint = _narrowest(prepared)
        if constraint is None:
            self._others[key] = None
            return
        postings = self._postings.get(constraint.position)
        if postings is None:
            attribute = self._schema.attributes[constraint.position]
            postings = self._postings[constraint.position] = Postings(attribute)
        under = postings.under.get(constraint)
        if under is None:
            under = {}
            postings.add(constraint, under)
        under[key] = None

    def remove(self, key: K) -> None:
        """Remove a filter, if it is there."""
        prepared = self._filters.pop(key, None)
        if prepared is None:
            return
        constraint = _narrowest(prepared)
        if constraint is None:
            del self._others[key]
            return
        postings = self._postings[constraint.position]
        del postings.under[constraint][key]
        if not postings.under[constraint]:
            postings.remove(constraint)

    def meeting(self, key: K, prepared: PreparedFilter | None) -> Iterator[K]:
        """The keys of filters that may have an event in common with another one."""
        if prepared is None:
            return
        for other in self._candidates(prepared):
            if self._may_meet(key, prepared, other):
                yield other

    def _candidates(self, new: PreparedFilter) -> Iterator[K]:
        yield from self._others
        for position, postings in self._postings.items():
            constraint = new.by_position.get(position)
            for other in postings.under if constraint is None else postings.overlapping(constraint):
                yield from postings.under[other]

    def _may_meet(self, key: K, new: PreparedFilter, other: K) -> bool:
        held = self._filters[other]
        if new.constraints == () or held.constraints == ():  # one of them is always true
            return True
        if new.constraints is None or held.constraints is None:
            return self._decide(key, other)
        for constraint in held.constraints:
            mine = new.by_position.get(constraint.position)
            if mine is None or mine is constraint:
                continue
            if mine.values is None or constraint.values is None:
                return self._decide(key, other)
            if not mine.values.intersection(constraint.values):
                return False
        return True


def _narrowest(prepared: PreparedFilter) -> Constraint | None:
    """The constraint that a box is kept under; None if it has no constraint."""
    return min(prepared.constraints or (), key=_breadth, default=None)


def _breadth(constraint: Constraint) -> tuple[bool, bool, int]:
    """Single values first, then intervals, then the others."""
    return constraint.members is None, not constraint.is_interval, len(constraint.members or ())
