"""One bounded filter for many: it matches every event that at least one of them matches.

A summary is exact if the filters are few: then it is the OR of those that no other one covers. If
they are many, or long, it is what they have in common: for each attribute that all of them test,
the values that at least one of them admits. That may match more events, and never fewer. What
has nothing in common is summed up as TRUE.

Whoever reads the text of a summary reads it in the semantics of `reading`: in strict semantics an
OR needs the attributes of all of its parts, so that it would match less than they do.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.predicates.boxes import single_attribute
from tamis.predicates.event_space import form_of
from tamis.predicates.value_orders import order_of
from tamis.predicates.value_sets import ValueSet, condition_of, value_set
from tamis.relations.tables import CoverTable
from tamis.schema import Schema
from tamis.semantics import Semantics

MOST_PARTS = 64
MOST_LENGTH = 16_000  # characters of all parts together
MOST_COMPARED = 2_000  # filters that are compared with each other

Bounds = dict[int, ValueSet]  # by the positions of attributes; others may have any value


def reading(semantics: Semantics) -> Semantics:
    """The semantics in which summaries are read: a filter matches no less in it."""
    return Semantics("sql", semantics.schema) if semantics.name == "strict" else semantics


def summary(filters: Iterable[Expression], read: Semantics) -> tuple[Expression, ...]:
    """The parts of a summary, of which an event must match one; `read` comes from `reading`."""
    distinct = {str(one): one for one in filters}
    found: Sequence[Expression] = tuple(distinct.values())
    if len(found) <= MOST_COMPARED:
        found = _roots(found, read)
    if len(found) <= MOST_PARTS and sum(len(str(one)) for one in found) <= MOST_LENGTH:
        return tuple(found)
    return (_common(found, read),)


def one_filter(parts: Sequence[Expression], schema: Schema) -> Expression:
    """The parts of a summary as one filter."""
    trees = tuple(part.tree for part in parts)
    if len(trees) > 1:
        return Expression(ast.Or(trees), schema)
    return Expression(trees[0] if trees else ast.FALSE, schema)


def _roots(filters: Sequence[Expression], read: Semantics) -> list[Expression]:
    table: CoverTable[int] = CoverTable(read)
    for number, one in enumerate(filters):
        table.insert(number, one)
    return [filters[number] for number in sorted(table.roots)]


def _common(filters: Iterable[Expression], read: Semantics) -> Expression:
    """What all filters have in common, as a conjunction of bounded length."""
    schema = read.schema
    found = [_bounds(form_of(one, read), schema) for one in filters]
    tested = set.intersection(*(set(bounds) for bounds in found))
    conditions = []
    left = MOST_LENGTH
    for position in sorted(tested):
        values = ValueSet().union(*(bounds[position] for bounds in found))
        node = _short(values, schema, position, left)
        if node is not None:
            conditions.append(node)
            left -= len(str(Expression(node, schema)))
    tree = ast.And(tuple(conditions)) if len(conditions) > 1 else (*conditions, ast.TRUE)[0]
    return Expression(tree, schema)


def _short(values: ValueSet, schema: Schema, position: int, most: int) -> Node | None:
    """A condition for at least these values; None if there is none that is short enough."""
    ends = values.intervals and ((values.intervals[0][0], values.intervals[-1][1]),)
    hull = ValueSet(ends, values.missing)
    for found in (values, hull):
        if len(found.intervals) * 3 <= most:
            node = condition_of(found, schema.attributes[position])
            if node != ast.TRUE and len(str(Expression(node, schema))) <= most:
                return node
    return None


def _bounds(form: Node, schema: Schema) -> Bounds:
    """The values that attributes can have in an event of which a normal form is true."""
    path = single_attribute(form)
    if path is not None:
        position = schema.positions[path]
        values = value_set(form, order_of(schema.attributes[position]))
        return {} if values is None else {position: values}
    if isinstance(form, ast.And):
        return reduce(_intersection, (_bounds(item, schema) for item in form.items))
    if isinstance(form, ast.Or):
        return reduce(_union, (_bounds(item, schema) for item in form.items))
    return {}


def _intersection(one: Bounds, other: Bounds) -> Bounds:
    both = {n: values.intersection(other[n]) for n, values in one.items() if n in other}
    return {**one, **other, **both}


def _union(one: Bounds, other: Bounds) -> Bounds:
    return {n: values.union(other[n]) for n, values in one.items() if n in other}
