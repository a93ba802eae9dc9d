"""A filter in normal form: what engines compile.

The normal form of a filter is a formula of AND and OR over canonical predicates. It is *true* of an
event exactly when the filter is; whether it is otherwise false or unknown no longer matters, and
so no negation is left above a predicate:

* ``attribute op constant`` with the attribute on the left; for whole numbers ``op`` is one of
  ``= <> <= >=`` and the constant is whole, whatever the filter compared them with,
* ``attribute IN (constants)``, sorted, without doubles or nulls, at least two,
* ``startswith``, ``endswith``, ``contains``, LIKE and RLIKE on strings,
* comparisons between attributes or of computed values, as they were written,
* ``IS NULL``,
* ``NOT`` before one of these that has no opposite of its own: the predicate is *false*,
* TRUE or FALSE alone.

The form depends on the logic: in Kleene's, ``NOT price < 10`` is ``price >= 10``; in the classical
one, where a missing price is not below 10, it is ``price >= 10 OR price IS NULL``.
"""

import functools
from collections.abc import Callable
from enum import Enum

from tamis.errors import LimitError
from tamis.language import ast
from tamis.language.ast import FALSE, TRUE, UNKNOWN, Node
from tamis.language.canonical_predicates import canonical_predicate
from tamis.language.evaluation import Logic, compile_value
from tamis.language.limits import MAX_NORMAL_NODES
from tamis.language.printer import print_tree
from tamis.schema import Schema
from tamis.types import BOOL, Kind, Type

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_NO_ATTRIBUTES = Schema({})


def normalize(tree: Node, logic: Logic = Logic.KLEENE) -> Node:
    """The normal form of a checked tree.

    The parts of a chain are true by themselves, so each is normalised by itself; filters share most
    of their parts, and the forms of parts are remembered.
    """
    if isinstance(tree, ast.And | ast.Or):
        return flatten(type(tree)(tuple(normalize(item, logic) for item in tree.items)), logic)
    return _normal_part(tree, logic)


@functools.lru_cache(maxsize=50_000)
def _normal_part(tree: Node, logic: Logic) -> Node:
    form = tree
    try:
        for one_pass in PASSES:
            form = one_pass(form, logic)
    except _TooLarge:
        raise LimitError(
            f"the normal form of the filter has more than {MAX_NORMAL_NODES:,} nodes",
            print_tree(tree), 0, None, "it compares conditions with conditions too often",
        ) from None  # fmt: skip
    return form


class _TooLarge(Exception):
    """The normal form outgrows its limit."""


# --- abbreviations


def expand_abbreviations(node: Node, _logic: Logic) -> Node:
    """Say with fewer words.

    * ``x BETWEEN 1 AND 2`` becomes ``x >= 1 AND x <= 2``
    * ``x <> 1`` becomes ``NOT x = 1``
    * ``x IN (1, y, NULL)`` becomes ``x IN (1) OR x = y OR NULL``
    * ``x <=> y`` becomes ``(x = y) IS TRUE OR x IS NULL AND y IS NULL``
    * ``(x > 1) = b`` becomes ``(x > 1) AND b OR NOT x > 1 AND NOT b``
    """
    return _bottom_up(node, _expand)


def _expand(node: Node) -> Node:
    match node:
        case ast.Between(operand, low, high, low_type, high_type):
            at_least = ast.Compare(">=", _converted(operand, low_type), low)
            at_most = ast.Compare("<=", _converted(operand, high_type), high)
            return ast.And((_expand(at_least), _expand(at_most)))
        case ast.In(operand, items):
            return _expand_in(operand, items)
        case ast.Compare("<=>", left, right):
            equal = ast.IsTruth(_expand(ast.Compare("=", left, right)), truth=True)
            return ast.Or((equal, ast.And((ast.IsNull(left), ast.IsNull(right)))))
        case ast.Compare(op, left, right) if _is_condition(left) or _is_condition(right):
            return _compare_conditions(op, left, right)
        case ast.Compare("<>", left, right):
            return ast.Not(ast.Compare("=", left, right))
        case _:
            return node


