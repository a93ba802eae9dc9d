"""The predicates that one attribute decides, except comparisons with keys."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tamis.bounded_caches import BoundedCache
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.classification import Comparison, Membership, Presence, Test
from tamis.predicates.comparison_index import Ids
from tamis.predicates.string_index import OrderedStrings
from tamis.schema import Schema

MOST_REMEMBERED = 16_000_000  # bytes of the values of one attribute, and of the tests they pass


class AttributeIndex:
    """The predicates that one attribute decides, except comparisons with keys."""

    def __init__(self, position: int, schema: Schema) -> None:
        self._schema = schema
        self._position = position
        self._strings = OrderedStrings()
        self._members: dict[Any, dict[int, None]] = {}  # value -> the sets that hold it
        self._sets: set[int] = set()
        self._excluded: dict[int, frozenset[Any]] = {}  # NOT IN
        self._null: set[int] = set()
        self._present: set[int] = set()
        self._tests: dict[int, Callable[[Row], Any]] = {}
        self._remembered: BoundedCache[Any, Ids] = BoundedCache(MOST_REMEMBERED)

    def add(self, test: Test, predicate: Node, new: int) -> None:
        match test:
            case Comparison(ast.Attribute(), op, constant):
                self._strings.add(op, constant, new)
            case Membership(ast.Attribute(), constants, negated=False):
                self._sets.add(new)
                for value in constants:
                    self._members.setdefault(value, {})[new] = None
            case Membership(ast.Attribute(), constants):
                self._excluded[new] = frozenset(constants)
            case Presence(_, present):
                (self._present if present else self._null).add(new)
            case _:
                self._tests[new] = compile_tree(predicate, self._schema)
                self._remembered.clear()

    def remove(self, test: Test, old: int) -> None:
        match test:
            case Comparison(ast.Attribute(), op, constant):
                self._strings.remove(op, constant)
            case Membership(ast.Attribute(), constants, negated=False):
                self._sets.remove(old)
                for value in constants:
                    del self._members[value][old]
                    if not self._members[value]:
                        del self._members[value]
            case Membership(ast.Attribute()):
                del self._excluded[old]
            case Presence(_, present):
                (self._present if present else self._null).remove(old)
            case _:
                del self._tests[old]
                self._remembered.clear()

    def satisfied(self, value: Any, *, comparisons: bool = True) -> Iterator[Ids]:
        """The ids of the predicates that are true of a value, None for a missing one."""
        if value is None:
            yield _ids(self._null)
            return
        if self._present:
            yield _ids(self._present)
        if comparisons and self._strings.size:
            yield from self._strings.satisfied(value)
        if self._members:
            yield _ids(self._members.get(value, ()))
        if self._excluded:
            yield _ids([i for i, values in self._excluded.items() if value not in values])
        if self._tests:
            yield self._tested(value)

    def is_idle(self) -> bool:
        """Whether nothing is kept here."""
        return not (
            self._strings.size or self._sets or self._excluded or self._null
            or self._present or self._tests
        )  # fmt: skip

    def _tested(self, value: Any) -> Ids:
        known = self._remembered.find(value)
        if known is None:
            before, after = self._position, len(self._schema) - self._position - 1
            row = (None,) * before + (value,) + (None,) * after
            known = _ids([i for i, test in self._tests.items() if test(row) is True])
            self._remembered.keep(value, known)
        return known


def _ids(found: Any) -> Ids:
    return np.fromiter(found, np.int32, len(found))
