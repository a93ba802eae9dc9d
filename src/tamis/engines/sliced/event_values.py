"""The values of single events in memory, as kernels take them.

An event is written to buffers that no other thread uses meanwhile. They are used again for other
events, unless they had to grow too much for a large one. Most numbers are written by one call.
"""

from collections.abc import Container
from struct import Struct
from typing import Any

import numpy as np

from tamis.engines.sliced.segment import Segment
from tamis.events.event_reader import Row
from tamis.kernels.event_truth import (
    ARRAY,
    DOUBLE,
    KEY,
    NO_VALUE,
    TEXT,
    EventTruth,
    EventValues,
    TouchedPredicates,
)
from tamis.kernels.one_event import OneEventScratch
from tamis.kernels.predicate_rows import NO_ROW
from tamis.kernels.records import packed
from tamis.predicates.keys import Keys, getter

Array = np.ndarray[Any, Any]

ROOM_FOR_TEXT = 256  # bytes of text for which there is room at first
ROOM_FOR_ELEMENTS = 16  # the same for elements of arrays
MOST_KEPT = 1_000_000  # bytes of texts and elements in buffers that are used again

_TRUE_ROWS = np.array([[0], [1]], np.uint64)  # the rows of a single event: false and true


class ValueBuffers:
    """Memory for the values of one event at a time."""

    def __init__(self, attributes: int) -> None:
        self._kinds = np.zeros(attributes, np.uint8)
        self._numbers = np.zeros(attributes, np.int64)
        self._elements = np.empty((ROOM_FOR_ELEMENTS, 2), np.int64)
        self._texts = np.empty(ROOM_FOR_TEXT, np.uint8)
        self.is_partial = True  # whether one of the numbers that are written together was missing
        self._pack()

    def _pack(self) -> None:
        self.values = EventValues(self._kinds, self._numbers, self._elements, self._texts)
        self.packed = packed(self.values)
        # Views of the arrays, to which Python writes faster.
        self.kinds, self.numbers = self._kinds.data, self._numbers.data
        self.texts = self._texts.data

    @property
    def are_large(self) -> bool:
        """Whether an event has needed more room than most will."""
        return len(self._texts) + self._elements.nbytes > MOST_KEPT

    def put_text(self, begin: int, value: str) -> int:
        """Write a text after others, which end at `begin`; returns where it ends."""
        data = value.encode()
        end = begin + len(data)
        if end > len(self._texts):
            self._texts = np.concatenate([self._texts[:begin], np.empty(2 * end, np.uint8)])
            self._pack()
        self.texts[begin:end] = data
        return end

    def put_elements(self, elements: list[tuple[int, int]]) -> None:
        """Write the elements of arrays, as `EventValues.elements` has them."""
        if len(elements) > len(self._elements):
            self._elements = np.empty((2 * len(elements), 2), np.int64)
            self._pack()
        self._elements[: len(elements)] = elements


class EventWriter:
    """Writes the values of the used attributes to buffers.

    `elements` are the attributes that stand for the elements of arrays. Attributes that are `keyed`
    are left out: others write their values afterwards.
    """

    def __init__(
        self, used: Array, keys: Keys, elements: Container[int] = (), keyed: Container[int] = ()
    ) -> None:
        attributes = keys.schema.attributes
        plain = [a for a in used.tolist() if a not in keyed]
        arrays = [a for a in plain if a in elements or attributes[a].type.is_nested]
        self._arrays = [(a, a in elements) for a in arrays]
        self._elements = [
            (a, keys.of_one(a) if keys.has(a) else None) for a in arrays if a in elements
        ]
        plain = [a for a in plain if a not in set(arrays)]
        self._texts = [a for a in plain if not keys.has(a)]
        codes = {a: code for a in plain if (code := keys.code(a)) is not None}
        self._others = [(a, keys.of_one(a)) for a in plain if keys.has(a) and a not in codes]
        # Attributes between them become zero; those that are used are written afterwards.
        size = max(codes, default=-1) + 1
        self._get = getter(list(codes)) if codes else None
        self._numbers = Struct("=" + "".join(codes.get(a, "8x") for a in range(size)))
        self._kinds = Struct("=" + "".join("B" if a in codes else "x" for a in range(size)))
        self._kinds_of = [DOUBLE if code == "d" else KEY for code in codes.values()]

    def write(self, row: Row, to: ValueBuffers) -> int:
        """Write the values of a row; returns how many elements of arrays it has."""
        if self._get is not None:
            self._write_together(self._get(row), to)
        for a, key in self._others:
            value = row[a]
            to.kinds[a] = NO_VALUE if value is None else KEY
            if value is not None:
                to.numbers[a] = key(value)
        end = 0
        for a in self._texts:
            value = row[a]
            if value is None:
                to.kinds[a] = NO_VALUE
            else:
                end = to.put_text(end, value)
                to.kinds[a], to.numbers[a] = TEXT, end
        return self._write_arrays(row, to, end) if self._arrays else 0

    def _write_together(self, values: tuple[Any, ...], to: ValueBuffers) -> None:
        if None in values:
            there = [value is not None for value in values]
            kinds = [here and kind for here, kind in zip(there, self._kinds_of, strict=True)]
            self._kinds.pack_into(to.kinds, 0, *kinds)
            to.is_partial = True
            values = tuple([value or 0 for value in values])
        elif to.is_partial:
            self._kinds.pack_into(to.kinds, 0, *self._kinds_of)
            to.is_partial = False
        self._numbers.pack_into(to.numbers, 0, *values)

    def _write_arrays(self, row: Row, to: ValueBuffers, end: int) -> int:
        for a, is_element in self._arrays:
            value = row[a]
            is_missing = value is None or (is_element and None in value)
            to.kinds[a] = NO_VALUE if is_missing else ARRAY
        elements: list[tuple[int, int]] = []
        for a, key in self._elements:
            for value in row[a] or ():
                if value is None:
                    continue
                if key is None:
                    end = to.put_text(end, value)
                    elements.append((~a, end))
                else:
                    elements.append((a, key(value)))
        if elements:
            to.put_elements(elements)
        return len(elements)


class EventBuffers:
    """The memory that one thread needs to match single events against a segment."""

    def __init__(self, segment: Segment) -> None:
        predicates, size = segment.predicates, len(segment.handles)
        self.values = ValueBuffers(len(predicates.cuts))
        touched = len(segment.used) + predicates.listed
        self.event = packed(EventTruth(
            classes=np.empty((1, len(predicates.cuts)), np.int32),
            table=np.empty(len(segment.programs.named), np.uint8),
            rows=_TRUE_ROWS,
            listed=np.full(predicates.listed, NO_ROW, np.int32),
        ))  # fmt: skip
        self.touched = packed(TouchedPredicates(
            refs=np.empty(touched + 1, np.int32),
            names=np.empty(predicates.listed, np.int32),
            sizes=np.zeros(2, np.int64),
        ))  # fmt: skip
        self.scratch = packed(OneEventScratch(
            intervals=np.empty((segment.widest, 3), np.int64),
            truth=np.zeros(segment.values, np.uint8),
            slots=np.empty(size + 1, np.int32),
            marks=np.zeros(-(-size // 64), np.uint64),
        ))  # fmt: skip
        self.found = np.empty(size, np.int64)
