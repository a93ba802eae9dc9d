"""The second pass of the normal form: what does not depend on the event is computed."""

from tamis.language import ast
from tamis.language.abbreviations import is_condition
from tamis.language.ast import FALSE, TRUE, UNKNOWN, Node
from tamis.language.evaluation import Logic, compile_value
from tamis.language.functions.table import nulls_of
from tamis.schema import Schema
from tamis.types import BOOL

_NO_ATTRIBUTES = Schema({})


def fold_constants(node: Node, logic: Logic) -> Node:
    """Compute what does not depend on the event.

    * ``x > 2 + 3`` becomes ``x > 5``
    * ``x > 1 AND 2 < 1`` becomes ``FALSE``
    * ``x = NULL`` becomes ``NULL``
    """
    return ast.bottom_up(node, lambda part: _fold(part, logic))


def _fold(node: Node, logic: Logic) -> Node:
    parts = ast.children(node)
    if isinstance(node, ast.And | ast.Or):
        return fold_chain(node)
    if not parts or isinstance(node, ast.Lambda):
        return _empty_array(node)
    if isinstance(node, ast.In):
        return _fold_in(node, logic)
    if all(map(_is_known, parts)):
        value = compile_value(node, _NO_ATTRIBUTES, logic)(())
        if any(map(_is_unwritten, value if isinstance(value, tuple) else (value,))):
            return node
        return ast.Literal(value, node.type)
    has_null = any(isinstance(part, ast.Literal) and part.value is None for part in parts)
    if has_null and _propagates_null(node):
        unknown = is_condition(node) and logic is Logic.CLASSICAL
        return FALSE if unknown else ast.Literal(None, node.type)
    return node


def _is_known(part: Node) -> bool:
    """Whether a part of a node does not depend on the event: infinity and nan stay calls."""
    if isinstance(part, ast.Literal):
        return True
    if isinstance(part, ast.Lambda):
        return not ast.varies(part)
    if isinstance(part, ast.Call) and part.name in {ast.NOW, ast.TODAY}:
        return False
    return isinstance(part, ast.Call | ast.Cast) and all(map(_is_known, ast.children(part)))


def _is_unwritten(value: object) -> bool:
    """Whether a constant cannot be written: infinity and nan."""
    return isinstance(value, float) and (value - value) != 0


def _empty_array(node: Node) -> Node:
    is_empty = isinstance(node, ast.Call) and node.type.is_nested
    return ast.Literal((), node.type) if is_empty else node


def _propagates_null(node: Node) -> bool:
    """Whether a node is null as soon as one of its parts is null."""
    if isinstance(node, ast.Call):
        return not nulls_of(node).are_given
    return isinstance(node, ast.Cast | ast.Like | ast.RLike) or (
        isinstance(node, ast.Compare) and node.op != "<=>"
    )


def _fold_in(node: ast.In, logic: Logic) -> Node:
    if all(map(_is_known, ast.children(node))):
        return ast.Literal(compile_value(node, _NO_ATTRIBUTES, logic)(()), BOOL)
    known = tuple(i for i in node.items if not (isinstance(i, ast.Literal) and i.value is None))
    if len(known) == len(node.items):
        return node
    return ast.Or((ast.In(node.operand, known), UNKNOWN)) if known else UNKNOWN


def fold_chain(node: ast.And | ast.Or) -> Node:
    """An AND or OR without its TRUE and FALSE parts; a chain of one part is that part."""
    neutral, decisive = (TRUE, FALSE) if isinstance(node, ast.And) else (FALSE, TRUE)
    if decisive in node.items:
        return decisive
    items = tuple(item for item in node.items if item != neutral)
    return type(node)(items) if len(items) > 1 else (items[0] if items else neutral)