def _converted(node: Node, wanted: Type) -> Node:
    return node if node.type == wanted else ast.Cast(node, wanted)


def _expand_in(operand: Node, items: tuple[Node, ...]) -> Node:
    if _is_condition(operand):
        return ast.Or(tuple(_expand(ast.Compare("=", operand, item)) for item in items))
    constants: list[Node] = []
    others: list[Node] = []
    for item in items:
        varies = _is_condition(item) or ast.attributes(item)
        (others if varies else constants).append(item)
    parts: list[Node] = [ast.In(operand, tuple(constants))] if constants else []
    parts += [_expand(ast.Compare("=", operand, item)) for item in others]
    return parts[0] if len(parts) == 1 else ast.Or(tuple(parts))


def _is_condition(node: Node) -> bool:
    """Whether a node is a truth value that is computed, not read from an event or a constant."""
    bare = node.operand if isinstance(node, ast.Cast) else node
    return node.type == BOOL and not isinstance(bare, ast.Attribute | ast.Literal)


def _compare_conditions(op: str, p: Node, q: Node) -> Node:
    """Comparisons of truth values, false before true, by AND, OR and NOT."""
    match op:
        case "<>":
            return ast.Not(_compare_conditions("=", p, q))
        case "=":
            return ast.Or((ast.And((_holds(p), _holds(q))), ast.And((_fails(p), _fails(q)))))
        case "<=":
            return ast.Or(
                (
                    ast.And((_fails(p), _fails(q))),
                    ast.And((_fails(p), _holds(q))),
                    ast.And((_holds(p), _holds(q))),
                )
            )
        case ">=":
            return _compare_conditions("<=", q, p)
        case ">":
            return _compare_conditions("<", q, p)
        case _:
            # The last two are false, or unknown if their condition is.
            return ast.Or(
                (
                    ast.And((_fails(p), _holds(q))),
                    ast.And((_holds(p), _fails(p))),
                    ast.And((_holds(q), _fails(q))),
                )
            )


def _holds(node: Node) -> Node:
    return node if _is_condition(node) else ast.Compare("=", node, TRUE)


def _fails(node: Node) -> Node:
    return ast.Not(node) if _is_condition(node) else ast.Compare("=", node, FALSE)


# --- constants


def fold_constants(node: Node, logic: Logic) -> Node:
    """Compute what does not depend on the event.

    * ``x > 2 + 3`` becomes ``x > 5``
    * ``x > 1 AND 2 < 1`` becomes ``FALSE``
    * ``x = NULL`` becomes ``NULL``
    """
    return _bottom_up(node, lambda part: _fold(part, logic))


def _fold(node: Node, logic: Logic) -> Node:
    parts = ast.children(node)
    if isinstance(node, ast.And | ast.Or):
        return _fold_chain(node)
    if not parts:
        return node
    if isinstance(node, ast.In):
        return _fold_in(node, logic)
    if all(isinstance(part, ast.Literal) for part in parts):
        value = compile_value(node, _NO_ATTRIBUTES, logic)(())
        if isinstance(value, float) and (value - value) != 0:  # inf and nan cannot be written
            return node
        return ast.Literal(value, node.type)
    if _strict(node) and any(isinstance(p, ast.Literal) and p.value is None for p in parts):
        unknown = node.type == BOOL and logic is Logic.CLASSICAL
        return FALSE if unknown else ast.Literal(None, node.type)
    return node


def _strict(node: Node) -> bool:
    """Whether a node is null as soon as one part of it is."""
    return isinstance(
        node, ast.Arithmetic | ast.Negative | ast.Cast | ast.Call | ast.Like | ast.RLike
    ) or (isinstance(node, ast.Compare) and node.op != "<=>")


