"""How few filters can stand for many: all of them, those that no other covers, or mergers."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.merged_tables import Change as TableChange
from tamis.relations.merging.merged_tables import MergedTable
from tamis.relations.merging.mergers import Plan
from tamis.relations.merging.policies import Statistics, read_policy
from tamis.relations.tables import CoverTable
from tamis.routing.filter_cache import Reading
from tamis.routing.strategies import Merging, Strategy

Offers = Callable[[], Iterable[str]]


class Change(NamedTuple):
    """Roots that came and went; one that is in both has come back."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


NO_CHANGE = Change()


class Reducer(Protocol):
    """Filters by their texts, and the roots that stand for them.

    At every moment each filter that can match is covered by `root_of` it. `Everything`, `Covering`
    and `Merged` are reducers.
    """

    def add(self, text: str) -> Change:
        """Take in a filter that is not there."""

    def remove(self, text: str) -> Change:
        """Let a filter go."""

    def root_of(self, text: str) -> str | None:
        """The root that covers a filter; None for one that no event can match."""

    def reduce(self, now: float) -> Change:
        """Look for mergers, if it is time to."""

    def next_time(self) -> float | None:
        """When it will be time to, if that depends on time."""


def reducer_of(
    strategy: Strategy, merging: Merging, reading: Reading, offers: Offers | None
) -> Reducer:
    """The reducer of a strategy.

    `offers` are the advertisements of the neighbour, among which its publications are; without any
    there are only perfect mergers.
    """
    if not strategy.covering:
        return Everything()
    if not strategy.merging:
        return Covering(reading)
    return Merged(reading, merging, offers if strategy.imperfect else None)


class Everything:
    """Each filter stands for itself."""

    def add(self, text: str) -> Change:
        return Change(added=(text,))

    def remove(self, text: str) -> Change:
        return Change(removed=(text,))

    def root_of(self, text: str) -> str | None:
        return text

    def reduce(self, now: float) -> Change:  # noqa: ARG002 - there is nothing to do at any time
        return NO_CHANGE

    def next_time(self) -> float | None:
        return None


class Covering:
    """Those that no other covers stand for all."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._table: CoverTable[str] = CoverTable(reading.meaning)

    def add(self, text: str) -> Change:
        found = self._table.insert(text, self._reading.read(text))
        if not self._table.is_root(text):
            return NO_CHANGE
        return Change(added=(text,), removed=tuple(found.covers))

    def remove(self, text: str) -> Change:
        was_root = self._table.is_root(text)
        restored = self._table.remove(text)
        return Change(tuple(restored), (text,)) if was_root else NO_CHANGE

    def root_of(self, text: str) -> str | None:
        return text if self._table.is_root(text) else self._table.cover_of(text)

    def reduce(self, now: float) -> Change:  # noqa: ARG002 - there is nothing to do at any time
        return NO_CHANGE

    def next_time(self) -> float | None:
        return None


class Merged:
    """Those that no other covers, and mergers of them, stand for all."""

    def __init__(self, reading: Reading, merging: Merging, offers: Offers | None) -> None:
        self._reading = reading
        self._merging = merging
        self._offers = offers
        self._policy = read_policy(merging.policy)
        self._table: MergedTable[str] = MergedTable(reading.meaning)
        self._roots: dict[str, None] = {}
        self._merged_at: float | None = None
        self._merged_size = 0
        self._has_changed = False  # since it was merged

    def add(self, text: str) -> Change:
        return self._noted(self._table.insert(text, self._reading.read(text)))

    def remove(self, text: str) -> Change:
        return self._noted(self._table.remove(text))

    def root_of(self, text: str) -> str | None:
        cover = self._table.cover_of(text)
        if cover is None:
            return text if text in self._roots else None
        return cover if isinstance(cover, str) else str(cover.expression)

    def reduce(self, now: float) -> Change:
        if self._merged_at is None:
            self._merged_at = now  # the time begins
        if not self._is_worth_it or not self._policy.due(now, self._statistics()):
            return NO_CHANGE
        found = self._noted(self._table.merge_now(plan=self._plan()))
        self._merged_at, self._merged_size, self._has_changed = now, len(self._roots), False
        return found

    def next_time(self) -> float | None:
        if not self._is_worth_it or self._merged_at is None:
            return None
        return self._policy.next_time(self._statistics())

    @property
    def _is_worth_it(self) -> bool:
        return self._has_changed and len(self._roots) > 1

    def _statistics(self) -> Statistics:
        size = len(self._roots)
        begin = self._merged_at or 0.0
        return Statistics(size, begin, self._merged_size, self._table.statistics.diagrams, size)

    def _plan(self) -> Plan:
        merging = self._merging
        if self._offers is None:
            return Plan(rules=merging.rules)
        return Plan(
            rules=merging.rules,
            imperfect=merging.threshold,
            measure=merging.measure or Uniform.around(map(self._reading.read, self._roots)),
            advertisements=tuple(map(self._reading.read, dict.fromkeys(self._offers()))),
        )

    def _noted(self, change: TableChange) -> Change:
        if not change:
            return NO_CHANGE
        self._has_changed = True
        removed = tuple(str(expression) for _, expression in change.removed)
        added = tuple(str(expression) for _, expression in change.added)
        for text in removed:
            self._roots.pop(text, None)
        self._roots.update(dict.fromkeys(added))
        return Change(added, removed)
