"""Conditions on the strings of one array, like ``exists(tags, t -> t LIKE 'a%')``.

They are tested once for each distinct string, and the answers are remembered. Of many conditions
only those are tested that may be true of the string (`needed_texts`).
"""

from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np

from tamis.bounded_caches import BoundedCache
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.predicates import nested_vectors as nested
from tamis.predicates.classification import (
    Comparison,
    LikeTest,
    RegexTest,
    StringTest,
    classify,
)
from tamis.predicates.element_terms import condition_on, quantified_array
from tamis.predicates.needed_texts import START, NeededText, NeededTexts, needed_text
from tamis.predicates.term_columns import TermColumns
from tamis.predicates.text_terms import FEWEST_TERMS, MOST_REMEMBERED
from tamis.schema import Attribute, Schema
from tamis.types import STRING

Array = np.ndarray[Any, Any]
Verdict = tuple[Array, Array]  # the terms that a string decides, and those that it leaves open

TRUE, OPEN = 1, 2  # the truth of a condition or a term; 0 is false
_OPPOSITE = {"=": "<>", "<>": "="}
_ELEMENT = ast.Attribute(("element",), STRING)
_ELEMENTS = Schema.of_attributes([Attribute(_ELEMENT.path, STRING)])


def element_text_terms(
    terms: Sequence[Node], schema: Schema, others: Container[int]
) -> dict[Node, "ElementTextTerms"]:
    """The terms of one array of strings, by that; `others` are computed elsewhere."""
    found: dict[Node, dict[int, ast.Call]] = {}
    for number, term in enumerate(terms):
        array = quantified_array(term)
        if number in others or array is None or not isinstance(term, ast.Call):
            continue
        if array.type.element == STRING and not ast.varies(term.arguments[1]):
            found.setdefault(array, {})[number] = term
    most = MOST_REMEMBERED // max(len(found), 1)
    return {
        array: ElementTextTerms(array, own, schema, most)
        for array, own in found.items()
        if len(own) >= FEWEST_TERMS
    }


class ElementTextTerms:
    """The terms of one array, by their numbers.

    A string *decides* a term if its condition is true of it, for exists, or false, for forall. It
    leaves the term open if its condition is null.
    """

    def __init__(self, array: Node, terms: dict[int, ast.Call], schema: Schema, most: int) -> None:
        self.numbers = np.array(list(terms), np.int64)
        self._array = array
        self._array_of_row = compile_value(array, schema)
        self._decisive = np.array([term.name == "exists" for term in terms.values()], np.uint8)
        conditions = [condition_on(_ELEMENT, term) for term in terms.values()]
        self._conditions = [compile_value(condition, _ELEMENTS) for condition in conditions]
        deciding = [
            condition if decisive else _negation(condition)
            for condition, decisive in zip(conditions, self._decisive, strict=True)
        ]
        needed = {place: _needed(condition) for place, condition in enumerate(deciding)}
        known = {place: text for place, text in needed.items() if text is not None}
        self._texts = NeededTexts(known.items())
        self._others = [place for place, text in needed.items() if text is None]
        # Without the text, the string decides these.
        self._negated = np.array(
            [place for place in known if isinstance(deciding[place], ast.Not)], np.int32
        )
        self._known: BoundedCache[str | None, Verdict] = BoundedCache(most)

    def of_batch(self, columns: TermColumns) -> tuple[Array, Array]:
        """keys[term, event] and present[term, event]."""
        array = columns.vector(self._array)
        owners, inner = nested.owners_of(nested.offsets_of(array)), array.parts[0]
        texts: list[str | None] = [*(inner.texts or ()), None]
        codes = np.where(inner.present, inner.values, len(texts) - 1)
        distinct, places = np.unique(codes, return_inverse=True)
        verdicts = [self._verdict(texts[code]) for code in distinct.tolist()]
        truth = np.empty((columns.size, len(self.numbers)), np.uint8)
        truth[:] = np.where(array.present[:, np.newaxis], 1 - self._decisive, OPEN)
        for owner, (_, left_open) in _of_elements(owners, places, verdicts, 1):
            truth[owner, left_open] = OPEN
        for owner, (decided, _) in _of_elements(owners, places, verdicts, 0):
            truth[owner, decided] = self._decisive[decided]
        return (truth == TRUE).T.astype(np.int64), (truth != OPEN).T.astype(np.uint8)

    def of_row(self, row: Row) -> tuple[Array, Array]:
        """keys[term] and present[term] of one event."""
        array = self._array_of_row(row)
        truth = 1 - self._decisive
        if array is None:
            truth[:] = OPEN
        verdicts = [self._verdict(text) for text in array or ()]
        for _, left_open in verdicts:
            truth[left_open] = OPEN
        for decided, _ in verdicts:
            truth[decided] = self._decisive[decided]
        return (truth == TRUE).astype(np.int64), (truth != OPEN).astype(np.uint8)

    def _verdict(self, text: str | None) -> Verdict:
        return self._known.find(text) or self._learn(text)

    def _learn(self, text: str | None) -> Verdict:
        if text is None:
            tried: Sequence[int] = range(len(self._conditions))
            decided = []
        else:
            candidates = self._texts.candidates(text)
            tried = [*candidates, *self._others]
            decided = [np.setdiff1d(self._negated, candidates)]
        row = (text,)
        truths = np.array([_truth(self._conditions[place](row)) for place in tried], np.uint8)
        places = np.array(tried, np.int32)
        decided.append(places[truths == self._decisive[places]])
        verdict = np.concatenate(decided).astype(np.int32), places[truths == OPEN]
        self._known.keep(text, verdict)
        return verdict


def _truth(value: bool | None) -> int:
    return OPEN if value is None else int(value)


def _of_elements(
    owners: Array, places: Array, verdicts: Sequence[Verdict], part: int
) -> Iterable[tuple[int, Verdict]]:
    """The events and verdicts of elements, where a part of the verdict is not empty."""
    says = np.array([len(verdict[part]) > 0 for verdict in verdicts], np.bool_)
    some = np.flatnonzero(says[places])
    return zip(owners[some].tolist(), [verdicts[k] for k in places[some].tolist()], strict=True)


def _negation(condition: Node) -> Node:
    """A condition that is true where another one is false."""
    match condition:
        case ast.Not(operand):
            return operand
        case ast.Compare(op, left, right) if op in _OPPOSITE:
            return ast.Compare(_OPPOSITE[op], left, right)
        case _:
            return ast.Not(condition)


def _needed(condition: Node) -> NeededText | None:
    """A text without which a condition is false, or true if it is a negation."""
    if isinstance(condition, ast.And):
        parts = [_needed(part) for part in condition.items if not isinstance(part, ast.Not)]
        found = [text for text in parts if text is not None]
        return max(found, key=lambda one: len(one.text), default=None)
    if any(isinstance(part, ast.Literal) and part.value is None for part in ast.walk(condition)):
        return None  # it may be null
    match classify(condition):
        case Comparison(value, "=", str(text)) if value == _ELEMENT and text:
            return NeededText(START, text)
        case StringTest(value) | LikeTest(value) | RegexTest(value) if value == _ELEMENT:
            return needed_text(condition)
        case _:
            return None
