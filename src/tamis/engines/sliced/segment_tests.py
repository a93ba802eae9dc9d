"""All tests of a segment, and which of them events pass.

`AttributeTests` has the tests of one attribute; comparisons of two attributes are made here.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.engines.sliced.attribute_tests import AttributeTests, FailedTests, PassedTests
from tamis.engines.sliced.segment_predicates import SegmentPredicates
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.classification import PairComparison, classify
from tamis.predicates.computed_values import ComputedAttributes
from tamis.predicates.event_batches import Batch
from tamis.schema import Schema

Array = np.ndarray[Any, Any]

MOST_REMEMBERED = 32_000_000  # bytes of values, and of the tests that they pass, for one segment

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class SegmentTests:
    """The tests of a segment."""

    def __init__(self, predicates: SegmentPredicates, computed: ComputedAttributes) -> None:
        schema = computed.schema
        first, tests = predicates.first_test, [computed.test(test) for test in predicates.tests]
        by_attribute: dict[int, dict[int, Node]] = {}
        for place, attribute in enumerate(predicates.test_attributes):
            by_attribute.setdefault(attribute, {})[first + place] = tests[place]
        several = by_attribute.pop(len(schema), {})
        self._pairs = [(number, *_pair_of(test, schema)) for number, test in several.items()]
        # The same tests as functions of a row; a batch compares columns instead.
        self._several = [(number, compile_tree(test, schema)) for number, test in several.items()]
        most = MOST_REMEMBERED // max(len(by_attribute), 1)
        self._by_attribute = {
            a: AttributeTests(own, a, schema, most) for a, own in by_attribute.items()
        }

    @property
    def nbytes(self) -> int:
        """Bytes of the values that are remembered, and of the tests that they pass."""
        return sum(own.nbytes for own in self._by_attribute.values())

    def of_row(self, row: Row) -> Array:
        """The numbers of all tests that a row passes."""
        found = [own.of_value(row[a]) for a, own in self._by_attribute.items()]
        if self._several:
            passed = [number for number, test in self._several if test(row) is True]
            found.append(np.array(passed, np.int32))
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def of_batch(self, batch: Batch) -> list[PassedTests | FailedTests]:
        """The tests that the events of a batch pass, by attribute."""
        found: list[PassedTests | FailedTests] = []
        for a, own in self._by_attribute.items():
            found += own.of_column(batch.columns[a])
        if self._several:
            found.append(self._of_several(batch))
        return found

    def _of_several(self, batch: Batch) -> PassedTests:
        """The tests of two attributes that events pass; columns are compared as a whole."""
        events, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for number, compare, left, right in self._pairs:
            one, other = batch.columns[left], batch.columns[right]
            holds = compare(one.keys, other.keys) & (one.present & other.present).view(np.bool_)
            events.append(np.flatnonzero(holds))
            numbers.append(np.full(len(events[-1]), number, np.int32))
        where = np.concatenate(events)
        order = np.argsort(where, kind="stable")
        starts = np.searchsorted(where[order], np.arange(batch.size + 1))
        return PassedTests(np.arange(batch.size), starts, np.concatenate(numbers)[order])


def _pair_of(test: Node, schema: Schema) -> tuple[Callable[[Any, Any], Any], int, int]:
    """The comparison and the two attributes of a test; other tests of several are of terms."""
    match classify(test):
        case PairComparison(ast.Attribute(one), op, ast.Attribute(other)):
            return _COMPARE[op], schema.positions[one], schema.positions[other]
        case _:  # pragma: no cover - `term_of` has made a term of it
            raise AssertionError(test)
