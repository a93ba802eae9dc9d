"""The third and fourth pass of the normal form: conditions inside values, and negations.

NOT, IS TRUE and the like move down to the predicates.
"""

from enum import Enum

from tamis.language import ast
from tamis.language.abbreviations import is_condition
from tamis.language.ast import FALSE, TRUE, Node
from tamis.language.evaluation import Logic
from tamis.language.functions.function import Nulls
from tamis.language.functions.table import is_value, nulls_of
from tamis.language.limits import MAX_NORMAL_NODES

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class NormalFormTooLarge(Exception):
    """The normal form outgrows its limit."""


class _Truth(Enum):
    """What a condition is tested for."""

    TRUE = "it is true"
    FALSE = "it is false"
    NOT_TRUE = "it is false or unknown"
    NOT_FALSE = "it is true or unknown"


_SWAPPED = {
    _Truth.TRUE: _Truth.FALSE,
    _Truth.FALSE: _Truth.TRUE,
    _Truth.NOT_TRUE: _Truth.NOT_FALSE,
    _Truth.NOT_FALSE: _Truth.NOT_TRUE,
}
# In classical logic nothing is unknown.
_CLASSICAL = {_Truth.FALSE: _Truth.NOT_TRUE, _Truth.NOT_FALSE: _Truth.TRUE}
_POSITIVE = {_Truth.TRUE, _Truth.NOT_FALSE}  # De Morgan leaves AND and OR as they are


def settle_conditions(node: Node, logic: Logic) -> Node:
    """Make conditions inside computed values mean the same in Kleene's logic.

    * ``CASE WHEN NOT i = 1 THEN 2 END`` becomes ``CASE WHEN (i <> 1 OR i IS NULL) IS TRUE THEN 2
      END`` in classical logic, and stays in Kleene's
    """
    if logic is not Logic.CLASSICAL:
        return node

    def settled(part: Node) -> Node:
        if isinstance(part, ast.Lambda):
            body = ast.IsTruth(push_negations(part.body, logic), truth=True)
            return ast.Lambda(part.name, body)
        if not is_value(part):
            return part
        conditions = tuple(
            ast.IsTruth(push_negations(item, logic), truth=True) if is_condition(item) else item
            for item in ast.children(part)
        )
        return ast.rebuild(part, conditions)

    return ast.bottom_up(node, settled)


def push_negations(node: Node, logic: Logic) -> Node:
    """Move NOT, IS TRUE and the like down to the predicates.

    * ``NOT (x < 1 AND y = 2)`` becomes ``x >= 1 OR y <> 2``
    * ``(x < 1) IS NOT TRUE`` becomes ``x >= 1 OR x IS NULL``
    * ``NOT x < 1`` becomes ``x >= 1 OR x IS NULL`` in classical logic
    """
    return _NegationPass(logic).formula(node, _Truth.TRUE)


class _NegationPass:
    """One pass, which knows how large its result has grown."""

    def __init__(self, logic: Logic) -> None:
        self.classical = logic is Logic.CLASSICAL
        self.size = 0

    def formula(self, node: Node, test: _Truth) -> Node:
        """The formula that is true exactly when the node passes the test."""
        self.grow(1)
        if self.classical:
            test = _CLASSICAL.get(test, test)
        match node:
            case ast.And(items) | ast.Or(items):
                kept = test in _POSITIVE
                chain = ast.And if isinstance(node, ast.And) == kept else ast.Or
                return chain(tuple(self.formula(item, test) for item in items))
            case ast.Not(operand):
                swapped = _SWAPPED[test]
                if self.classical:
                    swapped = _Truth.NOT_TRUE if test is _Truth.TRUE else _Truth.TRUE
                return self.formula(operand, swapped)
            case ast.IsTruth(operand, truth):
                return self.formula(operand, self.truth_test(test, truth=truth))
            case ast.IsNull(operand):
                return self.null_test(operand, positive=test in _POSITIVE)
            case ast.Literal(value, _):
                return TRUE if _passes(value, test) else FALSE
            case _:
                return self.predicate(node, test)

    @staticmethod
    def truth_test(test: _Truth, *, truth: bool) -> _Truth:
        if test in _POSITIVE:
            return _Truth.TRUE if truth else _Truth.FALSE
        return _Truth.NOT_TRUE if truth else _Truth.NOT_FALSE

    def null_test(self, operand: Node, *, positive: bool) -> Node:
        if not is_condition(operand):
            null = is_null(operand)
            return null if positive else _not_null(null)
        if self.classical:
            return FALSE if positive else TRUE
        if not isinstance(operand, ast.And | ast.Or | ast.Not | ast.IsTruth | ast.IsNull):
            null = _some_null(operand)  # a predicate is unknown when one of its values is
            return null if positive else _not_null(null)
        tests = (_Truth.NOT_TRUE, _Truth.NOT_FALSE) if positive else (_Truth.TRUE, _Truth.FALSE)
        chain = ast.And if positive else ast.Or
        return chain(tuple(self.formula(operand, test) for test in tests))

    def grow(self, nodes: int) -> None:
        """Count nodes of the result, and raise an error beyond the limit."""
        self.size += nodes
        if self.size > MAX_NORMAL_NODES:
            raise NormalFormTooLarge

    def predicate(self, node: Node, test: _Truth) -> Node:
        if not all(isinstance(part, ast.Attribute | ast.Literal) for part in ast.children(node)):
            # A value made of conditions may stand many times where it is written once (BETWEEN).
            self.grow(ast.node_count(node))
        match test:
            case _Truth.TRUE:
                return node
            case _Truth.FALSE:
                return _opposite(node)
            case _Truth.NOT_TRUE:
                return ast.Or((_opposite(node), _some_null(node)))
            case _:
                return ast.Or((node, _some_null(node)))


def _passes(value: object, test: _Truth) -> bool:
    match test:
        case _Truth.TRUE:
            return value is True
        case _Truth.FALSE:
            return value is False
        case _Truth.NOT_TRUE:
            return value is not True
        case _:
            return value is not False


def _opposite(predicate: Node) -> Node:
    if isinstance(predicate, ast.Compare):
        return ast.Compare(_OPPOSITE[predicate.op], predicate.left, predicate.right)
    return ast.Not(predicate)


def _some_null(predicate: Node) -> Node:
    is_itself = isinstance(predicate, ast.Attribute | ast.Variable) or is_value(predicate)
    operands = (predicate,) if is_itself else ast.children(predicate)
    return ast.Or(tuple(is_null(operand) for operand in operands))


def is_null(value: Node) -> Node:
    """The condition under which a value is null, on the attributes alone where that is possible.

    * ``lower(s) IS NULL`` becomes ``s IS NULL``
    * ``i / j IS NULL`` stays: it is also null where j is 0
    * ``array(i) IS NULL`` becomes ``FALSE``
    """
    match value:
        case ast.Literal(constant, _):
            return TRUE if constant is None else FALSE
        case ast.Cast(operand, _):
            return is_null(operand)
        case ast.Call(_, arguments, _) if nulls_of(value) is Nulls.STRICT:
            return ast.Or(tuple(is_null(argument) for argument in arguments))
        case ast.Call() if nulls_of(value) is Nulls.NEVER:
            return FALSE
        case _:
            return ast.IsNull(value)


def _not_null(test: Node) -> Node:
    match test:
        case ast.Literal(value, _):
            return FALSE if value is True else TRUE
        case ast.Or(items):
            return ast.And(tuple(_not_null(item) for item in items))
        case _:
            return ast.Not(test)
