"""The choice of the engine, left to tamis.

Compiled programs are fast, but loading the compiler and compiling take a second or more. So a few
filters are simply asked one by one, until that has cost as much. From then on filters are compiled
by `sliced`, and only those that came last, at most a few dozen, are asked one by one: a new
subscription costs the next event microseconds, not a compilation.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from tamis.engines.base import Bulk, Options
from tamis.engines.match_lists import Piece, joined, lists_of, merged
from tamis.engines.naive import NaiveEngine
from tamis.engines.resources import Resources, profile_of
from tamis.events import Row
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
Condition = Callable[[Row], bool]

MOST_UNCOMPILED = 1000  # filters
MOST_ASKED = 1_000_000  # times that a filter is asked about an event before all are compiled
MOST_LIVE = 64  # filters that came last
MOST_ASKED_LIVE = 20_000  # times that these are asked for one batch
PIECE = 512  # events


class Prepared(NamedTuple):
    """A filter, and its leaves if filters are compiled."""

    expression: Expression
    leaves: "Leaves | None"


class Moment(NamedTuple):
    """What one match looks at."""

    live: list[tuple[int, Condition]]
    compiled: "Snapshot | None"


class AutoEngine:
    """Some filters that are asked one by one, and a sliced engine for the others."""

    options_class: ClassVar[type[Options]] = Resources

    def __init__(self, semantics: Semantics, options: Resources) -> None:
        self._semantics = semantics
        self._options = options
        self.memory = options.bytes
        profile_of(options, semantics)  # refuses a bad one now, not when it is needed
        self.lock = threading.RLock()  # held while anything changes
        self._live = NaiveEngine(semantics, Options())
        self._leaves: dict[int, Leaves] = {}  # of live filters, where they are known
        self._asked = 0
        self.compiled: SlicedEngine | None = None
        self._conditions: list[tuple[int, Condition]] | None = None  # of the live filters

    @property
    def name(self) -> str:
        """What does the work."""
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
            self._live.add(handle, prepared.expression)
            if prepared.leaves is not None:
                self._leaves[handle] = prepared.leaves
            self._conditions = None
            if self.compiled is None and len(self._live) > MOST_UNCOMPILED:
                self._promote()

    def remove(self, handle: int) -> None:
        with self.lock:
            if handle in self._live or self.compiled is None:
                self._live.remove(handle)
                self._leaves.pop(handle, None)
                self._conditions = None
            else:
                self.compiled.remove(handle)

    def bulk(self, size: int) -> Bulk:
        if size > MOST_UNCOMPILED:
            self.compile()  # before filters are prepared for nothing
        return AutoBulk(self)

    def match(self, row: Row) -> "Handles":
        moment = self.picture(1)
        live = np.array([handle for handle, holds in moment.live if holds(row)], np.int64)
        if moment.compiled is None or self.compiled is None:
            return live
        found = self.compiled.match_at(moment.compiled, row)
        return np.sort(np.concatenate([live, found])) if len(live) else found

    def match_many(self, rows: Sequence[Row]) -> "Iterator[Handles]":
        from tamis.predicates.event_batches import batch_of_rows

        for counts, found in self.match_batch(batch_of_rows(rows, self._semantics.schema), rows):
            yield from lists_of(counts, found)

    def picture(self, events: int) -> Moment:
        """What is there, after the decision how to match some events."""
        with self.lock:
            work = len(self._live) * events
            if self.compiled is None:
                self._asked += work
                if self._asked > MOST_ASKED:
                    self._promote()
            elif work > MOST_ASKED_LIVE:
                self._promote()
            if self._conditions is None:
                self._conditions = self._live.conditions()
            snapshot = None if self.compiled is None else self.compiled.snapshot()
            return Moment(self._conditions, snapshot)

    def match_batch(
        self, batch: "Batch", rows: Sequence[Row] | None = None, picture: Moment | None = None
    ) -> Iterator[Piece]:
        moment = picture or self.picture(batch.size)
        if moment.compiled is None or self.compiled is None:
            return self._ask(moment.live, batch, rows)
        found = self.compiled.match_batch_at(moment.compiled, batch, rows)
        if not moment.live:
            return found
        return _together(self._ask(moment.live, batch, rows), found)

    def count_batch(self, batch: "Batch", rows: Sequence[Row] | None = None) -> "Handles":
        moment = self.picture(batch.size)
        total = np.zeros(batch.size, np.int64)
        if moment.compiled is not None and self.compiled is not None:
            total = self.compiled.count_batch_at(moment.compiled, batch, rows)
        if moment.live:
            live = [counts for counts, _ in self._ask(moment.live, batch, rows)]
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
        """Compile all filters now."""
        with self.lock:
            return self._promote()

    def _promote(self) -> "SlicedEngine":
        """Hand the live filters over to the sliced engine."""
        if self.compiled is None:
            from tamis.engines.sliced import SlicedEngine

            self.compiled = SlicedEngine(self._semantics, self._options)
        known, prepare = self._leaves, self.compiled.prepare
        ready = [(h, known.get(h) or prepare(e)) for h, e in self._live.filters()]
        for handle, leaves in ready:
            self.compiled.add(handle, leaves)
        self._live = NaiveEngine(self._semantics, Options())
        self._leaves, self._conditions = {}, None
        return self.compiled

    def _ask(
        self, live: list[tuple[int, Condition]], batch: "Batch", rows: Sequence[Row] | None
    ) -> Iterator[Piece]:
        """The live filters about every event, piece by piece."""
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
    """Few filters are added one by one, many are compiled aside."""

    def __init__(self, engine: AutoEngine) -> None:
        self._engine = engine
        self._few: dict[int, Prepared] | None = {}
        self._many: SlicedBulk | None = None

    def put(self, handle: int, prepared: Prepared) -> None:
        if self._few is not None:
            self._few[handle] = prepared
            if len(self._few) <= MOST_UNCOMPILED:
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
                engine.compile()  # what is to be replaced may have come one by one
                self._many.commit(replaced)
                return
            for handle in replaced:
                engine.remove(handle)
            for handle, prepared in (self._few or {}).items():
                engine.add(handle, prepared)


def _together(live: Iterator[Piece], compiled: Iterator[Piece]) -> Iterator[Piece]:
    """The matches of both; those of the live filters are few enough to be found at once."""
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
