"""The engine that chooses between evaluating filters one by one and compiling them.

Compiled programs are fast, but loading the compiler and compiling take a second or more. So a few
filters are simply evaluated one by one, until that has cost as much. Where the kernels have to be
compiled first, which takes seconds, this goes on meanwhile. From then on filters are compiled by
`sliced`, and only the newest ones, at most a few dozen, are evaluated one by one: a new
subscription costs the next event microseconds, not a compilation.
"""

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from tamis.engines.base import Bulk, Options
from tamis.engines.few_filters import Condition, FewFilters
from tamis.engines.matches import Piece, joined, lists_of, merged
from tamis.engines.naive import NaiveEngine
from tamis.engines.resources import Resources, profile_of
from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.language.normal_form import normalize
from tamis.semantics import Semantics

if TYPE_CHECKING:  # numba is heavy
    from tamis.engines.sliced import SlicedEngine
    from tamis.engines.sliced.engine import SlicedBulk, Snapshot
    from tamis.engines.sliced.leaves import Leaves
    from tamis.kernels.handles import Handles
    from tamis.predicates.event_batches import Batch

Array = np.ndarray[Any, Any]

MOST_UNCOMPILED = 1000  # filters
MOST_EVALUATIONS = 1_000_000  # of a filter for an event, before all filters are compiled
# The same where the kernels are loaded already, because this process has compiled other filters.
MOST_EVALUATIONS_LOADED = 20_000
# The same while the kernels themselves are not compiled, which would take longer.
MOST_WAITING, MOST_WAITING_EVALUATIONS = 5000, 2_000_000
MOST_LIVE = 64  # newest filters that are not compiled
MOST_LIVE_EVALUATIONS = 20_000  # of these newest filters, before they are compiled too
PIECE = 512  # events


def kernels_are_loaded() -> bool:
    """Whether this process has compiled filters before, for any matcher and either engine."""
    return "tamis.engines.sliced.engine" in sys.modules


class Prepared(NamedTuple):
    """A filter, and its leaves if filters are compiled."""

    expression: Expression
    leaves: "Leaves | None"


class AutoSnapshot(NamedTuple):
    """What one match sees: filters that are evaluated one by one, and others that are compiled."""

    live: list[tuple[int, Condition]]
    compiled: "Snapshot | None"


