"""A compiled set of subscriptions: flat arrays that never change.

Only `died` changes: it notes when a subscription was removed, so that a match that began before
still sees it. Slots are numbers from 0 in the order of the handles.
"""

from typing import Any

import numpy as np

from tamis.engines.sliced.interning import InternedFilters
from tamis.engines.sliced.layout import programs_of, table_of
from tamis.engines.sliced.segment_predicates import SegmentPredicates
from tamis.engines.sliced.shape_programs import shape_program
from tamis.kernels.programs import ALIVE, Programs
from tamis.predicates.event_batches import Batch

Array = np.ndarray[Any, Any]

SORTED = 0.3  # share of filters in clusters of one attribute from which events are sorted by it


class Segment:
    """Programs, the handles of their subscriptions, and which of these were removed."""

    def __init__(
        self, predicates: SegmentPredicates, programs: Programs, handles: Array, masks: Array,
        shapes: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.predicates = predicates
        self.programs = programs
        self.handles = handles  # by slot, ascending
        self.masks = masks
        self.shapes = shapes
        self.numbering = predicates.numbering(masks)
        self.used = np.flatnonzero(self.numbering.masks).astype(np.int64)
        self.depth = max((shape_program(shape).depth for shape in shapes), default=1)
        self.widest = max((shape_program(shape).width for shape in shapes), default=1)
        # Whether handle - slot is the same for all, and handles fit in 32 bits.
        self.is_gapless = (
            handles.dtype == np.int32 and int(handles[-1]) - int(handles[0]) == len(handles) - 1
        )
        self.sorted_by = self._sorted_by()
        self.died: Array = np.empty(0, np.int64)  # by slot; made at the first removal
        self.dead = 0

    @classmethod
    def compile(cls, filters: InternedFilters, profile: Batch | None = None) -> "Segment":
        """The segment of some filters; the events of a profile say which predicates are rare."""
        programs, handles, masks = programs_of(filters, profile)
        if len(handles) == 0 or handles[-1] < 2**31:
            handles = handles.astype(np.int32)
        return cls(filters.predicates, programs, handles, masks, tuple(filters.tables))

    def moved(self, by: int) -> "Segment":
        """The same segment, nothing of it removed, with `by` added to all handles."""
        return self.under(self.handles.astype(np.int64) + by)

    def under(self, handles: Array) -> "Segment":
        """The same segment, nothing of it removed, under other handles in the same order."""
        if len(handles) == 0 or handles[-1] < 2**31:
            handles = handles.astype(np.int32)
        return Segment(self.predicates, self.programs, handles, self.masks, self.shapes)

    def __len__(self) -> int:
        return len(self.handles) - self.dead

    def find(self, handle: int) -> int:
        """The slot of a handle, -1 if it is not here or was removed."""
        if not len(self.handles) or not self.handles[0] <= handle <= self.handles[-1]:
            return -1
        # As a number of the array's type; else the whole array would be converted.
        slot = int(self.handles.searchsorted(self.handles.dtype.type(handle)))
        if self.handles[slot] != handle:
            return -1
        return slot if not self.dead or self.died[slot] == ALIVE else -1

    def kill(self, slot: int, now: int) -> None:
        """Note that the subscription of a slot was removed at a time."""
        if not len(self.died):
            self.died = np.full(len(self.handles), ALIVE, np.int64)
        self.died[slot] = now
        self.dead += 1

    def kill_all(self, handles: Array, now: int) -> Array:
        """Note that subscriptions were removed at a time; returns the handles that are not here."""
        slots = np.searchsorted(self.handles, handles)
        here = slots < len(self.handles)
        here[here] = self.handles[slots[here]] == handles[here]
        if self.dead:
            here[here] = self.died[slots[here]] == ALIVE
        if here.any():
            if not len(self.died):
                self.died = np.full(len(self.handles), ALIVE, np.int64)
            self.died[slots[here]] = now
            self.dead += int(np.count_nonzero(here))
        return handles[~here]

    def filters(self, now: int = ALIVE - 1) -> InternedFilters:
        """The filters left at a time, to be compiled again; some predicates may be unused."""
        tables = {}
        for number, shape in enumerate(self.shapes):
            table = table_of(self.programs, number, self.handles)
            if self.dead:
                first, end = self.programs.subs[number : number + 2]
                kept = self.died[self.programs.slots[first:end]] > now
                table = table._replace(handles=table.handles[kept], refs=table.refs[kept])
            if len(table.handles):
                tables[shape] = table
        return InternedFilters(self.predicates, tables)

    def _sorted_by(self) -> int | None:
        """The attribute by whose values most filters are found, if there are enough of them."""
        programs = self.programs
        weights = np.zeros(len(self.masks) + 1, np.int64)
        for shape in range(len(self.shapes)):
            first, end = (int(bound) for bound in programs.chunk_bounds[shape, :2])
            bounds = programs.chunk_subs[first : end + 1].astype(np.int64)
            before = (bounds[:-1] - programs.subs[shape]) * programs.widths[shape]
            refs = programs.refs[programs.refs_at[shape] + before]
            refs = programs.named[refs] if len(programs.named) else refs
            np.add.at(weights, self.predicates.attributes_of(refs), np.diff(bounds))
        by = int(np.argmax(weights[:-1])) if len(self.masks) else 0
        return by if len(self.masks) and weights[by] > SORTED * len(self.handles) else None

    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = [*self.programs, *self.numbering, self.handles, self.died]
        return self.predicates.nbytes() + sum(array.nbytes for array in arrays)
