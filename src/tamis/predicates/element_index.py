"""The predicates that look for elements of one array, by the elements that they look for."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tamis.events.event_reader import Row
from tamis.language.arithmetic import order_key
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.predicates.classification import ElementTest, classify
from tamis.predicates.comparison_index import Ids
from tamis.schema import Schema
from tamis.types import DOUBLE


class ElementIndex:
    """The tests for elements of an array, by their ids.

    An event looks up each of its elements once, however many predicates look for others.
    """

    def __init__(self, term: Node, schema: Schema) -> None:
        self._array = compile_value(term, schema)
        self._key: Callable[[Any], Any] = order_key if term.type == DOUBLE else _itself
        self._plain: dict[Any, dict[int, None]] = {}  # element -> the tests that it makes true
        self._negated: dict[Any, dict[int, None]] = {}  # element -> those that it makes false
        self._all_plain: set[int] = set()
        self._all_negated: set[int] = set()

    def add(self, predicate: Node, new: int) -> None:
        """Add a predicate on the elements."""
        constants, lists, ids = self._place(predicate)
        ids.add(new)
        for constant in constants:
            lists.setdefault(self._key(constant), {})[new] = None

    def remove(self, predicate: Node, old: int) -> None:
        """Remove a predicate."""
        constants, lists, ids = self._place(predicate)
        ids.remove(old)
        for constant in constants:
            key = self._key(constant)
            del lists[key][old]
            if not lists[key]:
                del lists[key]

    def is_idle(self) -> bool:
        """Whether nothing is kept here."""
        return not (self._all_plain or self._all_negated)

    def satisfied(self, row: Row) -> Iterator[Ids]:
        """The ids of the predicates that are true of a row."""
        array = self._array(row)
        if array is None:
            return
        yield _ids(self._found(array, self._plain))
        if self._all_negated and None not in array:
            yield _ids(self._all_negated.difference(self._found(array, self._negated)))

    def _place(
        self, predicate: Node
    ) -> tuple[tuple[Any, ...], dict[Any, dict[int, None]], set[int]]:
        test = classify(predicate)
        assert isinstance(test, ElementTest)  # noqa: S101 - `term_of` says so
        if test.negated:
            return test.constants, self._negated, self._all_negated
        return test.constants, self._plain, self._all_plain

    def _found(self, array: tuple[Any, ...], lists: dict[Any, dict[int, None]]) -> set[int]:
        if not lists:
            return set()
        keys = {self._key(element) for element in array if element is not None}
        return {one for key in keys for one in lists.get(key, ())}


def _ids(found: set[int]) -> Ids:
    return np.fromiter(found, np.int32, len(found))


def _itself(value: Any) -> Any:
    return value
