"""The order in which filters are evaluated: by shape, in clusters and chunks.

A *cluster* is the filters of a shape with the same first predicate; if few events are expected to
satisfy it, only those events visit the cluster. A *chunk* is up to 64 filters that are evaluated
together: conjunctions of one width, their references stored column by column, or formulas, one step
after the other. The first predicate of a formula is its gate (`formula_steps`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.engines.sliced.expected_shares import ExpectedShares, ProfiledShares
from tamis.engines.sliced.formula_table import NO_FORMULAS, FormulaTable
from tamis.engines.sliced.interning import ConjunctionTable, InternedFilters
from tamis.engines.sliced.segment_predicates import SegmentPredicates
from tamis.kernels.formula_steps import ENOUGH, NO_GATE, TRACKS, FormulaSteps, choose_gates
from tamis.kernels.programs import FORMULAS, MIXED, Programs
from tamis.kernels.simd_rows import LANES
from tamis.kernels.value_classes import REF_KINDS
from tamis.predicates.event_batches import Batch

Array = np.ndarray[Any, Any]

# If a first predicate is expected to be true of a smaller share of events than this, only the
# events that satisfy it visit its cluster.
SELECTIVE = 0.02
NAMED = 4096  # distinct references up to which each has its own row in every block, if most do
COMMON = 16  # filters with the same first predicate that get chunks of their own

SELECTIVE_FIRST, COMMON_FIRST, OTHERS = range(3)  # groups of filters, in the order of evaluation

NO_STEPS = FormulaSteps(
    tested=np.empty(0, np.int32), steps_at=np.zeros(1, np.int64), gates=np.empty(0, np.int32),
    operands=np.empty((0, 3), np.int32), targets=np.empty(0, np.int16),
)  # fmt: skip


class Chunks(NamedTuple):
    """The filters of one shape in the order of evaluation."""

    places: Array  # int64[filter]: which filter of the table comes at this place
    sizes: Array  # int64[chunk]
    bounds: tuple[int, int, int, int]  # of chunks: selective, common, others, the end
    access: Array  # int32[*]: first predicates of the selective clusters
    access_chunks: Array  # int64[*]: their first chunks

    @property
    def starts(self) -> Array:
        """The first filter of each chunk."""
        found: Array = np.cumsum(self.sizes) - self.sizes
        return found


class Conjunctions(NamedTuple):
    """The conjunctions of one width, chunk by chunk."""

    chunks: Chunks
    refs: Array  # int32[*]: chunk by chunk, in a chunk column by column
    codes: Array  # int64[chunk, leaf]: attribute and kind of a column, -1 if they are not the same
    shared: Array  # uint8[chunk]: how many leading predicates all its filters have in common


class Layout(NamedTuple):
    """All that is compiled of filters; `handles` is by slot, `masks` by attribute."""

    programs: Programs
    steps: FormulaSteps
    handles: Array
    masks: Array  # the kinds of predicates that filters use


def lay_out(filters: InternedFilters, profile: Batch | None = None) -> Layout:
    """The programs of all filters.

    Which predicates are rare is counted in the events of a profile, or else estimated from the
    filters.
    """
    shares = ExpectedShares(filters) if profile is None else ProfiledShares(filters, profile)
    laid = [conjunctions_of(table, filters.predicates, shares) for table in filters.tables.values()]
    chunks = [one.chunks for one in laid]
    handles = [table.handles for table in filters.tables.values()]
    if filters.formulas.size:
        steps, of_formulas = formulas_of(filters.formulas, shares)
        chunks.append(of_formulas)
        handles.append(filters.formulas.handles)
    else:
        steps = NO_STEPS
    every = np.concatenate(handles) if handles else np.empty(0, np.int64)
    order = np.argsort(every, kind="stable")
    programs = _programs(tuple(filters.tables), laid, chunks, np.argsort(order).astype(np.int32))
    return Layout(programs, steps, every[order], shares.masks)


def _programs(
    widths: tuple[int, ...], laid: list[Conjunctions], chunks: list[Chunks], slot_of: Array
) -> Programs:
    """The programs of conjunctions, and the chunks of all shapes."""
    subs = _starts(np.array([len(one.places) for one in chunks], np.int64)).astype(np.int64)
    first = _starts(np.array([len(one.sizes) for one in chunks], np.int64)).tolist()
    # A chunk is read as if it were full.
    refs = _joined([*(one.refs for one in laid), np.zeros(LANES, np.int32)], np.int32)
    named = distinct_up_to(refs[:-LANES], min(NAMED, sum(map(_often, laid))))
    if len(named):
        refs[:-LANES] = np.searchsorted(named, refs[:-LANES])
    others = sum(len(one.sizes) for one in chunks[len(laid) :])  # chunks of formulas
    access = _joined([one.access for one in chunks], np.int32)
    by_reference = np.argsort(access, kind="stable")
    access_chunks = [
        one.access_chunks + begin for one, begin in zip(chunks, first[:-1], strict=True)
    ]
    access_shapes = np.repeat(np.arange(len(chunks)), [len(one.access) for one in chunks])
    places = [one.places + begin for one, begin in zip(chunks, subs[:-1].tolist(), strict=True)]
    return Programs(
        subs=subs, refs=refs, named=named, **width_arrays(widths, subs)._asdict(),
        chunk_subs=_starts(_joined([one.sizes for one in chunks], np.int64)),
        chunk_bounds=np.array(
            [[begin + bound for bound in one.bounds]
             for one, begin in zip(chunks, first[:-1], strict=True)], np.int64,
        ).reshape(-1, 4),
        signatures=np.append(
            signatures_of([one.codes for one in laid]), np.full(others, MIXED, np.int32)
        ),
        shared=_joined([*(one.shared for one in laid), np.zeros(others, np.uint8)], np.uint8),
        access=access[by_reference],
        access_chunks=_joined(access_chunks, np.int32)[by_reference],
        access_shapes=access_shapes.astype(np.int32)[by_reference],
        slots=slot_of[_joined(places, np.int64)],
    )  # fmt: skip


def _often(of: Conjunctions) -> int:
    """How many references are needed for every event, not only for those that find a cluster."""
    chunks = of.chunks
    return int(chunks.sizes[chunks.bounds[1] :].sum()) * int(of.codes.shape[1])


class WidthArrays(NamedTuple):
    """What `Programs` says about each shape, whatever the filters refer to."""

    refs_at: Array
    widths: Array


def width_arrays(widths: Sequence[int], subs: Array) -> WidthArrays:
    """The fields of `Programs` that follow from the widths; one shape more is that of formulas."""
    every = np.array([*widths, *[FORMULAS] * (len(subs) - 1 - len(widths))], np.int32)
    ends = np.cumsum(np.diff(subs) * every, dtype=np.int64)
    return WidthArrays(ends - np.diff(subs) * every, every)


def conjunctions_of(
    table: ConjunctionTable, predicates: SegmentPredicates, shares: ExpectedShares
) -> Conjunctions:
    """Order the conjunctions of a width, cut them into chunks, and store these by columns."""
    refs = table.refs
    if refs.shape[1] > 1:
        ranked = np.argsort(shares.of(refs), axis=1, kind="stable")
        refs = np.take_along_axis(refs, ranked, axis=1)
    first = refs[:, 0].astype(np.int64)
    group = _groups(first, (shares.of(first) < SELECTIVE) & shares.findable(first))
    second = np.zeros(len(refs), np.int64)
    if refs.shape[1] > 1:
        # In a selective cluster the order of handles is worth more: matches come out sorted.
        second[group == COMMON_FIRST] = refs[group == COMMON_FIRST, 1]
    chunks = _chunks(group, np.where(group == OTHERS, 0, first), second, table.handles)
    refs, starts = refs[chunks.places], chunks.starts
    return Conjunctions(
        chunks, _by_columns(refs, starts, chunks.sizes), _codes(refs, starts, predicates),
        _shared(refs, starts),
    )  # fmt: skip


def formulas_of(table: FormulaTable, shares: ExpectedShares) -> tuple[FormulaSteps, Chunks]:
    """Order the formulas by their gates, cut them into chunks, and store the steps of these."""
    tested = np.unique(table.references())
    share = shares.of(tested)
    by_value = table.mapped(lambda refs: np.searchsorted(tested, refs))
    gates = np.empty(table.size, np.int64)
    wanted = np.zeros(int(table.targets.max()) // 4 + 1, np.uint8)
    choose_gates(table.at, by_value.operands, table.targets, share, wanted, gates)
    values = np.maximum(gates, 0) // 2
    rare = (share[values] < SELECTIVE) & shares.findable(tested)[values]
    group = _groups(gates, rare & (gates != NO_GATE) & (gates % 2 != ENOUGH))
    group[gates == NO_GATE] = OTHERS
    first = np.where(group == OTHERS, NO_GATE, gates)
    chunks, tracks = _on_tracks(
        _chunks(group, first, np.zeros_like(first), table.handles), np.diff(table.at)
    )
    laid = by_value.taken(chunks.places)
    number = np.repeat(np.arange(len(chunks.sizes)) * TRACKS, chunks.sizes) + tracks
    firsts = np.searchsorted(number, np.arange(len(chunks.sizes) * TRACKS + 1))
    track_of = np.repeat(tracks, np.diff(laid.at))
    member = np.arange(table.size) - np.repeat(chunks.starts, chunks.sizes)
    registers, signs = np.divmod(laid.targets.astype(np.int64), 4)
    registers = LANES + registers * TRACKS + track_of
    registers[laid.at[1:] - 1] = member  # the result
    of_registers = len(tested) + LANES + ~laid.operands * TRACKS + track_of[:, None]
    steps = FormulaSteps(
        tested=tested.astype(np.int32), steps_at=laid.at[firsts],
        gates=first[chunks.places[chunks.starts]].astype(np.int32),
        operands=np.where(laid.operands < 0, of_registers, laid.operands).astype(np.int32),
        targets=(4 * registers + signs).astype(np.int16),
    )  # fmt: skip
    return steps, chunks._replace(access=tested[chunks.access // 2].astype(np.int32))


def _on_tracks(chunks: Chunks, lengths: Array) -> tuple[Chunks, Array]:
    """Chunks whose members are ordered by track, and the track of each; lengths[filter] in steps.

    The longest go first, to the tracks in turn, there and back, so that all get about as much.
    """
    number = np.repeat(np.arange(len(chunks.sizes)), chunks.sizes)
    order = np.lexsort((-lengths[chunks.places], number))
    rank = np.arange(len(order)) - np.repeat(chunks.starts, chunks.sizes)
    turn, place = np.divmod(rank, TRACKS)
    tracks = np.where(turn % 2, TRACKS - 1 - place, place)
    by_track = np.lexsort((rank, tracks, number))
    return chunks._replace(places=chunks.places[order[by_track]]), tracks[by_track]


def _groups(first: Array, selective: Array) -> Array:
    """The group of each filter by its first predicate: SELECTIVE_FIRST, COMMON_FIRST, OTHERS."""
    _, places, counts = np.unique(first, return_inverse=True, return_counts=True)
    found = np.where(counts[places.reshape(-1)] >= COMMON, COMMON_FIRST, OTHERS)
    found[selective] = SELECTIVE_FIRST
    return found


def _chunks(group: Array, first: Array, second: Array, handles: Array) -> Chunks:
    """Order filters by group, first and second predicate and handle, and cut them into chunks."""
    order = np.lexsort((handles, second, first, group))
    group, first, second = group[order], first[order], second[order]
    heads = _heads(group, first, second)
    lengths = np.diff(np.append(heads, len(order)))
    pieces = (lengths + LANES - 1) // LANES
    ends = np.cumsum(pieces)
    place = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - pieces, pieces)
    sizes = np.minimum(LANES, np.repeat(lengths, pieces) - place * LANES)
    under = group[np.cumsum(sizes) - sizes]
    bounds = tuple(int(np.searchsorted(under, number)) for number in range(3))
    leading = group[heads] == SELECTIVE_FIRST
    return Chunks(
        places=order, sizes=sizes, bounds=(bounds[0], bounds[1], bounds[2], len(sizes)),
        access=first[heads[leading]].astype(np.int32), access_chunks=(ends - pieces)[leading],
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


def _shared(refs: Array, starts: Array) -> Array:
    """How many predicates, from the first on, are the same in a whole chunk."""
    if not len(starts):
        return np.zeros(0, np.uint8)
    same = np.minimum.reduceat(refs, starts) == np.maximum.reduceat(refs, starts)
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


def table_of(programs: Programs, shape: int, handles: Array) -> ConjunctionTable:
    """The conjunctions of a shape, read back from programs; `handles` is by slot."""
    first, end = (int(bound) for bound in programs.subs[shape : shape + 2])
    width = int(programs.widths[shape])
    chunks = slice(int(programs.chunk_bounds[shape, 0]), int(programs.chunk_bounds[shape, 3]) + 1)
    bounds = programs.chunk_subs[chunks].astype(np.int64) - first
    places = column_places(bounds[:-1], np.diff(bounds), width)
    at = int(programs.refs_at[shape])
    refs = programs.refs[at : at + (end - first) * width][places]
    if len(programs.named):
        refs = programs.named[refs]
    return ConjunctionTable(handles[programs.slots[first:end]].astype(np.int64), refs)


def formulas_back(programs: Programs, steps: FormulaSteps, handles: Array) -> FormulaTable:
    """The formulas, read back from programs; `handles` is by slot."""
    if not len(steps.targets):
        return NO_FORMULAS
    own = handles[programs.slots[int(programs.subs[-2]) :]].astype(np.int64)
    size, results = len(steps.tested), steps.targets < 4 * LANES
    operands = ~((steps.operands - size - LANES) // TRACKS)
    is_leaf = steps.operands < size
    operands[is_leaf] = steps.tested[steps.operands[is_leaf]]
    registers, signs = np.divmod(steps.targets, 4)
    registers = np.where(results, 0, (registers - LANES) // TRACKS)
    at = np.append(0, np.flatnonzero(results) + 1)
    return FormulaTable(own, at, operands, (4 * registers + signs).astype(np.int16))


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
