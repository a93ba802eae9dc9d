"""A filter as a shape and its predicates.

A shape is the formula in postfix order with ``a`` for a predicate: ``aa&`` is a conjunction of two.
The predicates are those of the leaves, in their order. AND and OR may be turned around, so filters
that differ only in that have one shape: leaves come first, then the parts in the order of their own
shapes.
"""

from typing import NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.language.normal_form import normalize
from tamis.semantics import Semantics

ALWAYS, NEVER = "1", "0"  # shapes without any predicate


class Form(NamedTuple):
    """A filter that is ready to be held."""

    shape: str
    predicates: tuple[Node, ...]


def form_of(expression: Expression, semantics: Semantics) -> Form:
    """The form of a filter; in strict semantics with the presence of all attributes of the text."""
    tree = normalize(expression.tree, semantics.logic)
    if semantics.name == "strict":
        tree = _with_presence(tree, expression, semantics)
    if isinstance(tree, ast.Literal):
        return Form(ALWAYS if tree.value is True else NEVER, ())
    return _form(tree)


def _with_presence(tree: Node, expression: Expression, semantics: Semantics) -> Node:
    if tree == ast.FALSE or not expression.attributes:
        return tree
    parts = tree.items if isinstance(tree, ast.And) else (tree,)
    asked = {
        path
        for part in parts
        if not isinstance(part, ast.Or | ast.IsNull | ast.Literal)
        for path in ast.attributes(part)
    }
    attributes = [semantics.schema.find(path) for path in sorted(expression.attributes - asked)]
    presence = tuple(
        ast.Not(ast.IsNull(ast.Attribute(a.path, a.type))) for a in attributes if a is not None
    )
    parts = tuple(part for part in parts if part != ast.TRUE)
    together = (*parts, *presence)
    return ast.And(together) if len(together) > 1 else together[0]


def _form(tree: Node) -> Form:
    if not isinstance(tree, ast.And | ast.Or):
        return Form("a", (tree,))
    sign = "&" if isinstance(tree, ast.And) else "|"
    leaves = [item for item in tree.items if not isinstance(item, ast.And | ast.Or)]
    chains = sorted(
        (_form(item) for item in tree.items if isinstance(item, ast.And | ast.Or)),
        key=lambda form: form.shape,
    )
    shape = "a" + ("a" + sign) * (len(leaves) - 1) if leaves else ""
    predicates: list[Node] = list(leaves)
    for chain in chains:
        shape += chain.shape + (sign if shape else "")
        predicates += chain.predicates
    return Form(shape, tuple(predicates))
