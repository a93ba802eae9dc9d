"""Computed values as attributes of their own.

``price * qty < 100`` tests the value of ``price * qty``, a *term*. Once that is computed, the
predicate is a comparison of a value with a constant, like any other: filters that test the same
term share it, and all its comparisons are found at once.

`ComputedAttributes` numbers some terms after the attributes of a schema. It computes their values
for a row or, column by column, for a batch, and writes predicates as tests of the new attributes:
from then on nobody needs to know that these were computed. A predicate that relates two computed
values, or is a test of several attributes, is itself the term: a truth value.

The elements of an array are a term of which an event may have several values, or none.
``array_contains(tags, 'x')`` is ``IN ('x')`` of it, true if one of the values is among the
constants; NOT IN is true if none of them is, and the array has no null. It has no other tests.
"""

from collections.abc import Callable, Container, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.predicates.classification import (
    Comparison,
    ElementTest,
    LikeTest,
    Membership,
    OtherTest,
    PairComparison,
    PartTest,
    Presence,
    RegexTest,
    StringTest,
    classify,
)
from tamis.predicates.element_terms import ElementTerms, element_terms
from tamis.predicates.element_text_terms import ElementTextTerms, element_text_terms
from tamis.predicates.event_batches import Batch, Column
from tamis.predicates.keys import constant_key, has_values
from tamis.predicates.term_columns import TermColumns
from tamis.predicates.term_programs import TermProgram, in_programs
from tamis.predicates.text_terms import TextTerms, text_terms
from tamis.schema import Attribute, Schema
from tamis.types import Kind, Type

Array = np.ndarray[Any, Any]

COMPUTED = "\0computed"  # begins the paths of terms; no attribute has such a name


def term_of(predicate: Node) -> Node | None:
    """The term that a predicate tests; None if it tests attributes as they are.

    * of ``price * qty < 100`` it is ``price * qty``
    * of ``price * qty < total`` it is the predicate itself
    * of ``array_contains(tags, 'x')`` it is the elements of ``tags``
    """
    match classify(predicate):
        case ElementTest(value):
            return elements_of(value)
        case Comparison(value, _, constant) if not _have_keys((constant,), value.type):
            return predicate
        case Membership(value, constants) if not _have_keys(constants, value.type):
            return predicate.operand if isinstance(predicate, ast.Not) else predicate
        case (
            Comparison(value) | Membership(value) | Presence(value) | StringTest(value)
            | PartTest(value) | LikeTest(value) | RegexTest(value)
        ):  # fmt: skip
            return None if isinstance(value, ast.Attribute) else value
        case PairComparison(ast.Attribute(_, of), _, ast.Attribute()) if (
            of.kind is not Kind.STRING and has_values(of)
        ):
            return None
        case PairComparison():
            return predicate
        case OtherTest(bare):
            return bare
        case _:
            return None


def elements_of(array: Node) -> ast.Elements:
    """The term that tests for elements of an array are about."""
    return ast.Elements(array, array.type.element or array.type)


def _have_keys(constants: Sequence[Any], of: Type) -> bool:
    """Whether constants can be compared with values by keys; a long decimal cannot."""
    if of.kind is not Kind.DECIMAL:
        return True
    return all(constant_key(constant, of) is not None for constant in constants)


def test_of(predicate: Node, term: Node, attribute: ast.Attribute) -> Node:
    """A predicate on a term, as one on the attribute that stands for the term."""
    test = classify(predicate) if isinstance(term, ast.Elements) else None
    if isinstance(test, ElementTest):
        items = tuple([ast.Literal(constant, attribute.type) for constant in test.constants])
        return ast.Not(ast.In(attribute, items)) if test.negated else ast.In(attribute, items)
    negated = isinstance(predicate, ast.Not)
    bare = predicate.operand if isinstance(predicate, ast.Not) else predicate
    if bare == term:
        return ast.Compare("=", attribute, ast.FALSE if negated else ast.TRUE)
    parts = tuple(attribute if part == term else part for part in ast.children(bare))
    made = ast.rebuild(bare, parts)
    return ast.Not(made) if negated else made


def term_attribute(number: int, of: Type) -> ast.Attribute:
    """The attribute that stands for a term."""
    return ast.Attribute((COMPUTED, str(number)), of)


