"""Which filters of a table can be left out, and who stands for them.

A filter that another covers is left out, and so are those that a perfect merger replaces: whatever
event one of them matches is matched by who stands for it. Filters with one canonical form are the
same filter, and are found by looking the form up; only what is left is compared.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.relations.boxes import box_of
from tamis.relations.event_space import World, form_of
from tamis.relations.merging.mergers import Merger, find_mergers
from tamis.relations.tables import CoverTable
from tamis.semantics import Semantics

K = TypeVar("K", bound=Hashable)

NEVER = "no event can match it"


def canonical(expression: Expression, semantics: Semantics, world: World) -> Node | None:
    """A form that filters of the same meaning mostly share, None for one that is never true.

    Filters that share it match the same events.
    """
    form = form_of(expression, semantics)
    box, never = box_of(form, world)
    if never:
        return None
    return form if box is None else box.form


def why_never(expression: Expression, semantics: Semantics, world: World) -> str:
    """The reason for which a filter is never true."""
    form = form_of(expression, semantics)
    by_attribute: dict[str, list[Node]] = {}
    for item in form.items if isinstance(form, ast.And) else (form,):
        names = {".".join(path) for path in ast.attributes(item)}
        if len(names) == 1:
            by_attribute.setdefault(names.pop(), []).append(item)
    for name, items in by_attribute.items():
        if box_of(ast.And(tuple(items)) if len(items) > 1 else items[0], world)[1]:
            return f"{NEVER}: no value of {name} is all that it asks for"
    return f"{NEVER}: what it asks for excludes itself"


@dataclass
class Reduced(Generic[K]):
    """What became of some filters."""

    stands: dict[K, Any] = field(default_factory=dict)  # a key, itself or another, or a `Merger`
    mergers: list[Merger[K]] = field(default_factory=list)
    never: list[K] = field(default_factory=list)


def reduce_filters(
    filters: Iterable[tuple[K, Expression]], semantics: Semantics, *, cover: bool = True,
    merge: bool = True, given: Mapping[K, Expression] | None = None,
) -> Reduced[K]:  # fmt: skip
    """Find who stands for each of some filters, which are distinct.

    Those that are `given` stay where they are, whatever covers them, and may stand for others.
    Without `cover` nobody does, and only what is plainly never true is left out.
    """
    if not cover:
        return _apart(filters, semantics)
    table: CoverTable[Any] = CoverTable(semantics)
    fixed: Mapping[K, Expression] = given or {}
    for key, expression in fixed.items():
        table.insert(key, expression)
    reduced: Reduced[K] = Reduced()
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
        reduced.stands[key] = key if root is None else root
    return reduced


def _apart(filters: Iterable[tuple[K, Expression]], semantics: Semantics) -> Reduced[K]:
    """Every filter stands for itself."""
    world = World.of(semantics)
    reduced: Reduced[K] = Reduced()
    for key, expression in filters:
        if canonical(expression, semantics, world) is None:
            reduced.never.append(key)
        else:
            reduced.stands[key] = key
    return reduced


def _insert_mergers(table: CoverTable[Any], mergers: list[Merger[K]]) -> list[Merger[K]]:
    """Put mergers above their parts; those that stand for something."""
    for merger in mergers:
        table.insert(merger, merger.expression)
    for merger in mergers:
        # The table may not see that a merger covers its parts: then they stand for themselves.
        if table.is_root(merger) and len(table.covered_by(merger)) < 2:
            table.remove(merger)
    # One that a later one, or a root, covers is not needed either.
    return [merger for merger in mergers if merger in table and table.is_root(merger)]
