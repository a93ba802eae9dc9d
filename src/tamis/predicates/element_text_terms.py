"""Conditions on the strings of one array, like ``exists(tags, t -> t LIKE 'a%')``.

They are tested once for each distinct string, and the results are remembered. Of many conditions,
only those are tested that may be true of the string (`text_index`).
"""

from collections.abc import Container, Sequence
from typing import Any, NamedTuple

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
from tamis.predicates.needed_texts import STARTSWITH, NeededText, needed_text
from tamis.predicates.term_columns import TermColumns
from tamis.predicates.text_index import TextIndex, TextTest
from tamis.predicates.text_terms import FEWEST_TERMS, MOST_REMEMBERED
from tamis.predicates.vectors import Vector, distinct_texts
from tamis.schema import Attribute, Schema
from tamis.types import STRING

Array = np.ndarray[Any, Any]
MOST_HELD = 1 << 22  # terms in verdicts that are in memory together, each of up to twelve bytes
TRUE, OPEN = 1, 2  # the truth of a condition or a term; 0 is false
_ELEMENT = ast.Attribute(("element",), STRING)
_ELEMENTS = Schema.of_attributes([Attribute(_ELEMENT.path, STRING)])


def element_text_terms(
    terms: Sequence[Node], schema: Schema, others: Container[int]
) -> dict[Node, "ElementTextTerms"]:
    """The terms on arrays of strings, by their array, except `others` and where they are few."""
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