class ComputedAttributes:
    """The attributes of a schema, and some terms after them.

    Terms whose places in the schema are in `apart` are computed one by one, so that rows have their
    values.
    """

    def __init__(self, schema: Schema, terms: Sequence[Node], apart: Container[int] = ()) -> None:
        self.plain = schema
        self._apart = apart
        self.terms = tuple(terms)
        self._numbers = {term: number for number, term in enumerate(self.terms)}
        more = [term_attribute(number, term.type) for number, term in enumerate(self.terms)]
        # The number of events of the last batch, and seconds[term]; what terms have in common
        # is counted for the first of them.
        self.spent = 0, np.zeros(len(self.terms))
        self.schema = schema
        if terms:
            attributes = [*schema.attributes, *(Attribute(a.path, a.type) for a in more)]
            self.schema = Schema.of_attributes(attributes)

    @cached_property
    def _programmed(self) -> dict[int, Node]:
        first, found = len(self.plain), in_programs(self.terms)
        return {n: term for n, term in found.items() if first + n not in self._apart}

    @cached_property
    def _together(self) -> list[TextTerms | ElementTerms | ElementTextTerms]:
        """The terms that are computed together: those of one string, and those of one array."""
        first = len(self.plain)
        apart = {n for n in range(len(self.terms)) if first + n in self._apart}
        apart.update(self._programmed)
        return [
            *text_terms(self.terms, self.plain, apart).values(),
            *element_terms(self.terms, self.plain, apart).values(),
            *element_text_terms(self.terms, self.plain, apart).values(),
        ]

    @cached_property
    def keyed(self) -> frozenset[int]:
        """The places in the schema of the terms that `write_keys` writes."""
        numbers = set(self._programmed)
        numbers.update(*(part.numbers.tolist() for part in self._together))
        return frozenset(len(self.plain) + number for number in numbers)

    @cached_property
    def _program(self) -> TermProgram:
        return TermProgram(self._programmed, self.plain)

    @cached_property
    def _values(self) -> list[tuple[int, Callable[[Row], Any]]]:
        """The terms that are computed one by one, by their numbers."""
        return [
            (number, compile_value(term, self.plain))
            for number, term in enumerate(self.terms)
            if len(self.plain) + number not in self.keyed
        ]

    @cached_property
    def elements(self) -> dict[int, Type]:
        """The terms that are elements of arrays: the type of these by the place in the schema."""
        first = len(self.plain)
        return {
            first + number: term.type
            for number, term in enumerate(self.terms)
            if isinstance(term, ast.Elements)
        }

    def test(self, predicate: Node) -> Node:
        """A predicate of the schema, as one on attributes and on terms that are held here."""
        term = term_of(predicate)
        number = None if term is None else self._numbers.get(term)
        if term is None or number is None:
            return predicate
        return test_of(predicate, term, term_attribute(number, term.type))

    def batch(self, batch: Batch) -> Batch:
        """A batch with the columns of the terms."""
        if not self.terms:
            return batch
        columns, seconds = TermColumns(batch), np.zeros(len(self.terms))
        made: dict[int, Column] = {}
        began = perf_counter()
        if self._programmed:
            keys, present = self._program.of_batch(columns, len(self.terms))
            made = {n: Column(present[n], keys[n], None) for n in self._programmed}
            ended = perf_counter()
            seconds[list(made)] = self._program.shares * (ended - began)
            began = ended
        for part in self._together:
            keys, present = part.of_batch(columns)
            for n, number in enumerate(part.numbers.tolist()):
                made[number] = Column(present[n], keys[n], None)
            ended = perf_counter()
            seconds[part.numbers] = (ended - began) / len(part.numbers)
            began = ended
        for number, term in enumerate(self.terms):
            if number not in made:
                made[number] = columns.column(term)
                ended = perf_counter()
                seconds[number], began = ended - began, ended
        self.spent = batch.size, seconds
        terms = [made[number] for number in range(len(self.terms))]
        return Batch(batch.size, (*batch.columns, *terms), self.schema)

    def row(self, row: Row) -> Row:
        """A row with the values of the terms; those that `write_keys` writes are missing."""
        if not self._values:
            return row
        found: list[Any] = [None] * len(self.terms)
        for number, value in self._values:
            found[number] = value(row)
        return (*row, *found)

    def write_keys(self, row: Row, keys: Array, present: Array) -> None:
        """Write keys[attribute] and present[attribute] of an event, for terms that are `keyed`."""
        first = len(self.plain)
        if self._programmed:
            self._program.of_row(row, keys[first:], present[first:])
        for part in self._together:
            keys[first + part.numbers], present[first + part.numbers] = part.of_row(row)
