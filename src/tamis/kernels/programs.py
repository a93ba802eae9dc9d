"""Filters as programs over predicate rows, for up to 512 events at once, one bit per event.

Filters of one *shape* are conjunctions of the same number of predicates; all other filters have the
last shape, whose width is 0, and are run by steps (`formula_steps`). They are in *chunks* of up to
64, and the references of a chunk of conjunctions are stored column by column. A chunk whose members
all begin with the same predicates can be skipped as a whole. The chunks of a shape come in this
order:

* those with an *access* predicate in common; events find these by their values, and the chunks of
  other values are never visited
* those with another first predicate in common, and perhaps a second one
* those without one
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.bits import count_ones
from tamis.kernels.comparisons import next_at_least
from tamis.kernels.formula_steps import (
    NEEDED,
    NO_GATE,
    FormulaSteps,
    are_worth_all,
    copy_rows,
    find_all_rows,
    find_rows,
    run_steps,
    run_steps_in_place,
)
from tamis.kernels.jit import Number, inner, jit
from tamis.kernels.predicate_rows import TOUCHED, BlockRows
from tamis.kernels.records import record
from tamis.kernels.simd_rows import (
    LANES,
    WORDS,
    Row,
    and_rows,
    any_bit,
    empty_row,
    load_row,
    or_rows,
    store_row,
    xor_rows,
)  # fmt: skip
from tamis.kernels.value_classes import REF_KINDS

Array = np.ndarray[Any, Any]

PLANES = 20  # of bits in which matches are counted: up to a million rows
MOST_ADDED = 2**PLANES - 4 * LANES  # rows in the planes from which they go to the counts
FEW = 64  # events up to which a cluster is run event by event, if its columns compare alike
MIXED = -1  # the signature of a chunk whose columns do not compare alike
FORMULAS = 0  # the width of the shape of filters that are not conjunctions
ALIVE = 2**63 - 1  # the time of death of a subscription that is not removed


@record
class Programs(NamedTuple):
    """The programs of many filters; `sub` numbers them in the order of evaluation."""

    subs: Array  # int64[shape + 1]: its first sub
    refs_at: Array  # int64[shape]: where its references start
    refs: Array  # int32[* + LANES]: references, or places in `named`
    named: Array  # int32[*]: the distinct references, ascending, if there are few of them
    widths: Array  # int32[shape]: how many references a sub has; FORMULAS for the last shape
    chunk_subs: Array  # int32[chunk + 1]: its first sub
    chunk_bounds: Array  # int64[shape, 4]: where its access, common and other chunks start, and end
    signatures: Array  # int32[chunk]: how its columns compare, MIXED if one of them is not uniform
    shared: Array  # uint8[chunk]: how many references all its members have in common
    access: Array  # int32[*]: the access predicates, by reference, ascending
    access_chunks: Array  # int32[*]: the first chunk of each
    access_shapes: Array  # int32[*]: the shape of each
    slots: Array  # int32[sub]


@record
class Output(NamedTuple):
    """Where results go: to counts, to a matrix of bits, or to lists of words that are not 0.

    The arrays of a result that is not wanted are empty.
    """

    counts: Array  # int64[event]
    matrix: Array  # uint64[slot, word]
    slots: Array  # int32[*]: the slots of the listed words
    words: Array  # int8[*]: which words of the rows they are
    bits: Array  # uint64[*]: the words
    size: Array  # int64[2]: how many words are listed, how many rows are in the planes
    planes: Array  # uint64[PLANES, word]: sums of bits, not yet in the counts


@record
class ProgramBuffers(NamedTuple):
    """Scratch memory of one thread, and its plan for the current block."""

    local: Array  # uint64[3 * LANES, word]: results that are not handed over yet
    live: Array  # int64[3 * LANES]: their subs
    numbers: Array  # int32[*]: rows of the references of a chunk
    named: Array  # uint64[*, word]: rows of the named references
    row_of: Array  # int32[value]: the rows of the values of formulas
    values: Array  # uint64[value, word]: these rows, if there are few; else empty
    carries: Array  # uint64[LANES // 8, word]
    visits: Array  # int64[*, 3]: what to run by rows: first chunk, the one after the last, shape
    single: Array  # int64[*, 4]: what to run event by event: the same, and the access row
    planned: Array  # int64[2]: how many of each
    events: Array  # int64[event]
    bits: Array  # uint64[LANES]: all zero between uses
    intervals: Array  # int64[FEW, width, 3]


@jit
def plan_visits(
    programs: Programs, steps: FormulaSteps, block: BlockRows, buffers: ProgramBuffers
) -> None:
    """Plan what to run by rows, and which clusters event by event because few events reach them."""
    visits, single = 0, 0
    for shape in range(programs.widths.size):
        start, end = programs.chunk_bounds[shape, 1], programs.chunk_bounds[shape, 3]
        if start < end:
            buffers.visits[visits, 0], buffers.visits[visits, 1] = start, end
            buffers.visits[visits, 2] = shape
            visits += 1
    size, place = programs.access.size, 0
    for t in range(block.sizes[TOUCHED] if size else 0):
        ref = np.int64(block.touched[t, 0])  # ascending
        place = next_at_least(programs.access, place, ref)
        if place == size or programs.access[place] != ref:
            continue
        row = block.touched[t, 1]
        events = 0
        for w in range(WORDS):
            events += count_ones(block.rows[row, w])
        while place < size and programs.access[place] == ref:
            first = np.int64(programs.access_chunks[place])
            of = np.int64(programs.access_shapes[place])
            after = cluster_end(first, of, programs, steps)
            few = 0 if programs.named.size else FEW if programs.signatures[first] != MIXED else 1
            if events > few or programs.widths[of] == FORMULAS:
                buffers.visits[visits, 0], buffers.visits[visits, 1] = first, after
                buffers.visits[visits, 2] = of
                visits += 1
            elif events:
                buffers.single[single, 0], buffers.single[single, 1] = first, after
                buffers.single[single, 2], buffers.single[single, 3] = of, row
                single += 1
            place += 1
    buffers.planned[0], buffers.planned[1] = visits, single


@inner
def cluster_end(first: Number, shape: Number, programs: Programs, steps: FormulaSteps) -> Number:
    """The chunk after the last one of the cluster that begins at `first`."""
    refs, chunk_subs = programs.refs, programs.chunk_subs
    width = np.int64(programs.widths[shape])
    chunk = first + 1
    if width == FORMULAS:
        gates = steps.gates[: programs.chunk_bounds[shape, 1] - programs.chunk_bounds[shape, 0]]
        k = first - programs.chunk_bounds[shape, 0] + 1
        while k < gates.size and gates[k] == gates[k - 1]:
            k += 1
        return programs.chunk_bounds[shape, 0] + k
    base = programs.refs_at[shape] - programs.subs[shape] * width
    same = refs[base + chunk_subs[first] * width]  # the predicate, by reference or by place
    while (
        chunk < programs.chunk_bounds[shape, 1] and refs[base + chunk_subs[chunk] * width] == same
    ):
        chunk += 1
    return chunk


@inner
def copy_named_rows(programs: Programs, block: BlockRows, rows: Array) -> None:
    """Copy the rows of the named references, which are ascending like the runs, to rows[place]."""
    run = 0
    for place in range(programs.named.size):
        number, kind = programs.named[place] // REF_KINDS, programs.named[place] % REF_KINDS
        while block.run_starts[run + 1] <= number:
            run += 1
        store_row(rows, place, load_row(block.rows, block.run_rows[run, kind]))


@inner
def _resolve(
    refs: Array, start: Number, count: Number, coarse: Array, shift: Number, starts: Array,
    run_rows: Array, found: Array,
) -> None:  # fmt: skip
    """Write the row of refs[start + k] to found[k], for k < count."""
    for k in range(count):
        ref = np.uint32(refs[start + k])
        number = ref // np.uint32(REF_KINDS)
        run = coarse[number >> np.uint32(shift)]
        while starts[run + 1] <= number:
            run += 1
        found[k] = run_rows[run, ref % np.uint32(REF_KINDS)]


@jit
def run_programs(
    programs: Programs,
    steps: FormulaSteps,
    block: BlockRows,
    buffers: ProgramBuffers,
    died: Array,
    now: Number,
    out: Output,
) -> None:
    """Run the planned visits; died[slot] is when a subscription was removed, empty if none was."""
    refs, chunk_subs, slots = programs.refs, programs.chunk_subs, programs.slots
    coarse, shift, starts, run_rows = block.coarse, block.shift, block.run_starts, block.run_rows
    local, live = buffers.local, buffers.live
    is_named = programs.named.size > 0
    rows = buffers.named if is_named else block.rows
    numbers = refs if is_named else buffers.numbers
    if is_named:
        copy_named_rows(programs, block, buffers.named)
    sparse = out.slots.size > 0
    filled = np.int64(0)
    formulas = programs.widths.size - 1
    are_found = steps.targets.size > 0 and are_worth_all(
        steps, programs.chunk_bounds[formulas, 1] - programs.chunk_bounds[formulas, 0],
        steps.gates.size,
    )  # fmt: skip
    are_copied = are_found and buffers.values.size > 0
    if are_found:
        find_all_rows(steps, block, buffers.row_of)
    if are_copied:
        copy_rows(steps, buffers.row_of, block.rows, buffers.values)
    for v in range(buffers.planned[0]):
        first, after, shape = buffers.visits[v, 0], buffers.visits[v, 1], buffers.visits[v, 2]
        width = np.int64(programs.widths[shape])
        base = programs.refs_at[shape] - programs.subs[shape] * width
        for chunk in range(first, after):
            sub = np.int64(chunk_subs[chunk])
            count = chunk_subs[chunk + 1] - sub
            at = base + sub * width
            if width == FORMULAS:
                own = chunk - programs.chunk_bounds[shape, 0]
                if not are_found:
                    find_rows(steps, own, block, buffers.row_of)
                if not _may_match(steps.gates[own], block.rows, buffers.row_of):
                    continue
                if are_copied:
                    run_steps_in_place(steps, own, buffers.values)
                    filled = _gather(
                        buffers.values, steps.tested.size, count, sub, local, live, filled
                    )
                else:
                    run_steps(steps, own, buffers.row_of, block.rows)
                    result = buffers.row_of[steps.tested.size]
                    filled = _gather(block.rows, result, count, sub, local, live, filled)
                if filled >= LANES:
                    _consume(local, live, filled, slots, buffers.carries, died, now, out)
                    filled = np.int64(0)
                continue
            if not is_named:
                known = count if chunk < programs.chunk_bounds[shape, 1] else 0
                if known:
                    _resolve(refs, at, np.int64(1), coarse, shift, starts, run_rows, numbers)
                    for k in range(1, count):
                        numbers[k] = numbers[0]
                _resolve(
                    refs, at + known, count * width - known, coarse, shift, starts, run_rows,
                    numbers[known:],
                )  # fmt: skip
                at = np.int64(0)
            filled = _conjunctions(
                rows, numbers, at, count, width, sub, sparse, local, live, filled
            )
            if filled >= LANES:
                _consume(local, live, filled, slots, buffers.carries, died, now, out)
                filled = np.int64(0)
    _consume(local, live, filled, slots, buffers.carries, died, now, out)


@inner
def _conjunctions(
    rows: Array, numbers: Array, at: Number, count: Number,
    width: Number, sub: Number, sparse: bool,
    local: Array, live: Array, filled: Number,
) -> Number:  # fmt: skip
    """Append the results of a chunk to local[:filled]; if `sparse`, only those with an event."""
    if sparse:
        for i in range(count):
            row = _conjunction(rows, numbers, at + i, count, width)
            store_row(local, filled, row)
            live[filled] = sub + i
            filled += any_bit(row)
        return filled
    for i in range(count):
        store_row(local, filled + i, _conjunction(rows, numbers, at + i, count, width))
        live[filled + i] = sub + i
    return filled + count


@inner
def _conjunction(rows: Array, numbers: Array, i: Number, count: Number, width: Number) -> Row:
    """The rows of one member, all ANDed; its references are `count` apart."""
    row = load_row(rows, numbers[i])
    for _ in range(1, width):
        i += count
        row = and_rows(row, load_row(rows, numbers[i]))
    return row


@inner
def _may_match(gate: Number, rows: Array, row_of: Array) -> bool:
    """Whether any event has the predicate that the members of a chunk need, if there is one."""
    return gate == NO_GATE or gate & 1 != NEEDED or any_bit(load_row(rows, row_of[gate >> 1]))


@inner
def _gather(
    rows: Array, first: Number, count: Number, sub: Number, local: Array, live: Array,
    filled: Number,
) -> Number:  # fmt: skip
    """Append the rows from `first` on that have an event, the results of a chunk, to local[*]."""
    for i in range(count):
        row = load_row(rows, first + i)
        store_row(local, filled, row)
        live[filled] = sub + i
        filled += any_bit(row)
    return filled


@inner
def _consume(
    local: Array, live: Array, filled: Number, slots: Array,
    carries: Array, died: Array, now: Number,
    out: Output,
) -> None:  # fmt: skip
    """Hand over the results local[:filled] of live[:filled], without removed subscriptions."""
    if died.size:
        kept = 0
        for k in range(filled):
            live[kept] = live[k]
            store_row(local, kept, load_row(local, k))
            kept += died[slots[live[k]]] > now
        filled = kept
    if out.counts.size:
        _count(local, filled, carries, out.planes)
        out.size[1] += filled
        if out.size[1] > MOST_ADDED:
            add_planes(out)
    if out.matrix.size:
        for k in range(filled):
            store_row(out.matrix, slots[live[k]], load_row(local, k))
    elif out.slots.size:
        listed, words, bits = out.slots, out.words, out.bits
        size = out.size[0]
        for k in range(filled):
            slot = slots[live[k]]
            for w in range(WORDS):
                listed[size], words[size], bits[size] = slot, w, local[k, w]
                size += local[k, w] != 0
        out.size[0] = size


@inner
def _count(local: Array, filled: Number, carries: Array, planes: Array) -> None:
    """Add the bits of local[:filled] to the planes: bit e of plane p stands for 2**p at event e.

    Eight rows become one carry to plane 3, and eight such carries one carry to plane 6.
    """
    while filled % LANES:
        store_row(local, filled, empty_row())
        filled += 1
    for start in range(0, filled, LANES):
        for k in range(LANES // 8):
            store_row(carries, k, _sum_of_eight(local, start + 8 * k, planes, 0))
        carry = _sum_of_eight(carries, 0, planes, 3)
        p = 6
        while any_bit(carry):
            plane = load_row(planes, p)
            store_row(planes, p, xor_rows(plane, carry))
            carry = and_rows(plane, carry)
            p += 1


@inner
def _sum_of_eight(rows: Array, start: Number, planes: Array, p: Number) -> Row:
    """Add eight rows to the planes from p on; returns the carry to plane p + 3."""
    ones, carry_a = _add(load_row(planes, p), load_row(rows, start), load_row(rows, start + 1))
    ones, carry_b = _add(ones, load_row(rows, start + 2), load_row(rows, start + 3))
    twos, fours_a = _add(load_row(planes, p + 1), carry_a, carry_b)
    ones, carry_a = _add(ones, load_row(rows, start + 4), load_row(rows, start + 5))
    ones, carry_b = _add(ones, load_row(rows, start + 6), load_row(rows, start + 7))
    twos, fours_b = _add(twos, carry_a, carry_b)
    fours, carry = _add(load_row(planes, p + 2), fours_a, fours_b)
    store_row(planes, p, ones)
    store_row(planes, p + 1, twos)
    store_row(planes, p + 2, fours)
    return carry


@inner
def _add(a: Row, b: Row, c: Row) -> tuple[Row, Row]:
    """The sum and the carry of three rows, bit by bit: a full adder."""
    one = xor_rows(a, b)
    return xor_rows(one, c), or_rows(and_rows(a, b), and_rows(one, c))


@jit
def add_planes(out: Output) -> None:
    """Add the planes to the counts, and clear them."""
    counts, planes = out.counts, out.planes
    for p in range(PLANES):
        for w in range(WORDS):
            word = planes[p, w]
            for b in range(64 if word else 0):
                counts[w * 64 + b] += np.int64((word >> np.uint64(b)) & np.uint64(1)) << p
            planes[p, w] = 0
    out.size[1] = 0
