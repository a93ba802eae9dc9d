"""The values of events as classes between the cuts of a segment, and the tests that they pass.

See `tamis.kernels.value_classes` for cuts and classes.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.bounded_caches import BoundedCache
from tamis.engines.sliced.segment_predicates import SegmentPredicates, Texts, texts_of
from tamis.events.event_reader import Row
from tamis.kernels.value_classes import MISSING, key_classes, string_classes
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.classification import PairComparison, StringTest, classify
from tamis.predicates.computed_values import ComputedAttributes
from tamis.predicates.event_batches import Batch, Column
from tamis.predicates.keys import key_values
from tamis.predicates.needed_texts import NeededTexts, needed_text
from tamis.schema import Schema

Array = np.ndarray[Any, Any]

MOST_REMEMBERED = 32_000_000  # bytes of values, and of the tests that they pass, for one segment
FEWEST_LEARNED = 8  # new values from which Arrow searches patterns in all of them at once
MOST_SEARCHED = 256  # patterns of an attribute up to which it does
FEWEST_SOUGHT = 32  # tests of an attribute from which those are sought that may be true of a value


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Pattern(NamedTuple):
    """A string test that Arrow runs for a whole column."""

    search: Callable[[pa.Array, str], pa.Array]
    text: str
    negative: bool


class PassedTests(NamedTuple):
    """The tests that events pass: an event with a code numbers[starts[code]:starts[code + 1]].

    With an attribute they are sets of NOT IN of it, which these events fail.
    """

    codes: Array  # int64[event]
    starts: Array  # int64[code + 1]
    numbers: Array  # int32[*]
    failed_of: int | None = None


def classes_of(batch: Batch, predicates: SegmentPredicates, used: Array) -> Array:
    """classes[attribute, event]; MISSING for all events if an attribute is not used."""
    found = np.full((len(predicates.cuts), batch.size), MISSING, np.int32)
    for a in used.tolist():
        cuts, first = predicates.cuts[a], int(predicates.starts[a]) + 1
        column = batch.columns[a]
        if isinstance(cuts, Texts) and column.distinct is not None:
            texts = texts_of(column.distinct)
            by_text = np.empty(len(texts) + 1, np.int32)
            string_classes(texts.offsets, texts.data, cuts.offsets, cuts.data, first, by_text)
            found[a] = np.where(column.present, by_text[column.keys], MISSING)
        elif column.offsets is not None:  # an array equals no cut; its elements are sets' members
            found[a] = np.where(column.present, 2 * first, MISSING)
        elif not isinstance(cuts, Texts):
            key_classes(column.keys, column.present, cuts, first, found[a])
    return found


Condition = Callable[[Row], Any]


class SoughtTests:
    """The tests of one attribute, of which only those are run that may be true of a string."""

    def __init__(self, tests: Sequence[tuple[int, Node, Condition]]) -> None:
        self._conditions = {number: condition for number, _, condition in tests}
        needed = {number: needed_text(test) for number, test, _ in tests}
        self._texts = NeededTexts(needed)
        negated = [n for n, test, _ in tests if isinstance(test, ast.Not) and needed[n] is not None]
        self._negated = np.array(negated, np.int32)  # true without the text

    def passed(self, value: str, row: Row) -> Array:
        """The numbers of the tests that a string passes; it is in the row."""
        found = self._texts.candidates(value)
        passed = _passed([(number, self._conditions[number]) for number in found], row)
        if not len(self._negated):
            return passed
        return np.concatenate([np.setdiff1d(self._negated, found).astype(np.int32), passed])


class SegmentTests:
    """The tests of a segment: run once for each distinct value, and remembered."""

    def __init__(self, predicates: SegmentPredicates, computed: ComputedAttributes) -> None:
        schema = self._schema = computed.schema
        self._first = predicates.first_test
        self._by_attribute: dict[int, list[tuple[int, Condition]]] = {}
        written = [computed.test(test) for test in predicates.tests]
        for place, (test, attribute) in enumerate(
            zip(written, predicates.test_attributes, strict=True)
        ):
            compiled = self._first + place, compile_tree(test, schema)
            self._by_attribute.setdefault(attribute, []).append(compiled)
        several = self._by_attribute.pop(len(schema), [])
        tests = [written[number - self._first] for number, _ in several]
        self._pairs = [
            (number, *_pair_of(test, schema))
            for (number, _), test in zip(several, tests, strict=True)
        ]
        self._several = several  # a row runs them; a batch compares columns
        most = MOST_REMEMBERED // max(len(self._by_attribute), 1)
        self._known: dict[int, BoundedCache[Any, Array]] = {
            a: BoundedCache(most) for a in self._by_attribute
        }
        self._by_row: dict[int, list[tuple[int, Condition]]] = {}
        self._patterns: dict[int, list[tuple[int, Pattern]]] = {}
        self._sought: dict[int, SoughtTests] = {}
        for attribute, own in self._by_attribute.items():
            if len(own) >= FEWEST_SOUGHT:
                tests_of = [(number, written[number - self._first], test) for number, test in own]
                self._sought[attribute] = SoughtTests(tests_of)
            for number, condition in own:
                pattern = _pattern_of(written[number - self._first])
                if pattern is None:
                    self._by_row.setdefault(attribute, []).append((number, condition))
                else:
                    self._patterns.setdefault(attribute, []).append((number, pattern))

    def of_row(self, row: Row) -> Array:
        """The numbers of all tests that a row passes."""
        found = [self._numbers(a, row[a]) for a in self._by_attribute]
        if self._several:
            found.append(_passed(self._several, row))
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def of_batch(self, batch: Batch) -> list[PassedTests]:
        """The tests that the events of a batch pass, by attribute."""
        found = [self._attribute(a, batch.columns[a]) for a in self._by_attribute]
        if self._several:
            found.append(self._of_several(batch))
        return found

    def _of_several(self, batch: Batch) -> PassedTests:
        """Tests of two attributes, which are compared column by column."""
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

    def _attribute(self, a: int, column: Column) -> PassedTests:
        if column.distinct is not None:
            values = column.distinct.to_pylist()
            codes = np.where(column.present, column.keys, len(values))
        else:
            keys, codes = np.unique(column.keys, return_inverse=True)
            values = key_values(self._schema.attributes[a], keys)
            codes = np.where(column.present, codes, len(values))
        return _listed(codes, [*self._answers(a, values), self._numbers(a, None)])

    def _answers(self, a: int, values: list[Any]) -> list[Array]:
        """The tests of one attribute that each of many values passes."""
        if not 0 < len(self._patterns.get(a, ())) <= MOST_SEARCHED:
            return [self._numbers(a, value) for value in values]
        known = self._known[a]
        found = [known.find(value) for value in values]
        new = [place for place, numbers in enumerate(found) if numbers is None]
        if len(new) < FEWEST_LEARNED:
            return [self._numbers(a, value) for value in values]
        for place, numbers in zip(new, self._learn(a, [values[n] for n in new]), strict=True):
            found[place] = numbers
            known.keep(values[place], numbers)
        return [numbers for numbers in found if numbers is not None]

    def _learn(self, a: int, values: list[str]) -> list[Array]:
        """Run the tests on many new strings: pattern by pattern, all strings at once."""
        column = pa.array(values, pa.large_string())
        places, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for number, (search, text, negative) in self._patterns[a]:
            passed = np.asarray(search(column, text)) != negative
            places.append(np.flatnonzero(passed))
            numbers.append(np.full(len(places[-1]), number, np.int32))
        before, after = (None,) * a, (None,) * (len(self._schema) - a - 1)
        for place, value in enumerate(values if a in self._by_row else ()):
            numbers.append(_passed(self._by_row[a], (*before, value, *after)))
            places.append(np.full(len(numbers[-1]), place))
        where = np.concatenate(places)
        order = np.argsort(where, kind="stable")
        ends = np.searchsorted(where[order], np.arange(1, len(values)))
        # Copies: a part of an array would hold all of it, however little of it is remembered.
        return [part.copy() for part in np.split(np.concatenate(numbers)[order], ends)]

    def _numbers(self, a: int, value: Any) -> Array:
        """The tests of one attribute that a value passes."""
        known = self._known[a]
        key = "nan" if value != value else value  # noqa: PLR0124 - NaN is not equal to itself
        numbers = known.find(key)
        if numbers is None:
            before, after = a, len(self._schema) - a - 1
            row = (None,) * before + (value,) + (None,) * after
            if a in self._sought and isinstance(value, str):
                numbers = self._sought[a].passed(value, row)
            else:
                numbers = _passed(self._by_attribute[a], row)
            known.keep(key, numbers)
        return numbers


_SEARCHES: dict[str, Callable[[pa.Array, str], pa.Array]] = {
    "contains": pc.match_substring, "startswith": pc.starts_with, "endswith": pc.ends_with,
}  # fmt: skip


def _pattern_of(test: Node) -> Pattern | None:
    """How Arrow runs a test of a string, if it can."""
    match classify(test):
        case StringTest(ast.Attribute(), function, text, negated):
            return Pattern(_SEARCHES[function], text, negated)
        case _:
            return None


def _pair_of(test: Node, schema: Schema) -> tuple[Callable[[Any, Any], Any], int, int]:
    """The comparison and the two attributes of a test; everything else of several is a term."""
    match classify(test):
        case PairComparison(ast.Attribute(one), op, ast.Attribute(other)):
            return _COMPARE[op], schema.positions[one], schema.positions[other]
        case _:  # pragma: no cover - `term_of` has made a term of it
            raise AssertionError(test)


def _passed(tests: Sequence[tuple[int, Condition]], row: Row) -> Array:
    return np.array([number for number, test in tests if test(row) is True], np.int32)


def _listed(codes: Array, lists: Sequence[Array]) -> PassedTests:
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(numbers) for numbers in lists], out=starts[1:])
    numbers = np.concatenate(lists) if lists else np.empty(0, np.int32)
    return PassedTests(codes.astype(np.int64), starts, numbers)
