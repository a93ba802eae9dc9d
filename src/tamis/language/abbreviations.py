"""The first pass of the normal form: BETWEEN, IN, ``<>`` and ``<=>`` in simpler terms."""

from tamis.language import ast
from tamis.language.ast import FALSE, TRUE, Node
from tamis.language.evaluation import Logic
from tamis.language.functions.table import is_value
from tamis.types import BOOL


def expand_abbreviations(node: Node, _logic: Logic) -> Node:
    """Write abbreviations out, with fewer kinds of nodes.

    * ``x BETWEEN 1 AND 2`` becomes ``x >= 1 AND x <= 2``
    * ``x <> 1`` becomes ``NOT x = 1``
    * ``x IN (1, y, NULL)`` becomes ``x IN (1) OR x = y OR NULL``
    * ``x <=> y`` becomes ``(x = y) IS TRUE OR x IS NULL AND y IS NULL``
    * ``(x > 1) = b`` becomes ``(x > 1) AND b OR NOT x > 1 AND NOT b``
    """
    return ast.bottom_up(node, _expand)


def _expand(node: Node) -> Node:
    match node:
        case ast.Between(operand, low, high, low_type, high_type):
            at_least = ast.Compare(">=", ast.converted(operand, low_type), low)
            at_most = ast.Compare("<=", ast.converted(operand, high_type), high)
            return ast.And((_expand(at_least), _expand(at_most)))
        case ast.In(operand, items):
            return _expand_in(operand, items)
        case ast.Compare("<=>", left, right):
            equal = ast.IsTruth(_expand(ast.Compare("=", left, right)), truth=True)
            return ast.Or((equal, ast.And((ast.IsNull(left), ast.IsNull(right)))))
        case ast.Compare(op, left, right) if is_condition(left) or is_condition(right):
            return _compare_conditions(op, left, right)
        case ast.Compare("<>", left, right):
            return ast.Not(ast.Compare("=", left, right))
        case _:
            return node


def _expand_in(operand: Node, items: tuple[Node, ...]) -> Node:
    if is_condition(operand):
        return ast.Or(tuple(_expand(ast.Compare("=", operand, item)) for item in items))
    constants: list[Node] = []
    others: list[Node] = []
    for item in items:
        varies = is_condition(item) or ast.varies(item)
        (others if varies else constants).append(item)
    parts: list[Node] = [ast.In(operand, tuple(constants))] if constants else []
    parts += [_expand(ast.Compare("=", operand, item)) for item in others]
    return parts[0] if len(parts) == 1 else ast.Or(tuple(parts))


def is_condition(node: Node) -> bool:
    """Whether a node is a test or made of tests, rather than a value that is true or false."""
    bare = ast.without_cast(node)
    is_plain = isinstance(bare, ast.Attribute | ast.Variable | ast.Literal) or is_value(bare)
    return node.type == BOOL and not is_plain


def _compare_conditions(op: str, p: Node, q: Node) -> Node:
    """Comparisons of truth values, false before true, by AND, OR and NOT."""
    match op:
        case "<>":
            return ast.Not(_compare_conditions("=", p, q))
        case "=":
            return ast.Or((ast.And((_holds(p), _holds(q))), ast.And((_fails(p), _fails(q)))))
        case "<=":
            return ast.Or(
                (
                    ast.And((_fails(p), _fails(q))),
                    ast.And((_fails(p), _holds(q))),
                    ast.And((_holds(p), _holds(q))),
                )
            )
        case ">=":
            return _compare_conditions("<=", q, p)
        case ">":
            return _compare_conditions("<", q, p)
        case _:
            # The last two are false, or unknown if their condition is.
            return ast.Or(
                (
                    ast.And((_fails(p), _holds(q))),
                    ast.And((_holds(p), _fails(p))),
                    ast.And((_holds(q), _fails(q))),
                )
            )


def _holds(node: Node) -> Node:
    return node if is_condition(node) else ast.Compare("=", node, TRUE)


def _fails(node: Node) -> Node:
    return ast.Not(node) if is_condition(node) else ast.Compare("=", node, FALSE)