def _fold_in(node: ast.In, logic: Logic) -> Node:
    if isinstance(node.operand, ast.Literal):
        return ast.Literal(compile_value(node, _NO_ATTRIBUTES, logic)(()), BOOL)
    known = tuple(i for i in node.items if not (isinstance(i, ast.Literal) and i.value is None))
    if len(known) == len(node.items):
        return node
    return ast.Or((ast.In(node.operand, known), UNKNOWN)) if known else UNKNOWN


def _fold_chain(node: ast.And | ast.Or) -> Node:
    neutral, decisive = (TRUE, FALSE) if isinstance(node, ast.And) else (FALSE, TRUE)
    if decisive in node.items:
        return decisive
    items = tuple(item for item in node.items if item != neutral)
    return type(node)(items) if len(items) > 1 else (items[0] if items else neutral)


# --- negations


class _Want(Enum):
    """What is asked of a condition."""

    TRUE = "it is true"
    FALSE = "it is false"
    NOT_TRUE = "it is false or unknown"
    NOT_FALSE = "it is true or unknown"


_SWAP = {
    _Want.TRUE: _Want.FALSE,
    _Want.FALSE: _Want.TRUE,
    _Want.NOT_TRUE: _Want.NOT_FALSE,
    _Want.NOT_FALSE: _Want.NOT_TRUE,
}


def push_negations(node: Node, logic: Logic) -> Node:
    """Move NOT, IS TRUE and their kind down to the predicates.

    * ``NOT (x < 1 AND y = 2)`` becomes ``x >= 1 OR y <> 2``
    * ``(x < 1) IS NOT TRUE`` becomes ``x >= 1 OR x IS NULL``
    * ``NOT x < 1, classical`` becomes ``x >= 1 OR x IS NULL``
    """
    return _Pushing(logic).ask(node, _Want.TRUE)


class _Pushing:
    """One pass, which knows how large its result has grown."""

    def __init__(self, logic: Logic) -> None:
        self.classical = logic is Logic.CLASSICAL
        self.size = 0

    def ask(self, node: Node, want: _Want) -> Node:
        self.size += 1
        if self.size > MAX_NORMAL_NODES:
            raise _TooLarge
        if self.classical:  # nothing is unknown
            want = {_Want.FALSE: _Want.NOT_TRUE, _Want.NOT_FALSE: _Want.TRUE}.get(want, want)
        match node:
            case ast.And(items) | ast.Or(items):
                kept = want in {_Want.TRUE, _Want.NOT_FALSE}
                chain = ast.And if isinstance(node, ast.And) == kept else ast.Or
                return chain(tuple(self.ask(item, want) for item in items))
            case ast.Not(operand):
                swapped = _SWAP[want]
                if self.classical:
                    swapped = _Want.NOT_TRUE if want is _Want.TRUE else _Want.TRUE
                return self.ask(operand, swapped)
            case ast.IsTruth(operand, truth):
                return self.ask(operand, self.truth_test(want, truth=truth))
            case ast.IsNull(operand):
                return self.null_test(operand, positive=want in {_Want.TRUE, _Want.NOT_FALSE})
            case ast.Literal(value, _):
                return TRUE if _constant_answers(value, want) else FALSE
            case _:
                return self.predicate(node, want)

    @staticmethod
    def truth_test(want: _Want, *, truth: bool) -> _Want:
        if want in {_Want.TRUE, _Want.NOT_FALSE}:
            return _Want.TRUE if truth else _Want.FALSE
        return _Want.NOT_TRUE if truth else _Want.NOT_FALSE

    def null_test(self, operand: Node, *, positive: bool) -> Node:
        if not _is_condition(operand):
            null = is_null(operand)
            return null if positive else _not_null(null)
        if self.classical:
            return FALSE if positive else TRUE
        if not isinstance(operand, ast.And | ast.Or | ast.Not | ast.IsTruth | ast.IsNull):
            null = _some_null(operand)  # a predicate is unknown when a value of it is
            return null if positive else _not_null(null)
        wants = (_Want.NOT_TRUE, _Want.NOT_FALSE) if positive else (_Want.TRUE, _Want.FALSE)
        chain = ast.And if positive else ast.Or
        return chain(tuple(self.ask(operand, want) for want in wants))

    def predicate(self, node: Node, want: _Want) -> Node:
        match want:
            case _Want.TRUE:
                return node
            case _Want.FALSE:
                return _opposite(node)
            case _Want.NOT_TRUE:
                return ast.Or((_opposite(node), _some_null(node)))
            case _:
                return ast.Or((node, _some_null(node)))


