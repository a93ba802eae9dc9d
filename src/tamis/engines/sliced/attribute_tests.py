"""The tests of one attribute, and which of them its values pass.

Tests that look for a text in a string are found by these texts (`predicates.text_index`). Where
the text does not decide a test, it is run once for each distinct value, and the result is
remembered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.bounded_caches import BoundedCache
from tamis.engines.sliced.segment_predicates import texts_of
from tamis.events.event_reader import Row
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.event_batches import Column
from tamis.predicates.keys import key_values
from tamis.predicates.text_index import FoundTests, TextIndex, TextTest, text_test
from tamis.schema import Schema

Array = np.ndarray[Any, Any]
Condition = Callable[[Row], Any]

FEWEST_SOUGHT = 16  # tests from which a single string is looked up in their index
FEWEST_TEXTS = 8  # distinct strings of a batch from which all are looked up together
_NONE = np.empty(0, np.int32)


class PassedTests(NamedTuple):
    """The tests that events pass.

    An event with a code passes numbers[starts[code]:starts[code + 1]]. If `failed_of` is an
    attribute, the numbers are NOT IN sets of this attribute instead, and the event fails them.
    """

    codes: Array  # int64[event]
    starts: Array  # int64[code + 1]
    numbers: Array  # int32[*]
    failed_of: int | None = None


class FailedTests(NamedTuple):
    """Tests that most events pass, and for each event those that it fails.

    These are listed as in `PassedTests`. The last code is that of events without a value, which
    pass none of the tests.
    """

    codes: Array  # int64[event]
    starts: Array  # int64[code + 1]
    numbers: Array  # int32[*]
    tests: Array  # int32[*]: all of them


class ValueResults(NamedTuple):
    """Which tests of its attribute a value passes; negated tests are listed if it fails them."""

    passed: Array  # those it passes, without the negated ones
    failed: Array  # the negated ones that it fails


class AttributeTests:
    """The tests of one attribute, by their numbers."""

    def __init__(
        self, tests: Mapping[int, Node], attribute: int, schema: Schema, most: int
    ) -> None:
        """Up to `most` bytes are remembered: values, and the tests that they pass."""
        self._tests, self._schema = tests, schema
        self._described = schema.attributes[attribute]
        self._before = (None,) * attribute
        self._after = (None,) * (len(schema) - attribute - 1)
        self._conditions: dict[int, Condition] = {}
        self._known: BoundedCache[Any, ValueResults] = BoundedCache(most // 2)
        # All tests that a value of a single event passes, negated ones included.
        self._passed_by: BoundedCache[str, Array] = BoundedCache(most // 2)

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        return self._known.nbytes + self._passed_by.nbytes

    @cached_property
    def _sought(self) -> dict[int, TextTest]:
        """The tests that look for a text."""
        found = {number: text_test(test) for number, test in self._tests.items()}
        return {number: test for number, test in found.items() if test is not None}

    @cached_property
    def _index(self) -> TextIndex:
        return TextIndex(self._sought)

    @cached_property
    def _unsought(self) -> list[int]:
        """The tests that look for no text; only these may be true of a missing string."""
        return [number for number in self._tests if number not in self._sought]

    @cached_property
    def _others(self) -> list[int]:
        """The tests that are run for every string, because they are not in the index."""
        return self._unsought + self._index.left_out

    @cached_property
    def _negated(self) -> Array:
        """The negated tests that look for a text, ascending; most strings pass them."""
        found = [number for number, test in self._sought.items() if test.negated]
        return np.array(sorted(found), np.int32)

    def of_value(self, value: Any) -> Array:
        """The tests that a value passes."""
        if value is None or not len(self._negated):
            return self._results_of(value).passed
        numbers = self._passed_by.find(value)
        if numbers is None:
            results, kept = self._results_of(value), np.ones(len(self._negated), np.bool_)
            kept[np.searchsorted(self._negated, results.failed)] = False
            numbers = np.concatenate([results.passed, self._negated[kept]])
            self._passed_by.keep(value, numbers)
        return numbers

    def of_column(self, column: Column) -> list[PassedTests | FailedTests]:
        """The tests that the events of a column pass."""
        texts, keys = column.distinct, column.keys
        if texts is None:
            distinct, keys = np.unique(keys, return_inverse=True)
            every = [self._results_of(key) for key in key_values(self._described, distinct)]
        elif len(texts) < FEWEST_TEXTS or not self._sought:
            every = [self._results_of(text) for text in texts.to_pylist()]
        elif self._index.decides_all and not self._others:
            # Finding the tests again takes no longer than looking up what was remembered.
            found = self._index.of_texts(*texts_of(texts))
            codes = np.where(column.present, keys, len(texts))
            passed_at, failed_at = (
                np.append(at, at[-1]) for at in (found.passed_at, found.failed_at)
            )
            return self._listed(codes, passed_at, found.passed, failed_at, found.failed)
        else:
            every = self._of_texts(texts)
        every.append(self._results_of(None))
        codes = np.where(column.present, keys, len(every) - 1)
        passed, failed = zip(*every, strict=True)
        return self._listed(
            codes, _starts(passed), np.concatenate(passed), _starts(failed), np.concatenate(failed)
        )

    def _listed(
        self, codes: Array, passed_at: Array, passed: Array, failed_at: Array, failed: Array
    ) -> list[PassedTests | FailedTests]:
        found: list[PassedTests | FailedTests] = [PassedTests(codes, passed_at, passed)]
        if len(self._negated):
            found.append(FailedTests(codes, failed_at, failed, self._negated))
        return found

    def _results_of(self, value: Any) -> ValueResults:
        key = "nan" if value != value else value  # noqa: PLR0124 - NaN is not equal to itself
        results = self._known.find(key)
        if results is None:
            results = self._learn(value)
            self._known.keep(key, results)
        return results

    def _of_texts(self, texts: pa.Array) -> list[ValueResults]:
        """The results of many strings."""
        values = texts.to_pylist()
        known = [self._known.find(value) for value in values]
        new = [place for place, results in enumerate(known) if results is None]
        if new:
            learned = self._learn_all(texts.take(pa.array(new)), [values[place] for place in new])
            for place, results in zip(new, learned, strict=True):
                known[place] = results
                self._known.keep(values[place], results)
        return [results for results in known if results is not None]

    def _learn_all(self, texts: pa.Array, values: list[str]) -> Iterator[ValueResults]:
        lists = self._index.of_texts(*texts_of(texts))
        for k, value in enumerate(values):
            # Copies, because a part of an array would keep all of it in memory.
            found = FoundTests(
                lists.passed[lists.passed_at[k] : lists.passed_at[k + 1]].copy(),
                lists.failed[lists.failed_at[k] : lists.failed_at[k + 1]].copy(),
                lists.left_open[lists.open_at[k] : lists.open_at[k + 1]],
            )
            yield self._with_others(found, value)

    def _learn(self, value: Any) -> ValueResults:
        if value is None:
            return ValueResults(self._run(self._unsought, None), _NONE)
        if isinstance(value, str) and len(self._tests) >= FEWEST_SOUGHT and self._sought:
            return self._with_others(self._index.of_text(value), value)
        return self._run_all(self._tests, value)

    def _with_others(self, found: FoundTests, text: str) -> ValueResults:
        """The results of a string: the tests that its texts decide, and those that must be run."""
        if not len(found.left_open) and not self._others:
            return ValueResults(found.passed, found.failed)
        others = self._run_all([*found.left_open.tolist(), *self._others], text)
        return ValueResults(
            np.concatenate([found.passed, others.passed]),
            np.concatenate([found.failed, others.failed]),
        )

    def _run_all(self, tests: Iterable[int], value: Any) -> ValueResults:
        """The results of a value, by running some tests."""
        tried = np.fromiter(tests, np.int32)
        passed = self._run(tried.tolist(), value)
        if not len(self._negated):
            return ValueResults(passed, _NONE)
        negated = tried[np.isin(tried, self._negated)]
        return ValueResults(np.setdiff1d(passed, negated), np.setdiff1d(negated, passed))

    def _run(self, tests: Sequence[int], value: Any) -> Array:
        """The numbers of those among some tests that a value passes."""
        row = (*self._before, value, *self._after)
        return np.array([test for test in tests if self._condition(test)(row) is True], np.int32)

    def _condition(self, test: int) -> Condition:
        condition = self._conditions.get(test)
        if condition is None:
            condition = self._conditions[test] = compile_tree(self._tests[test], self._schema)
        return condition


def _starts(lists: Sequence[Array]) -> Array:
    """Where each list begins if they follow one another, and where the last one ends."""
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(list(map(len, lists)), out=starts[1:])
    return starts
