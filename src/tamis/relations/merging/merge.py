"""One filter in place of many: what `tamis.merge` returns.

A perfect merger matches exactly the events that one of its parts matches. There always is one, at
least the OR of all parts, except in strict semantics: there a filter matches only events that have
all attributes of its text, so an OR of filters on different attributes would need all of them. An
imperfect merger matches more.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tamis.deep_stack import with_deep_stack
from tamis.errors import OptionError
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.predicates.boxes import Box, box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.merging.degrees import degree_of_forms
from tamis.relations.merging.filter_texts import either, expression_of
from tamis.relations.merging.measures import Measure, Profiled, Uniform
from tamis.relations.merging.mergers import MergeOptions, merged_boxes
from tamis.relations.tables import CoverTable
from tamis.semantics import Semantics

if TYPE_CHECKING:
    from tamis.profiles import Profile


@with_deep_stack
def merge(
    expressions: Iterable[Expression], *, semantics: str = "sql",
    defaults: Mapping[str, Any] | None = None, imperfect: float | None = None,
    profile: "Profile | None" = None, advertisements: Iterable[Expression] = (),
    rules: str = "full",
) -> Expression:  # fmt: skip
    """A filter that matches every event that one of some filters matches.

    It matches no other, unless `imperfect` allows it: the largest share of all events that may
    match the merger and none of the filters. Shares are those of a `profile` of events, or uniform
    in the domains of the schema and around the constants of the filters; with `advertisements`, of
    events that match one of these.

    >>> from tamis import Schema, parse
    >>> schema = Schema({"price": "int", "to": "string"})
    >>> texts = "price = 150 AND to = 'Ottawa'", "price < 150 AND to = 'Ottawa'"
    >>> print(merge([parse(text, schema) for text in texts]))
    price <= 150 AND to = 'Ottawa'
    """
    parts, announced = _checked(expressions, advertisements)
    meaning = Semantics(semantics, parts[0].schema, defaults)
    measure: Measure | None = None
    if imperfect is not None:
        measure = Uniform.around(parts) if profile is None else Profiled(profile)
    options = MergeOptions(
        rules=rules, imperfect=imperfect, measure=measure, advertisements=announced
    )
    return _merged(parts, meaning, options) if len(parts) > 1 else parts[0]


def _checked(
    expressions: Any, advertisements: Iterable[Any]
) -> tuple[list[Expression], tuple[Expression, ...]]:
    is_one = isinstance(expressions, str | Expression)
    parts: list[Any] = [expressions] if is_one else list(expressions)
    announced = tuple(advertisements)
    for each in (*parts, *announced):
        if not isinstance(each, Expression):
            raise OptionError(
                f"merge takes expressions, not {type(each).__name__}; "
                "read texts with tamis.parse(text, schema)"
            )
    if not parts:
        raise OptionError("merge needs at least one expression")
    if any(each.schema != parts[0].schema for each in (*parts, *announced)):
        raise OptionError("merge takes expressions of one schema; read all of them with the same")
    return parts, announced


def _merged(parts: list[Expression], semantics: Semantics, options: MergeOptions) -> Expression:
    left = _uncovered(parts, semantics)
    if len(left) < 2:
        return left[0] if left else parts[0]
    space = EventSpace.of(semantics)
    boxes: dict[int, Box] = {}
    others: dict[int, Expression] = {}
    for n, expression in enumerate(left):
        box = box_of(form_of(expression, semantics), space)
        if box is None or box.is_empty:
            others[n] = expression
        else:
            boxes[n] = box
    merged = {keys[0]: (box, keys) for box, keys in merged_boxes(boxes, semantics, options)}
    found: list[Expression] = []
    for n, expression in enumerate(left):
        if n in others or (n in merged and len(merged[n][1]) == 1):
            found.append(expression)
        elif n in merged:
            found.append(expression_of(merged[n][0], semantics))
    found = _uncovered(found, semantics)
    if semantics.name == "strict" and len({each.attributes for each in found}) > 1:
        return _strict(found, parts, semantics, options)
    return _either(found, semantics)


def _uncovered(parts: list[Expression], semantics: Semantics) -> list[Expression]:
    """Those that no other covers, without those that never match."""
    table: CoverTable[int] = CoverTable(semantics)
    for n, expression in enumerate(parts):
        table.insert(n, expression)
    return [parts[n] for n in table.roots]


def _either(found: list[Expression], semantics: Semantics) -> Expression:
    return found[0] if len(found) == 1 else either([each.tree for each in found], semantics)


def _strict(
    found: list[Expression], parts: list[Expression], semantics: Semantics, options: MergeOptions
) -> Expression:
    """The conditions on the attributes that all filters test, which match more events."""
    names = " and ".join(f"({each})" for each in found[:2])
    if options.imperfect is None or options.measure is None:
        raise OptionError(
            f"under strict semantics no single filter matches what {names} match, because they "
            "need different attributes; keep them apart, or allow more with imperfect=..."
        )
    common = frozenset.intersection(*(each.attributes for each in found))
    space = EventSpace.of(semantics)
    kept: list[Node] = []
    for each in found:
        box = box_of(form_of(each, semantics), space)
        if box is None or box.is_empty:  # a general filter is kept or dropped as a whole
            kept.append(each.tree if each.attributes == common else ast.TRUE)
        else:
            conditions = [c for c in box.conditions if space.schema.attributes[c[0]].path in common]
            kept.append(expression_of(Box(tuple(conditions)), semantics).tree)
    wider = Expression(ast.TRUE, semantics.schema) if ast.TRUE in kept else either(kept, semantics)
    degree = degree_of_forms(
        form_of(wider, semantics), [form_of(part, semantics) for part in parts], space,
        options.measure.probabilities(semantics),
        [form_of(a, semantics) for a in options.advertisements],
    )  # fmt: skip
    if degree.imt > options.imperfect:
        raise OptionError(
            f"under strict semantics the closest filter to what {names} match adds "
            f"{float(degree.imt):.3f} of all events; keep them apart, or raise imperfect"
        )
    return wider
