"""The order in which filters are evaluated: by shape, in clusters and chunks.

A *cluster* is the filters of a shape with the same first predicate; if few events are expected to
satisfy it, only those events visit the cluster. A *chunk* is up to 64 filters that are evaluated
together, their references stored column by column.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.engines.sliced.element_sets import element_classes
from tamis.engines.sliced.interning import InternedFilters, ShapeTable
from tamis.engines.sliced.segment_predicates import SegmentPredicates
from tamis.engines.sliced.shape_programs import ShapeProgram, shape_arrays, shape_program
from tamis.engines.sliced.value_classes import classes_of
from tamis.kernels.comparisons import AT_LEAST, BELOW, EQUAL
from tamis.kernels.programs import MIXED, Programs
from tamis.kernels.simd_rows import LANES
from tamis.kernels.value_classes import REF_KINDS
from tamis.language import ast
from tamis.predicates.computed_values import ComputedAttributes
from tamis.predicates.event_batches import Batch

Array = np.ndarray[Any, Any]

# If a first predicate is expected to be true of a smaller share of events than this, only the
# events that satisfy it visit its cluster.
SELECTIVE = 0.02
NAMED = 4096  # distinct references up to which each has its own row in every block
COMMON = 16  # filters with the same first predicate that get chunks of their own

# The share of events that a predicate is true of, by its kind. That of an equality is divided by
# the number of constants that the attribute is compared with, that of a test by their number.
EQUALITY, SET, TEST, RANGE, OTHER = 0.5, 0.3, 0.5, 0.5, 0.95


class ShapeLayout(NamedTuple):
    """The filters of one shape in the order of evaluation."""

    refs: Array  # int32[*]: chunk by chunk, in a chunk column by column
    places: Array  # int64[filter]: which filter of the table comes at this place
    chunk_sizes: Array  # int64[chunk]
    bounds: tuple[int, int, int, int]  # of chunks: selective, common, others, the end
    access: Array  # int32[*]: first predicates of the selective clusters
    access_chunks: Array  # int64[*]: their first chunks
    codes: Array  # int64[chunk, leaf]: attribute and kind of a column, -1 if they are not the same
    shared: Array  # uint8[chunk]: how many leading predicates all its filters have in common


def programs_of(
    filters: InternedFilters, profile: Batch | None = None
) -> tuple[Programs, Array, Array]:
    """The programs of all shapes, the handles by slot, and the kinds used of each attribute.

    Which predicates are rare is counted in the events of a profile, or else estimated from the
    filters.
    """
    predicates = filters.predicates
    shares = ExpectedShares(filters) if profile is None else ProfiledShares(filters, profile)
    handles = [table.handles for table in filters.tables.values()]
    every = np.concatenate(handles) if handles else np.empty(0, np.int64)
    order = np.argsort(every, kind="stable")
    slot_of = np.empty(len(every), np.int32)
    slot_of[order] = np.arange(len(every), dtype=np.int32)
    slots, refs, chunk_sizes, access, access_chunks, access_shapes = [], [], [], [], [], []
    codes: list[Array] = []
    shared: list[Array] = []
    subs, bounds = [0], []
    chunks = start = 0
    for number, (text, table) in enumerate(filters.tables.items()):
        shape = shape_program(text)
        laid = lay_out(table, shape, predicates, shares)
        slots.append(slot_of[start + laid.places])
        refs.append(laid.refs)
        chunk_sizes.append(laid.chunk_sizes)
        codes.append(laid.codes)
        shared.append(laid.shared)
        access.append(laid.access)
        access_chunks.append(laid.access_chunks + chunks)
        access_shapes.append(np.full(len(laid.access), number))
        bounds.append([chunks + bound for bound in laid.bounds])
        start += len(table.handles)
        subs.append(start)
        chunks += len(laid.chunk_sizes)
    refs.append(np.zeros(LANES, np.int32))  # a chunk is read as if it were full
    every_ref = _joined(refs, np.int32)
    named = distinct_up_to(every_ref[:-LANES], NAMED)
    if len(named):
        every_ref[:-LANES] = np.searchsorted(named, every_ref[:-LANES])
    leading = _joined(access, np.int32)
    by_reference = np.argsort(leading, kind="stable")
    programs = Programs(
        subs=np.array(subs, np.int64), refs=every_ref, named=named,
        **shape_arrays(list(filters.tables), np.array(subs, np.int64))._asdict(),
        chunk_subs=_starts(_joined(chunk_sizes, np.int64)),
        chunk_bounds=np.array(bounds, np.int64).reshape(-1, 4), signatures=signatures_of(codes),
        shared=_joined(shared, np.uint8),
        access=leading[by_reference], access_chunks=_joined(access_chunks, np.int32)[by_reference],
        access_shapes=_joined(access_shapes, np.int32)[by_reference],
        slots=_joined(slots, np.int32),
    )  # fmt: skip
    return programs, every[order], shares.masks


def lay_out(
    table: ShapeTable, shape: ShapeProgram, predicates: SegmentPredicates, shares: "ExpectedShares"
) -> ShapeLayout:
    """Order the filters of a shape, cut them into chunks, and store these by columns."""
    refs = table.refs
    if shape.leads > 1:
        leads = refs[:, : shape.leads]
        ranked = np.argsort(shares.of(leads), axis=1, kind="stable")
        refs = np.hstack([np.take_along_axis(leads, ranked, axis=1), refs[:, shape.leads :]])
    group, first = np.full(len(refs), 2), np.zeros(len(refs), np.int64)
    second = np.zeros(len(refs), np.int64)
    if shape.leads:
        first = refs[:, 0].astype(np.int64)
        _, places, counts = np.unique(first, return_inverse=True, return_counts=True)
        group[counts[places] >= COMMON] = 1
        group[(shares.of(first) < SELECTIVE) & shares.findable(first)] = 0
        first[group == 2] = 0
    if shape.leads > 1:
        # In a selective cluster the order of handles is worth more: matches come out sorted.
        second[group == 1] = refs[group == 1, 1]
    order = np.lexsort((table.handles, second, first, group))
    refs, group, first, second = refs[order], group[order], first[order], second[order]
    heads = _heads(group, first, second)
    lengths = np.diff(np.append(heads, len(refs)))
    pieces = (lengths + LANES - 1) // LANES
    ends = np.cumsum(pieces)
    place = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - pieces, pieces)
    sizes = np.minimum(LANES, np.repeat(lengths, pieces) - place * LANES)
    starts = np.cumsum(sizes) - sizes
    under = group[starts]
    bounds = tuple(int(np.searchsorted(under, number)) for number in range(3))
    leading = group[heads] == 0
    return ShapeLayout(
        refs=_by_columns(refs, starts, sizes), places=order, chunk_sizes=sizes,
        bounds=(bounds[0], bounds[1], bounds[2], len(sizes)),
        access=first[heads[leading]].astype(np.int32),
        access_chunks=(ends - pieces)[leading],
        codes=_codes(refs, starts, predicates),
        shared=_shared(refs[:, : shape.leads], starts),
    )  # fmt: skip


def _heads(group: Array, first: Array, second: Array) -> Array:
    """Where chunks must begin: at a new first predicate, and around many with the same second."""
    begins = (np.diff(group, prepend=-1) != 0) | (np.diff(first, prepend=-1) != 0)
    runs = np.flatnonzero(begins | (np.diff(second, prepend=-1) != 0))
    many = np.diff(np.append(runs, len(group))) >= COMMON
    beside = many | np.append(False, many[:-1]) if len(many) else many
    found: Array = np.union1d(np.flatnonzero(begins), runs[beside])
    return found


def _by_columns(refs: Array, starts: Array, sizes: Array) -> Array:
    """The references of each chunk, column by column."""
    found = np.empty(refs.size, np.int32)
    found[column_places(starts, sizes, refs.shape[1])] = refs
    return found


def column_places(starts: Array, sizes: Array, width: int) -> Array:
    """places[filter, leaf]: where the references of chunks are stored."""
    start, size = np.repeat(starts, sizes), np.repeat(sizes, sizes)
    inside = np.arange(len(start)) - start
    found: Array = (start * width + inside)[:, None] + size[:, None] * np.arange(width)
    return found


def _codes(refs: Array, starts: Array, predicates: SegmentPredicates) -> Array:
    """Which attribute each column of a chunk compares, and how; -1 if its filters differ."""
    if not len(starts):
        return np.zeros((0, refs.shape[1]), np.int64)
    codes = predicates.attributes_of(refs).astype(np.int64) * REF_KINDS + refs % REF_KINDS
    low = np.minimum.reduceat(codes, starts, axis=0)
    same = (low == np.maximum.reduceat(codes, starts, axis=0)) & (low >= 0)
    return np.where(same, low, -1)


def _shared(leads: Array, starts: Array) -> Array:
    """How many leading predicates, from the first on, are the same in a whole chunk."""
    if not len(starts) or not leads.shape[1]:
        return np.zeros(len(starts), np.uint8)
    same = np.minimum.reduceat(leads, starts) == np.maximum.reduceat(leads, starts)
    found: Array = np.minimum(np.cumprod(same, axis=1).sum(axis=1), 255).astype(np.uint8)
    return found


def signatures_of(codes: list[Array]) -> Array:
    """A number for each chunk of all shapes: the same for the same codes, MIXED if one is -1."""
    found, first = [], 0
    for shape in codes:
        mixed = (shape < 0).any(axis=1)
        _, numbers = np.unique(shape, axis=0, return_inverse=True)
        found.append(np.where(mixed, MIXED, first + numbers.reshape(-1)))
        first += len(shape)
    return _joined(found, np.int32)


def table_of(programs: Programs, shape: int, handles: Array) -> ShapeTable:
    """The filters of a shape, read back from programs; `handles` is by slot."""
    first, end = (int(bound) for bound in programs.subs[shape : shape + 2])
    width = int(programs.widths[shape])
    chunks = slice(int(programs.chunk_bounds[shape, 0]), int(programs.chunk_bounds[shape, 3]) + 1)
    bounds = programs.chunk_subs[chunks].astype(np.int64) - first
    places = column_places(bounds[:-1], np.diff(bounds), width)
    at = int(programs.refs_at[shape])
    refs = programs.refs[at : at + (end - first) * width][places]
    if len(programs.named):
        refs = programs.named[refs]
    return ShapeTable(handles[programs.slots[first:end]].astype(np.int64), refs)


class ExpectedShares:
    """The share of events that a predicate is expected to be true of, judged by the filters."""

    def __init__(self, filters: InternedFilters) -> None:
        self._predicates = predicates = filters.predicates
        attributes = len(predicates.cuts)
        self.masks = np.zeros(attributes, np.int64)
        equal = np.zeros(predicates.base, np.bool_)
        for table in filters.tables.values():
            refs = table.refs[table.refs < predicates.base * REF_KINDS]
            kinds = refs % REF_KINDS
            owners = predicates.attributes_of(refs)
            np.bitwise_or.at(self.masks, owners, 1 << kinds.astype(np.int64))
            equal[refs[kinds == EQUAL] // REF_KINDS] = True
        owners = predicates.attributes_of(np.flatnonzero(equal) * REF_KINDS)
        self._constants = np.bincount(owners, minlength=attributes)
        self._listed = np.full(predicates.listed + 1, OTHER)
        sets = predicates.in_sets
        # Where only sets have constants, as for the elements of arrays, these are what counts.
        members = predicates.attributes_of(np.unique(sets.members).astype(np.int64) * REF_KINDS)
        listed = np.bincount(members, minlength=attributes)
        self._constants = np.maximum(np.where(self._constants, self._constants, listed), 1)
        sizes = np.diff(sets.at) * EQUALITY / self._constants[sets.attributes]
        self._listed[: len(sets.attributes)] = np.minimum(SET, sizes)
        tests = np.array(predicates.test_attributes, np.int64)
        alike = np.bincount(tests, minlength=attributes + 1)
        self._listed[predicates.first_test : predicates.first_out] = TEST / alike[tests]

    def of(self, refs: Array) -> Array:
        """shares[...]: the expected share of events for each reference."""
        attributes, kinds = self._predicates.attributes_of(refs), refs % REF_KINDS
        found = np.full(refs.shape, OTHER)
        ranges = (kinds >= BELOW) & (kinds <= AT_LEAST)
        found[ranges] = RANGE
        equal = (kinds == EQUAL) & (attributes >= 0)
        found[equal] = EQUALITY / self._constants[attributes[equal]]
        listed = attributes < 0
        found[listed] = self._listed[refs[listed] // REF_KINDS - self._predicates.base]
        return found

    def findable(self, refs: Array) -> Array:
        """Whether an event's values lead to a predicate: equalities, IN and tests."""
        numbers = refs // REF_KINDS
        listed = (numbers >= self._predicates.base) & (
            numbers < self._predicates.base + self._predicates.first_out
        )
        found: Array = listed | ((numbers < self._predicates.base) & (refs % REF_KINDS == EQUAL))
        return found


