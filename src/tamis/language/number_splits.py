"""Comparisons of whole numbers and decimals with constants: where a constant splits the numbers.

``i < 10.5``, ``i < 1e1`` and ``i < 10`` all split the whole numbers in two; only the place of the
split matters. The same holds for decimals: ``d > 0.125`` is ``d >= 0.13`` for a d with two digits
after the point. A comparison with a double converts the number to a double first, which rounds;
rounding keeps the order, so the split is found by bisection over the converted values.

A number is written here by all its digits, as a whole number: 0.13 is 13.
"""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from tamis.language import ast
from tamis.language.arithmetic import order_key
from tamis.language.ast import FALSE, Node
from tamis.types import INT64_MAX, INT64_MIN, Kind, Type

_EXACT = Context(prec=200)


def splits(node: Node) -> bool:
    """Whether a value is of a type whose comparisons with constants are written as splits."""
    return node.type.kind in {Kind.INT, Kind.DECIMAL} and not isinstance(node, ast.Literal)


def compared_with(op: str, left: Node, constant: ast.Literal) -> Node:
    """A comparison with a constant of any type of numbers, as one with a constant of its own."""
    numbers = _Numbers(left)
    first = numbers.first_at_least(constant)
    above = numbers.first_above(constant)
    match op:
        case "<":
            return numbers.at_most(first - 1)
        case "<=":
            return numbers.at_most(above - 1)
        case ">":
            return numbers.at_least(above)
        case ">=":
            return numbers.at_least(first)
        case "=":
            if above - first > 1:
                return ast.And((numbers.at_least(first), numbers.at_most(above - 1)))
            return ast.Compare("=", left, numbers.literal(first)) if above > first else FALSE
        case _:
            if above - first > 1:
                return ast.Or((numbers.at_most(first - 1), numbers.at_least(above)))
            if above > first:
                return ast.Compare("<>", left, numbers.literal(first))
            return ast.Not(ast.IsNull(left))


class _Numbers:
    """The numbers of the type of a value, from `low` to `high`."""

    def __init__(self, left: Node) -> None:
        self.left = left
        of = self.of = left.type
        self.low, self.high = INT64_MIN, INT64_MAX
        self.scale = 0
        if of.kind is Kind.DECIMAL:
            self.low, self.high = 1 - 10**of.digits, 10**of.digits - 1
            self.scale = of.scale

    def literal(self, number: int) -> ast.Literal:
        return ast.Literal(_value(number, self.of), self.of)

    def at_most(self, number: int) -> Node:
        if number >= self.high:
            return ast.Not(ast.IsNull(self.left))
        return ast.Compare("<=", self.left, self.literal(number)) if number >= self.low else FALSE

    def at_least(self, number: int) -> Node:
        if number <= self.low:
            return ast.Not(ast.IsNull(self.left))
        return ast.Compare(">=", self.left, self.literal(number)) if number <= self.high else FALSE

    def first_at_least(self, constant: ast.Literal) -> int:
        """The smallest number that is not below a constant."""
        value = constant.value
        if isinstance(value, int):
            return self._clamp(value * 10**self.scale)
        if isinstance(value, float):
            return self._bisect(lambda i: order_key(self._double(i)) >= order_key(value))
        return self._clamp(int(self._shifted(value).to_integral_value(ROUND_CEILING)))

    def first_above(self, constant: ast.Literal) -> int:
        """The smallest number above a constant."""
        value = constant.value
        if isinstance(value, int):
            return self._clamp(value * 10**self.scale + 1)
        if isinstance(value, float):
            return self._bisect(lambda i: order_key(self._double(i)) > order_key(value))
        return self._clamp(int(self._shifted(value).to_integral_value(ROUND_FLOOR)) + 1)

    def _shifted(self, value: object) -> Decimal:
        given = value if isinstance(value, Decimal) else Decimal(0)
        return given.scaleb(self.scale, _EXACT)

    def _double(self, number: int) -> float:
        return float(_value(number, self.of))

    def _clamp(self, number: int) -> int:
        return max(self.low, min(number, self.high + 1))

    def _bisect(self, holds: Callable[[int], bool]) -> int:
        """The smallest number for which a monotone test holds; one more than all if none."""
        low, high = self.low, self.high + 1
        while low < high:
            middle = (low + high) // 2
            if holds(middle):
                high = middle
            else:
                low = middle + 1
        return low


def _value(number: int, of: Type) -> int | Decimal:
    return Decimal(number).scaleb(-of.scale, _EXACT) if of.kind is Kind.DECIMAL else number
