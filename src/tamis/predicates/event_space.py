"""The events over which filters are compared: which attributes may be missing.

Relations between filters are relations between their normal forms, in which only the truth of
predicates matters. What is left of the semantics is the logic of the normal form, and the
attributes that an event may lack.
"""

import functools
from dataclasses import dataclass

from tamis.bounded_caches import remembered
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.language.normal_form import normalize
from tamis.predicates.presence import matching_form
from tamis.schema import Schema
from tamis.semantics import Semantics


@dataclass(frozen=True, slots=True)
class EventSpace:
    """All events of a schema as filters of one semantics see them."""

    schema: Schema
    optional: frozenset[int]  # the positions of attributes that may be missing

    @classmethod
    def of(cls, semantics: Semantics) -> "EventSpace":
        """The events of a semantics; with defaults, only attributes without one may be missing."""
        return _space_of(semantics)

    def may_miss(self, position: int) -> bool:
        """Whether an event may lack the attribute at a position of the schema."""
        return position in self.optional


@functools.lru_cache(maxsize=100)
def _space_of(semantics: Semantics) -> EventSpace:
    if semantics.name == "total":
        return EventSpace(semantics.schema, frozenset())
    defaults = semantics.defaults or (None,) * len(semantics.schema)
    return EventSpace(semantics.schema, frozenset(n for n, d in enumerate(defaults) if d is None))


def form_of(expression: Expression, semantics: Semantics) -> Node:
    """The normal form of a filter: it is true of an event of the space iff the event matches.

    A strict filter also tests that every attribute of its text is present (`presence`).
    """
    if semantics.name == "strict":
        return _strict_form(expression, semantics)
    return _form(expression.tree, semantics.logic)


_strict_form = remembered()(matching_form)
_form = remembered()(normalize)
