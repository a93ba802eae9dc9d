"""Forms back to filters: what a router sends and a person reads.

A form says when a filter is true; a filter must say it in the logic of its semantics. Two things
differ: in the classical logic a negation is true of a missing attribute, so it must ask for it; and
strict semantics asks for every attribute of the text, so only forms that ask for all of theirs can
be said.
"""

from typing import Any

from tamis.errors import LimitError
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import Logic
from tamis.language.expression import Expression, parse_with
from tamis.language.limits import MAX_ATOMS, MAX_TEXT
from tamis.language.printer import print_tree
from tamis.predicates.regions import BOTTOM, TOP, Region
from tamis.relations.boxes import Box
from tamis.relations.event_space import World, form_of
from tamis.relations.extents import extent
from tamis.schema import Attribute
from tamis.semantics import Semantics
from tamis.types import BOOL, INT, TIMESTAMP

MEMBERS = 64  # values up to which a set is written as a list
_CROWDED = 3  # values a stretch beyond which stretches are shorter to write
_DISCRETE = {INT, TIMESTAMP, BOOL}
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999


def expression_of(box: Box, semantics: Semantics) -> Expression:
    """The filter of a box: it matches exactly the events of which the box is true."""
    return written(tree_of(box, semantics), semantics)


def tree_of(box: Box, semantics: Semantics) -> Node:
    """The tree of the filter of a box."""
    world = World.of(semantics)
    parts: list[Node] = []
    for position, node in box.conditions:
        attribute = world.schema.attributes[position]
        said = _listed(node, attribute)
        if semantics.logic is Logic.CLASSICAL and world.may_miss(position):
            said = _guarded(said)
        parts.extend(_without_presence(_conjuncts([said])))
    return _chain(ast.And, parts)


def written(tree: Node, semantics: Semantics) -> Expression:
    """A filter of a tree of canonical predicates, with its numbers as people write them.

    Text is read back, which makes the conversions that a person's filter has. A tree whose plain
    text would mean something else keeps the suffixes of its numbers.
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
    """The filter that is true when one of some trees is; all are true by themselves."""
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


def _listed(node: Node, attribute: Attribute) -> Node:
    """``x >= 1 AND x <= 2 OR x = 7 -> x IN (1, 2, 7)``: few values are written as a list."""
    found = extent(node, attribute)
    if found is None or len(found.values) < 2 or not isinstance(node, ast.Or):
        return _representable(node)
    values = members(found.values, attribute, MEMBERS)
    if values is None or len(values) > _CROWDED * len(found.values):
        return _representable(node)
    subject = ast.Attribute(attribute.path, attribute.type)
    inside = ast.In(subject, tuple(ast.Literal(value, attribute.type) for value in values))
    return ast.Or((inside, ast.IsNull(subject))) if found.missing else inside


def members(values: Region, attribute: Attribute, most: int) -> list[Any] | None:
    """The values of a region, None if there are more than some."""
    found: list[Any] = []
    for low, high in values:
        if low == BOTTOM or high == TOP:
            return None
        if attribute.type in _DISCRETE:
            if high[1] - low[1] > most:
                return None
            found.extend(range(low[1], high[1]))
        elif low[1] == high[1]:
            found.append(low[1])
        else:
            return None
        if len(found) > most:
            return None
    return [bool(value) for value in found] if attribute.type == BOOL else found


def _representable(node: Node) -> Node:
    """``at >= (the first moment of 10000) -> at > (the last of 9999)``, which can be written."""
    match node:
        case ast.And(items) | ast.Or(items):
            return type(node)(tuple(_representable(item) for item in items))
        case ast.Compare(">=", left, ast.Literal(int(value), kind)) if kind == TIMESTAMP:
            if value > _LAST:
                return ast.Compare(">", left, ast.Literal(value - 1, kind))
        case ast.Compare("<=", left, ast.Literal(int(value), kind)) if (
            kind == TIMESTAMP and value < _FIRST
        ):
            return ast.Compare("<", left, ast.Literal(value + 1, kind))
        case _:
            pass
    return node


def _guarded(node: Node) -> Node:
    """What a condition of one attribute says, in the classical logic.

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
    """``x IS NOT NULL AND x < 5 -> x < 5``, of what is asked of one attribute."""
    others = [node for node in nodes if not _is_presence(node)]
    positive = any(not _is_negative(node) and not isinstance(node, ast.Or) for node in others)
    return others if positive else nodes


def _is_presence(node: Node) -> bool:
    return isinstance(node, ast.Not) and isinstance(node.operand, ast.IsNull)


def _conjuncts(nodes: list[Node]) -> list[Node]:
    return [item for n in nodes for item in (n.items if isinstance(n, ast.And) else (n,))]


def _is_negative(node: Node) -> bool:
    if isinstance(node, ast.Not):
        return not _is_presence(node)
    return isinstance(node, ast.Compare) and node.op == "<>"
