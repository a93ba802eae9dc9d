"""A filter in normal form: what engines compile.

The normal form of a filter is a formula of AND and OR over canonical predicates. It is *true* for
an event exactly when the filter is; whether it is otherwise false or unknown does not matter, so no
negation is needed above a predicate. The predicates are:

* ``attribute op constant`` with the attribute on the left; for whole numbers ``op`` is one of
  ``= <> <= >=`` and the constant is whole, whatever the filter compared them with,
* ``attribute IN (constants)``, sorted, at least two, without duplicates or nulls,
* ``startswith``, ``endswith``, ``contains``, LIKE and RLIKE on strings,
* comparisons between attributes or of computed values, as they were written,
* ``IS NULL``,
* ``NOT`` before one of these that has no opposite of its own: the predicate is *false*,
* TRUE or FALSE, if it is the whole formula.

The normal form depends on the logic: in Kleene's, ``NOT price < 10`` is ``price >= 10``; in
classical logic, where a missing price is not below 10, it is ``price >= 10 OR price IS NULL``.
"""

from collections.abc import Callable

from tamis.bounded_caches import remembered
from tamis.errors import LimitError
from tamis.language import ast
from tamis.language.abbreviations import expand_abbreviations
from tamis.language.ast import Node
from tamis.language.canonical_predicates import canonical_predicate
from tamis.language.constant_folding import fold_chain, fold_constants
from tamis.language.evaluation import Logic
from tamis.language.limits import MAX_NORMAL_NODES
from tamis.language.negations import NormalFormTooLarge, push_negations, settle_conditions
from tamis.language.printer import print_tree


def normalize(tree: Node, logic: Logic = Logic.KLEENE) -> Node:
    """The normal form of a checked tree.

    The parts of an AND or OR are true independently of each other, so each is normalised by itself.
    Filters have most of their parts in common, so the normal forms of parts are cached.
    """
    if isinstance(tree, ast.And | ast.Or):
        return flatten(type(tree)(tuple(normalize(item, logic) for item in tree.items)), logic)
    return _normal_part(tree, logic)


@remembered(32_000_000)
def _normal_part(tree: Node, logic: Logic) -> Node:
    form = tree
    try:
        for one_pass in PASSES:
            form = one_pass(form, logic)
    except NormalFormTooLarge:
        raise LimitError(
            f"the normal form of the filter has more than {MAX_NORMAL_NODES:,} nodes",
            print_tree(tree), 0, None,
            "it compares conditions with each other, or values made of them, too often",
        ) from None  # fmt: skip
    return form


def canonical_predicates(node: Node, logic: Logic) -> Node:
    """Write every predicate in its one canonical way; see `canonical_predicates`.

    * ``5 > i`` becomes ``i <= 4``
    * ``s LIKE 'ab%'`` becomes ``startswith(s, 'ab')``
    """
    if isinstance(node, ast.And | ast.Or):
        return type(node)(tuple(canonical_predicates(item, logic) for item in node.items))
    return canonical_predicate(node)


def flatten(node: Node, logic: Logic) -> Node:
    """Make chains of chains one chain, without duplicates, TRUE and FALSE.

    * ``a AND (b AND a)`` becomes ``a AND b``
    """
    if not isinstance(node, ast.And | ast.Or):
        return node
    items: dict[Node, None] = {}
    for item in node.items:
        flat = flatten(item, logic)
        items.update(dict.fromkeys(flat.items if type(flat) is type(node) else (flat,)))
    return fold_chain(type(node)(tuple(items)))


PASSES: tuple[Callable[[Node, Logic], Node], ...] = (
    expand_abbreviations,
    fold_constants,
    settle_conditions,
    push_negations,
    canonical_predicates,
    flatten,
)
