"""The buffers in which a block of events is evaluated; each thread has its own."""

from typing import Any

import numpy as np

from tamis.engines.sliced.segment import Segment
from tamis.kernels.predicate_rows import DIGIT, EVENTS, NO_ROW, BlockRows
from tamis.kernels.programs import FEW, PLANES, Output, ProgramBuffers
from tamis.kernels.simd_rows import LANES, WORDS
from tamis.kernels.value_classes import REF_KINDS

Array = np.ndarray[Any, Any]

FEW_TESTED = 4096  # predicates of formulas up to which their rows are copied to one place
COARSE = 1 << 15  # entries of the table from numbers to runs

_NO_COUNTS = np.empty(0, np.int64)
_NO_MATRIX = np.empty((0, WORDS), np.uint64)


def aligned(rows: int) -> Array:
    """uint64[rows, word], not initialised; a row is one cache line."""
    whole = np.empty(rows * WORDS + WORDS, np.uint64)
    skipped = -(whole.ctypes.data // 8) % WORDS
    return whole[skipped : skipped + rows * WORDS].reshape(rows, WORDS)


class BlockBuffers:
    """Arrays for one segment, as large as its largest block may need.

    The system gives memory only where it is written, so generous bounds cost nothing.
    """

    def __init__(self, segment: Segment) -> None:
        predicates, programs = segment.predicates, segment.programs
        most = [
            min(EVENTS, 2 * len(predicates.cuts[a]) + 1) for a in segment.used.tolist()
        ]  # distinct classes of a block
        runs = sum(2 * m + 2 for m in most) + 2 * predicates.listed + len(predicates.cuts) + 2
        shift = max(0, predicates.size.bit_length() - COARSE.bit_length() + 1)
        needs_search = len(segment.steps.targets) > 0 or not len(programs.named)
        rows = 1 + sum(4 * m + 5 for m in most) + predicates.listed
        tested = len(segment.steps.tested)
        row_of = np.zeros(segment.values, np.int32)
        row_of[tested:] = rows + np.arange(segment.values - tested)
        self.block_rows = BlockRows(
            rows=aligned(rows + segment.values - tested),
            run_starts=np.empty(runs + 1, np.int32),
            run_rows=np.empty((runs + 1, REF_KINDS), np.int32),
            coarse=np.empty(((predicates.size >> shift) + 1) * needs_search, np.int32),
            shift=shift,
            there=np.empty(len(predicates.cuts), np.int32),
            listed=np.full(predicates.listed, NO_ROW, np.int32),
            touched=np.empty((sum(most) + predicates.listed, 2), np.int32),
            sizes=np.zeros(4, np.int64),
            names=np.empty(predicates.listed, np.int32),
        )
        clusters = len(programs.access)
        self.program_buffers = ProgramBuffers(
            local=aligned(3 * LANES),
            live=np.empty(3 * LANES, np.int64),
            numbers=np.empty(LANES * segment.widest, np.int32),
            named=aligned(len(programs.named)),
            row_of=row_of,
            values=aligned(segment.values if 0 < tested <= FEW_TESTED else 0),
            carries=aligned(LANES // 8),
            visits=np.empty((len(programs.widths) + clusters, 3), np.int64),
            single=np.empty((clusters, 4), np.int64),
            planned=np.zeros(2, np.int64),
            events=np.empty(EVENTS, np.int64),
            bits=np.zeros(LANES, np.uint64),
            intervals=np.empty((FEW, segment.widest, 3), np.int64),
        )
        self.order = np.empty(EVENTS, np.int64)
        self.spare = np.empty(EVENTS, np.int64)
        self.digits = np.empty((1 << DIGIT) + 1, np.int64)
        self._planes = np.zeros((PLANES, WORDS), np.uint64)
        self._most = WORDS * len(segment.handles) + 1
        self._lists: tuple[Array, Array, Array] | None = None
        self._matrix: Array | None = None
        self._transposed: Array | None = None
        self._subscriptions = len(segment.handles)

    @property
    def transposed(self) -> Array:
        """uint64[event, slot // 64]: a buffer for the transposed matrix."""
        if self._transposed is None:
            self._transposed = np.empty((EVENTS, -(-self._subscriptions // 64)), np.uint64)
        return self._transposed

    def counting(self, counts: Array) -> Output:
        """An output that has only counts[event]."""
        return Output(
            counts, _NO_MATRIX, np.empty(0, np.int32), np.empty(0, np.int8),
            np.empty(0, np.uint64), np.zeros(2, np.int64), self._planes,
        )  # fmt: skip

    def listing(self) -> Output:
        """An output for lists of the words that are not 0."""
        if self._lists is None:
            self._lists = (
                np.empty(self._most, np.int32),
                np.empty(self._most, np.int8),
                np.empty(self._most, np.uint64),
            )
        slots, words, bits = self._lists
        size = np.zeros(2, np.int64)
        return Output(_NO_COUNTS, _NO_MATRIX, slots, words, bits, size, self._planes)

    def filling(self, counts: Array) -> Output:
        """An output for a matrix of bits, and counts[event]."""
        if self._matrix is None:
            self._matrix = aligned(self._subscriptions)
        self._matrix[:] = 0
        return self.counting(counts)._replace(matrix=self._matrix)