class Verdict(NamedTuple):
    """What one string means for the terms."""

    decided: Array  # terms that it decides, except those in `ElementTextTerms._negated`
    spared: Array  # places in `_negated` of the terms that it does not decide
    left_open: Array  # terms that are null if no other string decides them


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
            _deciding(condition, is_decisive=bool(decisive))
            for condition, decisive in zip(conditions, self._decisive, strict=True)
        ]
        needed = {place: _needed(condition) for place, condition in enumerate(deciding)}
        self._index = TextIndex({
            place: TextTest(*text, of_constant=False, negated=False, decided=False)
            for place, text in needed.items()
            if text is not None
        })  # fmt: skip
        self._others = [place for place, text in needed.items() if text is None]
        # Terms that every string without their text decides.
        negated = [n for n, test in enumerate(deciding) if needed[n] and isinstance(test, ast.Not)]
        self._negated = np.array(negated, np.int64)
        self._place_in_negated = np.full(len(terms), -1, np.int64)
        self._place_in_negated[self._negated] = np.arange(len(negated))
        self._known: BoundedCache[str | None, Verdict] = BoundedCache(most)

    def of_batch(self, columns: TermColumns) -> tuple[Array, Array]:
        """keys[term, event] and present[term, event]."""
        array = columns.vector(self._array)
        owners, (inner,) = nested.owners_of(nested.offsets_of(array)), array.parts
        truth, spared = self._without_elements(array.present)
        step = max(MOST_HELD // len(self.numbers), 1)
        for start in range(0, len(owners), step):
            end = start + step
            part = Vector(inner.present[start:end], inner.values[start:end], inner.texts)
            self._hear(*distinct_texts(part), owners[start:end], truth, spared)
        self._decide_negated(truth, spared, np.bincount(owners, minlength=len(truth)))
        transposed = np.ascontiguousarray(truth.T)
        return (transposed == TRUE).astype(np.int64), (transposed != OPEN).astype(np.uint8)

    def of_row(self, row: Row) -> tuple[Array, Array]:
        """keys[term] and present[term] of one event."""
        array = self._array_of_row(row)
        texts = list(array or ())
        truth, spared = self._without_elements(np.array([array is not None]))
        self._hear(texts, np.arange(len(texts)), np.zeros(len(texts), np.int64), truth, spared)
        self._decide_negated(truth, spared, np.array([len(texts)]))
        return (truth[0] == TRUE).astype(np.int64), (truth[0] != OPEN).astype(np.uint8)

    def _without_elements(self, has_array: Array) -> tuple[Array, Array]:
        """truth[event, term] and spared[event, place] of arrays that have no elements."""
        truth = np.empty((len(has_array), len(self.numbers)), np.uint8)
        truth[:] = np.where(has_array[:, np.newaxis], 1 - self._decisive, OPEN)
        return truth, np.zeros((len(has_array), len(self._negated)), np.int32)

    def _hear(
        self, texts: Sequence[str | None], places: Array, owners: Array, truth: Array, spared: Array
    ) -> None:
        """Change truth[event, term] and spared[event, place] by the verdicts on some elements.

        The string of an element is texts[places[element]], its event owners[element].
        """
        verdicts = [self._verdict(text) for text in texts]
        says = np.array([any(map(len, verdict)) for verdict in verdicts], np.bool_)
        some = np.flatnonzero(says[places])
        for owner, place in zip(owners[some].tolist(), places[some].tolist(), strict=True):
            verdict, own = verdicts[place], truth[owner]
            left_open = verdict.left_open
            if len(left_open):
                own[left_open[own[left_open] != self._decisive[left_open]]] = OPEN
            own[verdict.decided] = self._decisive[verdict.decided]
            spared[owner, verdict.spared] += 1

    def _decide_negated(self, truth: Array, spared: Array, sizes: Array) -> None:
        """Decide the terms of `_negated` that some element has not spared."""
        if len(self._negated):
            decided = spared < sizes[:, np.newaxis]
            own = truth[:, self._negated]
            truth[:, self._negated] = np.where(decided, self._decisive[self._negated], own)

    def _verdict(self, text: str | None) -> Verdict:
        return self._known.find(text) or self._learn(text)

    def _learn(self, text: str | None) -> Verdict:
        tried: Sequence[int] = range(len(self._conditions))
        if text is not None:
            tried = [*self._index.of_text(text).left_open.tolist(), *self._others]
        row = (text,)
        truths = np.array([_truth(self._conditions[place](row)) for place in tried], np.uint8)
        terms = np.array(tried, np.int32)
        places, decides = self._place_in_negated[terms], truths == self._decisive[terms]
        verdict = Verdict(
            terms[decides & (places < 0)],
            places[~decides & (places >= 0)].astype(np.int32),
            terms[truths == OPEN],
        )
        self._known.keep(text, verdict)
        return verdict


def _truth(value: bool | None) -> int:
    return OPEN if value is None else int(value)


def _deciding(condition: Node, *, is_decisive: bool) -> Node:
    """The condition that is true of strings that decide a term, if none of its parts is null."""
    if isinstance(condition, ast.IsTruth) and condition.truth:
        condition = condition.operand  # which is the same, where nothing is unknown
    if isinstance(condition, ast.Compare) and condition.op == "<>":
        condition = ast.Not(ast.Compare("=", condition.left, condition.right))
    if is_decisive:
        return condition
    return condition.operand if isinstance(condition, ast.Not) else ast.Not(condition)


def _needed(condition: Node) -> NeededText | None:
    """A text without which a condition is false or, if it is a negation, true."""
    if any(isinstance(part, ast.Literal) and part.value is None for part in ast.walk(condition)):
        return None  # it may be null
    return _text_of(condition.operand if isinstance(condition, ast.Not) else condition)


def _text_of(condition: Node) -> NeededText | None:
    """A text without which a condition, which is not a negation, is false."""
    if isinstance(condition, ast.And):
        parts = [_text_of(part) for part in condition.items]
        found = [text for text in parts if text is not None]
        return max(found, key=lambda one: len(one.text), default=None)
    if isinstance(condition, ast.Not):
        return None
    match classify(condition):
        case Comparison(value, "=", str(text)) if value == _ELEMENT and text:
            return NeededText(STARTSWITH, text)
        case StringTest(value) | LikeTest(value) | RegexTest(value) if value == _ELEMENT:
            return needed_text(condition)
        case _:
            return None
