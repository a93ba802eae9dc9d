"""A compiled set of subscriptions: flat arrays that never change.

Only `died` changes: it notes when a subscription was removed, so that a match that began before
still sees it. Slots are numbers from 0 in the order of the handles.
"""

from typing import Any

import numpy as np

from tamis.engines.sliced.interning import InternedFilters
from tamis.engines.sliced.layout import Layout, formulas_back, lay_out, table_of
from tamis.engines.sliced.segment_predicates import SegmentPredicates
from tamis.kernels.formula_steps import registers_of
from tamis.kernels.programs import ALIVE, FORMULAS
from tamis.kernels.records import packed
from tamis.predicates.event_batches import Batch

Array = np.ndarray[Any, Any]

SORTED = 0.3  # share of filters in clusters of one attribute from which events are sorted by it


class Segment:
    """Programs, the handles of their subscriptions, and which of these were removed."""

    def __init__(self, predicates: SegmentPredicates, layout: Layout) -> None:
        self.predicates = predicates
        self.programs, self.steps, handles, self.masks = self._layout = layout
        if len(handles) == 0 or handles[-1] < 2**31:
            handles = handles.astype(np.int32, copy=False)
        self.handles = handles  # by slot, ascending
        self.numbering = predicates.numbering(self.masks)
        self.used = np.flatnonzero(self.numbering.masks).astype(np.int64)
        self.widest = max(int(self.programs.widths.max(initial=1)), 1)
        self.values = len(self.steps.tested) + registers_of(self.steps)  # of formulas
        # Whether handle - slot is the same for all, and handles fit in 32 bits.
        self.is_gapless = (
            handles.dtype == np.int32 and int(handles[-1]) - int(handles[0]) == len(handles) - 1
        )
        # For single events, in the order in which `match_event` takes them.
        self.packed = (
            self.used, packed(predicates.flat), packed(self.programs), packed(self.steps),
            packed(self.numbering), packed(predicates.number_owners),
        )  # fmt: skip
        self.sorted_by = self._sorted_by()
        self.died: Array = np.empty(0, np.int64)  # by slot; made at the first removal
        self.dead = 0

    @classmethod
    def compile(cls, filters: InternedFilters, profile: Batch | None = None) -> "Segment":
        """The segment of some filters; the events of a profile say which predicates are rare."""
        return cls(filters.predicates, lay_out(filters, profile))

    def moved(self, by: int) -> "Segment":
        """The same segment, nothing of it removed, with `by` added to all handles."""
        return self.under(self.handles.astype(np.int64) + by)

    def under(self, handles: Array) -> "Segment":
        """The same segment, nothing of it removed, under other handles in the same order."""
        return Segment(self.predicates, self._layout._replace(handles=handles))

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths of conjunctions."""
        return tuple(width for width in self.programs.widths.tolist() if width != FORMULAS)

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
        programs, tables = self.programs, {}
        kept = self.died[programs.slots] > now if self.dead else None
        for number, width in enumerate(self.widths):
            table = table_of(programs, number, self.handles)
            if kept is not None:
                mine = kept[programs.subs[number] : programs.subs[number + 1]]
                table = table._replace(handles=table.handles[mine], refs=table.refs[mine])
            if len(table.handles):
                tables[width] = table
        formulas = formulas_back(programs, self.steps, self.handles)
        if kept is not None and formulas.size:
            formulas = formulas.taken(np.flatnonzero(kept[len(kept) - formulas.size :]))
        return InternedFilters(self.predicates, tables, formulas)

    def _sorted_by(self) -> int | None:
        """The attribute by whose values most filters are found, if there are enough of them."""
        weights = np.zeros(len(self.masks) + 1, np.int64)
        programs = self.programs
        for shape in range(len(programs.widths)):
            first, end = (int(bound) for bound in programs.chunk_bounds[shape, :2])
            members = np.diff(programs.chunk_subs[first : end + 1].astype(np.int64))
            owners = self.predicates.attributes_of(self.access_of(shape))
            np.add.at(weights, owners, members)
        by = int(np.argmax(weights[:-1])) if len(self.masks) else 0
        return by if len(self.masks) and weights[by] > SORTED * len(self.handles) else None

    def access_of(self, shape: int) -> Array:
        """The access predicates of the selective chunks of a shape, by reference."""
        programs, steps = self.programs, self.steps
        first, end = (int(bound) for bound in programs.chunk_bounds[shape, :2])
        if programs.widths[shape] == FORMULAS:
            found: Array = steps.tested[steps.gates[: end - first] // 2]
            return found
        starts = programs.chunk_subs[first:end].astype(np.int64) - programs.subs[shape]
        refs: Array = programs.refs[programs.refs_at[shape] + starts * programs.widths[shape]]
        return programs.named[refs] if len(programs.named) else refs

    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = [*self.programs, *self.steps, *self.numbering, self.handles, self.died]
        return self.predicates.nbytes() + sum(array.nbytes for array in arrays)
