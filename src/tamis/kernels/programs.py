"""Subscriptions as programs over truth rows: conjunctions by registers, formulas by small stacks.

Subscriptions are grouped by shape, so that no branch depends on a single one. The members of a
conjunction are ordered by how selective they are; subscriptions of one shape with the same first
member form a cluster, which is left out where that row is empty.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.comparisons import first_at_least, holds
from tamis.kernels.jit import jit
from tamis.kernels.slices import EMPTY, WORDS, Axes, Touched, find_row

Array = np.ndarray[Any, Any]

UNKNOWN = -1
PUSH, AND_LEAF, OR_LEAF, AND_TOP, OR_TOP = 0, 1, 2, 3, 4
CHUNK = 256  # results that are gathered before they are consumed: 16 kB
PLANES = 10  # of bits that are counted
SOME = 32  # subscriptions of one formula that are computed together


class Programs(NamedTuple):
    """The programs of many subscriptions; `sub` numbers them in the order of evaluation."""

    subs: Array  # int64[shape + 1]: its first sub
    refs_at: Array  # int64[shape]: where its references start
    refs: Array  # int32[*]: predicates, those of one sub side by side
    ops_at: Array  # int64[shape + 1]
    ops: Array  # int8[*]: leaves take the references in order
    formulas: int  # the first shape that is no conjunction
    cluster_shapes: Array  # int32[cluster]
    cluster_subs: Array  # int64[cluster + 1]: its first sub
    plain: Array  # int32[*]: the clusters that are always looked at
    access: Array  # int32[*]: predicates that lead to the other clusters, ascending
    access_at: Array  # int64[* + 1]: where their clusters start
    access_clusters: Array  # int32[*]
    slots: Array  # int32[sub]


class Comparisons(NamedTuple):
    """What the keyed comparisons are, to be looked up when they are first needed."""

    segments: Array  # int32[predicate]: its attribute and operator, -1 for another predicate
    keys: Array  # int64[predicate]


class Block(NamedTuple):
    """The truth of a block of events, and scratch to compute with it."""

    rows: Array  # uint64[row, word]
    row_of: Array  # int32[predicate]; UNKNOWN for a comparison that nobody needed yet
    axes: Axes
    touched: Touched
    alive: Array  # uint8[slot]: 0 for a subscription that is gone; empty if all are there
    stack: Array  # uint64[depth, SOME, word]


class Results(NamedTuple):
    """Where results go: to counts, to a matrix of bits, to lists of words that are not 0."""

    counts: Array  # int64[event]; empty if nobody counts
    matrix: Array  # uint64[slot, word]; empty if nobody wants it
    slots: Array  # int32[*]: of the listed words; empty if nobody wants lists
    words: Array  # int8[*]
    bits: Array  # uint64[*]
    size: Array  # int64[2]: how many are listed, how many rows are in the planes
    planes: Array  # uint64[PLANES, word]: sums of bits
    local: Array  # uint64[CHUNK + SOME, word]: scratch
    live: Array  # int64[CHUNK + SOME]: the subs of the scratch


@jit
def run(programs: Programs, comparisons: Comparisons, block: Block, out: Results) -> None:
    """Evaluate all subscriptions of a block."""
    filled = 0
    for cluster in programs.plain:
        filled = _cluster(cluster, programs, comparisons, block, filled, out)
    for t in range(block.touched.size[0]):
        first, behind = clusters_of(block.touched.ids[t], programs)
        for k in range(first, behind):
            cluster = programs.access_clusters[k]
            filled = _cluster(cluster, programs, comparisons, block, filled, out)
    for shape in range(programs.formulas, programs.refs_at.size):
        filled = _formulas(shape, programs, comparisons, block, filled, out)
    _consume(programs, filled, out, block.alive)
    if out.counts.size:
        pour(out)


@jit
def clusters_of(predicate: int, programs: Programs) -> tuple[int, int]:
    """The stretch of `access_clusters` to which a predicate leads."""
    size = programs.access.size
    place = first_at_least(programs.access, 0, size, predicate)
    if place == size or programs.access[place] != predicate:
        return 0, 0
    return programs.access_at[place], programs.access_at[place + 1]


@jit
def work_of(programs: Programs, touched: Touched) -> int:
    """How many references the conjunctions of a block have at most."""
    total = 0
    for cluster in programs.plain:
        total += programs.cluster_subs[cluster + 1] - programs.cluster_subs[cluster]
    for t in range(touched.size[0]):
        first, behind = clusters_of(touched.ids[t], programs)
        for k in range(first, behind):
            cluster = programs.access_clusters[k]
            total += programs.cluster_subs[cluster + 1] - programs.cluster_subs[cluster]
    return 2 * total


@jit
def _cluster(
    cluster: int, programs: Programs, comparisons: Comparisons, block: Block, filled: int,
    out: Results,
) -> int:  # fmt: skip
    shape = programs.cluster_shapes[cluster]
    width = programs.ops_at[shape + 1] - programs.ops_at[shape]
    base = programs.refs_at[shape] - programs.subs[shape] * width
    rows, refs, local, live = block.rows, programs.refs, out.local, out.live
    row_of, axes = block.row_of, block.axes
    segments, keys = comparisons.segments, comparisons.keys
    start, end = programs.cluster_subs[cluster], programs.cluster_subs[cluster + 1]
    row = row_of[refs[base + start * width]]
    if row == UNKNOWN:
        predicate = refs[base + start * width]
        row = row_of[predicate] = find_row(segments[predicate], keys[predicate], axes)
    if row == EMPTY:
        return filled
    b0, b1, b2, b3 = rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3]
    b4, b5, b6, b7 = rows[row, 4], rows[row, 5], rows[row, 6], rows[row, 7]
    if b0 | b1 | b2 | b3 | b4 | b5 | b6 | b7 == 0:
        return filled
    for sub in range(start, end):
        at = base + sub * width
        a0, a1, a2, a3, a4, a5, a6, a7 = b0, b1, b2, b3, b4, b5, b6, b7
        for k in range(at + 1, at + width):
            row = row_of[refs[k]]
            if row == UNKNOWN:
                row = row_of[refs[k]] = find_row(segments[refs[k]], keys[refs[k]], axes)
            words = rows[row]
            a0 &= words[0]
            a1 &= words[1]
            a2 &= words[2]
            a3 &= words[3]
            a4 &= words[4]
            a5 &= words[5]
            a6 &= words[6]
            a7 &= words[7]
        live[filled] = sub
        words = local[filled]
        words[0], words[1], words[2], words[3] = a0, a1, a2, a3
        words[4], words[5], words[6], words[7] = a4, a5, a6, a7
        filled += (a0 | a1 | a2 | a3 | a4 | a5 | a6 | a7) != 0
        if filled == CHUNK:
            _consume(programs, filled, out, block.alive)
            filled = 0
    return filled


@jit
def _formulas(
    shape: int, programs: Programs, comparisons: Comparisons, block: Block, filled: int,
    out: Results,
) -> int:  # fmt: skip
    first, last = programs.subs[shape], programs.subs[shape + 1]
    begin, end = programs.ops_at[shape], programs.ops_at[shape + 1]
    stack, local, live = block.stack, out.local, out.live
    rows, row_of = block.rows, block.row_of
    width = 0
    for k in range(begin, end):
        width += programs.ops[k] <= OR_LEAF
    for start in range(first, last, SOME):
        count = min(SOME, last - start)
        at = programs.refs_at[shape] + (start - first) * width
        for k in range(at, at + count * width):
            predicate = programs.refs[k]
            if row_of[predicate] == UNKNOWN:
                segment, key = comparisons.segments[predicate], comparisons.keys[predicate]
                row_of[predicate] = find_row(segment, key, block.axes)
        top = -1
        for k in range(begin, end):
            op = programs.ops[k]
            if op <= OR_LEAF:
                top += op == PUSH
                _leaf(op, programs.refs[at:], width, count, row_of, rows, stack[top])
                at += 1
            else:
                top -= 1
                _combine(op, stack[top], stack[top + 1], count)
        for s in range(count):
            live[filled] = start + s
            some = np.uint64(0)
            for w in range(WORDS):
                local[filled, w] = stack[0, s, w]
                some |= stack[0, s, w]
            filled += some != 0
        if filled >= CHUNK:
            _consume(programs, filled, out, block.alive)
            filled = 0
    return filled


@jit
def _leaf(
    op: int, refs: Array, width: int, count: int, row_of: Array, rows: Array, values: Array
) -> None:
    """Put the rows of predicates in values[*], or combine them with what is there."""
    if op == PUSH:
        for s in range(count):
            row, value = rows[row_of[refs[s * width]]], values[s]
            for w in range(WORDS):
                value[w] = row[w]
    elif op == AND_LEAF:
        for s in range(count):
            row, value = rows[row_of[refs[s * width]]], values[s]
            for w in range(WORDS):
                value[w] &= row[w]
    else:
        for s in range(count):
            row, value = rows[row_of[refs[s * width]]], values[s]
            for w in range(WORDS):
                value[w] |= row[w]


@jit
def _combine(op: int, values: Array, others: Array, count: int) -> None:
    for s in range(count):
        value, other = values[s], others[s]
        if op == AND_TOP:
            for w in range(WORDS):
                value[w] &= other[w]
        else:
            for w in range(WORDS):
                value[w] |= other[w]


@jit
def _consume(programs: Programs, filled: int, out: Results, alive: Array) -> None:
    """Hand over the results local[:filled] of the subs live[:filled]."""
    slots, local, live = programs.slots, out.local, out.live
    if alive.size:
        kept = 0
        for k in range(filled):
            if alive[slots[live[k]]]:
                live[kept] = live[k]
                for w in range(WORDS):
                    local[kept, w] = local[k, w]
                kept += 1
        filled = kept
    if out.counts.size:
        _count(filled, out)
    if out.matrix.size:
        for k in range(filled):
            slot = slots[live[k]]
            for w in range(WORDS):
                out.matrix[slot, w] = local[k, w]
    elif out.slots.size:
        size = out.size[0]
        for k in range(filled):
            for w in range(WORDS):
                out.slots[size], out.words[size] = slots[live[k]], w
                out.bits[size] = local[k, w]
                size += local[k, w] != 0
        out.size[0] = size


@jit
def _count(filled: int, out: Results) -> None:
    """Add the bits of local[:filled] to the counts of their events.

    Bits are added up in planes: bit e of plane p stands for 2**p at event e. Eight rows at a time
    become one carry to plane 3; the planes are poured into the counts before they overflow.
    """
    local, planes = out.local, out.planes
    while filled % 8:
        for w in range(WORDS):
            local[filled, w] = 0
        filled += 1
    for k in range(0, filled, 8):
        for w in range(WORDS):
            ones, carry_a = _add(planes[0, w], local[k, w], local[k + 1, w])
            ones, carry_b = _add(ones, local[k + 2, w], local[k + 3, w])
            twos, fours_a = _add(planes[1, w], carry_a, carry_b)
            ones, carry_a = _add(ones, local[k + 4, w], local[k + 5, w])
            ones, carry_b = _add(ones, local[k + 6, w], local[k + 7, w])
            twos, fours_b = _add(twos, carry_a, carry_b)
            fours, carry = _add(planes[2, w], fours_a, fours_b)
            planes[0, w], planes[1, w], planes[2, w] = ones, twos, fours
            for p in range(3, PLANES):
                rest = planes[p, w] & carry
                planes[p, w] ^= carry
                carry = rest
        out.size[1] += 8
        if out.size[1] > 2**PLANES - 16:
            pour(out)


@jit
def _add(a: int, b: int, c: int) -> tuple[int, int]:
    """The sum and the carry of three words, bit by bit."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@jit
