"""The predicates on one term: its value is computed once, and finds all of them."""

from collections.abc import Callable, Iterator
from typing import Any

from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.arithmetic import order_key
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.predicates.attribute_index import AttributeIndex
from tamis.predicates.classification import Comparison, Membership, Test, classify
from tamis.predicates.comparison_index import Ids
from tamis.predicates.computed_values import term_attribute, test_of
from tamis.schema import Attribute, Schema
from tamis.types import DOUBLE


class TermIndex:
    """The predicates that a term decides, by their ids."""

    def __init__(self, term: Node, schema: Schema) -> None:
        self._term = term
        self._attribute = term_attribute(0, term.type)
        only = Schema.of_attributes([Attribute(self._attribute.path, term.type)])
        self._home = AttributeIndex(0, only)
        self._value = compile_value(term, schema)
        # Constants are kept in order, and so are keys of doubles, NaN among them.
        self._key: Callable[[Any], Any] = order_key if term.type == DOUBLE else _itself

    def add(self, predicate: Node, new: int) -> None:
        """Add a predicate on the term."""
        written = test_of(predicate, self._term, self._attribute)
        self._home.add(self._keyed(classify(written)), written, new)

    def remove(self, predicate: Node, old: int) -> None:
        """Remove a predicate."""
        written = test_of(predicate, self._term, self._attribute)
        self._home.remove(self._keyed(classify(written)), old)

    def is_idle(self) -> bool:
        """Whether nothing is kept here."""
        return self._home.is_idle()

    def satisfied(self, row: Row) -> Iterator[Ids]:
        """The ids of the predicates that are true of a row."""
        value = self._value(row)
        return self._home.satisfied(None if value is None else self._key(value))

    def _keyed(self, test: Test) -> Test:
        match test:
            case Comparison(ast.Attribute() as value, op, constant):
                return Comparison(value, op, self._key(constant))
            case Membership(ast.Attribute() as value, constants, negated):
                return Membership(value, tuple(map(self._key, constants)), negated)
            case _:
                return test


def _itself(value: Any) -> Any:
    return value
