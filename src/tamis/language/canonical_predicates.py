"""The one canonical way to write each predicate, so that equal tests become one predicate."""

from collections.abc import Callable
from typing import Any

from tamis.language import ast
from tamis.language.arithmetic import order_key
from tamis.language.ast import FALSE, TRUE, Node
from tamis.language.functions.table import is_value
from tamis.language.like_patterns import parse_like
from tamis.language.number_splits import compared_with, splits
from tamis.types import BOOL, DOUBLE, STRING

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def canonical_predicate(node: Node) -> Node:
    """The canonical form of a predicate or of its negation, which may be a short formula."""
    match node:
        case ast.Attribute() | ast.Call() if is_plain(node):
            return ast.Compare("=", _looked_up(node), TRUE)
        case ast.Not(ast.Attribute() | ast.Call() as operand) if is_plain(operand):
            return ast.Compare("=", _looked_up(operand), FALSE)
        case ast.Compare():
            return _comparison(node)
        case ast.In():
            return _membership(node, negated=False)
        case ast.Not(ast.In() as operand):
            return _membership(operand, negated=True)
        case ast.Like():
            return _like(node)
        case ast.Not(ast.Like() as operand):
            return _not_like(operand)
        case _:
            return node


def _looked_up(node: Node) -> Node:
    """``exists(a, t -> t = 1)`` as ``array_contains(a, 1)``, and with IN as ``arrays_overlap``."""
    match node:
        case ast.Call("exists", (array, ast.Lambda(_, body)), _):
            items = _wanted(body)
            if len(items) == 1:
                return ast.Call("array_contains", (array, items[0]), BOOL)
            if items:
                wanted = ast.Literal(tuple([item.value for item in items]), array.type)
                return ast.Call("arrays_overlap", (array, wanted), BOOL)
    return node


def _wanted(body: Node) -> tuple[ast.Literal, ...]:
    """The constants of which an element must be one for a condition to be true, if it says so."""
    match body:
        case ast.Compare("=", ast.Variable(_, of), ast.Literal() as one):
            found: tuple[Node, ...] = (one,)
        case ast.Compare("=", ast.Literal() as one, ast.Variable(_, of)):
            found = (one,)
        case ast.In(ast.Variable(_, of), items):
            found = items
        case _:
            return ()
    known = tuple([item for item in found if isinstance(item, ast.Literal) and item.type == of])
    return known if len(known) == len(found) else ()


def is_plain(node: Node) -> bool:
    """Whether a truth value is an attribute or computed, rather than a test."""
    return isinstance(node, ast.Attribute) or is_value(node)


def _comparison(node: ast.Compare) -> Node:
    op, left, right = node.op, node.left, node.right
    if (isinstance(left, ast.Literal) and not isinstance(right, ast.Literal)) or (
        isinstance(left, ast.Attribute)
        and isinstance(right, ast.Attribute)
        and left.path > right.path
    ):
        op, left, right = _MIRRORED[op], right, left
    if isinstance(right, ast.Literal):
        number = ast.without_cast(left)
        if splits(number):
            return compared_with(op, number, right)
        if left.type == BOOL:
            return _truth_comparison(op, left, right.value)
        if left.type == DOUBLE and right.value == 0:
            right = ast.Literal(0.0, DOUBLE)  # -0.0 equals it
    return ast.Compare(op, left, right)


def _truth_comparison(op: str, left: Node, constant: object) -> Node:
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    }  # fmt: skip
    answers = [truth for truth in (TRUE, FALSE) if tests[op](truth.value, constant)]
    if len(answers) == 1:
        return ast.Compare("=", left, answers[0])
    return ast.Not(ast.IsNull(left)) if answers else FALSE


# --- sets


def _membership(node: ast.In, *, negated: bool) -> Node:
    infinite = [item for item in node.items if not isinstance(item, ast.Literal)]
    if infinite:  # constants that cannot be written, compared as they are
        known = tuple(item for item in node.items if isinstance(item, ast.Literal))
        op = "<>" if negated else "="
        parts: list[Node] = [_comparison(ast.Compare(op, node.operand, i)) for i in infinite]
        if known:
            parts.append(_membership(ast.In(node.operand, known), negated=negated))
        if len(parts) == 1:
            return parts[0]
        return ast.And(tuple(parts)) if negated else ast.Or(tuple(parts))
    operand = ast.without_cast(node.operand)
    if operand.type == BOOL or splits(operand):
        return _discrete_membership(node, operand, negated=negated)
    items = {_sort_key(item): item for item in node.items if isinstance(item, ast.Literal)}
    return _set(node.operand, [items[key] for key in sorted(items)], negated=negated)


def _discrete_membership(node: ast.In, operand: Node, *, negated: bool) -> Node:
    """IN for exact numbers and truth values; members of other types (1.5, 2e0) are converted."""
    tests = [_comparison(ast.Compare("=", node.operand, item)) for item in node.items]
    tests = [test for test in tests if test != FALSE]
    values = {
        test.right.value: test.right
        for test in tests
        if isinstance(test, ast.Compare) and isinstance(test.right, ast.Literal)
    }
    if all(isinstance(test, ast.Compare) for test in tests):
        if not values or (len(values) == 2 and operand.type == BOOL):
            always = bool(values) != negated
            return ast.Not(ast.IsNull(operand)) if always else FALSE
        # All are exact numbers or truth values, which the type checker cannot know.
        ordered = [values[value] for value in sorted(values)]  # type: ignore[type-var]
        return _set(operand, ordered, negated=negated)
    if not negated:
        return ast.Or(tuple(tests))
    return ast.And(tuple(_comparison(ast.Compare("<>", node.operand, item)) for item in node.items))


def _set(operand: Node, items: list[ast.Literal], *, negated: bool) -> Node:
    if len(items) == 1:
        return _comparison(ast.Compare("<>" if negated else "=", operand, items[0]))
    whole = ast.In(operand, tuple(items))
    return ast.Not(whole) if negated else whole


def _sort_key(item: ast.Literal) -> Any:
    return order_key(item.value) if isinstance(item.value, float) else item.value


# --- LIKE


def _like(node: ast.Like) -> Node:
    pieces = parse_like(node.pattern, node.escape).plain()
    if pieces is None:
        return node
    text = [ast.Literal(piece, STRING) for piece in pieces]
    middle = [piece for piece in text[1:-1] if piece.value]
    match len(text):
        case 1:
            return ast.Compare("=", node.operand, text[0])
        case _ if middle:
            ends = text[0].value or text[-1].value
            if ends or len(middle) > 1:
                return node
            return _call("contains", node.operand, middle[0])
        case _ if text[0].value and text[-1].value:
            return node
        case _ if text[0].value:
            return _call("startswith", node.operand, text[0])
        case _ if text[-1].value:
            return _call("endswith", node.operand, text[-1])
        case _:
            return ast.Not(ast.IsNull(node.operand))


def _not_like(node: ast.Like) -> Node:
    match _like(node):
        case ast.Compare("=", left, right):
            return ast.Compare("<>", left, right)
        case ast.Not():
            return FALSE
        case positive:
            return ast.Not(positive)


def _call(name: str, operand: Node, text: ast.Literal) -> Node:
    return ast.Call(name, (operand, text), BOOL)
