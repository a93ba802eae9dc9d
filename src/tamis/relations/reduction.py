"""Which filters of a set can be left out, and which filter represents each of them.

A filter that another one covers is left out, and so are those that a perfect merger replaces: every
event that matches one of them matches its representative. Filters with the same canonical form are
the same filter and are found by looking the form up; only the others are compared.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.predicates.boxes import EMPTY, box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.merging.mergers import Merger, find_mergers
from tamis.relations.tables import CoverTable
from tamis.semantics import Semantics

K = TypeVar("K", bound=Hashable)

NEVER = "no event can match it"


def canonical(expression: Expression, semantics: Semantics, space: EventSpace) -> Node | None:
    """A normal form that equivalent filters mostly share, None for a filter that is never true.

    Filters that share it match the same events.
    """
    form = form_of(expression, semantics)
    box = box_of(form, space)
    if box is None:
        return form
    return None if box.is_empty else box.form


def why_never(expression: Expression, semantics: Semantics, space: EventSpace) -> str:
    """Why a filter is never true, for people."""
    form = form_of(expression, semantics)
    by_attribute: dict[str, list[Node]] = {}
    for item in form.items if isinstance(form, ast.And) else (form,):
        names = {".".join(path) for path in ast.attributes(item)}
        if len(names) == 1:
            by_attribute.setdefault(names.pop(), []).append(item)
    for name, items in by_attribute.items():
        if box_of(ast.And(tuple(items)) if len(items) > 1 else items[0], space) == EMPTY:
            return f"{NEVER}: no value of {name} passes all its tests"
    return f"{NEVER}: its tests exclude each other"


@dataclass
class ReducedFilters(Generic[K]):
    """What became of some filters.

    The representative of a filter is its own key, that of another filter, or a `Merger`.
    """

    representatives: dict[K, Any] = field(default_factory=dict)
    mergers: list[Merger[K]] = field(default_factory=list)
    never: list[K] = field(default_factory=list)


def reduce_filters(
    filters: Iterable[tuple[K, Expression]], semantics: Semantics, *, cover: bool = True,
    merge: bool = True, given: Mapping[K, Expression] | None = None,
) -> ReducedFilters[K]:  # fmt: skip
    """Find the representative of each of some filters, which are distinct.

    The `given` filters stay even if others cover them, and may represent others. Without `cover`
    every filter represents itself, and only filters that are obviously never true are left out.
    """
    if not cover:
        return _apart(filters, semantics)
    table: CoverTable[Any] = CoverTable(semantics)
    fixed: Mapping[K, Expression] = given or {}
    for key, expression in fixed.items():
        table.insert(key, expression)
    reduced: ReducedFilters[K] = ReducedFilters()
    own: list[K] = []
    for key, expression in filters:
        if table.insert(key, expression).never:
            reduced.never.append(key)
        else:
            own.append(key)
    if merge:
        roots = {key: table.expression(key) for key in own if table.is_root(key)}
        reduced.mergers = _insert_mergers(table, find_mergers(roots, semantics))
    for key in own:
        root = table.cover_of(key)
        reduced.representatives[key] = key if root is None else root
    return reduced


def _apart(filters: Iterable[tuple[K, Expression]], semantics: Semantics) -> ReducedFilters[K]:
    """The reduction in which every filter represents itself."""
    space = EventSpace.of(semantics)
    reduced: ReducedFilters[K] = ReducedFilters()
    for key, expression in filters:
        if canonical(expression, semantics, space) is None:
            reduced.never.append(key)
        else:
            reduced.representatives[key] = key
    return reduced


def _insert_mergers(table: CoverTable[Any], mergers: list[Merger[K]]) -> list[Merger[K]]:
    """Put mergers above their parts; returns the mergers that represent some filters."""
    for merger in mergers:
        table.insert(merger, merger.expression)
    for merger in mergers:
        # The table may not see that a merger covers its parts: then they represent themselves.
        if table.is_root(merger) and len(table.covered_by(merger)) < 2:
            table.remove(merger)
    # A merger that a later one, or a root, covers is not needed either.
    return [merger for merger in mergers if merger in table and table.is_root(merger)]
