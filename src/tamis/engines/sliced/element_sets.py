"""The elements of arrays as members of sets: which tests for elements an event passes or fails.

A test for elements is a set of constants (IN, or NOT IN) of the attribute that stands for the
elements (`predicates.computed_values`). An event has several of these. Each distinct element of a
batch is looked up once; the sets that have it are then listed for each event, like tests.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.engines.sliced.attribute_tests import PassedTests
from tamis.engines.sliced.segment_predicates import Cuts, SegmentPredicates, Texts, texts_of
from tamis.kernels.predicate_rows import PredicateNumbering
from tamis.kernels.value_classes import key_classes, string_classes
from tamis.predicates.event_batches import Batch, Column
from tamis.predicates.keys import Keys
from tamis.types import Type

Array = np.ndarray[Any, Any]


def element_classes(column: Column, cuts: Cuts, first: int) -> Array:
    """The classes of all elements of a column of arrays; an even one for a null."""
    part = column.parts[0]
    if isinstance(cuts, Texts):
        distinct = pa.array([], pa.large_string()) if part.distinct is None else part.distinct
        by_code, codes = _text_classes(texts_of(distinct), cuts, first), part.keys
    else:
        keys, codes = np.unique(part.keys, return_inverse=True)
        by_code = np.empty(len(keys) + 1, np.int32)
        key_classes(keys, np.ones(len(keys), np.uint8), cuts, first, by_code)
    found: Array = np.where(part.present, by_code[codes.reshape(-1)], 2 * first)
    return found


def _text_classes(texts: Texts, cuts: Texts, first: int) -> Array:
    found = np.full(len(texts) + 1, 2 * first, np.int32)
    string_classes(texts.offsets, texts.data, cuts.offsets, cuts.data, first, found)
    return found


class ElementSets:
    """The sets of a segment whose members are elements of arrays."""

    def __init__(
        self, predicates: SegmentPredicates, numbering: PredicateNumbering, keys: Keys,
        elements: Mapping[int, Type],
    ) -> None:  # fmt: skip
        self._numbering = numbering
        self._cuts = {
            a: (predicates.cuts[a], int(predicates.starts[a]) + 1, keys.of_one(a)) for a in elements
        }

    def of_batch(self, batch: Batch) -> list[PassedTests]:
        """The sets of IN that the events of a batch pass, and those of NOT IN that they fail."""
        found = []
        for a, (cuts, first, _) in self._cuts.items():
            column = batch.columns[a]
            if column.offsets is not None:
                classes = element_classes(column, cuts, first)
                found += self._listed(a, classes, column.offsets)
        return found

    def _listed(self, a: int, classes: Array, offsets: Array) -> list[PassedTests]:
        """The sets that have an element of each event."""
        numbering = self._numbering
        hits = np.flatnonzero(classes & 1)  # few of all elements
        cuts = classes[hits] >> 1
        places = np.searchsorted(numbering.set_cuts, cuts)
        known = places < len(numbering.set_cuts)
        known[known] = numbering.set_cuts[places[known]] == cuts[known]
        hits, places = hits[known], places[known]
        counts = numbering.set_at[places + 1] - numbering.set_at[places]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        at = np.repeat(numbering.set_at[places] - (ends - counts), counts) + np.arange(total)
        numbers = numbering.set_numbers[at]
        elements = np.repeat(hits, counts)
        found = []
        is_negative = numbers >= numbering.absent_from[0]
        for mine, failed_of in ((~is_negative, None), (is_negative, a)):
            if mine.any():
                starts = np.searchsorted(elements[mine], offsets)
                codes = np.arange(len(offsets) - 1)
                found.append(PassedTests(codes, starts, numbers[mine], failed_of))
        return found
