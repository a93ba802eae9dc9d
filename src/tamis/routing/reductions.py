"""Reductions: which few filters stand for many.

Without reduction these *roots* are all filters; with covering, those that no other filter covers;
with merging, also mergers in the place of several (MBD, sections 4 and 5).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from tamis.language.expression import MATCHES_ALL
from tamis.relations.merging.degrees import PERFECT, Degree
from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.merged_tables import MergedTable, TableChange
from tamis.relations.merging.mergers import (
    MOST_SEARCHES,
    MergeOptions,
    Merger,
    find_mergers,
    imt_of,
)
from tamis.relations.merging.policies import Statistics, read_policy
from tamis.relations.tables import CoverTable
from tamis.routing.filter_cache import FilterCache
from tamis.routing.strategies import Merging, Odds, Strategy

DEAR = 2.0  # a merger is cancelled if it lets through this many times what it may
Advertised = Callable[[], Iterable[str]]  # the filters that a neighbour has advertised now


class RootChange(NamedTuple):
    """Roots that came and went; a root in both went and came back."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


NO_CHANGE = RootChange()


class FoundMergers(NamedTuple):
    """What a search has found: mergers to make, and those that let too much through by now."""

    good: list[Merger[str]]
    dear: list[Merger[str]]


Search = Callable[[], FoundMergers]


class KnownMerger(NamedTuple):
    """A merger as it can be kept: its filter, its parts, and its IMT, None if it is perfect."""

    filter: str
    parts: Sequence[str]
    imt: float | None


class Reduction(Protocol):
    """Filters by their texts, and the roots that stand for them.

    At every moment each filter that can match is covered by its `root_of`. `NoReduction`,
    `CoveringReduction`, `MergingReduction` and `Everything` implement this.
    """

    def add(self, text: str) -> RootChange:
        """Add a filter that is not there."""

    def remove(self, text: str) -> RootChange:
        """Remove a filter."""

    def root_of(self, text: str) -> str | None:
        """The root that covers a filter; None for one that no event can match."""

    def reduce(self, now: float) -> RootChange:
        """Look for mergers, if the policy says that it is time."""

    def next_time(self) -> float | None:
        """When the policy will say so, if that depends on the time."""

    def search(self, now: float) -> Search | None:
        """The same as `reduce` in two steps: a function that a thread may call, if it is time."""

    def adopt(self, found: FoundMergers, now: float) -> RootChange:
        """The second step: make the mergers that were found."""

    def mergers(self) -> list[KnownMerger]:
        """The mergers that stand for others now."""

    def restore(self, known: Iterable[KnownMerger]) -> RootChange:
        """Make mergers again that were made before a restart, of the filters that are there."""


def reduction_of(
    strategy: Strategy, merging: Merging, cache: FilterCache, advertised: Advertised | None,
    neighbour: str = "",
) -> Reduction:  # fmt: skip
    """The reduction of a strategy.

    `advertised` gives the filters that all publications of the neighbour match; with None, only
    perfect mergers are made.
    """
    if not strategy.covering:
        return NoReduction()
    if not strategy.merging:
        return CoveringReduction(cache)
    advertised = advertised if strategy.imperfect else None
    return MergingReduction(cache, merging, advertised, neighbour)


class _NoMergers:
    """What reductions have in common that make no mergers."""

    def reduce(self, now: float) -> RootChange:  # noqa: ARG002 - never depends on time
        return NO_CHANGE

    def next_time(self) -> float | None:
        return None

    def search(self, now: float) -> Search | None:  # noqa: ARG002 - never depends on time
        return None

    def adopt(self, found: FoundMergers, now: float) -> RootChange:  # noqa: ARG002 - nobody searches
        return NO_CHANGE

    def mergers(self) -> list[KnownMerger]:
        return []

    def restore(self, known: Iterable[KnownMerger]) -> RootChange:  # noqa: ARG002 - another strategy
        return NO_CHANGE


class NoReduction(_NoMergers):
    """Each filter stands for itself."""

    def add(self, text: str) -> RootChange:
        return RootChange(added=(text,))

    def remove(self, text: str) -> RootChange:
        return RootChange(removed=(text,))

    def root_of(self, text: str) -> str | None:
        return text


