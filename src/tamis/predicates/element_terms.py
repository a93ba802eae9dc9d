"""Conditions on the elements of one array, like ``exists(scores, s -> s > bar + 3)``, as a program.

The program (`term_programs`) runs for each element, as other programs do for each event; what
conditions have in common is computed once. Elements are numbers, truth values or times; conditions
on strings are in `element_text_terms`. Conditions with a part that no program computes from an
element, like ``power(s, 2)``, are tested once for each distinct element (`term_columns`).
"""

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from tamis.events.event_reader import Row
from tamis.kernels.term_steps import LANES
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.language.functions.arrays import QUANTIFIERS
from tamis.predicates import nested_vectors as nested
from tamis.predicates.term_columns import TermColumns, has_variable
from tamis.predicates.term_programs import (
    TermProgram,
    has_decimals,
    in_programs,
    inputs_of,
    is_held,
)
from tamis.schema import Schema
from tamis.types import DOUBLE

Array = np.ndarray[Any, Any]

MOST_HELD = 1 << 20  # inputs in memory together, for as many elements; each takes nine bytes


def element_terms(
    terms: Sequence[Node], schema: Schema, others: Container[int]
) -> dict[Node, "ElementTerms"]:
    """The terms that a program can compute, by their array, except `others`."""
    found: dict[Node, dict[int, ast.Call]] = {}
    for number, term in enumerate(terms):
        if number not in others and isinstance(term, ast.Call) and _is_tested(term):
            found.setdefault(term.arguments[0], {})[number] = term
    return {array: ElementTerms(array, own, schema) for array, own in found.items()}


def _is_tested(term: ast.Call) -> bool:
    array = quantified_array(term)
    of = None if array is None else array.type.element
    if of is None or not is_held(of):
        return False
    condition = condition_on(_element(term), term)
    if not in_programs([condition]) or has_decimals(condition):
        return False
    inputs = inputs_of(condition)
    return not any(has_variable(one) for one in inputs if not isinstance(one, ast.Variable))


def quantified_array(term: Node) -> Node | None:
    """The array of exists or forall, if it is an attribute or part of one; None for other terms."""
    if not isinstance(term, ast.Call) or term.name not in QUANTIFIERS:
        return None
    array = term.arguments[0]
    is_part = isinstance(array, ast.Call) and array.name in {"map_keys", "map_values"}
    holder = ast.children(array)[0] if is_part else array
    return array if isinstance(holder, ast.Attribute) else None


def _element(term: ast.Call) -> ast.Variable:
    """A variable for the elements of a term's array; its name does not matter."""
    array = term.arguments[0]
    return ast.Variable("", array.type.element or array.type)


def condition_on(element: Node, term: ast.Call) -> Node:
    """The condition of exists or forall, on something that stands for the element."""

    def named(node: Node) -> Node:
        return element if isinstance(node, ast.Variable) else node

    (body,) = ast.children(term.arguments[1])
    return ast.bottom_up(body, named)


class ElementTerms:
    """The terms of one array, by their numbers."""

    def __init__(self, array: Node, terms: dict[int, ast.Call], schema: Schema) -> None:
        self.numbers = np.array(list(terms), np.int64)
        self._array = array
        self._array_of_row = compile_value(array, schema)
        self._held = np.float64 if array.type.element == DOUBLE else np.int64
        self._decisive = np.array([term.name == "exists" for term in terms.values()], np.int64)
        conditions = [condition_on(_element(term), term) for term in terms.values()]
        self._program = TermProgram(dict(enumerate(conditions)), schema)

    def of_batch(self, columns: TermColumns) -> tuple[Array, Array]:
        """keys[term, event] and present[term, event]."""
        array = columns.vector(self._array)
        keys, present = self._without_elements(array.present)
        owners, (inner,) = nested.owners_of(nested.offsets_of(array)), array.parts
        values = inner.values.astype(self._held, copy=False).view(np.int64)
        inputs = self._program.inputs_of_batch(columns)
        step = max(MOST_HELD // max(self._program.inputs, 1), LANES)
        for start in range(0, len(owners), step):
            part = slice(start, start + step)
            elements = values[part], inner.present[part]
            self._test(inputs, elements, owners[part], keys, present)
        return keys, present

    def of_row(self, row: Row) -> tuple[Array, Array]:
        """keys[term] and present[term] of one event."""
        array = self._array_of_row(row)
        keys, present = self._without_elements(np.array([array is not None]))
        inputs = self._program.inputs_of_row(row) if array else None
        for start in range(0, len(array) if inputs else 0, LANES):
            block = array[start : start + LANES]
            there = np.array([element is not None for element in block], np.uint8)
            given = [0 if element is None else element for element in block]
            values = np.array(given, self._held).view(np.int64)
            self._test(inputs, (values, there), np.zeros(len(block), np.int64), keys, present)
            if np.array_equal(keys[:, 0], self._decisive) and present.all():
                break  # every term is decided, whatever elements follow
        return keys[:, 0], present[:, 0]

    def _without_elements(self, has_array: Array) -> tuple[Array, Array]:
        """keys[term, event] and present[term, event] of arrays that have no elements."""
        present = np.empty((len(self.numbers), len(has_array)), np.uint8)
        present[:] = has_array
        return (1 - self._decisive)[:, np.newaxis] * present, present

    def _test(
        self, inputs: Any, elements: tuple[Array, Array], owners: Array, keys: Array, present: Array
    ) -> None:
        self._program.test_elements(inputs, elements, owners, self._decisive, keys, present)
