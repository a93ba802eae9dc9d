"""How much a predicate is expected to leave: which member of a conjunction is asked first."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tamis.language import ast
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.index import PredicateIndex

Array = np.ndarray[Any, Any]

# The share of events that a predicate lets through, by its kind; equalities divide theirs by the
# number of constants that the attribute is compared with. Only equalities and sets, which are found
# from the values of events, may get below `segment.SELECTIVE`.
EQUALITY, SET, TEST, RANGE, UNEQUAL, OTHER = 0.5, 0.3, 0.2, 0.5, 0.95, 0.5


class Selectivity:
    """Estimates for the predicates of an index."""

    def __init__(self, index: PredicateIndex) -> None:
        self._index = index

    def of(self, predicates: Array) -> Array:
        """The expected share of events, for an array of predicates of any shape."""
        distinct, places = np.unique(predicates, return_inverse=True)
        constants = self._index.equality_constants()
        shares = [_share(self._index.node(p), constants) for p in distinct.tolist()]
        found: Array = np.array(shares)[places].reshape(predicates.shape)
        return found


def _share(predicate: Node, constants: Mapping[Path, int]) -> float:
    match predicate:
        case ast.Compare("=", ast.Attribute(path, _), ast.Literal()):
            return EQUALITY / max(1, constants.get(path, 1))
        case ast.Compare("<>", _, ast.Literal()):
            return UNEQUAL
        case ast.Compare(_, _, ast.Literal()):
            return RANGE
        case ast.In(ast.Attribute(path, _), items):
            return min(SET, len(items) * EQUALITY / max(1, constants.get(path, 1)))
        case ast.Like() | ast.RLike() | ast.Call():
            return TEST
        case ast.Not():
            return UNEQUAL
        case _:
            return OTHER
