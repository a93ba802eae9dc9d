"""Subscriptions and who covers whom, as they come and go: what a broker forwards.

A table is a forest of two levels. A root is covered by no other filter of the table; every other
filter hangs under one root that covers it. Only roots have to be forwarded, and only roots are
searched: whoever is covered by a filter below a root is covered by the root.

A filter that can never be true is kept apart: it is no root, nobody's cover and under nobody.

What cannot be decided (`entailment`) counts as not covered, so a root may cover another one without
the table knowing.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from tamis.errors import SubscriptionError, choose
from tamis.language.expression import Expression
from tamis.relations.tables.candidate_search import CandidateSearch
from tamis.relations.tables.general_filters import GeneralSearch, Sample
from tamis.relations.tables.prepared_filters import Preparation, Prepared
from tamis.relations.tables.search import Found, Search
from tamis.semantics import Semantics

SEARCHES = ("candidates", "one-pass", "two-pass")

K = TypeVar("K", bound=Hashable)


class Insertion(NamedTuple, Generic[K]):
    """What became of a new filter."""

    covered_by: K | None  # the root that it hangs under; None for a root, and for `never`
    covers: list[K]  # what were roots and hang under it now, in the order of coming
    never: bool = False  # it can never be true


@dataclass(slots=True)
class _Entry(Generic[K]):
    key: K
    expression: Expression
    prepared: Prepared | None  # None if it can never be true
    root: int | None = None  # the one that it hangs under
    below: dict[int, None] = field(default_factory=dict)  # those that hang under it


class CoverTable(Generic[K]):
    """Filters under keys, and the covering relations between them.

    `search` is how they are found: by ``candidates``, or by evaluating all of them as decision
    diagrams in ``one-pass`` or ``two-pass``, with or without a `cache` of what implies what.
    """

    def __init__(
        self, semantics: Semantics, search: str = "candidates", *, cache: bool = True
    ) -> None:
        self._preparation = Preparation(semantics)
        self._boxes = _search(choose("search", search, SEARCHES), self._preparation, cache=cache)
        self._generals = GeneralSearch(self._preparation.pool, self._boxes)
        self._numbers: dict[K, int] = {}
        self._entries: dict[int, _Entry[K]] = {}  # by number, which grow: the order of coming
        self._roots: dict[int, Prepared] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    @property
    def roots(self) -> list[K]:
        """The keys that no other covers, in the order in which they came."""
        return [self._entries[number].key for number in sorted(self._roots)]

    def is_root(self, key: K) -> bool:
        """Whether a key is covered by no other."""
        return self._number(key) in self._roots

    def cover_of(self, key: K) -> K | None:
        """The root that a key hangs under; None for a root, and for what is never true."""
        root = self._entries[self._number(key)].root
        return None if root is None else self._entries[root].key

    def covered_by(self, key: K) -> list[K]:
        """The keys that hang under one, in the order in which they came."""
        return self._keys(self._entries[self._number(key)].below)

    def expression(self, key: K) -> Expression:
        """The filter of a key."""
        return self._entries[self._number(key)].expression

    def insert(self, key: K, expression: Expression) -> Insertion[K]:
        """Take in a filter under a key that is not there."""
        if key in self._numbers:
            raise SubscriptionError(f"{key!r} is in the table already; remove it first")
        prepared = self._preparation.prepare(expression)
        entry = _Entry(key, expression, prepared)
        number = self._next
        if prepared is None:
            self._keep(number, entry)
            return Insertion(None, [], never=True)
        sample = self._sample(prepared)
        found = self._find(prepared, sample)
        if found.covering is not None:
            entry.root = found.covering
            self._keep(number, entry)
            self._entries[found.covering].below[number] = None
            return Insertion(self._entries[found.covering].key, [])
        self._plant(number, prepared, sample)
        self._keep(number, entry)
        for covered in found.covered:
            self._hang(covered, number)
        return Insertion(None, self._keys(found.covered))

    def remove(self, key: K) -> list[K]:
        """Forget a filter; what hung under it and is a root now, in the order of coming."""
        number = self._number(key)
        entry = self._entries.pop(number)
        del self._numbers[key]
        if entry.root is not None:
            del self._entries[entry.root].below[number]
        if entry.prepared is None or number not in self._roots:
            return []
        self._uproot(number)
        orphans = dict.fromkeys(sorted(entry.below))
        for orphan in orphans:
            self._settle(orphan, orphans)
        return self._keys(orphan for orphan in orphans if orphan in self._roots)

    # --- inside

    def _number(self, key: K) -> int:
        try:
            return self._numbers[key]
        except KeyError:
            raise SubscriptionError(f"{key!r} is not in the table") from None

    def _keys(self, numbers: Iterable[int]) -> list[K]:
        return [self._entries[number].key for number in sorted(numbers)]

    def _keep(self, number: int, entry: _Entry[K]) -> None:
        self._next = number + 1
        self._numbers[entry.key] = number
        self._entries[number] = entry

    def _settle(self, number: int, orphans: dict[int, None]) -> None:
        """Hang a filter under a root, or make it one.

        Whom it covers was covered by the root that went, too, and is an orphan. If that could not
        be decided it stays a root: nobody expects a removal to cover anything.
        """
        entry = self._entries[number]
        assert entry.prepared is not None  # noqa: S101 - it was covered, so it may be true
        sample = self._sample(entry.prepared)
        found = self._find(entry.prepared, sample)
        if found.covering is not None:
            entry.root = found.covering
            self._entries[found.covering].below[number] = None
            return
        entry.root = None
        self._plant(number, entry.prepared, sample)
        for covered in sorted(found.covered):
            if covered in orphans:
                self._hang(covered, number)

    def _sample(self, prepared: Prepared) -> Sample | None:
        """What general formulas are compared by, where there are any."""
        if prepared.terms is not None and not len(self._generals):
            return None
        return self._generals.sample(prepared)

    def _find(self, new: Prepared, sample: Sample | None) -> Found:
        if sample is None:  # boxes only
            return self._boxes.find(new)
        generals = self._generals
        if new.terms is None:
            covering = next(generals.boxes_covering(sample, self._roots), None)
            covered: Iterable[int] = generals.boxes_covered(sample, self._roots)
        else:
            covering, covered = self._boxes.find(new)
        if covering is None:
            covering = next(generals.generals_covering(sample), None)
        if covering is not None:
            return Found(covering, [])
        return Found(None, [*covered, *generals.generals_covered(sample)])

    def _plant(self, number: int, prepared: Prepared, sample: Sample | None) -> None:
        """Make a filter a root."""
        if prepared.terms is not None:
            self._boxes.add(number, prepared)
        elif sample is not None:
            self._generals.add(number, sample)
        self._roots[number] = prepared

    def _uproot(self, number: int) -> None:
        prepared = self._roots.pop(number)
        if prepared.terms is not None:
            self._boxes.discard(number, prepared)
        self._generals.discard(number)

    def _hang(self, number: int, root: int) -> None:
        """A root and all below it go under another one."""
        self._uproot(number)
        entry = self._entries[number]
        moved = [number, *entry.below]
        entry.below = {}
        for one in moved:
            self._entries[one].root = root
        self._entries[root].below.update(dict.fromkeys(moved))


def _search(name: str, preparation: Preparation, *, cache: bool) -> Search:
    if name == "candidates":
        return CandidateSearch(preparation.pool)
    from tamis.relations.tables.mbd_search import MbdSearch  # it needs the compiler

    return MbdSearch(preparation.pool, passes=1 if name == "one-pass" else 2, cache=cache)
