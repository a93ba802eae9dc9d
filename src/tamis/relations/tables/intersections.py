"""Filters of which those are found that an event may match together with another filter.

Two boxes have an event in common iff their conditions on each attribute that both test have a value
in common. So each box is kept in the postings of one of its attributes, one with few values if it
has one, and only those under overlapping terms are compared. General filters are compared one by
one.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from tamis.relations.tables.postings import Postings
from tamis.relations.tables.prepared_filters import PreparedFilter
from tamis.relations.tables.terms import Term
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
        term = _narrowest(prepared)
        if term is None:
            self._others[key] = None
            return
        postings = self._postings.get(term.position)
        if postings is None:
            attribute = self._schema.attributes[term.position]
            postings = self._postings[term.position] = Postings(attribute)
        under = postings.under.get(term)
        if under is None:
            under = {}
            postings.add(term, under)
        under[key] = None

    def remove(self, key: K) -> None:
        """Remove a filter, if it is there."""
        prepared = self._filters.pop(key, None)
        if prepared is None:
            return
        term = _narrowest(prepared)
        if term is None:
            del self._others[key]
            return
        postings = self._postings[term.position]
        del postings.under[term][key]
        if not postings.under[term]:
            postings.remove(term)

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
            term = new.by_position.get(position)
            for other in postings.under if term is None else postings.overlapping(term):
                yield from postings.under[other]

    def _may_meet(self, key: K, new: PreparedFilter, other: K) -> bool:
        held = self._filters[other]
        if new.terms == () or held.terms == ():  # one of them is always true
            return True
        if new.terms is None or held.terms is None:
            return self._decide(key, other)
        for term in held.terms:
            mine = new.by_position.get(term.position)
            if mine is None or mine is term:
                continue
            if mine.values is None or term.values is None:
                return self._decide(key, other)
            if not mine.values.intersection(term.values):
                return False
        return True


def _narrowest(prepared: PreparedFilter) -> Term | None:
    """The term that a box is kept under; None if it has no term."""
    return min(prepared.terms or (), key=_breadth, default=None)


def _breadth(term: Term) -> tuple[bool, bool, int]:
    """Single values first, then intervals, then the others."""
    return term.members is None, not term.is_interval, len(term.members or ())