def _constant_answers(value: object, want: _Want) -> bool:
    match want:
        case _Want.TRUE:
            return value is True
        case _Want.FALSE:
            return value is False
        case _Want.NOT_TRUE:
            return value is not True
        case _:
            return value is not False


def _opposite(predicate: Node) -> Node:
    if isinstance(predicate, ast.Compare):
        return ast.Compare(_OPPOSITE[predicate.op], predicate.left, predicate.right)
    return ast.Not(predicate)


def _some_null(predicate: Node) -> Node:
    operands = (predicate,) if isinstance(predicate, ast.Attribute) else ast.children(predicate)
    return ast.Or(tuple(is_null(operand) for operand in operands))


def is_null(value: Node) -> Node:
    """When a value is null, in terms of attributes where that is plain.

    * ``lower(s) IS NULL`` becomes ``s IS NULL``
    * ``i / j IS NULL`` stays: it is null also where j is 0
    """
    match value:
        case ast.Literal(constant, _):
            return TRUE if constant is None else FALSE
        case ast.Cast(operand, _) | ast.Negative(operand, _):
            return is_null(operand)
        case ast.Call(_, arguments, _):
            return ast.Or(tuple(is_null(argument) for argument in arguments))
        case ast.Arithmetic(op, left, right, result) if (
            op in {"+", "-", "*"} and result.kind is not Kind.DECIMAL
        ):
            return ast.Or((is_null(left), is_null(right)))
        case _:
            return ast.IsNull(value)


def _not_null(test: Node) -> Node:
    match test:
        case ast.Literal(value, _):
            return FALSE if value is True else TRUE
        case ast.Or(items):
            return ast.And(tuple(_not_null(item) for item in items))
        case _:
            return ast.Not(test)


# --- predicates and chains


def canonical_predicates(node: Node, logic: Logic) -> Node:
    """Write every predicate in its one canonical way; see `canonical`.

    * ``5 > i`` becomes ``i <= 4``
    * ``s LIKE 'ab%'`` becomes ``startswith(s, 'ab')``
    """
    if isinstance(node, ast.And | ast.Or):
        return type(node)(tuple(canonical_predicates(item, logic) for item in node.items))
    return canonical_predicate(node)


def flatten(node: Node, logic: Logic) -> Node:
    """Make chains of chains one chain, without doubles, TRUE and FALSE.

    * ``a AND (b AND a)`` becomes ``a AND b``
    """
    if not isinstance(node, ast.And | ast.Or):
        return node
    items: dict[Node, None] = {}
    for item in node.items:
        flat = flatten(item, logic)
        items.update(dict.fromkeys(flat.items if type(flat) is type(node) else (flat,)))
    return _fold_chain(type(node)(tuple(items)))


def _bottom_up(node: Node, change: Callable[[Node], Node]) -> Node:
    """Change every node, those below it first.

    Comparisons of conditions use their operands several times, so the tree is a graph whose paths
    may be exponentially many; every node object is changed once and stays shared.
    """
    done: dict[int, Node] = {}

    def visit(part: Node) -> Node:
        result = done.get(id(part))
        if result is None:
            parts = ast.children(part)
            changed = tuple(visit(below) for below in parts)
            same = all(new is old for new, old in zip(changed, parts, strict=True))
            result = done[id(part)] = change(part if same else ast.rebuild(part, changed))
        return result

    return visit(node)


PASSES: tuple[Callable[[Node, Logic], Node], ...] = (
    expand_abbreviations,
    fold_constants,
    push_negations,
    canonical_predicates,
    flatten,
)
