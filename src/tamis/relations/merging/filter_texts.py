"""Filters made of boxes and trees: what a router sends and a person reads.

A normal form says when a filter is true; the text of a filter must say the same in the logic of its
semantics. Two things differ: in the classical logic a negation is true of a missing attribute, so
the text must test that it is present; and in strict semantics a filter needs every attribute of its
text, so only forms that need all of theirs can be written.
"""

from tamis.errors import LimitError
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import Logic
from tamis.language.expression import Expression, parse_with
from tamis.language.limits import MAX_ATOMS, MAX_TEXT
from tamis.language.printer import print_tree
from tamis.predicates.boxes import AttributeCondition, Box
from tamis.predicates.classification import is_presence
from tamis.predicates.event_space import EventSpace, form_of
from tamis.predicates.value_orders import order_of
from tamis.schema import Attribute
from tamis.semantics import Semantics
from tamis.timestamps import FIRST, LAST
from tamis.types import TIMESTAMP

MOST_MEMBERS = 64  # values up to which a set is written as a list
_CROWDED = 3  # values per interval beyond which intervals are shorter to write


def expression_of(box: Box, semantics: Semantics) -> Expression:
    """The filter of a box: it matches exactly the events of which the box is true."""
    return written(tree_of(box, semantics), semantics)


def tree_of(box: Box, semantics: Semantics) -> Node:
    """The tree of the filter of a box."""
    space = EventSpace.of(semantics)
    parts: list[Node] = []
    for condition in box.conditions:
        attribute = space.schema.attributes[condition.position]
        said = _listed(condition, attribute)
        if semantics.logic is Logic.CLASSICAL and space.may_miss(condition.position):
            said = _guarded(said)
        parts.extend(_without_presence(_conjuncts([said])))
    return _chain(ast.And, parts)


def written(tree: Node, semantics: Semantics) -> Expression:
    """The filter of a tree of canonical predicates, with its numbers as people write them.

    The text is parsed again, which makes the conversions that a person's filter has. A tree whose
    plain text would mean something else keeps the suffixes of its numbers.
    """
    text = print_tree(tree, suffixes=False)
    if len(text) > MAX_TEXT:
        raise LimitError(
            f"the merger would have {len(text):,} characters; a filter has at most {MAX_TEXT:,}",
            text[:100], 0, None, "merge fewer filters at once",
        )  # fmt: skip
    exact = Expression(tree, semantics.schema)
    read = parse_with(text, semantics.schema)
    same = form_of(read, semantics) == form_of(exact, semantics)
    return read if same else parse_with(str(exact), semantics.schema)


def either(trees: list[Node], semantics: Semantics) -> Expression:
    """The filter that is true when one of some trees is."""
    flat = [item for t in trees for item in (t.items if isinstance(t, ast.Or) else (t,))]
    tree = _chain(ast.Or, list(dict.fromkeys(flat)))
    size = sum(len(n.items) if isinstance(n, ast.In) else _is_atom(n) for n in ast.walk(tree))
    if size > MAX_ATOMS:
        raise LimitError(
            f"the merger would have {size:,} comparisons; a filter has at most {MAX_ATOMS:,}",
            print_tree(trees[0])[:100], 0, None,
            "merge fewer filters at once, or allow imperfect mergers",
        )  # fmt: skip
    return Expression(tree, semantics.schema)


def _is_atom(node: Node) -> bool:
    return isinstance(node, ast.Condition) and not isinstance(node, ast.And | ast.Or | ast.Not)


def _chain(kind: type[ast.And | ast.Or], parts: list[Node]) -> Node:
    if not parts:
        return ast.TRUE if kind is ast.And else ast.FALSE
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _listed(condition: AttributeCondition, attribute: Attribute) -> Node:
    """``x >= 1 AND x <= 2 OR x = 7 -> x IN (1, 2, 7)``: few values are written as a list."""
    node, values = condition.node, condition.values
    if values is None or len(values.intervals) < 2 or not isinstance(node, ast.Or):
        return _representable(node)
    members = values.members(order_of(attribute), MOST_MEMBERS)
    if members is None or len(members) > _CROWDED * len(values.intervals):
        return _representable(node)
    tested = ast.Attribute(attribute.path, attribute.type)
    inside = ast.In(tested, tuple(ast.Literal(value, attribute.type) for value in members))
    return ast.Or((inside, ast.IsNull(tested))) if values.missing else inside


def _representable(node: Node) -> Node:
    """``at >= (first moment of 10000) -> at > (last moment of 9999)``, which can be written."""
    match node:
        case ast.And(items) | ast.Or(items):
            return type(node)(tuple(_representable(item) for item in items))
        case ast.Compare(">=", left, ast.Literal(int(value), kind)) if kind == TIMESTAMP:
            if value > LAST:
                return ast.Compare(">", left, ast.Literal(value - 1, kind))
        case ast.Compare("<=", left, ast.Literal(int(value), kind)) if (
            kind == TIMESTAMP and value < FIRST
        ):
            return ast.Compare("<", left, ast.Literal(value + 1, kind))
        case _:
            pass
    return node


def _guarded(node: Node) -> Node:
    """A condition on one attribute, written for the classical logic.

    * ``x <> 1`` becomes ``x <> 1 AND x IS NOT NULL``
    * ``x <> 1 OR x IS NULL`` becomes ``x <> 1``
    """
    match node:
        case ast.Or(items):
            nulls = [item for item in items if isinstance(item, ast.IsNull)]
            others = [item for item in items if not isinstance(item, ast.IsNull)]
            if nulls and any(_is_negative(item) for item in others):
                return _chain(ast.Or, [o if _is_negative(o) else _guarded(o) for o in others])
            return ast.Or(tuple(_guarded(item) for item in items))
        case ast.And(items):
            guarded = [_guarded(item) for item in items]
            return ast.And(tuple(dict.fromkeys(_conjuncts(guarded))))
        case _ if _is_negative(node):
            subject = next(part for part in ast.walk(node) if isinstance(part, ast.Attribute))
            return ast.And((node, ast.Not(ast.IsNull(subject))))
        case _:
            return node


def _without_presence(nodes: list[Node]) -> list[Node]:
    """``x IS NOT NULL AND x < 5 -> x < 5``, among the conditions on one attribute."""
    others = [node for node in nodes if not is_presence(node)]
    positive = any(not _is_negative(node) and not isinstance(node, ast.Or) for node in others)
    return others if positive else nodes


def _conjuncts(nodes: list[Node]) -> list[Node]:
    return [item for n in nodes for item in (n.items if isinstance(n, ast.And) else (n,))]


def _is_negative(node: Node) -> bool:
    if isinstance(node, ast.Not):
        return not is_presence(node)
    return isinstance(node, ast.Compare) and node.op == "<>"