class AutoEngine:
    """Some filters that are evaluated one by one, and a sliced engine for the others."""

    options_class: ClassVar[type[Options]] = Resources

    def __init__(self, semantics: Semantics, options: Resources) -> None:
        self._semantics = semantics
        self._options = options
        self.memory = options.bytes
        profile_of(options, semantics)  # refuses a bad profile now, not when it is needed
        self.lock = threading.RLock()  # held while anything changes
        self._live = NaiveEngine(semantics, Options())
        self._leaves: dict[int, Leaves] = {}  # of live filters, where they are known
        self._evaluations = 0  # of live filters, since filters were last compiled
        self.compiled: SlicedEngine | None = None
        self._conditions: list[tuple[int, Condition]] | None = None  # of the live filters
        self._few: FewFilters | None = None  # once they are compiled

    @property
    def name(self) -> str:
        """The name of the engine that does the work."""
        return "naive" if self.compiled is None else "sliced"

    # --- the contract of engines

    def prepare(self, expression: Expression) -> Prepared:
        compiled = self.compiled
        if compiled is None:
            normalize(expression.tree, self._semantics.logic)  # refuses what cannot be compiled
            return Prepared(expression, None)
        return Prepared(expression, compiled.prepare(expression))

    def add(self, handle: int, prepared: Prepared) -> None:
        with self.lock:
            if self.compiled is not None and len(self._live) >= MOST_LIVE:
                self._promote()
            leaves = prepared.leaves
            if self._few is not None and self.compiled is not None:
                leaves = leaves or self.compiled.prepare(prepared.expression)  # which may refuse it
                self._few.add(handle, prepared.expression, len(leaves.codes))
                self._few = None if self._few.are_many else self._few
            self._live.add(handle, prepared.expression)
            if leaves is not None:
                self._leaves[handle] = leaves
            self._conditions = None
            if self.compiled is None and self.are_many(len(self._live)):
                self._promote()

    def remove(self, handle: int) -> None:
        with self.lock:
            if self._few is not None:
                self._few.remove(handle)
            if handle in self._live or self.compiled is None:
                self._live.remove(handle)
                self._leaves.pop(handle, None)
                self._conditions = None
            else:
                self.compiled.remove(handle)

    def remove_many(self, handles: Array) -> None:
        with self.lock:
            live = [handle for handle in handles.tolist() if handle in self._live]
            for handle in live:
                self.remove(handle)
            left = np.setdiff1d(handles, np.array(live, np.int64))
            if self.compiled is not None:
                if self._few is not None:
                    for handle in left.tolist():
                        self._few.remove(handle)
                self.compiled.remove_many(left)

    def bulk(self, size: int) -> Bulk:
        if self.are_many(size):
            self.compile()  # now, so that filters are prepared for the right engine
        return AutoBulk(self)

    def match(self, row: Row) -> "Handles":
        with self.lock:  # while filters are handed over, they are in neither place
            few = self._few
            is_trial = few is not None and few.next_event() is None
            live, compiled = self._held(1)
        if self.compiled is not None:
            self.compiled.tidy()
        if few is None or not is_trial:
            return self._matches(live, compiled, row)
        began = perf_counter()
        found = self._matches(live, compiled, row)
        few.note(perf_counter() - began, compiled=compiled is not None)
        return found

    def match_at(self, snapshot: AutoSnapshot, row: Row) -> "Handles":
        return self._matches(*snapshot, row)

    def match_many(self, rows: Sequence[Row]) -> "Iterator[Handles]":
        from tamis.predicates.event_batches import batch_of_rows

        for counts, found in self.match_batch(batch_of_rows(rows, self._semantics.schema), rows):
            yield from lists_of(counts, found)

    def snapshot(self, events: int) -> AutoSnapshot:
        """What is held, after the decision how to match about `events` events."""
        with self.lock:
            return AutoSnapshot(*self._held(events))

    def match_batch(
        self,
        batch: "Batch",
        rows: Sequence[Row] | None = None,
        snapshot: AutoSnapshot | None = None,
    ) -> Iterator[Piece]:
        held = snapshot or self.snapshot(batch.size)
        if held.compiled is None or self.compiled is None:
            return self._evaluate(held.live, batch, rows)
        found = self.compiled.match_batch_at(held.compiled, batch, rows)
        if not held.live:
            return found
        return _together(self._evaluate(held.live, batch, rows), found)

    def count_batch(self, batch: "Batch", rows: Sequence[Row] | None = None) -> "Handles":
        held = self.snapshot(batch.size)
        total = np.zeros(batch.size, np.int64)
        if held.compiled is not None and self.compiled is not None:
            total = self.compiled.count_batch_at(held.compiled, batch, rows)
        if held.live:
            live = [counts for counts, _ in self._evaluate(held.live, batch, rows)]
            total = total + (np.concatenate(live) if live else 0)
        return total

    def statistics(self) -> dict[str, int]:
        with self.lock:
            live = self._live.statistics()
            if self.compiled is None:
                return live
            found = self.compiled.statistics()
            return found | {"subscriptions": found["subscriptions"] + live["subscriptions"]}

    # --- inside

    def compile(self) -> "SlicedEngine":
        """Compile all filters now; the caller may change what is compiled."""
        with self.lock:
            compiled = self._promote()
            self._few = None
            return compiled

    def are_many(self, filters: int, evaluations: int = 0) -> bool:
        """Whether to compile this many filters, or filters that were evaluated this often.

        Where the kernels are not compiled yet, evaluating filters one by one is the sooner answer
        for some time. Matches let them be compiled in the background meanwhile.
        """
        allowed = MOST_EVALUATIONS
        if kernels_are_loaded():
            allowed = min(allowed, MOST_EVALUATIONS_LOADED)
        many = filters > MOST_UNCOMPILED or evaluations > allowed
        most = filters > MOST_WAITING or evaluations > MOST_WAITING_EVALUATIONS
        if not many or most or self.compiled is not None:
            return many
        from tamis.engines.preparation import preparation

        if evaluations:
            preparation.start()
        return preparation.is_done()

    def _promote(self) -> "SlicedEngine":
        """Hand the live filters over to the sliced engine."""
        is_first = self.compiled is None
        if self.compiled is None:
            from tamis.engines.sliced import SlicedEngine

            self.compiled = SlicedEngine(self._semantics, self._options)
        known, prepare = self._leaves, self.compiled.prepare
        ready = [(h, known.get(h) or prepare(e)) for h, e in self._live.filters()]
        for handle, leaves in ready:
            self.compiled.add(handle, leaves)
        if is_first:
            few = FewFilters(self._live, {handle: len(leaves.codes) for handle, leaves in ready})
            self._few = None if few.are_many else few
        self._live = NaiveEngine(self._semantics, Options())
        self._leaves, self._conditions, self._evaluations = {}, None, 0
        return self.compiled

    def _held(self, events: int) -> "tuple[list[tuple[int, Condition]], Snapshot | None]":
        """The fields of a snapshot; a plain tuple is made sooner, which shows for single events."""
        if self._few is not None and events == 1 and not self._few.is_compiled_next:
            return self._few.conditions, None
        if self.compiled is not None and not self._live:
            return [], self.compiled.snapshot()
        self._evaluations += len(self._live) * events
        if self.compiled is None:
            if self.are_many(len(self._live), self._evaluations):
                self._promote()
        elif self._evaluations > MOST_LIVE_EVALUATIONS:
            self._promote()
        if self._conditions is None:
            self._conditions = self._live.conditions()
        compiled = None if self.compiled is None else self.compiled.snapshot()
        return self._conditions, compiled

    def _matches(
        self, live: list[tuple[int, Condition]], compiled: "Snapshot | None", row: Row
    ) -> "Handles":
        if compiled is None or self.compiled is None:
            return np.array([handle for handle, holds in live if holds(row)], np.int64)
        found = self.compiled.match_at(compiled, row)
        if not live:
            return found
        evaluated = [handle for handle, holds in live if holds(row)]
        return np.sort(np.concatenate([found, np.array(evaluated, np.int64)]))

    def _evaluate(
        self, live: list[tuple[int, Condition]], batch: "Batch", rows: Sequence[Row] | None
    ) -> Iterator[Piece]:
        """The matches of the live filters, evaluated one by one, piece by piece."""
        from tamis.predicates.event_batches import rows_of_batch

        if rows is None:
            rows = rows_of_batch(batch, self._semantics.schema) if live else [()] * batch.size
        for start in range(0, batch.size, PIECE):
            found: list[int] = []
            counts: list[int] = []
            for row in rows[start : start + PIECE]:
                before = len(found)
                found += [handle for handle, holds in live if holds(row)]
                counts.append(len(found) - before)
            yield np.array(counts, np.int64), np.array(found, np.int64)


