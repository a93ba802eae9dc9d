"""Conditions on the elements of one array, like ``exists(scores, s -> s > bar + 3)``, as a program.

The program (`term_programs`) is run for each element, as others are for each event; what
conditions have in common is computed once. Elements are numbers, truth values or times: conditions
on strings are tested once for each distinct string (`term_columns`).
"""

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.language.functions.arrays import QUANTIFIERS
from tamis.predicates import nested_vectors as nested
from tamis.predicates.term_columns import ElementColumns, TermColumns
from tamis.predicates.term_programs import TermProgram, has_decimals, in_programs, is_held
from tamis.schema import Schema

Array = np.ndarray[Any, Any]


def element_terms(
    terms: Sequence[Node], schema: Schema, others: Container[int]
) -> dict[Node, "ElementTerms"]:
    """The terms that a program can compute, by their array; `others` are computed elsewhere."""
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
    return bool(in_programs([condition])) and not has_decimals(condition)


def quantified_array(term: Node) -> Node | None:
    """The array of exists or forall, if columns have it; None for other terms."""
    if not isinstance(term, ast.Call) or term.name not in QUANTIFIERS:
        return None
    array = term.arguments[0]
    is_part = isinstance(array, ast.Call) and array.name in {"map_keys", "map_values"}
    holder = ast.children(array)[0] if is_part else array
    return array if isinstance(holder, ast.Attribute) else None


def _element(term: ast.Call) -> ast.Variable:
    """The element of an array, whose name does not matter."""
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
        self._decisive = np.array([term.name == "exists" for term in terms.values()], np.int64)
        conditions = [condition_on(_element(term), term) for term in terms.values()]
        self._program = TermProgram(dict(enumerate(conditions)), schema)

    def of_batch(self, columns: TermColumns) -> tuple[Array, Array]:
        """keys[term, event] and present[term, event]."""
        array = columns.vector(self._array)
        owners = nested.owners_of(nested.offsets_of(array))
        present = np.empty((len(self.numbers), columns.size), np.uint8)
        present[:] = array.present
        keys = (1 - self._decisive)[:, np.newaxis] * present
        inner, of = array.parts[0], self._array.type.element or self._array.type
        elements = ElementColumns(columns, inner, owners, of)
        self._program.test_elements(elements, owners, self._decisive, keys, present)
        return keys, present

    def of_row(self, row: Row) -> tuple[Array, Array]:
        """keys[term] and present[term] of one event."""
        array = self._array_of_row(row)
        if array is None:
            return np.zeros(len(self.numbers), np.int64), np.zeros(len(self.numbers), np.uint8)
        keys, present = 1 - self._decisive, np.ones(len(self.numbers), np.uint8)
        rows = [(*row, element) for element in array]
        owners = np.zeros(len(rows), np.int64)
        self._program.test_elements(
            rows, owners, self._decisive, keys.reshape(-1, 1), present.reshape(-1, 1)
        )
        return keys, present
