"""Checks that the arrays of a file fit together, before kernels index one with another.

Checksums say that a file is as it was written, not that whoever wrote it was right, and compiled
code does not look where an index leads. So every index is compared with what it indexes, every
order that a search relies on is tested, and what could be derived from other arrays must agree with
them. All of it is done by whole arrays; nothing here takes time for each shape or each filter.

What no check can tell is whether the filters are those of the texts: a reference to another
predicate of the segment is as good as the right one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from tamis.container import misfit
from tamis.engines.sliced.segment_predicates import SegmentPredicates, Sets, Texts
from tamis.engines.sliced.shape_steps import MOST_REGISTERS, is_width
from tamis.kernels.comparisons import EQUAL, OPERATORS
from tamis.kernels.event_truth import FlatCuts
from tamis.kernels.formula_steps import (
    NO_GATE,
    TRACKS,
    FormulaSteps,
    are_gates,
    are_written_before,
)
from tamis.kernels.programs import FORMULAS, MIXED, Programs
from tamis.kernels.simd_rows import LANES
from tamis.kernels.value_classes import REF_KINDS
from tamis.schema import Enumeration, Schema
from tamis.types import Kind

Array = np.ndarray[Any, Any]


def ensure(holds: Any, name: str) -> None:
    """Raise the error about a section that contradicts others, unless something holds."""
    if not holds:
        raise misfit(name)


# --- orders and ranges


def is_within(numbers: Array, end: int) -> bool:
    """Whether all numbers are at least 0 and less than `end`."""
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < end)


def is_rising(values: Array, starts: Array | Sequence[int] = ()) -> bool:
    """Whether each value is greater than the one before it; `starts` begin new sequences."""
    steps = values[1:] > values[:-1]
    starts = np.asarray(starts, np.int64)
    steps[starts[(starts > 0) & (starts < len(values))] - 1] = True
    return bool(steps.all())


def are_bounds(bounds: Array, size: int) -> bool:
    """Whether numbers cut everything from 0 to `size` into parts, none of them empty."""
    return len(bounds) > 0 and bounds[0] == 0 and bounds[-1] == size and is_rising(bounds)


# --- predicates


def check_widths(widths: Any) -> None:
    """Each is the width of a conjunction, and none is there twice."""
    ensure(isinstance(widths, list) and all(map(is_width, widths)), "widths")
    ensure(len({*widths}) == len(widths), "widths")


def check_cuts(flat: FlatCuts, schema: Schema, is_text: Sequence[bool]) -> None:
    """The cuts of the attributes follow each other, and ascend in each of them."""
    ends = [0, 0]  # of the keys and of the offsets
    for a, text in enumerate(is_text):
        start, end = (int(bound) for bound in flat.at[:, a])
        ensure(start == ends[text] and start + text <= end, "cuts.at")
        ends[text] = end
        if not text:
            ensure(end <= len(flat.keys), "cuts.at")
            if a < len(schema):  # the keys of terms may be any
                _check_keys(flat.keys[start:end], schema, a)
    ensure(ends == [len(flat.keys), len(flat.offsets)], "cuts.at")
    ensure(is_rising(flat.keys, flat.at[0][~np.array(is_text, bool)]), "cuts.keys")
    if len(flat.offsets):
        last = int(flat.offsets[-1])
        ensure(flat.offsets[0] == 0 and last == len(flat.data), "cuts.offsets")
    ensure((flat.offsets[1:] >= flat.offsets[:-1]).all(), "cuts.offsets")
    for a in np.flatnonzero(is_text).tolist():
        texts = Texts(flat.offsets[slice(*flat.at[:, a].tolist())], flat.data).to_arrow()
        ensure(pc.all(pc.less(texts[:-1], texts[1:])).as_py() is not False, "cuts.data")


def _check_keys(keys: Array, schema: Schema, a: int) -> None:
    """Keys of truth values and enumerations are numbers of their values."""
    attribute = schema.attributes[a]
    if isinstance(attribute.domain, Enumeration):
        ensure(is_within(keys, len(attribute.domain.values)), "cuts.keys")
    elif attribute.type.kind is Kind.BOOL:
        ensure(is_within(keys, 2), "cuts.keys")


def check_sets(sets: Sets, sizes: Array, name: str, *, by_attribute: bool) -> None:
    """The members of each set are cuts of its attribute, ascending; sizes[attribute] of these."""
    ensure(len(sets.at) == len(sets.attributes) + 1, name)
    ensure(are_bounds(sets.at, len(sets.members)), name)
    ensure(is_within(sets.attributes, len(sizes)), name)
    ensure(not by_attribute or (np.diff(sets.attributes) >= 0).all(), name)
    limits = np.repeat(sizes[sets.attributes], np.diff(sets.at))
    ensure(is_within(sets.members, 2**31) and (sets.members < limits).all(), name)
    ensure(is_rising(sets.members, sets.at), name)


# --- programs


def check_programs(
    programs: Programs, steps: FormulaSteps, predicates: SegmentPredicates, masks: Array
) -> None:
    """Chunks, references, access predicates and slots lead to what is there."""
    _check_bounds(programs)
    _check_references(programs, steps, predicates, masks)
    columns = _columns(programs)
    _check_columns(programs, columns)
    _check_access(programs, steps, predicates, columns)
    if not len(programs.named):  # else they are not used
        _check_signatures(programs, predicates, columns)


def _check_bounds(programs: Programs) -> None:
    """The shapes have their chunks one after the other, and the chunks their filters."""
    subs, chunk_subs, bounds = programs.subs, programs.chunk_subs, programs.chunk_bounds
    filters, chunks = len(programs.slots), len(chunk_subs) - 1
    ensure(len(subs) == len(programs.widths) + 1 and are_bounds(subs, filters), "programs.subs")
    ensure(
        are_bounds(chunk_subs, filters) and np.diff(chunk_subs).max(initial=0) <= LANES,
        "programs.chunk_subs",
    )
    ensure(bounds.shape == (len(programs.widths), 4), "programs.chunk_bounds")
    ensure((np.diff(bounds, axis=1) >= 0).all(), "programs.chunk_bounds")
    ensure(are_bounds(np.append(bounds[:, 0], chunks), chunks), "programs.chunk_bounds")
    ensure((np.append(bounds[1:, 0], chunks) == bounds[:, 3]).all(), "programs.chunk_bounds")
    ensure((chunk_subs[bounds[:, 0]] == subs[:-1]).all(), "programs.chunk_bounds")
    ensure(is_within(programs.slots, filters), "programs.slots")
    taken = np.zeros(filters, np.bool_)
    taken[programs.slots] = True
    ensure(taken.all(), "programs.slots")


def _check_references(
    programs: Programs, steps: FormulaSteps, predicates: SegmentPredicates, masks: Array
) -> None:
    """Each reference is one to a predicate of the segment, and the masks say which kinds are used.

    used[number] has one byte for each kind.
    """
    filters = np.diff(programs.subs)
    ensure(len(programs.refs) == int(filters @ programs.widths) + LANES, "programs.refs")
    refs, named = programs.refs[:-LANES], programs.named
    used = np.zeros((predicates.size, REF_KINDS), np.bool_)
    if len(named):
        ensure(is_rising(named) and is_within(named, used.size), "programs.named")
        ensure(is_within(refs, len(named)), "programs.refs")
        used.reshape(-1)[named] = True
    else:
        ensure(is_within(refs, used.size), "programs.refs")
        used.reshape(-1)[refs] = True
    ensure(is_rising(steps.tested) and is_within(steps.tested, used.size), "steps.tested")
    used.reshape(-1)[steps.tested] = True
    words = used.view(np.uint64).reshape(-1)

    def kinds(start: int, end: int) -> Array:
        whole: Any = np.bitwise_or.reduce(words[start:end])
        return np.array([whole], np.uint64).view(np.bool_)

    comparisons = len(OPERATORS)
    ensure(len(masks) == len(predicates.cuts), "masks")
    for a, cuts in enumerate(predicates.cuts):
        start, after = (int(bound) for bound in predicates.starts[a : a + 2])
        end = start + 1 + len(cuts)
        presence, compared = kinds(start, start + 1), kinds(start + 1, end)
        wrong = presence[:comparisons].any() or compared[comparisons:].any()
        ensure(not wrong and not kinds(end, after).any(), "programs.refs")
        found = np.flatnonzero(presence | compared).tolist()
        ensure(masks[a] == sum(1 << kind for kind in found), "masks")
    ensure(not kinds(predicates.base, predicates.size)[1:].any(), "programs.refs")


class _Columns(NamedTuple):
    """The columns of all chunks: stretches of references, one after the other.

    Chunks of formulas, which come last, have none.
    """

    shape_of: Array  # int64[chunk]
    firsts: Array  # int64[chunk]: its first column
    chunks: Array  # int64[column]
    places: Array  # int64[column]: which column of its chunk it is
    low: Array  # int32[column]: its smallest reference
    high: Array
    starts: Array  # int64[column]: where it begins


def _columns(programs: Programs) -> _Columns:
    bounds = programs.chunk_bounds
    shape_of = np.repeat(np.arange(len(bounds)), bounds[:, 3] - bounds[:, 0])
    sizes = np.diff(programs.chunk_subs)
    widths = programs.widths[shape_of].astype(np.int64)
    ends = np.cumsum(widths)
    chunks = np.repeat(np.arange(len(sizes)), widths)
    places = np.arange(len(chunks)) - (ends - widths)[chunks]
    lengths = sizes[chunks].astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    refs = programs.refs[:-LANES]
    low, high = (
        (np.minimum.reduceat(refs, starts), np.maximum.reduceat(refs, starts))
        if len(starts)
        else (refs, refs)
    )
    return _Columns(shape_of, ends - widths, chunks, places, low, high, starts)


def _check_columns(programs: Programs, columns: _Columns) -> None:
    """The first predicates that a chunk is said to share are the same in all its filters."""
    shared = programs.shared
    ensure(len(shared) == len(columns.shape_of), "programs.shared")
    ensure((shared <= programs.widths[columns.shape_of]).all(), "programs.shared")
    said = columns.places < shared[columns.chunks]
    ensure((columns.low == columns.high)[said].all(), "programs.shared")


def _check_access(
    programs: Programs, steps: FormulaSteps, predicates: SegmentPredicates, columns: _Columns
) -> None:
    """Each cluster with an access predicate is found by it, once, and by nothing else."""
    access, chunks, shapes = programs.access, programs.access_chunks, programs.access_shapes
    ensure(len(chunks) == len(shapes) == len(access), "programs.access")
    shape_of, chunk = columns.shape_of, np.arange(len(columns.shape_of))
    inside = chunk < programs.chunk_bounds[shape_of, 1]
    are_formulas = programs.widths[shape_of] == FORMULAS
    ensure((programs.shared[inside & ~are_formulas] >= 1).all(), "programs.shared")
    firsts = columns.low[columns.firsts[~are_formulas]]
    firsts = programs.named[firsts] if len(programs.named) else firsts
    ensure(len(steps.gates) == np.count_nonzero(are_formulas), "steps.gates")
    ensure(is_within(steps.gates[steps.gates != NO_GATE], 2 * len(steps.tested)), "steps.gates")
    # A formula is found by a predicate that it needs.
    ensure((steps.gates[inside[are_formulas]] % 2 == 0).all(), "steps.gates")
    of_formulas = steps.tested[np.maximum(steps.gates, 0) // 2]
    first = np.concatenate([firsts, of_formulas])
    begins = (np.diff(first, prepend=-1) != 0) | (np.diff(shape_of, prepend=-1) != 0)
    heads = np.flatnonzero(inside & begins)
    order = np.argsort(chunks, kind="stable")
    ensure(np.array_equal(chunks[order], heads), "programs.access_chunks")
    ensure((shapes[order] == shape_of[heads]).all(), "programs.access_shapes")
    ensure(
        (access[order] == first[heads]).all() and (np.diff(access) >= 0).all(), "programs.access"
    )
    numbers = access // REF_KINDS
    listed = (numbers >= predicates.base) & (numbers < predicates.base + predicates.first_out)
    equal = (numbers < predicates.base) & (access % REF_KINDS == EQUAL)
    ensure((listed | equal).all(), "programs.access")


def check_steps(programs: Programs, steps: FormulaSteps) -> None:
    """The steps of each chunk make the results of its members, one after the other.

    A register is read only after it was written by the same filter, and a gate is one: without the
    predicate that it needs no member is true, and with the one that is enough each member is.
    """
    ensure(steps.operands.shape == (len(steps.targets), 3), "steps.operands")
    ensure(len(steps.steps_at) == TRACKS * len(steps.gates) + 1, "steps.steps_at")
    if not len(steps.gates):
        ensure(not len(steps.targets) and steps.steps_at[0] == 0, "steps.steps_at")
        return
    at = steps.steps_at
    ensure(
        are_bounds(at[::TRACKS], len(steps.targets)) and (np.diff(at) >= 0).all(), "steps.steps_at"
    )
    registers = TRACKS * MOST_REGISTERS
    values = len(steps.tested) + LANES + registers
    ensure(is_within(steps.targets, 4 * (LANES + registers)), "steps.targets")
    ensure(is_within(steps.operands.reshape(-1), values), "steps.operands")
    results = np.flatnonzero(steps.targets < 4 * LANES)
    ensure(len(results) and results[-1] == len(steps.targets) - 1, "steps.targets")
    sizes_of = np.diff(programs.chunk_subs[int(programs.chunk_bounds[-1, 0]) :])
    members = np.arange(int(sizes_of.sum())) - np.repeat(np.cumsum(sizes_of) - sizes_of, sizes_of)
    ensure(np.array_equal(steps.targets[results] // 4, members), "steps.targets")
    ensure(
        np.array_equal(results[np.cumsum(sizes_of) - 1] + 1, at[TRACKS::TRACKS]), "steps.steps_at"
    )
    inner = at[(at > 0) & (at < len(steps.targets))]
    ensure(np.isin(inner - 1, results).all(), "steps.steps_at")  # no filter is on two tracks
    written = np.full(registers, -1, np.int64)
    ensure(are_written_before(steps, written), "steps.operands")
    ensure(are_gates(steps, np.zeros(values, np.uint8)), "steps.gates")


def _check_signatures(programs: Programs, predicates: SegmentPredicates, columns: _Columns) -> None:
    """A chunk with a signature compares one attribute in one way in each of its columns.

    Chunks with the same signature compare the same. Attributes have their numbers one after the
    other, so a column is of one attribute if its smallest and its greatest reference are.
    """
    signatures = programs.signatures
    ensure(len(signatures) == len(columns.shape_of), "programs.signatures")
    alike = signatures != MIXED
    ensure(is_within(signatures[alike], len(signatures)), "programs.signatures")
    refs, starts = programs.refs[:-LANES], columns.starts
    if not alike.any():
        return
    kinds = np.bitwise_or.reduceat(refs, starts) % REF_KINDS
    same = kinds == np.bitwise_and.reduceat(refs, starts) % REF_KINDS
    owners = predicates.attributes_of(columns.low)
    same &= (owners >= 0) & (owners == predicates.attributes_of(columns.high))
    ensure(same[alike[columns.chunks]].all(), "programs.signatures")
    leaders = np.zeros(len(signatures), np.int64)
    leaders[signatures[alike]] = np.flatnonzero(alike)
    leader = leaders[signatures]  # of a chunk; arbitrary for one that is mixed
    ensure((columns.shape_of[leader] == columns.shape_of)[alike].all(), "programs.signatures")
    mine = np.flatnonzero(alike[columns.chunks])
    theirs = columns.firsts[leader[columns.chunks[mine]]] + columns.places[mine]
    codes = owners.astype(np.int64) * REF_KINDS + kinds
    ensure((codes[mine] == codes[theirs]).all(), "programs.signatures")
