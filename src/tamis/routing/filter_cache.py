"""The filters of a broker, each parsed, compared and compiled once."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from tamis.bounded_caches import BoundedCache, remembered
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.expression import Expression
from tamis.language.normal_form import flatten
from tamis.language.shape_cache import ShapeCache
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.entailment.decision import Answer, satisfiable
from tamis.relations.tables.prepared_filters import FilterPreparation, PreparedFilter
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics

MOST_BYTES = 64_000_000  # of the results for texts, and for pairs of texts
CHARACTER = 20  # bytes of what is known of a filter, for each character of its text


def shared_cache(schema: Any, semantics: str, defaults: Mapping[str, Any] | None) -> "FilterCache":
    """The cache that all brokers of a process with this schema and semantics share."""
    items = None if defaults is None else tuple(sorted(defaults.items()))
    known = as_schema(schema)
    return _shared_cache(known, known.has_clock, semantics, items)


@functools.lru_cache(maxsize=100)
def _shared_cache(
    schema: Schema, _has_clock: bool, semantics: str, defaults: tuple[Any, ...] | None
) -> "FilterCache":
    return FilterCache(schema, semantics, None if defaults is None else dict(defaults))


class _Parsed(BoundedCache[str, Expression]):
    """Expressions by their texts."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(MOST_BYTES)
        self._read = ShapeCache(schema).parse

    def make(self, text: str) -> Expression:
        return self._read(text)

    def size(self, text: str, expression: Expression) -> int:  # noqa: ARG002 - a tree is not made
        return self.least + CHARACTER * len(text)


class _Prepared(BoundedCache[str, PreparedFilter | None]):
    """Filters as tables compare them by their texts, None for one that can never be true."""

    def __init__(self, preparation: FilterPreparation, parse: Callable[[str], Expression]) -> None:
        super().__init__(MOST_BYTES)
        self._preparation = preparation
        self._parse = parse

    def make(self, text: str) -> PreparedFilter | None:
        return self._preparation.prepare(self._parse(text))

    def size(self, text: str, prepared: PreparedFilter | None) -> int:  # noqa: ARG002 - as above
        return self.least + CHARACTER * len(text)


class FilterCache:
    """What is known about filters, by their texts, over one schema and in one semantics."""

    def __init__(self, schema: Schema, semantics: str, defaults: Mapping[str, Any] | None) -> None:
        self.schema = schema
        self.defaults = defaults
        self.semantics = Semantics(semantics, self.schema, defaults)
        self.preparation = FilterPreparation(self.semantics)
        self._space = EventSpace.of(self.semantics)
        self.parse = _Parsed(self.schema).__getitem__  # the expression of a filter
        self.prepare = _Prepared(self.preparation, self.parse).__getitem__
        self.may_intersect = remembered(MOST_BYTES)(self._may_intersect)
        self.condition = remembered(MOST_BYTES)(self._condition)

    def _may_intersect(self, text: str, other: str) -> bool:
        """Whether an event may match both filters; False only if certainly none does."""
        forms = tuple(form_of(self.parse(one), self.semantics) for one in (text, other))
        both = flatten(ast.And(forms), self.semantics.logic)
        return satisfiable(both, self._space) is not Answer.NO

    def _condition(self, text: str) -> Callable[[Row], bool]:
        """A filter as a function of a row."""
        return self.semantics.condition(self.parse(text))

    def can_match(self, expression: Expression) -> bool:
        """Whether an event may match a filter; False only if certainly none does."""
        return self.preparation.prepare(expression) is not None
