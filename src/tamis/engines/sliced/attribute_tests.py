"""The tests of one attribute, and which of them its values pass.

Tests of strings are found by the texts that they ask for (`predicates.text_index`). What a text
does not decide is run, once for each distinct value, and remembered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from tamis.predicates.text_index import TextIndex, TextTest, text_test
from tamis.schema import Schema

Array = np.ndarray[Any, Any]
Condition = Callable[[Row], Any]

FEWEST_SOUGHT = 16  # tests from which a single string is looked up in their index
FEWEST_TEXTS = 8  # distinct strings of a batch from which all are looked up together


class PassedTests(NamedTuple):
    """The tests that events pass: an event with a code numbers[starts[code]:starts[code + 1]].

    With an attribute they are sets of NOT IN of it, which these events fail.
    """

    codes: Array  # int64[event]
    starts: Array  # int64[code + 1]
    numbers: Array  # int32[*]
    failed_of: int | None = None


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
        self._known: BoundedCache[Any, Array] = BoundedCache(most)

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        return self._known.nbytes

    @cached_property
    def _sought(self) -> dict[int, TextTest]:
        """The tests of strings that ask for a text."""
        found = {number: text_test(test) for number, test in self._tests.items()}
        return {number: test for number, test in found.items() if test is not None}

    @cached_property
    def _index(self) -> TextIndex:
        return TextIndex(self._sought)

    @cached_property
    def _unsought(self) -> list[int]:
        """The tests that ask for no text; only these may be true of a missing string."""
        return [number for number in self._tests if number not in self._sought]

    @cached_property
    def _others(self) -> list[int]:
        """The tests that are run for every string, because they are not in the index."""
        return self._unsought + self._index.left_out

    def of_value(self, value: Any) -> Array:
        """The tests that a value passes."""
        key = "nan" if value != value else value  # noqa: PLR0124 - NaN is not equal to itself
        numbers = self._known.find(key)
        if numbers is None:
            numbers = self._learn(value)
            self._known.keep(key, numbers)
        return numbers

    def of_column(self, column: Column) -> PassedTests:
        """The tests that the events of a column pass."""
        texts, keys = column.distinct, column.keys
        if texts is None:
            distinct, keys = np.unique(keys, return_inverse=True)
            lists = [self.of_value(value) for value in key_values(self._described, distinct)]
        elif len(texts) < FEWEST_TEXTS or not self._sought:
            lists = [self.of_value(text) for text in texts.to_pylist()]
        elif self._index.decides_all and not self._others:
            # Finding them again takes no longer than remembering them.
            found = self._index.of_texts(*texts_of(texts))
            starts = np.append(found.passed_at, found.passed_at[-1])
            return PassedTests(np.where(column.present, keys, len(texts)), starts, found.passed)
        else:
            lists = self._of_texts(texts)
        lists.append(self.of_value(None))
        starts = np.zeros(len(lists) + 1, np.int64)
        np.cumsum(list(map(len, lists)), out=starts[1:])
        codes = np.where(column.present, keys, len(lists) - 1)
        return PassedTests(codes, starts, np.concatenate(lists))

    def _of_texts(self, texts: pa.Array) -> list[Array]:
        """The tests that each of many strings passes."""
        values = texts.to_pylist()
        known = [self._known.find(value) for value in values]
        new = [place for place, numbers in enumerate(known) if numbers is None]
        if new:
            learned = self._learn_all(texts.take(pa.array(new)), [values[place] for place in new])
            for place, numbers in zip(new, learned, strict=True):
                known[place] = numbers
                self._known.keep(values[place], numbers)
        return [numbers for numbers in known if numbers is not None]

    def _learn_all(self, texts: pa.Array, values: list[str]) -> Iterator[Array]:
        found = self._index.of_texts(*texts_of(texts))
        for k, value in enumerate(values):
            # A copy: a part of an array would hold all of it.
            passed = found.passed[found.passed_at[k] : found.passed_at[k + 1]].copy()
            left_open = found.left_open[found.open_at[k] : found.open_at[k + 1]]
            yield self._with_others(passed, left_open, value)

    def _learn(self, value: Any) -> Array:
        if not isinstance(value, str) or len(self._tests) < FEWEST_SOUGHT or not self._sought:
            return self._passed(self._tests if value is not None else self._unsought, value)
        passed, left_open = self._index.of_text(value)
        return self._with_others(passed, left_open, value)

    def _with_others(self, passed: Array, left_open: Array, text: str) -> Array:
        """The tests that a string passes: those found, and those that must be run."""
        if not len(left_open) and not self._others:
            return passed
        return np.concatenate([passed, self._passed([*left_open.tolist(), *self._others], text)])

    def _passed(self, tests: Iterable[int], value: Any) -> Array:
        """Those of some tests that a value passes, by running them."""
        row = (*self._before, value, *self._after)
        return np.array([test for test in tests if self._condition(test)(row) is True], np.int32)

    def _condition(self, test: int) -> Condition:
        condition = self._conditions.get(test)
        if condition is None:
            condition = self._conditions[test] = compile_tree(self._tests[test], self._schema)
        return condition
