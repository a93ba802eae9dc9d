"""The *shape* of a filter: its boolean formula in postfix order.

A shape is a string with ``a`` for a leaf: ``aa&`` is a conjunction of two, ``aaa|&`` is one of a
leaf and an OR of two. It is what `tamis.language.structures` calls the postfix form, with leaves in
the place of atoms.
"""

from tamis.language import ast
from tamis.language.ast import Node

ALWAYS, NEVER = "1", "0"  # shapes without any leaf


def of_normal_form(tree: Node) -> tuple[str, list[Node]]:
    """The shape of a normal form and its predicates in the order of the leaves."""
    if isinstance(tree, ast.Literal):
        return ALWAYS if tree.value is True else NEVER, []
    shape: list[str] = []
    predicates: list[Node] = []
    _write(tree, shape, predicates)
    return "".join(shape), predicates


def _write(tree: Node, shape: list[str], predicates: list[Node]) -> None:
    """Append what a normal form is to a shape and its predicates."""
    if not isinstance(tree, ast.And | ast.Or):
        shape.append("a")
        predicates.append(tree)
        return
    sign = "&" if isinstance(tree, ast.And) else "|"
    for number, item in enumerate(tree.items):
        _write(item, shape, predicates)
        if number:
            shape.append(sign)