def pour(out: Results) -> None:
    """Pour the planes into the counts."""
    for p in range(PLANES):
        for w in range(WORDS):
            word = out.planes[p, w]
            for b in range(64):
                out.counts[w * 64 + b] += np.int64((word >> np.uint64(b)) & np.uint64(1)) << p
            out.planes[p, w] = 0
    out.size[1] = 0


class Event(NamedTuple):
    """The truth of one event."""

    keys: Array  # int64[attribute]
    present: Array  # uint8[attribute]
    truth: Array  # int8[predicate]; UNKNOWN for a comparison that nobody needed yet
    touched: Touched  # equalities and listed predicates that are true
    complete: bool = False  # nothing is unknown


@jit
def run_one(
    programs: Programs, comparisons: Comparisons, event: Event, alive: Array, stack: Array,
    found: Array,
) -> int:  # fmt: skip
    """Write the slots that are true for one event to found[*]; how many."""
    count = 0
    for cluster in programs.plain:
        count = _one_cluster(cluster, programs, comparisons, event, found, count)
    for t in range(event.touched.size[0]):
        first, behind = clusters_of(event.touched.ids[t], programs)
        for k in range(first, behind):
            cluster = programs.access_clusters[k]
            count = _one_cluster(cluster, programs, comparisons, event, found, count)
    for shape in range(programs.formulas, programs.refs_at.size):
        count = _one_formulas(shape, programs, comparisons, event, stack, found, count)
    if alive.size:
        kept = 0
        for k in range(count):
            found[kept] = found[k]
            kept += int(alive[found[k]])
        count = kept
    return count


