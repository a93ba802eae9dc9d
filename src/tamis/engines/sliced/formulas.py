"""The boolean formula of a filter, and its *shape*: the formula in postfix order.

A shape is a string with ``a`` for a leaf: ``aa&`` is a conjunction of two. The order of the parts
of AND and OR does not matter, so filters that differ only in that have one shape: leaves come
first, then the inner formulas in the order of their own shapes.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tamis.language import ast
from tamis.language.ast import Node

ALWAYS, NEVER = "1", "0"  # shapes without any leaf


class Chain(NamedTuple):
    """AND (``&``) or OR (``|``) of leaves, which are numbers, and of chains of the other sign."""

    sign: str
    items: "tuple[int | Chain, ...]"


Formula = int | Chain


def chain_of(sign: str, parts: Iterable[Formula]) -> Formula:
    """A chain in which chains of the same sign are dissolved."""
    items: list[Formula] = []
    for part in parts:
        if type(part) is Chain and part.sign == sign:
            items += part.items
        else:
            items.append(part)
    return Chain(sign, tuple(items)) if len(items) > 1 else items[0]


def written(formula: Formula) -> tuple[str, tuple[int, ...]]:
    """The shape of a formula and its leaves in order: those of a chain before the chains in it."""
    if isinstance(formula, int):
        return "a", (formula,)
    sign, items = formula
    order = tuple([item for item in items if isinstance(item, int)])
    shape = "a" + ("a" + sign) * (len(order) - 1) if order else ""
    if len(order) < len(items):
        for part, leaves in sorted([written(item) for item in items if isinstance(item, Chain)]):
            shape += part + (sign if shape else "")
            order += leaves
    return shape, order


def of_shape(shape: str, first: int) -> Formula:
    """The formula of a shape whose leaves are numbered from `first`."""
    if shape == "a":
        return first
    stack: list[Formula] = []
    for sign in shape:
        if sign == "a":
            stack.append(first)
            first += 1
        else:
            right = stack.pop()
            stack[-1] = chain_of(sign, (stack[-1], right))
    return stack[0]


def of_normal_form(tree: Node) -> tuple[str, list[Node]]:
    """The shape of a normal form and its predicates in the order of the leaves."""
    if isinstance(tree, ast.Literal):
        return ALWAYS if tree.value is True else NEVER, []
    predicates: list[Node] = []
    shape, order = written(_formula(tree, predicates))
    return shape, [predicates[n] for n in order]


def _formula(tree: Node, predicates: list[Node]) -> Formula:
    """A normal form as a formula; its predicates are appended to those that are there."""
    if isinstance(tree, ast.And | ast.Or):
        sign = "&" if isinstance(tree, ast.And) else "|"
        return Chain(sign, tuple(_formula(item, predicates) for item in tree.items))
    predicates.append(tree)
    return len(predicates) - 1


def of_structure(structure: str) -> tuple[Formula, list[bool]]:
    """The formula of a checked structure of the shape cache, without negation.

    Its leaves are the atoms; the second result says for each whether it stands plain (True) or
    negated.
    """
    signs: list[bool] = []
    codes = iter(structure)
    code = ""

    def advance() -> None:
        nonlocal code
        code = next(codes, "")

    def alternatives(*, positive: bool) -> Formula:
        parts = [conjunction(positive=positive)]
        while code == "|":
            advance()
            parts.append(conjunction(positive=positive))
        return chain_of("|" if positive else "&", parts)

    def conjunction(*, positive: bool) -> Formula:
        parts = [single(positive=positive)]
        while code == "&":
            advance()
            parts.append(single(positive=positive))
        return chain_of("&" if positive else "|", parts)

    def single(*, positive: bool) -> Formula:
        first = code
        advance()
        if first == "a":
            signs.append(positive)
            return len(signs) - 1
        if first == "!":
            return single(positive=not positive)
        inside = alternatives(positive=positive)
        advance()  # the closing parenthesis
        return inside

    advance()
    return alternatives(positive=True), signs
