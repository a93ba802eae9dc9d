"""One event against the programs: 64 filters at once, one bit per filter.

Where a column of a chunk compares one attribute in one way, the references that are true form an
interval, found by one comparison of 64 numbers. Where there are few distinct references, the truth
of all is written to a table first. Otherwise each reference is tested. Formulas are run step by
step, one bit per step; a chunk of them is skipped if its gate says enough.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.bits import count_ones, first_one, larger
from tamis.kernels.comparisons import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    EQUAL,
    UNEQUAL,
    first_at_least,
)
from tamis.kernels.event_truth import (
    EventTruth,
    EventValues,
    FlatCuts,
    NumberOwners,
    TouchedPredicates,
    fill_truth_table,
    forget_touched,
    is_true,
    read_classes,
    touch_elements,
    touch_tests,
    touch_values,
)
from tamis.kernels.formula_steps import (
    ENOUGH,
    NO_GATE,
    TRACKS,
    FormulaSteps,
    are_worth_all,
    test_steps,
)
from tamis.kernels.jit import Number, inner, jit
from tamis.kernels.predicate_rows import BlockRows, PredicateNumbering
from tamis.kernels.programs import (
    FORMULAS,
    MIXED,
    Output,
    ProgramBuffers,
    Programs,
    cluster_end,
)
from tamis.kernels.records import record
from tamis.kernels.simd_rows import LANES, WORDS, within_interval
from tamis.kernels.value_classes import ABSENT, MISSING, PRESENT, REF_KINDS, TRUTHS

Array = np.ndarray[Any, Any]

SEARCH = 16  # searching for one cluster takes as long as looking at this many


@record
class OneEventScratch(NamedTuple):
    """Scratch memory of one thread, for single events."""

    intervals: Array  # int64[width, 3]
    truth: Array  # uint8[value]: of the values of formulas, always 0 or 1
    slots: Array  # int32[slot + 1]
    marks: Array  # uint64[slot // 64]: all zero between events


@inner
def _interval(
    kind: Number, value: Number, start: Number, end: Number
) -> tuple[Number, Number, bool]:
    """The interval of the numbers whose `kind` is true of a class, or false if True is returned."""
    if value == MISSING:
        return start, end if kind == ABSENT else start, False
    if kind == EQUAL or kind == UNEQUAL:
        return value >> 1, (value >> 1) + (value & 1), kind == UNEQUAL
    if kind == BELOW:
        return (value + 1) >> 1, end, False
    if kind == AT_MOST:
        return value >> 1, end, False
    if kind == ABOVE:
        return start, value >> 1, False
    if kind == AT_LEAST:
        return start, (value + 1) >> 1, False
    return start, end if kind == PRESENT else start, False


@inner
def _intervals(
    refs: Array, at: Number, count: Number, first: Number,
    width: Number, classes: Array, starts: Array,
    attribute_of: Array, shift: Number, intervals: Array,
) -> None:  # fmt: skip
    """Write to intervals[k] where the references of column k are true, and whether outside it."""
    for k in range(first, width):
        ref = refs[at + k * count]
        a = attribute_of[(ref // REF_KINDS) >> shift]
        low, high, negative = _interval(
            ref % REF_KINDS, np.int64(classes[a]), starts[a], starts[a + 1]
        )
        intervals[k, 0], intervals[k, 1] = low * REF_KINDS, larger(high - low, 0) * REF_KINDS
        intervals[k, 2] = negative


@inner
def _all_within(
    refs: Array, at: Number, count: Number, first: Number, width: Number, intervals: Array
) -> Number:
    """Bit i says whether the columns of a chunk, from `first` on, are all true of member i."""
    found = ~np.uint64(0) >> np.uint64(LANES - count)
    for k in range(first, width):
        inside = within_interval(refs, at + k * count, intervals[k, 0], intervals[k, 1])
        found &= ~inside if intervals[k, 2] else inside
        if found == 0:
            break
    return found


@inner
def _looked_up(refs: Array, at: Number, count: Number, table: Array) -> Number:
    """Bit i says whether refs[at + i] is true, by a table."""
    part, found = refs[at : at + count], np.uint64(0)
    for i in range(part.size):
        found |= np.uint64(table[np.uint32(part[i])]) << np.uint64(i)
    return found


@inner
def _tested(
    left: Number, refs: Array, at: Number, e: Number, classes: Array, starts: Array,
    absent_from: Array, rows: Array, listed: Array, attribute_of: Array, shift: Number,
) -> Number:  # fmt: skip
    """The bits i of `left` for which refs[at + i] is true of event e, each of them tested."""
    found, base = np.uint64(0), starts[starts.size - 1]
    part = refs[at : at + LANES]
    while left != 0:
        i = first_one(left)
        left &= left - np.uint64(1)
        number, kind = part[i] // REF_KINDS, part[i] % REF_KINDS
        if number < base:
            value, here = classes[attribute_of[number >> shift]], 2 * number + 1
            if value == MISSING:
                true = np.int64(kind == ABSENT)
            else:
                true = (TRUTHS >> (4 * kind + (value >= here) + (value > here))) & 1
        else:
            true = np.int64(is_true(
                part[i], e, classes, starts, absent_from, rows, listed, attribute_of, shift
            ))  # fmt: skip
        found |= np.uint64(true) << np.uint64(i)
    return found


@jit
def match_event(
    values: EventValues, elements: Number, passed: Array, used: Array, cuts: FlatCuts,
    programs: Programs, steps: FormulaSteps, numbering: PredicateNumbering, owners: NumberOwners,
    event: EventTruth, scratch: OneEventScratch, touched: TouchedPredicates, handles: Array,
    died: Array, now: Number, are_many: bool, found: Array,
) -> Number:  # fmt: skip
    """Write the handles that one event matches to found[*].

    Returns how many, n, if they are ascending, and ~n, which is negative, if they are not.
    `elements` says how many elements the arrays of the event have, passed[*] are the tests that it
    passes, `are_many` says whether many matches are expected.
    """
    begin = read_classes(values, used, cuts, numbering.starts, event.classes[0])
    touch_values(event.classes[0], numbering, event.listed, touched)
    touch_elements(values, elements, begin, cuts, numbering, event.listed, touched)
    touch_tests(passed, numbering, event.listed, touched)
    if programs.named.size:
        fill_truth_table(programs.named, numbering, event, event.table)
    marks = scratch.marks[: scratch.marks.size if are_many else 0]
    refs = touched.refs[: touched.sizes[0]]
    count = run_one_event(
        programs, steps, numbering, owners, event, refs, scratch, marks, scratch.slots
    )
    forget_touched(event.listed, touched)
    if are_many:
        return living_marked_handles(marks, died, now, handles, found)
    return living_handles(scratch.slots[:count], died, now, handles, found)


@inner
def run_one_event(
    programs: Programs, steps: FormulaSteps, numbering: PredicateNumbering, owners: NumberOwners,
    event: EventTruth, touched: Array, scratch: OneEventScratch, marks: Array, found: Array,
) -> Number:  # fmt: skip
    """Write the slots that event 0 matches to found[*]; returns how many.

    touched[*] are references that are true of it, among them all access predicates that are.
    If marks[slot // 64] is not empty, the bits of the slots are set there instead.
    """
    count, are_known = np.int64(0), False
    for shape in range(programs.widths.size):
        start, end = programs.chunk_bounds[shape, 1], programs.chunk_bounds[shape, 3]
        if programs.widths[shape] == FORMULAS:
            first = programs.chunk_bounds[shape, 0]
            are_known = are_worth_all(steps, start - first, end - first)
            if are_known:
                fill_truth_table(steps.tested, numbering, event, scratch.truth)
            count = _formula_chunks(programs, steps, numbering, owners, event, start, end,
                                    are_known, False, scratch, marks, found, count)  # fmt: skip
        elif start < end:
            count = _chunks(programs, numbering, owners, event, shape, start, end, np.int64(0),
                            scratch, marks, found, count)  # fmt: skip
    access, size = programs.access, programs.access.size
    first_listed = numbering.starts[numbering.starts.size - 1] * REF_KINDS  # a set or a test
    listed_at = first_at_least(access, 0, size, first_listed)
    # If many references are touched, it is faster to look at every cluster of a set or test.
    looked_at = size - listed_at if touched.size * SEARCH > size - listed_at else 0
    for k in range(touched.size + looked_at if size else 0):
        if k >= touched.size:
            place = listed_at + k - touched.size
            after = place + is_true(
                access[place], 0, event.classes[0], numbering.starts, numbering.absent_from,
                event.rows, event.listed, owners.attributes, owners.shift,
            )  # fmt: skip
        elif looked_at and touched[k] >= first_listed:
            continue
        else:
            place = after = first_at_least(access, 0, size, np.int64(touched[k]))
            while after < size and access[after] == touched[k]:
                after += 1
        for cluster in range(place, after):
            first, of = np.int64(programs.access_chunks[cluster]), programs.access_shapes[cluster]
            end = cluster_end(first, np.int64(of), programs, steps)
            if programs.widths[of] == FORMULAS:
                count = _formula_chunks(programs, steps, numbering, owners, event, first, end,
                                        are_known, True, scratch, marks, found, count)  # fmt: skip
            else:
                count = _chunks(programs, numbering, owners, event, np.int64(of), first, end,
                                np.int64(1), scratch, marks, found, count)  # fmt: skip
    return count


@inner
def _chunks(
    programs: Programs, numbering: PredicateNumbering, owners: NumberOwners, event: EventTruth,
    shape: Number, first: Number, end: Number, skip: Number, scratch: OneEventScratch,
    marks: Array, found: Array, count: Number,
) -> Number:  # fmt: skip
    """Append the true members of some chunks; their first `skip` columns are known to be true."""
    refs, chunk_subs, slots = programs.refs, programs.chunk_subs, programs.slots
    signatures, shared = programs.signatures, programs.shared
    width = np.int64(programs.widths[shape])
    base = programs.refs_at[shape] - programs.subs[shape] * width
    classes, table, rows, listed = event.classes[0], event.table, event.rows, event.listed
    starts, absent_from = numbering.starts, numbering.absent_from
    attribute_of, shift = owners.attributes, owners.shift
    intervals = scratch.intervals
    signature = MIXED
    for chunk in range(first, end):
        sub = np.int64(chunk_subs[chunk])
        size = chunk_subs[chunk + 1] - sub
        at = base + sub * width
        skipped, are_true = skip, True
        while are_true and skipped < shared[chunk]:
            ref = refs[at + skipped * size]
            if table.size:
                are_true = table[ref] != 0
            else:
                are_true = is_true(
                    ref, 0, classes, starts, absent_from, rows, listed, attribute_of, shift
                )  # fmt: skip
            skipped += 1
        if not are_true:
            continue
        left = ~np.uint64(0) >> np.uint64(LANES - size)
        if signatures[chunk] != MIXED and table.size == 0:
            if signatures[chunk] != signature:
                signature = signatures[chunk]
                _intervals(
                    refs, at, size, 0, width, classes, starts, attribute_of, shift, intervals
                )
            left = _all_within(refs, at, size, skipped, width, intervals)
        else:
            for k in range(skipped, width):
                if table.size:
                    left &= _looked_up(refs, at + k * size, size, table)
                else:
                    left = _tested(
                        left, refs, at + k * size, 0, classes, starts, absent_from, rows, listed,
                        attribute_of, shift,
                    )  # fmt: skip
                if left == 0:
                    break
        own = slots[sub:]
        if marks.size:
            while left != 0:
                slot = own[first_one(left)]
                marks[slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
                left &= left - np.uint64(1)
            continue
        while left != 0:
            found[count] = own[first_one(left)]
            count += 1
            left &= left - np.uint64(1)
    return count


@inner
def _formula_chunks(
    programs: Programs, steps: FormulaSteps, numbering: PredicateNumbering, owners: NumberOwners,
    event: EventTruth, first: Number, end: Number, are_known: bool, is_open: bool,
    scratch: OneEventScratch, marks: Array, found: Array, count: Number,
) -> Number:  # fmt: skip
    """Append the true members of some chunks of formulas.

    `are_known` says whether the truth of all predicates is in scratch.truth, `is_open` whether the
    gates are known to be true.
    """
    truth, chunk_subs, slots = scratch.truth, programs.chunk_subs, programs.slots
    results = truth[steps.tested.size :]
    start = programs.chunk_bounds[programs.widths.size - 1, 0]
    for chunk in range(first, end):
        gate, is_everyone = steps.gates[chunk - start], np.uint8(0)
        if not are_known:
            _test_chunk(steps, chunk - start, numbering, owners, event, truth)
        if gate != NO_GATE and not is_open:
            if gate & 1 == ENOUGH:
                is_everyone = truth[gate >> 1]
            elif truth[gate >> 1] == 0:
                continue
        if not is_everyone:
            test_steps(steps, chunk - start, truth)
        sub = np.int64(chunk_subs[chunk])
        size = chunk_subs[chunk + 1] - sub
        own = slots[sub:]
        if marks.size:
            for i in range(size):
                bit = np.uint64(results[i] | is_everyone) << np.uint64(own[i] & 63)
                marks[own[i] >> 6] |= bit
            continue
        for i in range(size):
            found[count] = own[i]
            count += results[i] | is_everyone
    return count


@inner
def _test_chunk(
    steps: FormulaSteps, chunk: Number, numbering: PredicateNumbering, owners: NumberOwners,
    event: EventTruth, truth: Array,
) -> None:  # fmt: skip
    """Write the truth of the predicates of one chunk to truth[value]."""
    tested, classes = steps.tested, event.classes[0]
    for k in range(steps.steps_at[TRACKS * chunk], steps.steps_at[TRACKS * (chunk + 1)]):
        for place in range(3):
            value = np.int64(steps.operands[k, place])
            if value < tested.size:
                truth[value] = is_true(
                    tested[value], 0, classes, numbering.starts, numbering.absent_from,
                    event.rows, event.listed, owners.attributes, owners.shift,
                )  # fmt: skip


@inner
def living_handles(slots: Array, died: Array, now: Number, handles: Array, found: Array) -> Number:
    """Write the handles of the slots that were not removed by `now` to found[*].

    Returns how many, n, if they are ascending, else ~n.
    """
    count, last, is_rising = np.int64(0), np.int64(-1), True
    for k in range(slots.size):
        handle = np.int64(handles[slots[k]])
        found[count] = handle
        if died.size == 0 or died[slots[k]] > now:
            if handle < last:
                is_rising = False
            last = handle
            count += 1
    return count if is_rising else ~count


@inner
def living_marked_handles(
    marks: Array, died: Array, now: Number, handles: Array, found: Array
) -> Number:
    """As `living_handles`, for the slots in marks[slot // 64], which become zero."""
    count = np.int64(0)
    for w in range(marks.size):
        left, own, gone = marks[w], handles[64 * w :], died[64 * w :]
        marks[w] = 0
        while left != 0:
            k = first_one(left)
            found[count] = own[k]
            count += died.size == 0 or gone[k] > now
            left &= left - np.uint64(1)
    return count


@jit
def run_clusters(
    programs: Programs, numbering: PredicateNumbering, owners: NumberOwners, event: EventTruth,
    block: BlockRows, buffers: ProgramBuffers, died: Array, now: Number, out: Output,
) -> None:  # fmt: skip
    """Run the clusters that few events of a block reach, event by event."""
    refs, chunk_subs, slots = programs.refs, programs.chunk_subs, programs.slots
    signatures, rows, listed = programs.signatures, event.rows, event.listed
    starts, absent_from = numbering.starts, numbering.absent_from
    attribute_of, shift = owners.attributes, owners.shift
    events, bits, intervals = buffers.events, buffers.bits, buffers.intervals
    for s in range(buffers.planned[1]):
        shape = buffers.single[s, 2]
        count = _events_of(block.rows[buffers.single[s, 3]], events)
        width = np.int64(programs.widths[shape])
        base = programs.refs_at[shape] - programs.subs[shape] * width
        signature = MIXED
        for chunk in range(buffers.single[s, 0], buffers.single[s, 1]):
            sub = np.int64(chunk_subs[chunk])
            size = chunk_subs[chunk + 1] - sub
            at = base + sub * width
            alike = signatures[chunk] != MIXED
            if alike and signatures[chunk] != signature:
                signature = signatures[chunk]
                for k in range(count):
                    _intervals(
                        refs, at, size, 1, width, event.classes[events[k]], starts, attribute_of,
                        shift, intervals[k],
                    )  # fmt: skip
            for k in range(count):
                e = events[k]
                if alike:
                    left = _all_within(refs, at, size, 1, width, intervals[k])
                else:
                    left = ~np.uint64(0) >> np.uint64(LANES - size)
                    for column in range(1, width):
                        left = _tested(
                            left, refs, at + column * size, e, event.classes[e], starts,
                            absent_from, rows, listed, attribute_of, shift,
                        )  # fmt: skip
                if died.size and left != 0:
                    left = _living_members(left, slots[sub:], died, now)
                if out.counts.size:
                    out.counts[e] += count_ones(left)
                while left != 0:
                    bits[first_one(left)] |= np.uint64(1) << np.uint64(e & 63)
                    left &= left - np.uint64(1)
                if k + 1 == count or events[k + 1] >> 6 != e >> 6:
                    _put_words(bits, size, slots[sub:], e >> 6, out)


@inner
def _events_of(row: Array, events: Array) -> Number:
    """Write the events of a row to events[*]; returns how many."""
    count = 0
    for w in range(WORDS):
        left = row[w]
        while left != 0:
            events[count] = 64 * w + first_one(left)
            count += 1
            left &= left - np.uint64(1)
    return count


@inner
def _living_members(members: Number, slots: Array, died: Array, now: Number) -> Number:
    """The members of a chunk that were not removed by `now`."""
    left = members
    while left != 0:
        k = first_one(left)
        if died[slots[k]] <= now:
            members &= ~(np.uint64(1) << np.uint64(k))
        left &= left - np.uint64(1)
    return members


@inner
def _put_words(bits: Array, size: Number, slots: Array, word: Number, out: Output) -> None:
    """Hand over the matches of 64 events, member by member, and clear the bits."""
    if out.matrix.size:
        for i in range(size):
            out.matrix[slots[i], word] |= bits[i]
    elif out.slots.size:
        place = out.size[0]
        for i in range(size):
            out.slots[place], out.words[place], out.bits[place] = slots[i], word, bits[i]
            place += bits[i] != 0
        out.size[0] = place
    for i in range(size):
        bits[i] = 0
