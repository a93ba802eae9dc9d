"""A scan with numpy, as one would write it by hand for conjunctions of comparisons with numbers."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from tamis.engines.base import Options
from tamis.events.event_reader import Row
from tamis.kernels.handles import Handles
from tamis.language import ast
from tamis.language.expression import Expression
from tamis.semantics import Semantics

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
# truth[operator, sign of (value - constant) + 1]; the last operator is always true
TRUTH = np.array(
    [[0, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]], bool
)


class ScanEngine:
    """Compares every predicate of every subscription, vectorised over subscriptions."""

    name = "numpy scan"
    options_class: ClassVar[type[Options]] = Options

    def __init__(self, semantics: Semantics, options: Any = None) -> None:  # noqa: ARG002 - none
        self._positions = semantics.schema.positions
        self._held: dict[int, list[tuple[int, int, float]]] = {}
        self._arrays: tuple[Any, Any, Any, Any] | None = None

    def prepare(self, expression: Expression) -> list[tuple[int, int, float]]:
        tree = expression.tree
        return [self._comparison(a) for a in (tree.items if isinstance(tree, ast.And) else (tree,))]

    def _comparison(self, atom: ast.Node) -> tuple[int, int, float]:
        if not isinstance(atom, ast.Compare) or not isinstance(atom.left, ast.Attribute):
            raise TypeError(atom)
        constant = atom.right.operand if isinstance(atom.right, ast.Cast) else atom.right
        if not isinstance(constant, ast.Literal):
            raise TypeError(atom)
        value = float(constant.value)  # type: ignore[arg-type]  # a number, or this fails
        return self._positions[atom.left.path], OPERATORS.index(atom.op), value

    def add(self, handle: int, prepared: list[tuple[int, int, float]]) -> None:
        self._held[handle] = prepared
        self._arrays = None

    def remove(self, handle: int) -> None:
        del self._held[handle]
        self._arrays = None

    def match(self, row: Row) -> Handles:
        handles, attribute, operator, constant = self._arrays or self._fill()
        difference = np.sign(np.array(row, np.float64)[attribute] - constant).astype(np.int64) + 1
        true: Handles = handles[TRUTH[operator, difference].all(axis=1)]
        return true

    def match_many(self, rows: Sequence[Row]) -> Iterator[Handles]:
        return map(self.match, rows)

    def _fill(self) -> tuple[Any, Any, Any, Any]:
        """Arrays [subscription, place]; a lacking predicate is always true."""
        longest = max(map(len, self._held.values()))
        shape = len(self._held), longest
        attribute, constant = np.zeros(shape, np.int64), np.zeros(shape)
        operator = np.full(shape, len(OPERATORS), np.int64)
        for line, predicates in enumerate(self._held.values()):
            for place, one in enumerate(predicates):
                attribute[line, place], operator[line, place], constant[line, place] = one
        handles = np.fromiter(self._held, np.int64, len(self._held))
        self._arrays = handles, attribute, operator, constant
        return self._arrays

    def statistics(self) -> dict[str, int]:
        return {"subscriptions": len(self._held)}
