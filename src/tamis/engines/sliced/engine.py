"""Many events at once: each predicate is a row of bits, each filter a few operations on rows.

Subscriptions are compiled into segments that never change. New ones wait until an event comes, and
then become a small segment; small segments are merged into larger ones, so that there are few. A
removal is noted with its time, and the subscription is left out at the next merge.

A match takes a snapshot of the segments and the time, and does not see later changes. Changes and
matches wait for each other only while the few new filters are compiled; merges run alongside both.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tamis.engines.base import Options
from tamis.engines.matches import Piece, joined, lists_of, merged
from tamis.engines.resources import Resources, profile_of
from tamis.engines.sliced.blocks import SegmentEvaluator
from tamis.engines.sliced.filter_reader import FilterReader
from tamis.engines.sliced.formulas import ALWAYS, NEVER
from tamis.engines.sliced.interning import InternedFilters, intern_filters
from tamis.engines.sliced.leaves import Leaves
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_merges import SegmentMerger, compiled, merged_with_new
from tamis.engines.sliced.threads import in_order_of
from tamis.events.event_reader import Row
from tamis.kernels.handles import Handles
from tamis.kernels.predicate_rows import EVENTS
from tamis.language.expression import Expression
from tamis.predicates.event_batches import Batch, batch_of_rows, rows_of_batch, slice_of
from tamis.predicates.keys import Keys
from tamis.semantics import Semantics

Array = np.ndarray[Any, Any]

MOST_YOUNG = 1 << 17  # subscriptions that wait to be compiled
MOST_COMPUTED = 1 << 23  # values of terms in memory together, each of about 20 bytes
FEW_DROPPED = 16  # handles that are dropped one by one
# Events up to which many terms are computed event by event: a column takes some time however short
# it is.
FEW_EVENTS, MANY_TERMS = 16, 64
MOST_AT_ONCE = 1 << 12  # subscriptions of a segment that may be merged while changes wait


class Snapshot(NamedTuple):
    """What one match sees."""

    parts: tuple[SegmentEvaluator, ...]
    now: int
    always: Array  # handles of filters that are true of every event, ascending


class SlicedEngine:
    """Compiled segments, and filters that wait to be compiled."""

    name = "sliced"
    options_class: ClassVar[type[Options]] = Resources

    def __init__(self, semantics: Semantics, options: Resources) -> None:
        self._semantics = semantics
        self._options = options
        self._reader = FilterReader(semantics)
        self._keys = Keys(semantics.schema)
        self.lock = threading.RLock()  # held while anything changes
        self._now = 0  # grows with every change
        self._young: dict[int, Leaves] = {}
        self._always: dict[int, bool] = {}  # filters without any predicate, and their answer
        self._true: Array | None = None  # those that are true; made when first needed
        self._parts: tuple[SegmentEvaluator, ...] = ()
        self._is_untidy = False  # whether segments are due to be merged
        self.memory = options.bytes
        self.profile = profile_of(options, semantics)
        self._merger = SegmentMerger(self)

    # --- the contract of engines

    def prepare(self, expression: Expression) -> Leaves:
        return self._reader.leaves(expression)

    def add(self, handle: int, prepared: Leaves) -> None:
        with self.lock:
            self._now += 1
            if prepared.shape in {ALWAYS, NEVER}:
                self._always[handle] = prepared.shape == ALWAYS
                self._true = None
                return
            self._young[handle] = prepared
            if len(self._young) < MOST_YOUNG:
                return
            try:
                self._settle()
            except BaseException:  # a failed call changes nothing
                del self._young[handle]
                raise

    def remove(self, handle: int) -> None:
        with self.lock:
            self._now += 1
            self._drop(handle)

    def remove_many(self, handles: Array) -> None:
        with self.lock:
            self._now += 1
            self._drop_all(handles)

    def bulk(self, size: int) -> "SlicedBulk":  # noqa: ARG002 - it is the same for any number
        return SlicedBulk(self, self._keys)

    def match(self, row: Row) -> Handles:
        snapshot = self.snapshot()
        self.tidy()
        return self.match_at(snapshot, row)

    def match_many(self, rows: Sequence[Row]) -> Iterator[Handles]:
        for counts, found in self.match_batch(batch_of_rows(rows, self._semantics.schema)):
            yield from lists_of(counts, found)

    def match_batch(
        self, batch: Batch, rows: Sequence[Row] | None = None, snapshot: Snapshot | None = None
    ) -> Iterator[Piece]:
        return self.match_batch_at(snapshot or self.snapshot(), batch, rows)

    def count_batch(self, batch: Batch, rows: Sequence[Row] | None = None) -> Array:
        return self.count_batch_at(self.snapshot(), batch, rows)

    def statistics(self) -> dict[str, int]:
        with self.lock:
            segments = [part.segment for part in self._parts]
            living = sum(map(len, segments))
            return {
                "subscriptions": living + len(self._young) + len(self._always),
                "segments": len(segments),
                "bytes": sum(segment.nbytes() for segment in segments),
            }

    # --- with a snapshot

    def match_at(self, snapshot: Snapshot, row: Row) -> Handles:
        """The handles that a row matches."""
        found = [part.match_one(row, snapshot.now) for part in snapshot.parts]
        if len(snapshot.always):
            found.append(snapshot.always.copy())
        if len(found) == 1:
            return found[0]
        return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)

    def match_batch_at(
        self, snapshot: Snapshot, batch: Batch, rows: Sequence[Row] | None = None
    ) -> Iterator[Piece]:
        """The matches of a batch, piece by piece; `rows` are its events, if at hand."""
        few = self._few(snapshot, batch, rows)
        if few is not None:
            self.tidy()
            lists = [self.match_at(snapshot, row) for row in few]
            counts = np.array([len(found) for found in lists], np.int64)
            return iter([(counts, np.concatenate(lists))])
        pieces = self._pieces(snapshot, batch)
        if len(pieces) > 1:
            return chain.from_iterable(self.match_batch_at(snapshot, piece) for piece in pieces)
        self.tidy()
        prepared = [part.prepare(batch) for part in snapshot.parts]
        for part, mine in zip(snapshot.parts, prepared, strict=True):
            part.look(mine, snapshot.now)

        def match(start: int, end: int) -> list[Piece]:
            parts = [
                part.match(part.window(mine, start, end), snapshot.now)
                for part, mine in zip(snapshot.parts, prepared, strict=True)
            ]
            if len(snapshot.always):
                every = np.full(end - start, len(snapshot.always), np.int64)
                parts.append([(every, np.tile(snapshot.always, end - start))])
            if len(parts) == 1:
                return parts[0]
            return [merged([joined(pieces) for pieces in parts], end - start)]

        def step() -> int:
            return min((part.at_once for part in snapshot.parts), default=EVENTS)

        found = in_order_of(match, step, batch.size, self._options.threads)
        return chain.from_iterable(found)

    def count_batch_at(
        self, snapshot: Snapshot, batch: Batch, rows: Sequence[Row] | None = None
    ) -> Array:
        """counts[event]: how many filters match each event of a batch."""
        few = self._few(snapshot, batch, rows)
        if few is not None:
            self.tidy()
            return np.array([len(self.match_at(snapshot, row)) for row in few], np.int64)
        pieces = self._pieces(snapshot, batch)
        if len(pieces) > 1:
            return np.concatenate([self.count_batch_at(snapshot, piece) for piece in pieces])
        self.tidy()
        prepared = [part.prepare(batch) for part in snapshot.parts]

        def count(start: int, end: int) -> Array:
            total = np.full(end - start, len(snapshot.always), np.int64)
            for part, mine in zip(snapshot.parts, prepared, strict=True):
                total += part.count(part.window(mine, start, end), snapshot.now)
            return total

        def step() -> int:
            return max((part.at_once for part in snapshot.parts), default=EVENTS)

        found = list(in_order_of(count, step, batch.size, self._options.threads))
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def _few(
        self, snapshot: Snapshot, batch: Batch, rows: Sequence[Row] | None
    ) -> Sequence[Row] | None:
        """The events of a batch as rows, if they are so few that one by one is faster."""
        if batch.size == 1 and rows is not None:
            return rows
        terms = sum(part.terms for part in snapshot.parts)
        if not 0 < batch.size <= FEW_EVENTS or terms < MANY_TERMS:
            return None
        return rows_of_batch(batch, self._semantics.schema) if rows is None else rows

    @staticmethod
    def _pieces(snapshot: Snapshot, batch: Batch) -> list[Batch]:
        """The batch, or parts of it whose computed values are not too many for the memory."""
        terms = sum(part.terms for part in snapshot.parts)
        step = MOST_COMPUTED // max(terms, 1) or 1
        if not terms or batch.size <= step:
            return [batch]
        if step > EVENTS:
            step -= step % EVENTS
        starts = range(0, batch.size, step)
        return [slice_of(batch, start, min(start + step, batch.size)) for start in starts]

    # --- segments

    def snapshot(self, events: int = 1) -> Snapshot:  # noqa: ARG002 - the same for any number
        """What is held now, all of it compiled."""
        with self.lock:
            if self._young:
                self._settle()
            return Snapshot(self._parts, self._now, self._always_true())

    @property
    def segments(self) -> list[Segment]:
        """The compiled segments, the largest first."""
        return [part.segment for part in self._parts]

    def merge_all(self) -> None:
        """Merge all segments into one, without removed filters; the lock must not be held."""
        with self.lock:
            if self._young:
                self._settle()
        self._merger.run(everything=True)

    def whole(self) -> tuple[dict[int, bool], Segment | None]:
        """All filters, merged: those without predicates, and one segment of the others.

        The caller makes sure that nothing changes meanwhile.
        """
        self.merge_all()
        with self.lock:
            segments = self.segments
            return dict(self._always), segments[0] if segments else None

    def _settle(self) -> None:
        """Compile waiting filters with some small segments, which stay until that is done."""
        last, busy = merged_with_new(self.segments, len(self._young)), self._merger.busy
        small = [s for s in last if len(s) < MOST_AT_ONCE and s not in busy]
        parts = [intern_filters(self._young.items(), self._keys)]
        parts += [segment.filters() for segment in small]
        made = compiled(parts, profile=self.profile)
        self.exchange(small, made)
        self._young = {}
        self._is_untidy = bool(self._merger.due())

    def tidy(self) -> None:
        """Merge what is due, here or in the background.

        Matches do this, not changes: a thread that changes something may hold the lock.
        """
        if not self._is_untidy:
            return
        self._is_untidy = False
        if self._options.background:
            self._merger.start()
        else:
            self._merger.run()

    def evaluator(self, segment: Segment) -> SegmentEvaluator:
        """The evaluator of a segment."""
        return SegmentEvaluator(segment, self._semantics.schema, self._keys)

    def hold_bulk(
        self, made: Segment | None, always: Mapping[int, bool], replaced: Iterable[int]
    ) -> None:
        """Hold what a bulk has compiled, and drop the filters of the handles it replaces."""
        part = None if made is None else self.evaluator(made)  # may fail, while nothing has changed
        with self.lock:
            self._now += 1
            self._drop_all(np.array(list(replaced), np.int64))
            self._always |= always
            self._true = None
            if part is not None:
                self._take((*self._parts, part))
            self._is_untidy = bool(self._merger.due())

    def exchange(self, old: Sequence[Segment], new: Segment | None) -> None:
        """Replace some segments by another; the lock is held."""
        made = [self.evaluator(new)] if new is not None and len(new) else []
        self._take((*(part for part in self._parts if part.segment not in old), *made))

    def _take(self, parts: Iterable[SegmentEvaluator]) -> None:
        """Match events with these from now on."""
        self._parts = tuple(sorted(parts, key=lambda part: -len(part.segment)))

    @property
    def now(self) -> int:
        """The time: how many changes there have been."""
        return self._now

    def _drop(self, handle: int) -> None:
        """Drop the filter of a handle, now."""
        if self._young.pop(handle, None) is not None:
            return
        if self._always.pop(handle, None) is not None:
            self._true = None
            return
        for part in self._parts:
            segment = part.segment
            slot = segment.find(handle)
            if slot >= 0:
                segment.kill(slot, self._now)
                if not len(segment):
                    self.exchange([segment], None)
                self._is_untidy |= segment.dead > len(segment)
                return
        raise KeyError(handle)

    def _drop_all(self, handles: Array) -> None:
        """Drop the filters of distinct handles, now."""
        if len(handles) < FEW_DROPPED:
            for handle in handles.tolist():
                self._drop(handle)
            return
        waiting = [h for h in handles.tolist() if h in self._young or h in self._always]
        for handle in waiting:
            self._drop(handle)
        left = np.setdiff1d(handles, np.array(waiting, np.int64))
        for part in self._parts:
            left = part.segment.kill_all(left, self._now)
            self._is_untidy |= part.segment.dead > len(part.segment)
        if len(left):
            raise KeyError(int(left[0]))
        self.exchange([part.segment for part in self._parts if not len(part.segment)], None)

    def _always_true(self) -> Array:
        """The handles of filters that are always true; the lock is held."""
        if self._true is None:
            true = sorted(handle for handle, answer in self._always.items() if answer)
            self._true = np.array(true, np.int64)
        return self._true


class SlicedBulk:
    """Many filters that are compiled apart from the others, and then held all at once."""

    def __init__(self, engine: SlicedEngine, keys: Keys) -> None:
        self._engine = engine
        self._keys = keys
        self._young: dict[int, Leaves] = {}
        self._always: dict[int, bool] = {}
        self._gathered: list[InternedFilters] = []
        self._made: Segment | None = None

    def put(self, handle: int, prepared: Leaves) -> None:
        if prepared.shape in {ALWAYS, NEVER}:
            self._always[handle] = prepared.shape == ALWAYS
            return
        self._young[handle] = prepared
        if len(self._young) >= MOST_YOUNG:
            self._gather()

    def finish(self) -> None:
        """Compile all filters; what is left for `commit` takes no time."""
        if self._young:
            self._gather()
        self._made = compiled(self._gathered, self._engine.memory, self._engine.profile)
        self._gathered = []

    def commit(self, replaced: Iterable[int]) -> None:
        if self._young or self._gathered:
            self.finish()
        self._engine.hold_bulk(self._made, self._always, replaced)

    def _gather(self) -> None:
        self._gathered.append(intern_filters(self._young.items(), self._keys))
        self._young = {}
