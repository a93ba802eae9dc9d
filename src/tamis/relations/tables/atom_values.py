"""The values that atoms of filters are true of, without a tree or a normal form.

Most filters are conjunctions of atoms that the shape cache has read, and most atoms compare an
attribute with constants. What such an atom is true of follows from its shape and its constants; the
long way, by the normal form of the filter (`boxes`), gives the same.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tamis.language import ast
from tamis.language.atoms import Atom, AtomShape
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapedExpression
from tamis.predicates.event_space import EventSpace
from tamis.predicates.value_orders import ValueOrder, order_of
from tamis.predicates.value_sets import ValueSet, all_values, compared, listed, with_missing
from tamis.schema import Enumeration
from tamis.types import DOUBLE, INT, STRING

OPERATORS = frozenset(("=", "<>", "<", "<=", ">", ">="))
MOST_SHAPES = 10_000  # that are remembered

Constants = Sequence[Any]
Reading = tuple[int, Callable[[Constants], ValueSet]]  # the attribute, and the values of constants


class AtomValues:
    """Reads the atoms of filters over one event space."""

    def __init__(self, space: EventSpace) -> None:
        self._space = space
        self._readings: dict[AtomShape, Reading | None] = {}

    def of(self, expression: Expression) -> dict[int, ValueSet] | None:
        """The values of each attribute that a filter tests; None if it must be read another way."""
        if not isinstance(expression, ShapedExpression) or not _is_conjunction(
            expression.structure
        ):
            return None
        found: dict[int, ValueSet] = {}
        for atom in expression.atoms:
            reading = self._reading(atom)
            if reading is None:
                return None
            position, values_of = reading
            constants = [
                convert(text)
                for convert, text in zip(atom.shape.converters, atom.constants, strict=True)  # type: ignore[union-attr]  # it has been read
            ]
            values = values_of(constants)
            before = found.get(position)
            found[position] = values if before is None else before.intersection(values)
        return found

    def _reading(self, atom: Atom) -> Reading | None:
        shape = atom.shape
        if shape is None:
            return None
        try:
            return self._readings[shape]
        except KeyError:
            if len(self._readings) >= MOST_SHAPES:
                self._readings.clear()
            found = self._readings[shape] = self._learned(atom.node)
            return found

    def _learned(self, node: ast.Node) -> Reading | None:
        """How to read all atoms of the shape of one."""
        if isinstance(node, ast.Compare):
            tested, op = node.left, node.op
        elif isinstance(node, ast.Between):
            tested, op = node.operand, "BETWEEN"
        elif isinstance(node, ast.In):
            tested, op = node.operand, "IN"
        else:
            return None
        if not isinstance(tested, ast.Attribute) or tested.type not in {INT, DOUBLE, STRING}:
            return None
        position = self._space.schema.positions[tested.path]
        order = order_of(self._space.schema.attributes[position])
        if op in OPERATORS:
            values_of = partial(_compared, op, order)
        elif op in {"BETWEEN", "IN"}:
            values_of = partial(_between if op == "BETWEEN" else _listed, order)
        else:
            return None
        if isinstance(order.domain, Enumeration):
            return position, lambda constants: values_of(constants).intersection(
                with_missing(all_values(order))
            )
        return position, values_of


def _compared(op: str, order: ValueOrder, constants: Constants) -> ValueSet:
    return compared(op, constants[0], order)


def _between(order: ValueOrder, constants: Constants) -> ValueSet:
    low, high = constants
    return compared(">=", low, order).intersection(compared("<=", high, order))


def _listed(order: ValueOrder, constants: Constants) -> ValueSet:
    return listed(constants, order)


def _is_conjunction(structure: str) -> bool:
    return structure[::2].strip("a") == "" == structure[1::2].strip("&")
