"""Which segments are merged, and how, while other threads go on matching and changing."""

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tamis.engines.resources import check_memory
from tamis.engines.sliced.combination import combine
from tamis.engines.sliced.interning import InternedFilters
from tamis.engines.sliced.segment import Segment
from tamis.kernels.programs import ALIVE
from tamis.predicates.event_batches import Batch

if TYPE_CHECKING:
    from tamis.engines.sliced.engine import SlicedEngine

# Bytes that compiling may take per filter and per predicate of it. A bound, not a mean: a process
# grew by 147 bytes per filter of four predicates, where this says 340.
FILTER_BYTES, LEAF_BYTES = 100, 60
GROWTH = 4  # a segment is left alone if it is this many times larger than all smaller ones together

logger = logging.getLogger("tamis")


def merged_with_new(segments: Sequence[Segment], new: int) -> Sequence[Segment]:
    """The last (smallest) segments, with which `new` subscriptions are to be merged."""
    total, first = new, len(segments)
    for place in range(len(segments) - 1, -1, -1):
        if len(segments[place]) < GROWTH * total:
            first = place
        total += len(segments[place])
    return segments[first:]


class SegmentMerger:
    """Merges the segments of an engine, one merge at a time, without holding its lock."""

    def __init__(self, engine: "SlicedEngine") -> None:
        self._engine = engine
        self._merging = threading.Lock()  # held by the thread that merges
        self._thread: threading.Thread | None = None
        self.busy: list[Segment] = []  # those being merged now; nothing else may exchange them

    def start(self) -> None:
        """Start merging in a thread, unless one is running or nothing is due."""
        thread = self._thread
        if (thread is None or not thread.is_alive()) and self.due():
            self._thread = threading.Thread(
                target=self.run, name="tamis-segment-merges", daemon=True
            )
            self._thread.start()

    def run(self, *, everything: bool = False) -> None:
        """Merge what is due, or everything.

        If another thread is merging, it does what is due; for everything, this one waits for it.
        """
        if not self._merging.acquire(blocking=everything):
            return
        try:
            if everything:
                self._step(everything=True)
            while self._step(everything=False):
                pass
        except Exception:
            if everything:
                raise
            # The segments stay as they were, which is slower but correct.
            logger.exception("segments could not be merged")
        finally:
            self.busy = []
            self._merging.release()

    def due(self) -> list[Segment]:
        """The segments that are to be merged into one."""
        segments = self._engine.segments
        gone = [segment for segment in segments if segment.dead > len(segment)]
        last = list(merged_with_new(segments[:-1], len(segments[-1]))) if segments else []
        chosen = gone + [segment for segment in last if segment not in gone]
        if last and segments[-1] not in chosen:
            chosen.append(segments[-1])
        return chosen

    def _step(self, *, everything: bool) -> bool:
        """Do one merge; False if none is due."""
        engine = self._engine
        with engine.lock:
            segments = engine.segments
            chosen, now = self.due(), engine.now
            if everything and (len(segments) > 1 or any(s.dead for s in segments)):
                chosen = segments
            self.busy = chosen
        if not chosen:
            return False
        parts = [segment.filters(now) for segment in chosen]
        made = compiled(parts, engine.memory, engine.profile)
        with engine.lock:
            if made is not None:
                _repeat_deaths(chosen, made, now)
            engine.exchange(chosen, made)
            self.busy = []
        return True


def compiled(
    parts: Sequence[InternedFilters], memory: int | None = None, profile: Batch | None = None
) -> Segment | None:
    """One segment of all filters, None if there are none; refused if it may exceed `memory`."""
    parts = [part for part in parts if part.size]
    if not parts:
        return None
    if memory is not None:
        _check_memory(parts, memory)
    return Segment.compile(combine(parts), profile)


def _check_memory(parts: Sequence[InternedFilters], memory: int) -> None:
    filters = sum(part.size for part in parts)
    leaves = sum(refs.size for part in parts for refs in part.references())
    needed = FILTER_BYTES * filters + LEAF_BYTES * leaves
    check_memory(
        needed, memory, f"compiling {filters:,} subscriptions", "spread them over several matchers"
    )


def _repeat_deaths(old: Sequence[Segment], new: Segment, since: int) -> None:
    """Remove from the new segment what was removed from the old ones while it was made."""
    for segment in old:
        slots = np.flatnonzero((segment.died > since) & (segment.died != ALIVE))
        for slot in slots.tolist():
            place = new.find(int(segment.handles[slot]))
            if place >= 0:
                new.kill(place, int(segment.died[slot]))
