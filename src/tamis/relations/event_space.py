"""The events that filters are compared over: which attributes may be missing.

Relations between filters are relations between their *forms*: normal forms, in which nothing but
the truth of predicates matters. What is left of the semantics is the logic of the form, and the
attributes that an event may lack.
"""

import functools
from dataclasses import dataclass

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import Logic
from tamis.language.expression import Expression
from tamis.language.normal_form import flatten, normalize
from tamis.names import Path
from tamis.schema import Schema
from tamis.semantics import Semantics


@dataclass(frozen=True, slots=True)
class World:
    """All events of a schema that one semantics asks filters about."""

    schema: Schema
    optional: frozenset[int]  # the positions of attributes that may be missing

    @classmethod
    def of(cls, semantics: Semantics) -> "World":
        """The world of a semantics; with defaults, only what has none stays missing."""
        return _world_of(semantics)

    def may_miss(self, position: int) -> bool:
        """Whether an event may lack the attribute at a position of the schema."""
        return position in self.optional


@functools.lru_cache(maxsize=100)
def _world_of(semantics: Semantics) -> World:
    if semantics.name == "total":
        return World(semantics.schema, frozenset())
    defaults = semantics.defaults or (None,) * len(semantics.schema)
    return World(semantics.schema, frozenset(n for n, d in enumerate(defaults) if d is None))


def form_of(expression: Expression, semantics: Semantics) -> Node:
    """The form of a filter: it is true of an event of the world iff the event matches.

    A strict filter also asks for every attribute of its text, even where none matters.
    """
    return _form(expression.tree, semantics.logic, semantics.name == "strict")


@functools.lru_cache(maxsize=10_000)
def _form(tree: Node, logic: Logic, strict: bool) -> Node:
    form = normalize(tree, logic)
    if not strict:
        return form
    named = {part for part in ast.walk(tree) if isinstance(part, ast.Attribute)}
    present = [ast.Not(ast.IsNull(attribute)) for attribute in sorted(named, key=_place)]
    return flatten(ast.And((*present, form)), logic)


def _place(attribute: ast.Attribute) -> Path:
    return attribute.path
