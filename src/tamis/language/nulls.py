"""Which attributes a value or a predicate needs: without one of them it is null."""

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.functions.table import nulls_of
from tamis.names import Path

_NOTHING: frozenset[Path] = frozenset()


def needed_attributes(node: Node) -> frozenset[Path]:
    """Attributes of which each makes a value or a predicate null when it is missing.

    * ``i + j < 3`` needs i and j
    * ``coalesce(i, j) < 3`` needs neither
    """
    match node:
        case ast.Attribute(path, _):
            return frozenset((path,))
        case ast.Call() if nulls_of(node).are_given:
            return _NOTHING
        case (
            ast.Lambda() | ast.IsNull() | ast.IsTruth() | ast.And() | ast.Or() | ast.Compare("<=>")
        ):
            return _NOTHING
        case ast.In(operand, _) | ast.Between(operand):
            return needed_attributes(operand)
        case _:
            parts = map(needed_attributes, ast.children(node))
            return _NOTHING.union(*parts)
