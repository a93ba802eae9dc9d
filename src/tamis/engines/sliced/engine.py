"""Many events at once: each predicate is a row of bits, each filter a few operations on rows.

Subscriptions are compiled into segments that never change. New ones wait until an event comes, and
then become a small segment; small segments are merged into larger ones, so that there are few. What
goes is marked, and left out at the next merge.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from tamis.engines.base import Options
from tamis.engines.sliced.blocks import Blocks
from tamis.engines.sliced.forms import ALWAYS, NEVER, Form, form_of
from tamis.engines.sliced.segment import Item, Segment
from tamis.engines.sliced.selectivity import Selectivity
from tamis.events import Row
from tamis.kernels.handles import Handles
from tamis.language.expression import Expression
from tamis.predicates.batches import Batch, batch_of_rows
from tamis.predicates.index import PredicateIndex
from tamis.semantics import Semantics

Array = np.ndarray[Any, Any]

GROWTH = 4  # a segment is merged with the one before unless that is this many times larger


class SlicedEngine:
    """Compiled segments and what waits to be compiled."""

    name = "sliced"
    options_class: ClassVar[type[Options]] = Options

    def __init__(self, semantics: Semantics, options: Options) -> None:  # noqa: ARG002 - has none
        self._semantics = semantics
        self.predicates = PredicateIndex(semantics.schema, tables=False)
        self._selectivity = Selectivity(self.predicates)
        self._blocks = Blocks(self.predicates, semantics.schema)
        self._young: dict[int, Item] = {}
        self._always: dict[int, bool] = {}  # filters without any predicate, and their answer
        self.segments: list[Segment] = []

    # --- the contract of engines

    def prepare(self, expression: Expression) -> Form:
        return form_of(expression, self._semantics)

    def add(self, handle: int, prepared: Form) -> None:
        if prepared.shape in {ALWAYS, NEVER}:
            self._always[handle] = prepared.shape == ALWAYS
            return
        ids = tuple(map(self.predicates.intern, prepared.predicates))
        self._young[handle] = Item(handle, prepared.shape, ids)

    def remove(self, handle: int) -> None:
        if self._always.pop(handle, None) is not None:
            return
        item = self._young.pop(handle, None)
        if item is None:
            item = self._kill(handle)
        for predicate in item.predicates:
            self.predicates.release(predicate)

    def match(self, row: Row) -> Handles:
        self._settle()
        return self._joined(self._blocks.match_one(row, self.segments))

    def match_many(self, rows: Sequence[Row]) -> Iterator[Handles]:
        for counts, found in self.match_batch(batch_of_rows(rows, self._semantics.schema), rows):
            handles = found.astype(np.int64)
            ends = np.cumsum(counts)
            for count, end in zip(counts.tolist(), ends.tolist(), strict=True):
                yield handles[end - count : end]

    def match_batch(
        self, batch: Batch, rows: Sequence[Row] | None = None
    ) -> Iterator[tuple[Array, Array]]:
        self._settle()
        return self._blocks.match(batch, self.segments, self._joined([]), rows)

    def count_batch(self, batch: Batch, rows: Sequence[Row] | None = None) -> Array:
        self._settle()
        return self._blocks.count(batch, self.segments, rows) + sum(self._always.values())

    def statistics(self) -> dict[str, int]:
        living = sum(map(len, self.segments))
        return {
            "subscriptions": living + len(self._young) + len(self._always),
            "predicates": len(self.predicates),
            "segments": len(self.segments),
        }

    # --- segments

    def _kill(self, handle: int) -> Item:
        for segment in self.segments:
            slot = segment.find(handle)
            if slot >= 0:
                item = segment.item(slot)
                segment.kill(slot)
                if not len(segment):
                    self.segments.remove(segment)
                return item
        raise KeyError(handle)

    def _settle(self) -> None:
        """Compile what waits; merge segments that are too small or half gone.

        What was there stays until the new segment is made.
        """
        stale = any(segment.dead > len(segment) for segment in self.segments)
        if not self._young and not stale:
            return
        items = list(self._young.values())
        kept = [segment for segment in self.segments if segment.dead <= len(segment)]
        for segment in self.segments:
            if segment.dead > len(segment):
                items += segment.living()
        while kept and len(kept[-1]) < GROWTH * len(items):
            items += kept.pop().living()
        if items:
            kept.append(Segment(items, self._selectivity.of))
        self.segments, self._young = kept, {}

    def _joined(self, found: list[Handles]) -> Handles:
        always = sorted(handle for handle, answer in self._always.items() if answer)
        if always:
            found = [*found, np.array(always, np.int64)]
        if len(found) == 1:
            return found[0].astype(np.int64)
        return np.sort(np.concatenate(found)).astype(np.int64) if found else np.empty(0, np.int64)
