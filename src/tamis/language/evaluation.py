"""The evaluation of a filter for one event: the definition that every engine must agree with.

A tree is turned into a function of a row (the values of the event in the order of the schema, None
for a missing one). There are two logics:

* KLEENE, of SQL: an operation on a missing value is unknown (None); AND, OR and NOT follow Kleene.
* CLASSICAL, of the BDD paper's default semantics: a missing value is one more value, ⊥, that equals
  no constant and is neither above nor below one; so every test is true or false, and NOT is
  plain negation.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from tamis.deep_stack import with_deep_stack
from tamis.language import ast
from tamis.language.arithmetic import order_key
from tamis.language.ast import Node
from tamis.language.conversions import conversion
from tamis.language.functions.table import FUNCTIONS, is_value
from tamis.language.like_patterns import compile_like
from tamis.language.regular_expressions import compile_regex
from tamis.schema import Schema
from tamis.types import DOUBLE, Type

Row = Sequence[Any]
Evaluator = Callable[[Row], Any]


class Logic(Enum):
    """What a test of a missing value gives."""

    KLEENE = "kleene"
    CLASSICAL = "classical"


def compile_tree(node: Node, schema: Schema, logic: Logic = Logic.KLEENE) -> Evaluator:
    """A function from a row to True, False or (in Kleene's logic only) None."""
    evaluate = with_deep_stack(_Compiler(schema, logic).condition)(node)
    return with_deep_stack(evaluate) if ast.is_deep(node) else evaluate


def compile_value(node: Node, schema: Schema, logic: Logic = Logic.KLEENE) -> Evaluator:
    """A function from a row to the value of a node, or None if it has no value."""
    evaluate = with_deep_stack(_Compiler(schema, logic).value)(node)
    return with_deep_stack(evaluate) if ast.is_deep(node) else evaluate


class _Compiler:
    def __init__(self, schema: Schema, logic: Logic) -> None:
        self.schema = schema
        self.classical = logic is Logic.CLASSICAL

    # --- conditions

    def condition(self, node: Node) -> Evaluator:
        """A function for a condition; in classical logic, what is unknown is false."""
        match node:
            case ast.And(items):
                return _chain([self.condition(item) for item in items], decisive=False)
            case ast.Or(items):
                return _chain([self.condition(item) for item in items], decisive=True)
            case ast.Not(operand):
                return _negation(self.condition(operand))
            case ast.Compare("<>", left, right):  # not an atom: it is true if a value is ⊥
                return _negation(self.condition(ast.Compare("=", left, right)))
            case _:
                test = self.test(node)
                return (lambda row: test(row) is True) if self.classical else test

    def test(self, node: Node) -> Evaluator:
        match node:
            case ast.Compare(op, left, right):
                return self.comparison(op, left, right)
            case ast.Between():
                return self.between(node)
            case ast.In(operand, items):
                return self.membership(operand, items)
            case ast.Like(operand, pattern, escape):
                return _on_one(compile_like(pattern, escape), self.value(operand))
            case ast.RLike(operand, pattern):
                return _on_one(compile_regex(pattern), self.value(operand))
            case ast.IsNull(operand):
                inner = self.value(operand)
                return lambda row: inner(row) is None
            case ast.IsTruth(operand, truth):
                inner = self.condition(operand)
                return lambda row: inner(row) is truth
            case ast.Call():
                return self.call(node)
            case _:
                return self.value(node)

    def comparison(self, op: str, left: Node, right: Node) -> Evaluator:
        x, y = self.value(left), self.value(right)
        compare = _comparison(op, left.type)
        if op != "<=>":
            return _on_two(compare, x, y)

        def null_safe(row: Row) -> bool:
            a, b = x(row), y(row)
            return compare(a, b) if a is not None and b is not None else a is b

        return null_safe

    def between(self, node: ast.Between) -> Evaluator:
        x, low, high = self.value(node.operand), self.value(node.low), self.value(node.high)
        to_low = conversion(node.operand.type, node.low_type)
        to_high = conversion(node.operand.type, node.high_type)
        at_least = _comparison(">=", node.low_type)
        at_most = _comparison("<=", node.high_type)

        def between(row: Row) -> bool | None:
            value = x(row)
            if value is None:
                return None
            bottom, top = low(row), high(row)
            above = None if bottom is None else at_least(to_low(value), bottom)
            below = None if top is None else at_most(to_high(value), top)
            if above is False or below is False:
                return False
            return None if above is None or below is None else True

        return between

    def membership(self, operand: Node, items: Sequence[Node]) -> Evaluator:
        key = order_key if operand.type == DOUBLE else _itself
        inner = self.value(operand)
        constants = [item for item in items if _is_constant(item)]
        values = [self.value(item)(()) for item in constants]
        known = {key(value) for value in values if value is not None}
        others = [self.value(item) for item in items if not _is_constant(item)]
        has_null = None in values

        def contains(row: Row) -> bool | None:
            value = inner(row)
            if value is None:
                return None
            wanted = key(value)
            if wanted in known:
                return True
            found_null = has_null
            for other in others:
                candidate = other(row)
                if candidate is None:
                    found_null = True
                elif key(candidate) == wanted:
                    return True
            return None if found_null else False

        return contains

    # --- values

    def value(self, node: Node) -> Evaluator:
        match node:
            case ast.Literal(value, _):
                return lambda _row: value
            case ast.Attribute(path, _):
                position = self.schema.positions[path]
                return lambda row: row[position]
            case ast.Cast(operand, wanted):
                return _on_one(conversion(operand.type, wanted), self.value(operand))
            case ast.Call() if is_value(node):
                return self.call(node)
            case ast.Variable():
                return _last
            case ast.Lambda(_, body):
                return self.function(body)
            case ast.Elements(operand, _):
                return self.value(operand)
            case _:
                return self.condition(node)

    def function(self, body: Node) -> Evaluator:
        """A function from a row to the condition on an element, which comes after the row."""
        holds = self.condition(body)

        def of_row(row: Row) -> Callable[[Any], Any]:
            extended = [*row, None]

            def test(element: Any) -> Any:
                extended[-1] = element
                return holds(extended)

            return test

        return of_row

    def call(self, node: ast.Call) -> Evaluator:
        entry = FUNCTIONS[node.name]
        function = entry.meaning(node)
        arguments = [self.value(argument) for argument in node.arguments]
        if entry.nulls(node).are_given:
            return lambda row: function(*[argument(row) for argument in arguments])
        match arguments:
            case [x]:
                return _on_one(function, x)
            case [x, y]:
                return _on_two(function, x, y)
            case _:
                return _on_all(function, arguments)


def _comparison(op: str, kind: Type) -> Callable[[Any, Any], bool]:
    compare = _COMPARISONS[op]
    if kind != DOUBLE:
        return compare
    return lambda a, b: compare(order_key(a), order_key(b))


def _itself(value: Any) -> Any:
    return value


def _last(row: Row) -> Any:
    return row[-1]


def _is_constant(node: Node) -> bool:
    return isinstance(ast.without_cast(node), ast.Literal)


def _chain(items: Sequence[Evaluator], *, decisive: bool) -> Evaluator:
    """AND, which one false part decides, or OR, which one true part decides."""

    def chain(row: Row) -> bool | None:
        answer: bool | None = not decisive
        for item in items:
            truth: bool | None = item(row)
            if truth is decisive:
                return decisive
            if truth is None:
                answer = None
        return answer

    return chain


def _negation(item: Evaluator) -> Evaluator:
    def negation(row: Row) -> bool | None:
        truth = item(row)
        return None if truth is None else not truth

    return negation


def _on_one(function: Callable[[Any], Any], inner: Evaluator) -> Evaluator:
    def apply(row: Row) -> Any:
        value = inner(row)
        return None if value is None else function(value)

    return apply


def _on_two(function: Callable[[Any, Any], Any], x: Evaluator, y: Evaluator) -> Evaluator:
    def apply(row: Row) -> Any:
        a = x(row)
        if a is None:
            return None
        b = y(row)
        return None if b is None else function(a, b)

    return apply


def _on_all(function: Callable[..., Any], inner: Sequence[Evaluator]) -> Evaluator:
    def apply(row: Row) -> Any:
        values = [argument(row) for argument in inner]
        return None if None in values else function(*values)

    return apply


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<=>": lambda a, b: a == b,
}