class ProfiledShares(ExpectedShares):
    """The share of events that a predicate is true of, as counted in the events of a profile."""

    def __init__(self, filters: InternedFilters, events: Batch) -> None:
        super().__init__(filters)
        predicates = self._predicates
        used = np.flatnonzero(self.masks | self._with_sets())
        if predicates.terms:
            events = ComputedAttributes(events.schema, predicates.terms).batch(events)
        classes: list[Array] = list(classes_of(events, predicates, used))
        for number, term in enumerate(predicates.terms):
            if isinstance(term, ast.Elements):
                a = len(predicates.cuts) - len(predicates.terms) + number
                first = int(predicates.starts[a]) + 1
                classes[a] = element_classes(events.columns[a], predicates.cuts[a], first)
        classes = [np.sort(line) for line in classes]  # missing values come first
        self._size = max(events.size, 1)
        self._classes = [line[np.searchsorted(line, 0) :] for line in classes]
        sets = predicates.in_sets
        members = self.of((sets.members.astype(np.int64)) * REF_KINDS + EQUAL)
        sums = np.add.reduceat(members, sets.at[:-1]) if len(members) else members
        self._listed[: len(sets.attributes)] = np.minimum(sums, 1.0)

    def of(self, refs: Array) -> Array:
        found = super().of(refs)
        attributes, kinds = self._predicates.attributes_of(refs), refs % REF_KINDS
        for attribute in np.unique(attributes[attributes >= 0]).tolist():
            mine = attributes == attribute
            known = self._classes[attribute]
            here = 2 * (refs[mine] // REF_KINDS) + 1
            below = np.searchsorted(known, here, side="left")
            upto = np.searchsorted(known, here, side="right")
            all_ = np.full(len(here), len(known))
            by_kind = np.array(
                [upto - below, all_ - (upto - below), below, upto, all_ - upto, all_ - below, all_,
                 self._size - all_]
            )  # fmt: skip
            # What was never seen may still come: it counts as half an event.
            counted = by_kind[kinds[mine], np.arange(len(here))] + 0.5
            found[mine] = np.minimum(counted / self._size, 1.0)
        return found

    def _with_sets(self) -> Array:
        flags = np.zeros_like(self.masks)
        flags[self._predicates.in_sets.attributes] = 1
        return flags


def distinct_up_to(numbers: Array, most: int) -> Array:
    """The distinct numbers, ascending; none if there are more than `most`."""
    found: Array = np.empty(0, numbers.dtype)
    for start in range(0, len(numbers), 1 << 16):  # a first part often has too many already
        found = np.union1d(found, numbers[start : start + (1 << 16)])
        if len(found) > most:
            return found[:0]
    return found


def _joined(arrays: list[Array], kind: type) -> Array:
    return np.concatenate(arrays).astype(kind) if arrays else np.empty(0, kind)


def _starts(sizes: Array) -> Array:
    starts = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=starts[1:])
    return starts
