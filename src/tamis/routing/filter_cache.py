"""The filters of a broker, each parsed, compared and compiled once."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from tamis.bounded_caches import remembered
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.expression import Expression, parse_with
from tamis.language.normal_form import flatten
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.entailment.decision import Answer, satisfiable
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics

MOST_BYTES = 64_000_000  # of the results for texts, and for pairs of texts


def shared_cache(schema: Any, semantics: str, defaults: Mapping[str, Any] | None) -> "FilterCache":
    """The cache that all brokers of a process with this schema and semantics share."""
    items = None if defaults is None else tuple(sorted(defaults.items()))
    return _shared_cache(as_schema(schema), semantics, items)


@functools.lru_cache(maxsize=100)
def _shared_cache(
    schema: Schema, semantics: str, defaults: tuple[Any, ...] | None
) -> "FilterCache":
    return FilterCache(schema, semantics, None if defaults is None else dict(defaults))


class FilterCache:
    """What is known about filters, by their texts, over one schema and in one semantics."""

    def __init__(self, schema: Schema, semantics: str, defaults: Mapping[str, Any] | None) -> None:
        self.schema = schema
        self.defaults = defaults
        self.semantics = Semantics(semantics, self.schema, defaults)
        self._space = EventSpace.of(self.semantics)
        self.parse = remembered(MOST_BYTES)(self._parse)
        self.may_intersect = remembered(MOST_BYTES)(self._may_intersect)
        self.condition = remembered(MOST_BYTES)(self._condition)

    def _parse(self, text: str) -> Expression:
        """The expression of a filter."""
        return parse_with(text, self.schema)

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
        return satisfiable(form_of(expression, self.semantics), self._space) is not Answer.NO
