"""Terms of one string, like ``instr(lower(name), 'x')``: their keys are remembered by the string.

Functions of strings run in Python. Where many filters each call one of their own, a string that
comes again, in the same batch or later, should not be computed again.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from tamis.bounded_caches import BoundedCache
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.keys import Keys
from tamis.predicates.term_columns import TermColumns
from tamis.predicates.term_programs import is_held
from tamis.predicates.vectors import distinct_texts
from tamis.schema import Attribute, Schema
from tamis.types import STRING

Array = np.ndarray[Any, Any]
KeyRow = tuple[Array, Array]  # keys[term], in 32 bits if they fit, and present[term]

FEWEST_TERMS = 8  # of an attribute, from which they are remembered
FEWEST_COLUMNS = 8  # new strings from which terms are computed column by column
MOST_REMEMBERED = 64_000_000  # bytes of strings and keys, for all attributes of a segment


def text_terms(
    terms: Sequence[Node], schema: Schema, others: Container[int]
) -> dict[int, "TextTerms"]:
    """The terms of one string, by its place in the schema; `others` are computed elsewhere."""
    found: dict[int, dict[int, Node]] = {}
    for number, term in enumerate(terms):
        paths = ast.attributes(term)
        if number in others or len(paths) != 1 or not is_held(term.type):
            continue
        if isinstance(term, ast.Elements) or ast.has_clock(term):
            continue
        place = schema.positions[next(iter(paths))]
        if schema.attributes[place].type == STRING:
            found.setdefault(place, {})[number] = term
    most = MOST_REMEMBERED // max(len(found), 1)
    return {
        place: TextTerms(own, place, schema.attributes[place], most)
        for place, own in found.items()
        if len(own) >= FEWEST_TERMS
    }


class TextTerms:
    """The terms of one attribute, by their numbers."""

    def __init__(
        self, terms: Mapping[int, Node], place: int, attribute: Attribute, most: int
    ) -> None:
        self.numbers = np.array(list(terms), np.int64)
        self._terms = list(terms.values())
        self._place = place
        self._text = ast.Attribute(attribute.path, attribute.type)
        self._schema = Schema.of_attributes([attribute])
        made = [Attribute((str(number),), term.type) for number, term in terms.items()]
        keys = Keys(Schema.of_attributes(made))
        self._of_row = [
            (compile_value(term, self._schema), keys.of_one(place))
            for place, term in enumerate(self._terms)
        ]
        self._known: BoundedCache[str | None, KeyRow] = BoundedCache(most)

    def of_row(self, row: Row) -> KeyRow:
        """keys[term] and present[term] of one event."""
        text = row[self._place]
        return self._known.find(text) or self._learn_one(text)

    def of_batch(self, columns: TermColumns) -> tuple[Array, Array]:
        """keys[term, event] and present[term, event] of many events."""
        texts, places = distinct_texts(columns.vector(self._text))
        rows = self._rows(texts)
        keys = np.empty((len(self._terms), len(rows)), np.int64)
        present = np.empty(keys.shape, np.uint8)
        for place, (own, there) in enumerate(rows):
            keys[:, place], present[:, place] = own, there
        return keys.take(places, 1), present.take(places, 1)  # rows in one piece, as kernels expect

    def _rows(self, texts: list[str | None]) -> list[KeyRow]:
        """The keys of some strings, after learning the new ones."""
        found = [self._known.find(text) for text in texts]
        new = [text for text, row in zip(texts, found, strict=True) if row is None]
        if len(new) < FEWEST_COLUMNS:
            learned = iter([self._learn_one(text) for text in new])
        else:
            learned = iter(self._learn(new))
        return [next(learned) if row is None else row for row in found]

    def _learn(self, texts: list[str | None]) -> list[KeyRow]:
        columns = TermColumns(batch_of_rows([(text,) for text in texts], self._schema))
        made = [columns.column(term) for term in self._terms]
        keys = np.stack([one.keys for one in made], axis=1)
        present = np.stack([one.present for one in made], axis=1)
        return [
            self._keep(text, own, there)
            for text, own, there in zip(texts, keys, present, strict=True)
        ]

    def _learn_one(self, text: str | None) -> KeyRow:
        row = (text,)
        values = [compute(row) for compute, _ in self._of_row]
        keys = [
            0 if value is None else key(value)
            for value, (_, key) in zip(values, self._of_row, strict=True)
        ]
        present = [value is not None for value in values]
        return self._keep(text, np.array(keys, np.int64), np.array(present, np.uint8))

    def _keep(self, text: str | None, keys: Array, present: Array) -> KeyRow:
        """Remember copies: a part of an array would hold all of it. Most keys are short."""
        short = keys.astype(np.int32)
        row = short if np.array_equal(short, keys) else keys.copy(), present.copy()
        self._known.keep(text, row)
        return row
