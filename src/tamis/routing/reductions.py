"""Reductions: which few filters stand for many.

Without reduction these *roots* are all filters; with covering, those that no other filter covers;
with merging, also mergers in the place of several (MBD, sections 4 and 5).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.merged_tables import Change as TableChange
from tamis.relations.merging.merged_tables import MergedTable
from tamis.relations.merging.mergers import MergeOptions
from tamis.relations.merging.policies import Statistics, read_policy
from tamis.relations.tables import CoverTable
from tamis.routing.filter_cache import FilterCache
from tamis.routing.strategies import Merging, Strategy

ALL = "TRUE"  # the filter that every event matches
Advertised = Callable[[], Iterable[str]]  # the filters that a neighbour has advertised now


class Change(NamedTuple):
    """Roots that came and went; a root in both went and came back."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


NO_CHANGE = Change()


class Reduction(Protocol):
    """Filters by their texts, and the roots that stand for them.

    At every moment each filter that can match is covered by its `root_of`. `NoReduction`,
    `CoveringReduction`, `MergingReduction` and `Everything` implement this.
    """

    def add(self, text: str) -> Change:
        """Add a filter that is not there."""

    def remove(self, text: str) -> Change:
        """Remove a filter."""

    def root_of(self, text: str) -> str | None:
        """The root that covers a filter; None for one that no event can match."""

    def reduce(self, now: float) -> Change:
        """Look for mergers, if the policy says that it is time."""

    def next_time(self) -> float | None:
        """When the policy will say so, if that depends on the time."""


def reduction_of(
    strategy: Strategy, merging: Merging, cache: FilterCache, advertised: Advertised | None
) -> Reduction:
    """The reduction of a strategy.

    `advertised` gives the filters that all publications of the neighbour match; with None, only
    perfect mergers are made.
    """
    if not strategy.covering:
        return NoReduction()
    if not strategy.merging:
        return CoveringReduction(cache)
    return MergingReduction(cache, merging, advertised if strategy.imperfect else None)


class NoReduction:
    """Each filter stands for itself."""

    def add(self, text: str) -> Change:
        return Change(added=(text,))

    def remove(self, text: str) -> Change:
        return Change(removed=(text,))

    def root_of(self, text: str) -> str | None:
        return text

    def reduce(self, now: float) -> Change:  # noqa: ARG002 - never depends on time
        return NO_CHANGE

    def next_time(self) -> float | None:
        return None


class Everything:
    """TRUE stands for all, as long as there is a filter."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, text: str) -> Change:  # noqa: ARG002 - whatever it is
        self._count += 1
        return Change(added=(ALL,)) if self._count == 1 else NO_CHANGE

    def remove(self, text: str) -> Change:  # noqa: ARG002 - whatever it is
        self._count -= 1
        return NO_CHANGE if self._count else Change(removed=(ALL,))

    def root_of(self, text: str) -> str | None:  # noqa: ARG002 - whatever it is
        return ALL

    def reduce(self, now: float) -> Change:  # noqa: ARG002 - never depends on time
        return NO_CHANGE

    def next_time(self) -> float | None:
        return None


class CoveringReduction:
    """The filters that no other covers stand for all."""

    def __init__(self, cache: FilterCache) -> None:
        self._cache = cache
        self._table: CoverTable[str] = CoverTable(cache.semantics)

    def add(self, text: str) -> Change:
        found = self._table.insert(text, self._cache.parse(text))
        if not self._table.is_root(text):
            return NO_CHANGE
        return Change(added=(text,), removed=tuple(found.covers))

    def remove(self, text: str) -> Change:
        was_root = self._table.is_root(text)
        restored = self._table.remove(text)
        return Change(tuple(restored), (text,)) if was_root else NO_CHANGE

    def root_of(self, text: str) -> str | None:
        return text if self._table.is_root(text) else self._table.cover_of(text)

    def reduce(self, now: float) -> Change:  # noqa: ARG002 - never depends on time
        return NO_CHANGE

    def next_time(self) -> float | None:
        return None


class MergingReduction:
    """The filters that no other covers, and mergers of them, stand for all."""

    def __init__(self, cache: FilterCache, merging: Merging, advertised: Advertised | None) -> None:
        self._cache = cache
        self._merging = merging
        self._advertised = advertised
        self._policy = read_policy(merging.policy)
        self._table: MergedTable[str] = MergedTable(cache.semantics)
        self._roots: dict[str, None] = {}
        self._merged_at: float | None = None
        self._merged_size = 0
        self._has_changed = False  # since the last merging

    def add(self, text: str) -> Change:
        return self._apply(self._table.insert(text, self._cache.parse(text)))

    def remove(self, text: str) -> Change:
        return self._apply(self._table.remove(text))

    def root_of(self, text: str) -> str | None:
        cover = self._table.cover_of(text)
        if cover is None:
            return text if text in self._roots else None
        return cover if isinstance(cover, str) else str(cover.expression)

    def reduce(self, now: float) -> Change:
        if self._merged_at is None:
            self._merged_at = now  # periods of the policy begin with the first call
        if not self._can_merge or not self._policy.due(now, self._statistics()):
            return NO_CHANGE
        found = self._apply(self._table.merge_now(options=self._merge_options()))
        self._merged_at, self._merged_size, self._has_changed = now, len(self._roots), False
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
        return Statistics(size, begin, self._merged_size, self._table.statistics.diagrams, size)

    def _merge_options(self) -> MergeOptions:
        merging = self._merging
        if self._advertised is None:
            return MergeOptions(rules=merging.rules)
        return MergeOptions(
            rules=merging.rules,
            imperfect=merging.threshold,
            measure=merging.measure or Uniform.around(map(self._cache.parse, self._roots)),
            advertisements=tuple(map(self._cache.parse, dict.fromkeys(self._advertised()))),
        )

    def _apply(self, change: TableChange) -> Change:
        """The change of the table as texts of roots, which are kept up to date."""
        if not change:
            return NO_CHANGE
        self._has_changed = True
        removed = tuple(str(expression) for _, expression in change.removed)
        added = tuple(str(expression) for _, expression in change.added)
        for text in removed:
            self._roots.pop(text, None)
        self._roots.update(dict.fromkeys(added))
        return Change(added, removed)
