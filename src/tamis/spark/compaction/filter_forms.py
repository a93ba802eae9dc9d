"""Canonical forms of filters, in the workers: filters with the same form match the same events."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from tamis.bounded_caches import BoundedCache
from tamis.errors import ExpressionError
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.matcher_settings import MatcherSettings
from tamis.predicates.boxes import pinned_values
from tamis.predicates.event_space import EventSpace
from tamis.relations.reduction import canonical, why_never
from tamis.schema import Schema

REMEMBERED = 64_000_000  # bytes of texts and forms that a worker remembers


class FilterForm(NamedTuple):
    """What is known of a filter before it is compared with others."""

    key: bytes | None  # filters with the same key match the same events; None if it is never true
    pin: int | None  # a number for the one value that it requires of the attribute, if it does
    reason: str | None  # why it is never true


class FilterForms:
    """Finds the forms of filters; `position` is that of the attribute that divides filters."""

    def __init__(self, settings: MatcherSettings, position: int | None) -> None:
        self._shapes = ShapeCache(settings.schema)
        self._semantics = settings.meaning()
        self._space = EventSpace.of(self._semantics)
        self._position = position
        self._known: BoundedCache[str, FilterForm] = BoundedCache(REMEMBERED)

    def of(self, text: str) -> FilterForm:
        """The form of a filter."""
        found = self._known.find(text)
        if found is None:
            found = self._made(self._shapes.parse(text))
            self._known.keep(text, found)
        return found

    def _made(self, expression: Expression) -> FilterForm:
        form = canonical(expression, self._semantics, self._space)
        if form is None:
            return FilterForm(None, None, why_never(expression, self._semantics, self._space))
        value = None
        if self._position is not None:
            value = pins_of(form, self._space.schema).get(self._position)
        key = hashlib.blake2b(repr(form).encode(errors="surrogatepass"), digest_size=16).digest()
        return FilterForm(key, None if value is None else _number(value), None)

    def pins(self, text: str) -> dict[int, str]:
        """By attribute, the one value that a filter requires."""
        form = canonical(self._shapes.parse(text), self._semantics, self._space)
        return {} if form is None else pins_of(form, self._space.schema)


def pins_of(form: Node, schema: Schema) -> dict[int, str]:
    """By the position of an attribute, the one value that a form requires, as text."""
    return {position: repr(value) for position, value in pinned_values(form, schema).items()}


def _number(value: str) -> int:
    digest = hashlib.blake2b(value.encode(errors="surrogatepass"), digest_size=7).digest()
    return int.from_bytes(digest)


def most_pinned(texts: Iterable[str], settings: MatcherSettings) -> int | None:
    """The attribute of which most filters require one value; None if hardly any does."""
    forms = FilterForms(settings, None)
    counts: dict[int, int] = {}
    read = 0
    for text in dict.fromkeys(texts):
        try:
            pins = forms.pins(text)
        except ExpressionError:
            continue  # a dead letter will say why
        read += 1
        for position in pins:
            counts[position] = counts.get(position, 0) + 1
    best = max(counts, key=lambda position: (counts[position], -position), default=None)
    return best if best is not None and counts[best] * 4 >= read else None