class Everything(_NoMergers):
    """TRUE stands for all, as long as there is a filter."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, text: str) -> RootChange:  # noqa: ARG002 - whatever it is
        self._count += 1
        return RootChange(added=(MATCHES_ALL,)) if self._count == 1 else NO_CHANGE

    def remove(self, text: str) -> RootChange:  # noqa: ARG002 - whatever it is
        self._count -= 1
        return NO_CHANGE if self._count else RootChange(removed=(MATCHES_ALL,))

    def root_of(self, text: str) -> str | None:  # noqa: ARG002 - whatever it is
        return MATCHES_ALL


class CoveringReduction(_NoMergers):
    """The filters that no other covers stand for all."""

    def __init__(self, cache: FilterCache) -> None:
        self._cache = cache
        self._table: CoverTable[str] = CoverTable(cache.semantics, preparation=cache.preparation)

    def add(self, text: str) -> RootChange:
        cache = self._cache
        found = self._table.insert_prepared(text, cache.parse(text), cache.prepare(text))
        if not self._table.is_root(text):
            return NO_CHANGE
        return RootChange(added=(text,), removed=tuple(found.covers))

    def remove(self, text: str) -> RootChange:
        was_root = self._table.is_root(text)
        restored = self._table.remove(text)
        return RootChange(tuple(restored), (text,)) if was_root else NO_CHANGE

    def root_of(self, text: str) -> str | None:
        return text if self._table.is_root(text) else self._table.cover_of(text)


class MergingReduction:
    """The filters that no other covers, and mergers of them, stand for all."""

    def __init__(
        self, cache: FilterCache, merging: Merging, advertised: Advertised | None,
        neighbour: str = "",
    ) -> None:  # fmt: skip
        self._cache = cache
        self._merging = merging
        self._neighbour = neighbour
        self._odds: Odds | None = None  # that mergers were compared with last
        self._advertised = advertised
        self._policy = read_policy(merging.policy)
        self._table: MergedTable[str] = MergedTable(cache.semantics)
        self._roots: dict[str, None] = {}
        self._merged_at: float | None = None
        self._merged_size = 0
        self._rounds = 0  # of the search that is under way
        self._has_changed = False  # since the last merging

    def add(self, text: str) -> RootChange:
        self._has_changed = True
        return self._apply(self._table.insert(text, self._cache.parse(text)))

    def remove(self, text: str) -> RootChange:
        self._has_changed = True
        return self._apply(self._table.remove(text))

    def root_of(self, text: str) -> str | None:
        cover = self._table.cover_of(text)
        if cover is None:
            return text if text in self._roots else None
        return cover if isinstance(cover, str) else str(cover.expression)

    def reduce(self, now: float) -> RootChange:
        search = self.search(now)
        if search is None:
            return NO_CHANGE
        changes = [self.adopt(search(), now)]
        while self._rounds:
            again = self.search(now)
            assert again is not None  # noqa: S101 - the last round was not the last
            changes.append(self.adopt(again(), now))
        return _in_one(changes)

    def search(self, now: float) -> Search | None:
        if self._merged_at is None:
            self._merged_at = now  # periods of the policy begin with the first call
        odds = None if self._merging.odds is None else self._merging.odds(self._neighbour)
        are_new = odds is not None and odds is not self._odds
        is_due = self._can_merge and self._policy.due(now, self._statistics())
        if not (is_due or self._rounds or (are_new and self._table.mergers)):
            return None
        self._odds = odds
        self._has_changed = self._has_changed and not is_due
        roots, options = dict(self._table.roots), self._merge_options(odds)
        mergers = list(self._table.mergers) if are_new else []

        def search() -> FoundMergers:
            dear = [one for one in mergers if odds is not None and self._is_dear(one, odds)]
            if dear or not (is_due or self._rounds):
                return FoundMergers([], dear)  # others are not looked for at once, and those stay
            return FoundMergers(find_mergers(roots, self._cache.semantics, options), [])

        return search

    def adopt(self, found: FoundMergers, now: float) -> RootChange:
        change = self._table.dissolve(found.dear) if found.dear else self._table.adopt(found.good)
        has_more = bool(found.good and change) and self._rounds < MOST_SEARCHES
        self._rounds = self._rounds + 1 if has_more else 0
        applied = self._apply(change)
        if not has_more:
            self._merged_at, self._merged_size = now, len(self._roots)
        return applied

    def mergers(self) -> list[KnownMerger]:
        return [
            KnownMerger(
                str(one.expression), one.parts,
                None if one.degree is PERFECT else float(one.degree.imt),
            )
            for one in self._table.mergers
        ]  # fmt: skip

    def restore(self, known: Iterable[KnownMerger]) -> RootChange:
        mergers = []
        for text, parts, imt in known:
            degree = PERFECT if imt is None else Degree(imt, 1.0, imt, exact=False)
            if all(part in self._table for part in parts):
                expression = self._cache.parse(text)
                mergers.append(self._table.restored(expression, parts, degree))
        found = self._apply(self._table.adopt(mergers))
        self._merged_size = len(self._roots)
        return found

    def next_time(self) -> float | None:
        if not self._can_merge or self._merged_at is None:
            return None
        return self._policy.next_time(self._statistics())

    @property
    def _can_merge(self) -> bool:
        return self._has_changed and len(self._roots) > 1

    def _statistics(self) -> Statistics:
        size = len(self._roots)
        begin = self._merged_at or 0.0
        return Statistics(size, begin, self._merged_size, self._table.diagrams, size)

    def _is_dear(self, merger: Merger[str], odds: Odds) -> bool:
        """Whether a merger lets much more through than would be allowed now."""
        allowed = min(self._merging.threshold, odds.price * (len(merger.parts) - 1))
        return imt_of(merger, self._cache.semantics, odds.measure) > DEAR * allowed

    def _merge_options(self, odds: Odds | None) -> MergeOptions:
        merging = self._merging
        common = MergeOptions(
            rules=merging.rules,
            candidates=merging.candidates,
            order=None if odds is None else odds.order,
        )
        if self._advertised is None:
            return common
        if odds is not None:  # what is published is what was advertised
            return replace(
                common, imperfect=merging.threshold, price=odds.price, measure=odds.measure
            )
        return replace(
            common,
            imperfect=merging.threshold,
            measure=merging.measure or Uniform.around(map(self._cache.parse, self._roots)),
            advertisements=tuple(map(self._cache.parse, dict.fromkeys(self._advertised()))),
        )

    def _apply(self, change: TableChange) -> RootChange:
        """The change of the table as texts of roots, which are kept up to date."""
        if not change:
            return NO_CHANGE
        removed = tuple(str(expression) for _, expression in change.removed)
        added = tuple(str(expression) for _, expression in change.added)
        for text in removed:
            self._roots.pop(text, None)
        self._roots.update(dict.fromkeys(added))
        return RootChange(added, removed)


def _in_one(changes: Iterable[RootChange]) -> RootChange:
    """Changes that follow each other, as one."""
    came: dict[str, None] = {}
    went: dict[str, None] = {}
    for change in changes:
        for root in change.removed:
            if root in came:
                del came[root]
            else:
                went[root] = None
        for root in change.added:
            came[root] = None
    return RootChange(tuple(came), tuple(went)) if came or went else NO_CHANGE
