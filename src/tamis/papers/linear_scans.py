"""The naive approach of MBD, section 6: "linearly scans the routing table".

Entries are conjunctions of one interval per attribute. Nothing is shared between them: a predicate
that a thousand entries have is evaluated a thousand times. The interpreter of Python would make
this scan look bad, so there are two that do not need it for each entry: a compiled loop that leaves
an entry at its first false predicate, and array operations over all predicates of all entries.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tamis.engines.base import Options
from tamis.events.event_reader import Row
from tamis.kernels.handles import Handles
from tamis.kernels.linear_scan import scan_conjunctions
from tamis.language import ast
from tamis.language.expression import Expression
from tamis.language.normal_form import normalize
from tamis.predicates.classification import Comparison, Presence, classify
from tamis.semantics import Semantics

Array = np.ndarray[Any, Any]
Test = tuple[int, float, float]  # attribute, least and largest value; the other way round: outside

# What is added to the constant of a canonical comparison of whole numbers.
_BOUNDS = {"=": (0, 0), "<>": (1, -1), "<=": (-np.inf, 0), ">=": (0, np.inf)}


class _Arrays(NamedTuple):
    """All tests, entry after entry."""

    handles: Array
    attributes: Array
    lows: Array
    highs: Array
    starts: Array


class LinearScan:
    """Tests one entry after the other, each up to its first false predicate."""

    name = "compiled scan"
    options_class: ClassVar[type[Options]] = Options

    def __init__(self, semantics: Semantics, options: Any = None) -> None:  # noqa: ARG002 - none
        self._semantics = semantics
        self._held: dict[int, list[Test]] = {}
        self._filled: _Arrays | None = None

    def prepare(self, expression: Expression) -> list[Test]:
        """The tests of a conjunction of comparisons of whole numbers; in the order of its text."""
        tree = normalize(expression.tree, self._semantics.logic)
        items = tree.items if isinstance(tree, ast.And) else (tree,)
        return [self._test(item) for item in items]

    def _test(self, node: ast.Node) -> Test:
        positions = self._semantics.schema.positions
        match classify(node):
            case Comparison(ast.Attribute(path, _), op, int() as constant):
                low, high = _BOUNDS[op]
                return positions[path], constant + low, constant + high
            case Presence(ast.Attribute(path, _)) if isinstance(node, ast.Not):
                return positions[path], -np.inf, np.inf
        raise TypeError(f"{node} is not a comparison of whole numbers")

    def add(self, handle: int, prepared: list[Test]) -> None:
        self._held[handle] = prepared
        self._filled = None

    def remove(self, handle: int) -> None:
        del self._held[handle]
        self._filled = None

    def match(self, row: Row) -> Handles:
        arrays = self._arrays()
        found = np.empty(arrays.handles.size, np.int64)
        count = scan_conjunctions(np.array(row, np.float64), *arrays[1:], found)
        handles: Handles = arrays.handles[found[:count]]
        return handles

    def match_many(self, rows: Sequence[Row]) -> Iterator[Handles]:
        return map(self.match, rows)

    def statistics(self) -> dict[str, int]:
        return {"subscriptions": len(self._held)}

    def _arrays(self) -> _Arrays:
        if self._filled is None:
            tests = [test for prepared in self._held.values() for test in prepared]
            columns = np.array(tests, np.float64).reshape(-1, 3).T
            sizes = [0, *map(len, self._held.values())]
            self._filled = _Arrays(
                np.fromiter(self._held, np.int64, len(self._held)),
                columns[0].astype(np.int64), columns[1].copy(), columns[2].copy(),
                np.cumsum(sizes),
            )  # fmt: skip
        return self._filled


class VectorScan(LinearScan):
    """Tests all predicates of all entries, with one array operation for each step."""

    name = "vectorised scan"

    def match(self, row: Row) -> Handles:
        arrays = self._arrays()
        values = np.array(row, np.float64)[arrays.attributes]
        above, below = arrays.lows <= values, values <= arrays.highs
        true = np.where(arrays.lows <= arrays.highs, above & below, above | below)
        # A conjunction holds if no test fails between its start and its end.
        failed = np.concatenate([[0], np.cumsum(~true)])
        handles: Handles = arrays.handles[failed[arrays.starts[1:]] == failed[arrays.starts[:-1]]]
        return handles