class AutoBulk:
    """Many filters at once: a few are added one by one, more are compiled."""

    def __init__(self, engine: AutoEngine) -> None:
        self._engine = engine
        self._few: dict[int, Prepared] | None = {}
        self._many: SlicedBulk | None = None

    def put(self, handle: int, prepared: Prepared) -> None:
        if self._few is not None:
            self._few[handle] = prepared
            if not self._engine.are_many(len(self._few)):
                return
            few, self._few = self._few, None
            compiled = self._engine.compile()
            self._many = compiled.bulk(0)
            for one, waiting in few.items():
                self._many.put(one, waiting.leaves or compiled.prepare(waiting.expression))
        elif self._many is not None and self._engine.compiled is not None:
            leaves = prepared.leaves or self._engine.compiled.prepare(prepared.expression)
            self._many.put(handle, leaves)

    def finish(self) -> None:
        if self._many is not None:
            self._many.finish()

    def commit(self, replaced: Iterable[int]) -> None:
        engine = self._engine
        with engine.lock:
            if self._many is not None:
                engine.compile()  # the replaced filters may be among the live ones
                self._many.commit(replaced)
                return
            engine.remove_many(np.array(list(replaced), np.int64))
            for handle, prepared in (self._few or {}).items():
                engine.add(handle, prepared)


def _together(live: Iterator[Piece], compiled: Iterator[Piece]) -> Iterator[Piece]:
    """The matches of both; those of the live filters are few enough to be in memory at once."""
    pieces = list(live)
    if not pieces:
        return
    counts, handles = joined(pieces)
    ends = np.cumsum(counts)
    event = first = 0
    for more, found in compiled:
        event += len(more)
        end = int(ends[event - 1])
        own = counts[event - len(more) : event], handles[first:end]
        yield merged([(more, found), own], len(more))
        first = end
