"""From a batch of events to matches, 512 events at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tamis.engines.sliced.segment import Segment
from tamis.events import Row
from tamis.kernels.comparisons import EQUAL
from tamis.kernels.emission import (
    count_listed,
    sort_unless_rising,
    write_listed,
    write_matrix,
)
from tamis.kernels.handles import SPARSE, ascending
from tamis.kernels.programs import (
    CHUNK,
    PLANES,
    SOME,
    UNKNOWN,
    Block,
    Comparisons,
    Event,
    Results,
    resolve,
    run,
    run_one,
    work_of,
)  # fmt: skip
from tamis.kernels.slices import (
    EMPTY,
    EVENTS,
    MOST_ROWS,
    WORDS,
    Axes,
    Touched,
    comparison_rows,
    equal_predicates,
    equal_rows,
    listed_rows,
    ordered_rows,
)  # fmt: skip
from tamis.predicates.batches import Batch
from tamis.predicates.classes import Classes
from tamis.predicates.index import PredicateIndex
from tamis.schema import Schema

Array = np.ndarray[Any, Any]

DENSE = 2  # words that are not 0, a subscription, from which a matrix is cheaper than a list
SEARCH = 8  # finding one row by bisection costs as much as passing so many in order

_NONE = np.empty(0, np.int64)
_NO_STACK = np.empty((0, SOME, WORDS), np.uint64)


class Blocks:
    """Scratch arrays, and the way of a block through them."""

    def __init__(self, predicates: PredicateIndex, schema: Schema) -> None:
        self._predicates = predicates
        self._classes = Classes(predicates, schema)
        self._changes = -1  # of the predicates when they were last looked at
        self._comparisons = Comparisons(np.empty(0, np.int32), _NONE)
        self._unknown: Array = np.empty(0, np.int32)  # row_of before anything is known
        self._ordered = 0  # comparisons other than equalities
        self._used: Array = _NONE  # attributes with comparisons

    def match(
        self, batch: Batch, segments: Sequence[Segment], always: Array, rows: Sequence[Row] | None
    ) -> Iterator[tuple[Array, Array]]:
        """For each block counts[event], and the handles of its events one behind the other."""
        for size, block in self._blocks(batch, segments, rows):
            parts = [self._segment(segment, block, size) for segment in segments]
            if len(always):
                every = np.full(size, len(always), np.int64)
                parts.append((every, np.tile(always, size)))
            yield _merged(parts, size)

    def count(self, batch: Batch, segments: Sequence[Segment], rows: Sequence[Row] | None) -> Array:
        """counts[event] alone."""
        counts = [np.zeros(0, np.int64)]
        for size, block in self._blocks(batch, segments, rows):
            total = np.zeros(EVENTS, np.int64)
            for segment in segments:
                self._run(segment, block, self._results(counts=total))
            counts.append(total[:size])
        return np.concatenate(counts)

    def match_one(self, row: Row, segments: Sequence[Segment]) -> list[Array]:
        """The handles of one event, segment by segment."""
        self._look_at_predicates()
        predicates = self._predicates
        keys, present = predicates.keys_of(row)
        truth = self._unknown.astype(np.int8)
        lists = predicates.comparison_lists()
        found = [predicates.listed_ids(n, row[n]) for n in predicates.listed]
        if predicates.has_others:
            found.append(predicates.other_ids(row))
        found.append(equal_predicates(keys, present, lists, self._used))
        ids = np.concatenate(found)
        truth[ids] = 1
        complete = self._ordered < sum(map(len, segments))
        event = Event(keys, present, truth, Touched(ids, np.array([len(ids)])), complete)
        if complete:
            resolve(self._comparisons, event)
        return [self._one(segment, event) for segment in segments]

    def _one(self, segment: Segment, event: Event) -> Array:
        found = np.empty(len(segment.handles) + 1, np.int32)
        stack = np.empty(segment.depth + 1, np.int8)
        count = run_one(segment.programs, self._comparisons, event, segment.alive, stack, found)
        marks = np.zeros(segment.marks if count * SPARSE > segment.marks else 0, np.uint8)
        return ascending(found[:count], segment.handles, marks)

    # --- truth rows

    def _look_at_predicates(self) -> None:
        """What is known of the predicates themselves; made anew when they have changed."""
        if self._changes == self._predicates.changes:
            return
        self._changes = self._predicates.changes
        segments, keys = self._predicates.comparison_arrays()
        self._comparisons = Comparisons(segments, keys)
        ordered = (segments >= 0) & (segments % 6 != EQUAL)
        self._ordered = int(ordered.sum())
        self._unknown = np.where(ordered, UNKNOWN, EMPTY).astype(np.int32)
        self._used = np.unique(segments[segments >= 0] // 6).astype(np.int64)

    def _blocks(
        self, batch: Batch, segments: Sequence[Segment], rows: Sequence[Row] | None
    ) -> Iterator[tuple[int, Block]]:
        """The size of each block and its truth."""
        self._look_at_predicates()
        lists, used = self._predicates.comparison_lists(), self._used
        listed = self._classes.of(batch, rows)
        most = 1 + len(used) * MOST_ROWS + self._predicates.size
        truth = np.empty((most, WORDS), np.uint64)  # of this call: several threads may match
        truth[EMPTY] = 0
        columns = batch.columns
        shape = len(columns), batch.size
        keys = np.array([column.keys for column in columns], np.int64).reshape(shape)
        present = np.array([column.present for column in columns], np.uint8).reshape(shape)
        axes = Axes(
            np.zeros(len(columns), np.int64), np.zeros(len(columns), np.int64),
            np.zeros((len(columns), EVENTS), np.int64),
        )  # fmt: skip
        touched = Touched(np.empty(self._predicates.size, np.int32), np.zeros(1, np.int64))
        for start in range(0, batch.size, EVENTS):
            end = min(start + EVENTS, batch.size)
            row_of = self._unknown.copy()
            touched.size[0] = 0
            free = comparison_rows(keys[:, start:end], present[:, start:end], used, axes, truth)
            equal_rows(used, lists, axes, row_of, touched)
            for codes, *classes in listed:
                free = listed_rows(
                    codes[start:end], (classes[0], classes[1]), truth, row_of, free, touched
                )
            work = sum(work_of(segment.programs, touched) for segment in segments)
            if work * SEARCH > self._ordered:
                ordered_rows(used, lists, axes, row_of)
            yield end - start, Block(truth, row_of, axes, touched, _NONE, _NO_STACK)

    # --- segments

    def _segment(self, segment: Segment, block: Block, size: int) -> tuple[Array, Array]:
        counts = np.zeros(EVENTS, np.int64)
        if segment.is_dense:
            matrix = np.zeros((len(segment.handles), WORDS), np.uint64)
            self._run(segment, block, self._results(counts=counts, matrix=matrix))
            places = _starts(counts)
            found = np.empty(int(places[-1]), segment.handles.dtype)
            write_matrix(matrix, segment.handles, places[:-1].copy(), found)
            return counts[:size], found
        out = self._results(most=WORDS * len(segment.handles) + 1)
        self._run(segment, block, out)
        listed = int(out.size[0])
        segment.is_dense = listed > DENSE * len(segment.handles)
        slots, words, bits = out.slots[:listed], out.words[:listed], out.bits[:listed]
        count_listed(words, bits, listed, counts)
        places = _starts(counts)
        found = np.empty(int(places[-1]), segment.handles.dtype)
        write_listed(slots, words, bits, segment.handles, places[:-1].copy(), found)
        sort_unless_rising(found, places)
        return counts[:size], found

    def _run(self, segment: Segment, block: Block, out: Results) -> None:
        stack = np.empty((segment.depth + 1, SOME, WORDS), np.uint64)
        whole = block._replace(alive=segment.alive, stack=stack)
        run(segment.programs, self._comparisons, whole, out)

    def _results(
        self, *, counts: Array | None = None, matrix: Array | None = None, most: int = 0
    ) -> Results:
        return Results(
            counts=_NONE if counts is None else counts,
            matrix=np.empty((0, WORDS), np.uint64) if matrix is None else matrix,
            slots=np.empty(most, np.int32),
            words=np.empty(most, np.int8),
            bits=np.empty(most, np.uint64),
            size=np.zeros(2, np.int64),
            planes=np.zeros((PLANES, WORDS), np.uint64),
            local=np.empty((CHUNK + SOME, WORDS), np.uint64),
            live=np.empty(CHUNK + SOME, np.int64),
        )


def _starts(counts: Array) -> Array:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _merged(parts: list[tuple[Array, Array]], size: int) -> tuple[Array, Array]:
    """The matches of several segments, event by event, in ascending order."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.zeros(size, np.int64), np.zeros(0, np.int64)
    events = np.concatenate([np.repeat(np.arange(size), counts) for counts, _ in parts])
    handles = np.concatenate([found for _, found in parts])
    order = np.lexsort((handles, events))
    total: Array = sum((counts for counts, _ in parts), np.zeros(size, np.int64))
    return total, handles[order]
