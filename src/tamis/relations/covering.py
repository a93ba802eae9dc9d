"""Which filter covers which: ``a`` covers ``b`` iff every event that matches b matches a.

What is not decided is never claimed: `covers` is then False, and `intersects` and `can_match`,
which are used to leave something out, are True.
"""

import functools
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from tamis.deep_stack import with_deep_stack
from tamis.errors import OptionError
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.expression import Expression
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.entailment.decision import Answer, entails, satisfiable, witness
from tamis.schema import Schema
from tamis.semantics import Semantics
from tamis.timestamps import FIRST, LAST, timestamp_text
from tamis.types import TIMESTAMP

Defaults = Mapping[str, Any] | None


class Relation(IntEnum):
    """How a filter a is related to a filter b: one bit for each direction of covering."""

    NONE = 0
    COVERED_BY = 1
    COVERS = 2
    EQUAL = 3


def covers(
    a: Expression, b: Expression, *, semantics: str = "sql", defaults: Defaults = None
) -> bool:
    """Whether every event that matches b matches a; False if that is not decided.

    >>> from tamis import Schema, parse
    >>> schema = Schema({"price": "double", "company": "string"})
    >>> a = parse("price > 10", schema)
    >>> covers(a, parse("price > 20 AND company LIKE 'I%'", schema))
    True
    """
    return decide(a, b, semantics=semantics, defaults=defaults) is Answer.YES


@with_deep_stack
def decide(
    a: Expression, b: Expression, *, semantics: str = "sql", defaults: Defaults = None
) -> Answer:
    """Like `covers`, with UNDECIDED if it depends on tests that cannot be compared."""
    meaning = _meaning((a, b), semantics, defaults)
    return entails(form_of(b, meaning), form_of(a, meaning), EventSpace.of(meaning))


@with_deep_stack
def relation(
    a: Expression, b: Expression, *, semantics: str = "sql", defaults: Defaults = None
) -> Relation:
    """Whether a covers b, is covered by b, or both, as far as that is decided."""
    meaning = _meaning((a, b), semantics, defaults)
    space, first, second = EventSpace.of(meaning), form_of(a, meaning), form_of(b, meaning)
    covering = entails(second, first, space) is Answer.YES
    covered = entails(first, second, space) is Answer.YES
    return Relation(Relation.COVERS * covering + Relation.COVERED_BY * covered)


@with_deep_stack
def intersects(
    a: Expression, b: Expression, *, semantics: str = "sql", defaults: Defaults = None
) -> bool:
    """Whether some event matches both; False only if certainly none does."""
    meaning = _meaning((a, b), semantics, defaults)
    both = ast.And((form_of(a, meaning), form_of(b, meaning)))
    return satisfiable(both, EventSpace.of(meaning)) is not Answer.NO


@with_deep_stack
def can_match(a: Expression, *, semantics: str = "sql", defaults: Defaults = None) -> bool:
    """Whether some event matches; False only if certainly none does."""
    meaning = _meaning((a,), semantics, defaults)
    return satisfiable(form_of(a, meaning), EventSpace.of(meaning)) is not Answer.NO


@with_deep_stack
def counterexample(
    a: Expression, b: Expression, *, semantics: str = "sql", defaults: Defaults = None
) -> dict[str, Any] | None:
    """An event that matches b and not a, which shows that a does not cover b; None if unknown."""
    meaning = _meaning((a, b), semantics, defaults)
    row = witness(form_of(b, meaning), form_of(a, meaning), EventSpace.of(meaning))
    return None if row is None else event_of(row, meaning.schema)


def event_of(row: Row, schema: Schema) -> dict[str, Any]:
    """A row as the mapping that a matcher takes: records within records, moments as text."""
    event: dict[str, Any] = {}
    for attribute, value in zip(schema.attributes, row, strict=True):
        if value is None:
            continue
        record = event
        *records, last = attribute.path
        for name in records:
            record = record.setdefault(name, {})
        if attribute.type == TIMESTAMP and FIRST <= value <= LAST:
            value = timestamp_text(value)  # noqa: PLW2901 - the same moment, as people write it
        record[last] = value
    return event


def _meaning(expressions: tuple[Expression, ...], semantics: str, defaults: Defaults) -> Semantics:
    for expression in expressions:
        if isinstance(expression, str):
            raise OptionError(
                f"a filter is compared as an Expression, not as text; "
                f"write tamis.parse({expression[:60]!r}, schema)"
            )
        if not isinstance(expression, Expression):
            raise OptionError(
                f"a filter is an Expression, made by tamis.parse, not {type(expression).__name__}"
            )
    first = expressions[0].schema
    for other in expressions[1:]:
        if other.schema is not first and other.schema != first:
            raise OptionError(
                "the two filters are over different schemas, and their events cannot be compared; "
                "parse both with one schema"
            )
    if defaults is None:
        return _without_defaults(semantics, first)
    return Semantics(semantics, first, defaults)


@functools.lru_cache(maxsize=100)
def _without_defaults(name: str, schema: Schema) -> Semantics:
    return Semantics(name, schema)
