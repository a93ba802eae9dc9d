"""Finds the matches of one segment, 512 events at a time or a single event."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from tamis.engines.matches import Piece
from tamis.engines.sliced.attribute_tests import FailedTests, PassedTests
from tamis.engines.sliced.buffers import BlockBuffers
from tamis.engines.sliced.element_sets import ElementSets
from tamis.engines.sliced.event_values import EventBuffers, EventWriter
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_tests import SegmentTests
from tamis.engines.sliced.value_classes import classes_of
from tamis.events.event_reader import Row
from tamis.kernels.event_truth import EventTruth
from tamis.kernels.handles import SPARSE
from tamis.kernels.match_bits import (
    DIGITS,
    count_listed,
    sort_listed,
    sort_unless_rising,
    transpose_matrix,
    write_listed,
    write_transposed,
)
from tamis.kernels.one_event import match_event, run_clusters
from tamis.kernels.predicate_rows import (
    EVENTS,
    finish_block,
    make_rows,
    rows_of_failed_sets,
    rows_of_failed_tests,
    rows_of_tests,
)
from tamis.kernels.programs import Output, add_planes, plan_visits, run_programs
from tamis.memory import RESULTS
from tamis.predicates.computed_values import ComputedAttributes
from tamis.predicates.event_batches import Batch
from tamis.predicates.keys import Keys
from tamis.schema import Schema

Array = np.ndarray[Any, Any]

WINDOW = 16  # blocks whose events are sorted by an attribute together
DENSE = 12  # matches per subscription in a block, from which a matrix is cheaper than lists

MOST_MATCHES = 1 << 26  # of a window: 256 MB
PIECE = 1 << 23  # matches of a piece
FEWEST = 64  # events of a window
FEW_SORTED = 8  # if more than one in this many events had to be sorted, all words are sorted first

_NO_TABLE = np.empty(0, np.uint8)
_NO_TESTS = np.empty(0, np.int32)


class EventWindow:
    """Some events of a batch as classes, perhaps in another order."""

    def __init__(
        self, classes: Array, passed: Sequence[PassedTests | FailedTests], order: Array | None
    ) -> None:
        self.size = classes.shape[1]
        self.order = order
        self.classes = classes if order is None else np.ascontiguousarray(classes[:, order])
        self.passed = [
            part if order is None else part._replace(codes=part.codes[order]) for part in passed
        ]

    def original(self, start: int, end: int) -> Array | slice:
        """The places in the window of the events that are now from start to end."""
        return slice(start, end) if self.order is None else self.order[start:end]


class SegmentEvaluator:
    """Evaluates one segment."""

    def __init__(self, segment: Segment, schema: Schema, keys: Keys) -> None:
        self.segment = segment
        self._schema = schema
        self._keys = keys
        self.terms = len(segment.predicates.cuts) - len(schema)  # how many
        self._buffers: list[BlockBuffers] = []  # those not in use
        self._event_buffers: list[EventBuffers] = []  # those not in use
        self._last = 0  # matches of the last single event
        self._is_dense = False  # whether a block matches most subscriptions several times
        self._is_mixed = False  # whether the matches of many events are found out of order
        self._rate = -1.0  # matches per event, of the last events; unknown at first
        self._spent = (0, 0.0)  # number of the last events of a batch, and seconds for them
        self._prepared = (0, 0.0)  # the same for preparing a batch

    @cached_property
    def _computed(self) -> ComputedAttributes:
        predicates = self.segment.predicates
        return ComputedAttributes(
            self._schema, predicates.terms, frozenset(predicates.test_attributes)
        )

    @cached_property
    def _writer(self) -> EventWriter:
        computed = self._computed
        return EventWriter(self.segment.used, self._all_keys, computed.elements, computed.keyed)

    @cached_property
    def _all_keys(self) -> Keys:
        return Keys(self._computed.schema) if self.terms else self._keys

    @cached_property
    def _elements(self) -> ElementSets | None:
        """The sets of elements, None if there are none."""
        if not self._computed.elements:
            return None
        segment = self.segment
        return ElementSets(
            segment.predicates, segment.numbering, self._all_keys, self._computed.elements
        )

    @cached_property
    def _tests(self) -> SegmentTests:
        return SegmentTests(self.segment.predicates, self._computed)

    def prepare(self, batch: Batch) -> tuple[Array, list[PassedTests | FailedTests]]:
        """The classes of a batch's events and the tests that they pass."""
        segment, began, size = self.segment, perf_counter(), batch.size
        if self.terms:
            batch = self._computed.batch(batch)
        classes = classes_of(batch, segment.predicates, segment.used)
        passed = self._tests.of_batch(batch)
        if self.terms and self._elements is not None:
            passed += self._elements.of_batch(batch)
        self._prepared = size, perf_counter() - began
        return classes, passed

    def window(
        self, prepared: tuple[Array, list[PassedTests | FailedTests]], start: int, end: int
    ) -> EventWindow:
        """The events from start to end; sorted if most filters are found by one attribute."""
        classes, passed = prepared
        part = classes[:, start:end]
        by = self.segment.sorted_by
        order = None
        if by is not None and end - start > EVENTS and not self._is_dense:
            order = np.argsort(part[by], kind="stable")
        codes = [one._replace(codes=one.codes[start:end]) for one in passed]
        return EventWindow(np.ascontiguousarray(part), codes, order)

    def count(self, window: EventWindow, now: int) -> Array:
        """counts[event]."""
        began = perf_counter()
        found = np.zeros(window.size, np.int64)
        buffers = self._take_buffers()
        for start in range(0, window.size, EVENTS):
            end = min(start + EVENTS, window.size)
            counts = np.zeros(EVENTS, np.int64)
            self._block(window, start, end, now, buffers, buffers.counting(counts))
            found[window.original(start, end)] = counts[: end - start]
        self._buffers.append(buffers)
        self._note(window.size, began)
        return found

    def match(self, window: EventWindow, now: int) -> list[Piece]:
        """The matches in pieces: counts[event], and all handles, ascending for each event."""
        began, buffers = perf_counter(), self._take_buffers()
        if self._is_dense and window.order is None:
            found = self._matrix(window, now, buffers)
        else:
            found = [self._lists(window, now, buffers)]
        self._buffers.append(buffers)
        self._note(window.size, began)
        self._remember(sum(len(handles) for _, handles in found), window.size)
        return found

    def look(self, prepared: tuple[Array, list[PassedTests | FailedTests]], now: int) -> None:
        """Count the matches of the first events, unless the rate is known already."""
        size = min(prepared[0].shape[1], EVENTS)
        if self._rate < 0 and size:
            self._remember(int(self.count(self.window(prepared, 0, size), now).sum()), size)

    def measured(self) -> float | None:
        """Seconds per event in the last batch, from columns to matches; None before the first."""
        events, seconds = self._spent
        prepared, before = self._prepared
        return seconds / events + before / max(prepared, 1) if events else None

    def term_seconds(self) -> Array | None:
        """Seconds per event for each term in the last batch, None before the first."""
        events, seconds = self._computed.spent
        return seconds / events if events else None

    def match_one(self, row: Row, now: int) -> Array:
        """The handles of one event, ascending."""
        segment, handles, died = self.segment, self.segment.handles, self.segment.died
        try:
            buffers = self._event_buffers.pop()
        except IndexError:
            buffers = EventBuffers(segment)
        plain, values, passed = row, buffers.values, _NO_TESTS
        if self.terms:
            row = self._computed.row(plain)
        elements = self._writer.write(row, values)
        if self.terms and self._computed.keyed:
            self._computed.write_keys(plain, values.values.numbers, values.values.kinds)
        if segment.predicates.test_attributes:
            passed = self._tests.of_row(row)
        are_many = self._last * SPARSE > len(handles)
        found = np.empty(len(handles), np.int64) if are_many else buffers.found
        size = match_event(
            values.packed, elements, passed, *segment.packed, buffers.event, buffers.scratch,
            buffers.touched, handles, died, now, are_many, found,
        )  # fmt: skip
        count = size if size >= 0 else ~size
        found = found[:count] if are_many else found[:count].copy()
        if not values.are_large:
            self._event_buffers.append(buffers)
        if size < 0:
            found.sort()
        self._last = count
        return found

    # --- inside

    def _remember(self, matches: int, events: int) -> None:
        self._rate = matches / max(events, 1)
        self._is_dense = self._rate * EVENTS > DENSE * len(self.segment.handles)

    def _note(self, events: int, began: float) -> None:
        self._spent = events, perf_counter() - began

    def _take_buffers(self) -> BlockBuffers:
        try:
            return self._buffers.pop()
        except IndexError:
            return BlockBuffers(self.segment)

    def _block(
        self,
        window: EventWindow,
        start: int,
        end: int,
        now: int,
        buffers: BlockBuffers,
        out: Output,
    ) -> None:
        segment, block, scratch = self.segment, buffers.block_rows, buffers.program_buffers
        numbering, programs, steps = segment.numbering, segment.programs, segment.steps
        make_rows(
            window.classes, start, end, segment.used, numbering, block, buffers.order,
            buffers.spare, buffers.digits,
        )  # fmt: skip
        for part in window.passed:
            codes = part.codes[start:end]
            if isinstance(part, FailedTests):
                rows_of_failed_tests(codes, part.starts, part.numbers, part.tests, block)
            elif part.failed_of is None:
                rows_of_tests(codes, part.starts, part.numbers, block)
            else:
                rows_of_failed_sets(codes, part.starts, part.numbers, part.failed_of, block)
        finish_block(numbering, block)
        plan_visits(programs, steps, block, scratch)
        run_programs(programs, steps, block, scratch, segment.died, now, out)
        if scratch.planned[1]:
            classes = np.ascontiguousarray(window.classes[:, start:end].T)
            event = EventTruth(classes, _NO_TABLE, block.rows, block.listed)
            run_clusters(
                programs, numbering, segment.predicates.number_owners, event, block, scratch,
                segment.died, now, out,
            )  # fmt: skip
        if len(out.counts):
            add_planes(out)

    def _lists(self, window: EventWindow, now: int, buffers: BlockBuffers) -> tuple[Array, Array]:
        handles, is_mixed = self.segment.handles, self._is_mixed  # other threads may change it
        total = np.zeros(window.size, np.int64)
        kept = []
        for start in range(0, window.size, EVENTS):
            end = min(start + EVENTS, window.size)
            out = buffers.listing()
            self._block(window, start, end, now, buffers, out)
            size = int(out.size[0])
            counts = np.zeros(EVENTS, np.int64)
            count_listed(out.words, out.bits, size, counts)
            total[window.original(start, end)] = counts[: end - start]
            is_last = end == window.size
            parts = out.slots[:size], out.words[:size], out.bits[:size]
            if is_mixed:
                sort_listed(*parts, len(handles))
            kept.append(parts if is_last else tuple(map(_copied, parts)))
        starts = _starts(total)
        found = RESULTS.take(int(starts[-1]), handles.dtype)
        for number, (slots, words, bits) in enumerate(kept):
            first = number * EVENTS
            places = np.zeros(EVENTS, np.int64)
            mine = starts[:-1][window.original(first, min(first + EVENTS, window.size))]
            places[: len(mine)] = mine
            write_listed(slots, words, bits, handles, places, found)
        # Sorting words of bits is cheaper than sorting matches, but usually neither is needed.
        if not is_mixed:
            self._is_mixed = sort_unless_rising(found, starts) * FEW_SORTED > window.size
        return total, found

    def _matrix(self, window: EventWindow, now: int, buffers: BlockBuffers) -> list[Piece]:
        segment = self.segment
        first = int(segment.handles[0]) if segment.is_gapless else 0
        pieces = []
        for start in range(0, window.size, EVENTS):
            end = min(start + EVENTS, window.size)
            counts = np.zeros(EVENTS, np.int64)
            out = buffers.filling(counts)
            self._block(window, start, end, now, buffers, out)
            transpose_matrix(out.matrix, buffers.transposed)
            for begin, after in parts_of(counts[: end - start], PIECE):
                starts = _starts(counts[begin:after])
                found = RESULTS.take(int(starts[-1]), np.int32)
                write_transposed(buffers.transposed, begin, first, starts, DIGITS, found)
                if not segment.is_gapless:
                    handles = RESULTS.take(len(found), segment.handles.dtype)
                    found = segment.handles.take(found, out=handles, mode="clip")
                pieces.append((counts[begin:after], found))
        return pieces

    @property
    def at_once(self) -> int:
        """How many events make a window; all matches of a window are in memory together."""
        many = self.segment.sorted_by is not None and not self._is_dense
        most = EVENTS * WINDOW if many else EVENTS
        return max(FEWEST, min(most, int(MOST_MATCHES / max(self._rate, 1.0))) // 64 * 64)


def parts_of(counts: Array, most: int) -> Iterator[tuple[int, int]]:
    """Stretches of events that have at most `most` matches together, or are a single event."""
    begin = 0
    ends = np.cumsum(counts)
    while begin < len(counts):
        before = int(ends[begin - 1]) if begin else 0
        after = int(np.searchsorted(ends, before + most, side="right"))
        after = max(after, begin + 1)
        yield begin, after
        begin = after


def _copied(part: Array) -> Array:
    taken = RESULTS.take(len(part), part.dtype)
    taken[:] = part
    return taken


def _starts(counts: Array) -> Array:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts
