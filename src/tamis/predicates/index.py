"""The index of predicates: each distinct one has one id, however many filters use it.

Ids are small and dense: those of predicates that are no longer used are given out again, so vectors
over predicates have no holes (Ashayer et al., "Predicate matching and subscription matching in
publish/subscribe systems", 2002, section 3; COUNT for short). Predicates are kept by attribute and
by kind of test (`classification`):

* comparisons with constants in ordered lists, or in a table where the domain is small,
* sets (``IN``) by their members,
* presence (``IS NULL`` and its opposite),
* other tests of one attribute (prefix, suffix, contains, contained in, LIKE, RLIKE), evaluated
  once per distinct value,
* tests of a computed value by that value, which is computed once (`term_index`),
* tests for elements of an array by each of its elements (`element_index`),
* comparisons of two attributes one by one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.attribute_index import AttributeIndex
from tamis.predicates.classification import Comparison, classify, deciding_attribute
from tamis.predicates.comparison_index import ComparisonIndex, Ids
from tamis.predicates.computed_values import term_of
from tamis.predicates.element_index import ElementIndex
from tamis.predicates.id_pool import IdPool
from tamis.predicates.keys import Keys
from tamis.predicates.term_index import TermIndex
from tamis.schema import Schema

Array = np.ndarray[Any, Any]


class PredicateIndex:
    """Distinct predicates over one schema, and which of them are true of an event.

    `form` says how comparisons are kept: see `comparison_index.ComparisonIndex`.
    """

    def __init__(self, schema: Schema, form: str = "auto") -> None:
        self.schema = schema
        self.ids: dict[Node, int] = {}
        self._uses: dict[int, int] = {}
        self._nodes: dict[int, Node] = {}
        self._pool = IdPool()
        self._keys = Keys(schema)
        self._comparisons = ComparisonIndex(schema, self._keys, form)
        self._attributes = [AttributeIndex(n, schema) for n in range(len(schema))]
        self._busy: set[int] = set()  # attributes with predicates other than keyed comparisons
        self._terms: dict[Node, TermIndex | ElementIndex] = {}
        self._others: dict[int, Callable[[Row], Any]] = {}  # not decided by one attribute

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """One more than the largest id ever given out: the length of vectors over predicates."""
        return self._pool.size

    def intern(self, predicate: Node) -> int:
        """The id of a predicate, which gets one more user."""
        known = self.ids.get(predicate)
        if known is not None:
            self._uses[known] += 1
            return known
        new = self._pool.take()
        self.ids[predicate], self._nodes[new], self._uses[new] = new, predicate, 1
        term = term_of(predicate)
        if term is not None:
            if term not in self._terms:
                made = ElementIndex if isinstance(term, ast.Elements) else TermIndex
                self._terms[term] = made(term, self.schema)
            self._terms[term].add(predicate, new)
            return new
        path = deciding_attribute(predicate)
        if path is None:
            self._others[new] = compile_tree(predicate, self.schema)
            return new
        position, test = self.schema.positions[path], classify(predicate)
        home = self._attributes[position]
        if isinstance(test, Comparison) and self._has_key(position, test):
            self._comparisons.add(position, test.op, test.constant, new)
        else:
            home.add(test, predicate, new)
            self._busy.add(position)
        return new

    def release(self, predicate_id: int) -> None:
        """Take one user from a predicate; with its last user it goes, and its id is free."""
        self._uses[predicate_id] -= 1
        if self._uses[predicate_id]:
            return
        predicate = self._nodes.pop(predicate_id)
        del self._uses[predicate_id], self.ids[predicate]
        self._pool.give_back(predicate_id)
        term = term_of(predicate)
        if term is not None:
            self._terms[term].remove(predicate, predicate_id)
            if self._terms[term].is_idle():
                del self._terms[term]
            return
        path = deciding_attribute(predicate)
        if path is None:
            del self._others[predicate_id]
            return
        position, test = self.schema.positions[path], classify(predicate)
        home = self._attributes[position]
        if isinstance(test, Comparison) and self._has_key(position, test):
            self._comparisons.remove(position, test.op, test.constant)
        else:
            home.remove(test, predicate_id)
            if home.is_idle():
                self._busy.remove(position)

    def node(self, predicate_id: int) -> Node:
        """The predicate of an id."""
        return self._nodes[predicate_id]

    def uses(self, predicate_id: int) -> int:
        """How many users the predicate of an id has."""
        return self._uses[predicate_id]

    def satisfied(self, row: Row, *, comparisons: bool = True) -> Ids:
        """The ids of the predicates that are true of a row, each once.

        Without `comparisons`, those that compare an attribute with a constant are left out.
        """
        found: list[Ids] = []
        if comparisons and self._comparisons.size:
            found.append(self._comparisons.satisfied(*self._keys.row(row)))
        for position in self._busy:
            home = self._attributes[position]
            found += home.satisfied(row[position], comparisons=comparisons)
        for computed in self._terms.values():
            found += computed.satisfied(row)
        if self._others:
            true = [i for i, test in self._others.items() if test(row) is True]
            found.append(np.array(true, np.int32))
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def _has_key(self, position: int, test: Comparison) -> bool:
        """Whether a comparison is one of the attribute itself with a constant that has a key."""
        is_plain = isinstance(test.value, ast.Attribute)
        return is_plain and self._keys.key(position, test.constant) is not None
