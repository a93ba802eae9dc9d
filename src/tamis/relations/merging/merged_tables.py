"""A table of filters with mergers among its roots: what a broker forwards when it merges.

Mergers are keys of the table like filters. A merger is removed when one of its parts is removed,
and when another filter covers it (MBD, section 5.1.2 and Fig. 9); the filters that it covered and
that no other covers become roots again. At any time the roots cover every filter.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tamis.language.expression import Expression
from tamis.predicates.boxes import box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.merging.box_pool import below_top, ranks
from tamis.relations.merging.degrees import Degree
from tamis.relations.merging.mergers import Merger
from tamis.relations.tables import CoverTable
from tamis.semantics import Semantics

K = TypeVar("K", bound=Hashable)


class TableChange(NamedTuple):
    """Roots that were added and removed, with their filters; a key is a filter's or a `Merger`."""

    added: list[tuple[Any, Expression]]
    removed: list[tuple[Any, Expression]]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class MergedTable(Generic[K]):
    """A `CoverTable` that has mergers of its roots, which a caller finds and it adopts."""

    def __init__(self, semantics: Semantics) -> None:
        self._semantics = semantics
        self._table: CoverTable[Any] = CoverTable(semantics)
        self._merger_of: dict[K, Merger[K]] = {}
        self._mergers: dict[Merger[K], None] = {}
        self._diagrams = _MbdCount(semantics)

    def __len__(self) -> int:
        """How many filters there are, without mergers."""
        return len(self._table) - len(self._mergers)

    def __contains__(self, key: object) -> bool:
        return key in self._table and not isinstance(key, Merger)

    @property
    def roots(self) -> list[tuple[Any, Expression]]:
        """What is forwarded: keys or mergers, with their filters."""
        return [(key, self._table.expression(key)) for key in self._table.roots]

    @property
    def mergers(self) -> list[Merger[K]]:
        """The mergers that there are, in the order in which they were made."""
        return list(self._mergers)

    def expression(self, key: K) -> Expression:
        """The filter of a key."""
        return self._table.expression(key)

    def cover_of(self, key: K) -> Any:
        """The root that a key is below, None for a root."""
        return self._table.cover_of(key)

    @property
    def diagrams(self) -> int:
        """How many MBDs the roots would be, each root an output node."""
        return len(self._diagrams)

    # --- changes

    def insert(self, key: K, expression: Expression) -> TableChange:
        """Add a filter under a key that is not there; a merger that it covers is removed."""
        changes = _RootChanges()
        insertion = self._table.insert(key, expression)
        if insertion.covered_by is None and not insertion.never:
            changes.come(key, expression)
        self._hide(insertion.covers, changes)
        return self._applied(changes)

    def remove(self, key: K) -> TableChange:
        """Remove a filter, and the merger that it is part of; its other parts come back."""
        changes = _RootChanges()
        merger = self._merger_of.get(key)
        self._forget(key, changes)
        if merger is not None:
            self._cancel(merger, changes)
        return self._applied(changes)

    def adopt(self, mergers: Iterable[Merger[K]]) -> TableChange:
        """Take mergers of roots, unless one of their parts has gone since they were found."""
        changes = _RootChanges()
        for merger in mergers:
            if all(part in self._table for part in merger.parts):
                self._take(merger, changes)
        return self._applied(changes)

    def restored(self, expression: Expression, parts: Sequence[K], degree: Degree) -> Merger[K]:
        """A merger that was made before, of filters that are there, for `adopt`."""
        space = EventSpace.of(self._semantics)
        forms = (form_of(self._table.expression(part), self._semantics) for part in parts)
        boxes = tuple(box for form in forms if (box := box_of(form, space)) is not None)
        return Merger(expression, tuple(parts), degree, boxes)

    def dissolve(self, mergers: Iterable[Merger[K]]) -> TableChange:
        """Cancel mergers; their parts come back."""
        changes = _RootChanges()
        for merger in mergers:
            self._cancel(merger, changes)
        return self._applied(changes)

    # --- inside

    def _applied(self, changes: "_RootChanges") -> TableChange:
        change = changes.change()
        for key, _ in change.removed:
            self._diagrams.remove(key)
        for key, expression in change.added:
            self._diagrams.add(key, expression)
        return change

    def _take(self, merger: Merger[K], changes: "_RootChanges") -> None:
        """Make a merger a root, if that saves a root."""
        insertion = self._table.insert(merger, merger.expression)
        if insertion.covered_by is not None or len(insertion.covers) < 2:
            # Another one of this round covers it, or it saves nothing because the table cannot
            # decide that it covers its parts.
            for key in insertion.covers:
                changes.go(key, self._table.expression(key))
            for key in self._table.remove(merger):
                changes.come(key, self._table.expression(key))
            return
        self._mergers[merger] = None
        changes.come(merger, merger.expression)
        self._hide(insertion.covers, changes)
        for part in merger.parts:
            self._merger_of[part] = merger

    def _hide(self, keys: Iterable[Any], changes: "_RootChanges") -> None:
        """Note that roots are covered now; mergers among them are removed."""
        for key in keys:
            changes.go(key, self._table.expression(key))
        for key in keys:
            if isinstance(key, Merger):
                self._cancel(key, changes)

    def _cancel(self, merger: Merger[K], changes: "_RootChanges") -> None:
        if merger not in self._mergers:
            return
        del self._mergers[merger]
        for part in merger.parts:
            if self._merger_of.get(part) is merger:
                del self._merger_of[part]
        self._forget(merger, changes)

    def _forget(self, key: Any, changes: "_RootChanges") -> None:
        if self._table.is_root(key):
            changes.go(key, self._table.expression(key))
        for restored in self._table.remove(key):
            changes.come(restored, self._table.expression(restored))


class _MbdCount:
    """How many MBDs the roots would be, in which each is an output node.

    Output nodes are in one MBD if their filters differ in their top attribute only; a filter that
    is not a box has an MBD to itself.
    """

    def __init__(self, semantics: Semantics) -> None:
        self._semantics = semantics
        self._space = EventSpace.of(semantics)
        self._ranks = ranks(self._space, None)
        self._below: dict[Any, Hashable] = {}
        self._sizes: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, key: Any, expression: Expression) -> None:
        box = box_of(form_of(expression, self._semantics), self._space)
        below: Hashable = expression if box is None else below_top(box, self._ranks)
        self._below[key] = below
        self._sizes[below] = self._sizes.get(below, 0) + 1

    def remove(self, key: Any) -> None:
        below = self._below.pop(key)
        self._sizes[below] -= 1
        if not self._sizes[below]:
            del self._sizes[below]


class _RootChanges:
    """The roots that came and went in one operation, without those that did both."""

    def __init__(self) -> None:
        self._came: dict[Any, Expression] = {}
        self._went: dict[Any, Expression] = {}

    def come(self, key: Any, expression: Expression) -> None:
        if key in self._went:
            del self._went[key]
        else:
            self._came[key] = expression

    def go(self, key: Any, expression: Expression) -> None:
        if key in self._came:
            del self._came[key]
        else:
            self._went[key] = expression

    def change(self) -> TableChange:
        return TableChange(list(self._came.items()), list(self._went.items()))