@jit
def resolve(comparisons: Comparisons, event: Event) -> None:
    """Find the truth of all comparisons that are unknown."""
    segments, truth = comparisons.segments, event.truth
    for k in range(segments.size):
        if truth[k] == UNKNOWN:
            truth[k] = _truth(segments[k], comparisons.keys[k], event.keys, event.present)


@jit
def _truth(segment: int, constant: int, keys: Array, present: Array) -> int:
    """Whether a comparison is true of an event."""
    a = segment // 6
    return int(present[a] and holds(segment % 6, keys[a], constant))


@jit
def _one_cluster(
    cluster: int, programs: Programs, comparisons: Comparisons, event: Event, found: Array,
    count: int,
) -> int:  # fmt: skip
    shape = programs.cluster_shapes[cluster]
    width = programs.ops_at[shape + 1] - programs.ops_at[shape]
    base = programs.refs_at[shape] - programs.subs[shape] * width
    start, refs = programs.cluster_subs[cluster], programs.refs
    truth, keys, present = event.truth, event.keys, event.present
    segments, constants = comparisons.segments, comparisons.keys
    first = refs[base + start * width]
    if truth[first] == UNKNOWN:
        truth[first] = _truth(segments[first], constants[first], keys, present)
    if truth[first] == 0:
        return count
    end = programs.cluster_subs[cluster + 1]
    if event.complete:
        at = base + start * width
        for sub in range(start, end):
            true = truth[first]
            for k in range(at + 1, at + width):
                true &= truth[refs[k]]
            at += width
            found[count] = programs.slots[sub]
            count += int(true)
        return count
    for sub in range(start, end):
        at = base + sub * width
        true = 1
        for k in range(at + 1, at + width):
            value = truth[refs[k]]
            if value == UNKNOWN:
                value = _truth(segments[refs[k]], constants[refs[k]], keys, present)
                truth[refs[k]] = value
            true &= value
        found[count] = programs.slots[sub]
        count += int(true)
    return count


@jit
def _one_formulas(
    shape: int, programs: Programs, comparisons: Comparisons, event: Event, stack: Array,
    found: Array, count: int,
) -> int:  # fmt: skip
    at, ops = programs.refs_at[shape], programs.ops
    truth, refs = event.truth, programs.refs
    for sub in range(programs.subs[shape], programs.subs[shape + 1]):
        top = -1
        for k in range(programs.ops_at[shape], programs.ops_at[shape + 1]):
            if ops[k] > OR_LEAF:
                top -= 1
                value, is_and = stack[top + 1], ops[k] == AND_TOP
            else:
                value = truth[refs[at]]
                if value == UNKNOWN:
                    segment, key = comparisons.segments[refs[at]], comparisons.keys[refs[at]]
                    value = truth[refs[at]] = _truth(segment, key, event.keys, event.present)
                is_and = ops[k] == AND_LEAF
                at += 1
                if ops[k] == PUSH:
                    top += 1
                    stack[top] = 0  # and then "or"
            stack[top] = stack[top] & value if is_and else stack[top] | value
        found[count] = programs.slots[sub]
        count += int(stack[0])
    return count
