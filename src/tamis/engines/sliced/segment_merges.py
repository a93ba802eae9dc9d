"""Which segments are merged, and how that is done while others go on to match and to change."""

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tamis.engines.resources import check_memory
from tamis.engines.sliced.interning import Material, combine
from tamis.engines.sliced.segment import Segment
from tamis.kernels.programs import ALIVE
from tamis.predicates.event_batches import Batch

if TYPE_CHECKING:
    from tamis.engines.sliced.engine import SlicedEngine

# Bytes that compiling may take for each filter and each of its predicates. A bound, not a mean: a
# process grew by 147 bytes for a filter of four predicates, where this says 340.
FILTER_BYTES, LEAF_BYTES = 100, 60
GROWTH = 4  # a segment is merged unless it is this many times larger than all smaller ones

logger = logging.getLogger("tamis")


def due(segments: Sequence[Segment], new: int) -> Sequence[Segment]:
    """The last segments, the smallest, with which `new` subscriptions are to be merged."""
    total, first = new, len(segments)
    for place in range(len(segments) - 1, -1, -1):
        if len(segments[place]) < GROWTH * total:
            first = place
        total += len(segments[place])
    return segments[first:]


class Compaction:
    """Merges the segments of an engine, one merge after the other, without holding its lock."""

    def __init__(self, engine: "SlicedEngine") -> None:
        self._engine = engine
        self._merging = threading.Lock()  # held by whoever merges
        self._thread: threading.Thread | None = None
        self.busy: list[Segment] = []  # that are becoming one; others leave them alone

    def start(self) -> None:
        """Begin in a thread, unless one is at work or nothing is due."""
        thread = self._thread
        if (thread is None or not thread.is_alive()) and self.due():
            self._thread = threading.Thread(target=self.run, name="tamis-compaction", daemon=True)
            self._thread.start()

    def run(self, *, everything: bool = False) -> None:
        """Merge what is due, or all; another that is at work does it instead, or is waited for."""
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
            # The segments stay as they were: slower, but right.
            logger.exception("segments could not be merged")
        finally:
            self.busy = []
            self._merging.release()

    def due(self) -> list[Segment]:
        """The segments that are to become one."""
        segments = self._engine.segments
        gone = [segment for segment in segments if segment.dead > len(segment)]
        last = list(due(segments[:-1], len(segments[-1]))) if segments else []
        chosen = gone + [segment for segment in last if segment not in gone]
        if last and segments[-1] not in chosen:
            chosen.append(segments[-1])
        return chosen

    def _step(self, *, everything: bool) -> bool:
        """One merge; False if none is due."""
        engine = self._engine
        with engine.lock:
            segments = engine.segments
            chosen, now = self.due(), engine.now
            if everything and (len(segments) > 1 or any(s.dead for s in segments)):
                chosen = segments
            self.busy = chosen
        if not chosen:
            return False
        materials = [segment.material(now) for segment in chosen]
        made = compiled(materials, engine.memory, engine.profile)
        with engine.lock:
            if made is not None:
                _repeat_deaths(chosen, made, now)
            engine.exchange(chosen, made)
            self.busy = []
        return True


def compiled(
    materials: Sequence[Material], memory: int | None = None, profile: Batch | None = None
) -> Segment | None:
    """One segment of some materials, None of nothing, in so many bytes of memory."""
    materials = [material for material in materials if material.tables]
    if not materials:
        return None
    if memory is not None:
        _check_memory(materials, memory)
    return Segment.compile(combine(materials), profile)


def _check_memory(materials: Sequence[Material], memory: int) -> None:
    tables = [table for material in materials for table in material.tables.values()]
    filters = sum(len(table.handles) for table in tables)
    needed = FILTER_BYTES * filters + LEAF_BYTES * sum(table.refs.size for table in tables)
    check_memory(
        needed, memory, f"compiling {filters:,} subscriptions", "spread them over several matchers"
    )


def _repeat_deaths(old: Sequence[Segment], new: Segment, since: int) -> None:
    """What went while the new segment was made goes from it too."""
    for segment in old:
        slots = np.flatnonzero((segment.died > since) & (segment.died != ALIVE))
        for slot in slots.tolist():
            place = new.find(int(segment.handles[slot]))
            if place >= 0:
                new.kill(place, int(segment.died[slot]))
