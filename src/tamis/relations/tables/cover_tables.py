"""Filters and which of them cover others, as they come and go: what a broker forwards.

A table is a forest of two levels. A root is covered by no other filter of the table; every other
filter is below one root that covers it. Only roots have to be forwarded, and only roots are
searched: what a filter below a root covers is covered by the root, too.

A filter that can never be true is kept apart: it is not a root, covers nothing and is not covered.

What cannot be decided (`entailment`) counts as not covered, so a root may cover another one without
the table knowing.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from tamis.errors import SubscriptionError, choose
from tamis.language.expression import Expression
from tamis.relations.tables.candidate_search import CandidateSearch
from tamis.relations.tables.general_filters import GeneralSearch
from tamis.relations.tables.prepared_filters import FilterPreparation, PreparedFilter
from tamis.relations.tables.search import CoverSearch, SearchResult
from tamis.relations.tables.witnesses import WitnessedForm
from tamis.semantics import Semantics

SEARCHES = ("candidates", "one-pass", "two-pass")

K = TypeVar("K", bound=Hashable)


class Insertion(NamedTuple, Generic[K]):
    """What became of a new filter."""

    covered_by: K | None  # the root that it is below; None for a root, and for `never`
    covers: list[K]  # the former roots that are below it now, in the order in which they came
    never: bool = False  # it can never be true


@dataclass(slots=True)
class _Tree:
    """A root and the filters below it; it passes to another root as a whole."""

    root: int
    below: dict[int, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Entry(Generic[K]):
    key: K
    expression: Expression
    prepared: PreparedFilter | None  # None if it can never be true
    tree: _Tree | None = None  # that it belongs to, as its root or below it; None if it has none


class CoverTable(Generic[K]):
    """Filters under keys, and the covering relations between them.

    `search` is how they are found: by ``candidates``, or by evaluating all of them as decision
    diagrams in ``one-pass`` or ``two-pass``, with or without a `cache` of what implies what.
    """

    def __init__(
        self, semantics: Semantics, search: str = "candidates", *, cache: bool = True,
        preparation: FilterPreparation | None = None,
    ) -> None:  # fmt: skip
        """Tables that share a `preparation` share what they know about filters."""
        self._preparation = preparation or FilterPreparation(semantics)
        self._boxes = _search(choose("search", search, SEARCHES), self._preparation, cache=cache)
        self._generals = GeneralSearch(self._preparation.pool, self._boxes)
        self._numbers: dict[K, int] = {}
        self._entries: dict[int, _Entry[K]] = {}  # in the order in which they came
        self._roots: dict[int, PreparedFilter] = {}
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
        """The root that a key is below; None for a root, and for a filter that is never true."""
        number = self._number(key)
        tree = self._entries[number].tree
        return None if tree is None or tree.root == number else self._entries[tree.root].key

    def covered_by(self, key: K) -> list[K]:
        """The keys below a root, in the order in which they came."""
        number = self._number(key)
        tree = self._entries[number].tree
        return [] if tree is None or tree.root != number else self._keys(tree.below)

    def expression(self, key: K) -> Expression:
        """The filter of a key."""
        return self._entries[self._number(key)].expression

    def insert(self, key: K, expression: Expression) -> Insertion[K]:
        """Add a filter under a key that is not there."""
        return self.insert_prepared(key, expression, self._preparation.prepare(expression))

    def insert_prepared(
        self, key: K, expression: Expression, prepared: PreparedFilter | None
    ) -> Insertion[K]:
        """The same for a filter that the preparation of this table has prepared."""
        if key in self._numbers:
            raise SubscriptionError(f"{key!r} is in the table already; remove it first")
        entry = _Entry(key, expression, prepared)
        number = self._next
        if prepared is None:
            self._store(number, entry)
            return Insertion(None, [], never=True)
        witnessed = self._witnessed(prepared)
        found = self._find(prepared, witnessed)
        if found.covering is not None:
            self._store(number, entry)
            self._put_below(number, found.covering)
            return Insertion(self._entries[found.covering].key, [])
        self._add_root(number, prepared, witnessed)
        self._store(number, entry)
        entry.tree = _Tree(number)
        for covered in found.covered:
            self._lower(covered, number)
        return Insertion(None, self._keys(found.covered))

    def remove(self, key: K) -> list[K]:
        """Remove a filter; returns the keys below it that are roots now, in their order."""
        number = self._number(key)
        entry = self._entries.pop(number)
        del self._numbers[key]
        if entry.tree is None:
            return []
        if entry.tree.root != number:
            del entry.tree.below[number]
            return []
        self._remove_root(number)
        orphans = dict.fromkeys(sorted(entry.tree.below))
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

    def _store(self, number: int, entry: _Entry[K]) -> None:
        self._next = number + 1
        self._numbers[entry.key] = number
        self._entries[number] = entry

    def _settle(self, number: int, orphans: dict[int, None]) -> None:
        """Put a filter below a root, or make it one.

        What it covers was covered by the removed root, too, and is an orphan. If that could not be
        decided it stays a root: a removal is not expected to cover anything.
        """
        entry = self._entries[number]
        assert entry.prepared is not None  # noqa: S101 - it was covered, so it may be true
        witnessed = self._witnessed(entry.prepared)
        found = self._find(entry.prepared, witnessed)
        if found.covering is not None:
            self._put_below(number, found.covering)
            return
        entry.tree = _Tree(number)
        self._add_root(number, entry.prepared, witnessed)
        for covered in sorted(found.covered):
            if covered in orphans:
                self._lower(covered, number)

    def _witnessed(self, prepared: PreparedFilter) -> WitnessedForm | None:
        """What a filter is compared with general filters by, None if there are only boxes."""
        if prepared.constraints is not None and not len(self._generals):
            return None
        return self._generals.witnessed(prepared)

    def _find(self, new: PreparedFilter, witnessed: WitnessedForm | None) -> SearchResult:
        if witnessed is None:  # boxes only
            return self._boxes.find(new)
        generals = self._generals
        if new.constraints is None:
            covering = next(generals.boxes_covering(witnessed, self._roots), None)
            covered: Iterable[int] = generals.boxes_covered(witnessed, self._roots)
        else:
            covering, covered = self._boxes.find(new)
        if covering is None:
            covering = next(generals.generals_covering(witnessed), None)
        if covering is not None:
            return SearchResult(covering, [])
        return SearchResult(None, [*covered, *generals.generals_covered(witnessed)])

    def _add_root(
        self, number: int, prepared: PreparedFilter, witnessed: WitnessedForm | None
    ) -> None:
        """Make a filter a root."""
        if prepared.constraints is not None:
            self._boxes.add(number, prepared)
        elif witnessed is not None:
            self._generals.add(number, witnessed)
        self._roots[number] = prepared

    def _remove_root(self, number: int) -> None:
        prepared = self._roots.pop(number)
        if prepared.constraints is not None:
            self._boxes.remove(number, prepared)
        self._generals.remove(number)

    def _put_below(self, number: int, root: int) -> None:
        tree = self._tree_of(root)
        tree.below[number] = None
        self._entries[number].tree = tree

    def _lower(self, number: int, root: int) -> None:
        """Put a root and all filters below it under another root.

        The smaller of the two trees moves, so a filter moves a few times however many roots come.
        """
        self._remove_root(number)
        lowered, tree = self._tree_of(number), self._tree_of(root)
        lowered.below[number] = None
        if len(lowered.below) > len(tree.below):
            lowered, tree = tree, lowered
            tree.root = root
            self._entries[root].tree = tree
        for moved in lowered.below:
            self._entries[moved].tree = tree
        tree.below |= lowered.below

    def _tree_of(self, number: int) -> _Tree:
        tree = self._entries[number].tree
        assert tree is not None  # noqa: S101 - only what may be true covers and is covered
        return tree


def _search(name: str, preparation: FilterPreparation, *, cache: bool) -> CoverSearch:
    if name == "candidates":
        return CandidateSearch(preparation.pool)
    from tamis.relations.tables.mbd_search import MbdSearch  # it needs the compiler

    return MbdSearch(preparation.pool, passes=1 if name == "one-pass" else 2, cache=cache)
