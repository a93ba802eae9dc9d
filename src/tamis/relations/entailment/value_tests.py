"""Predicates as tests of an *operand*, which other predicates may test, too.

An operand has one value, or none, for each event: it is an attribute, a computed value that is
compared with constants, two values that are compared with each other, or the truth of a single
test that nothing else is related to.
"""

from typing import Any, NamedTuple

from tamis.bounded_caches import remembered
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.predicates.classification import (
    Comparison,
    Constant,
    LikeTest,
    Membership,
    PairComparison,
    PartTest,
    Presence,
    StringTest,
    classify,
)
from tamis.relations.entailment.string_languages import (
    Language,
    like_language,
    part_language,
    text_language,
)
from tamis.schema import Schema
from tamis.types import DAYS, DURATION, INT32, STRING, TIMESTAMP

_NO_ATTRIBUTES = Schema({})
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOW = ast.Call(ast.NOW, (), TIMESTAMP)
# Microseconds before or after the present, about 36,000 years: sums with any year of four digits
# are far from the end of 64 bits, where they would be cut off.
FARTHEST = 1 << 60
LONGEST_PART = 2_000  # characters of a text whose parts are a language


class Pair(NamedTuple):
    """Two values that are compared with each other."""

    left: Node
    right: Node


class ValueTest(NamedTuple):
    """A test of an operand.

    `kind` is a comparison operator, for a constant or a pair; ``in``, for a list of constants;
    ``language``, for an automaton; ``null``; or ``holds``, for an operand that is itself a test.
    """

    operand: Node | Pair
    kind: str
    constant: Any = None
    negated: bool = False


@remembered()
def value_test(predicate: Node) -> ValueTest | bool:
    """The test that a predicate makes; a truth value if it does not depend on the event."""
    if not ast.varies(predicate):
        return compile_value(predicate, _NO_ATTRIBUTES)(()) is True
    match classify(predicate):
        case Constant(truth):
            return truth
        case Presence(value, present):
            return ValueTest(_bare(value), "null", negated=present)
        case Comparison(value, op, constant):
            return ValueTest(_bare(value), op, constant)
        case PairComparison(left, op, right):
            return _pair_test(op, left, right)
        case Membership(value, constants, negated):
            return ValueTest(_bare(value), "in", constants, negated)
        case StringTest(value, function, text, negated):
            return ValueTest(value, "language", text_language(function, text), negated)
        case PartTest(value, function, text, negated) if len(text) <= LONGEST_PART:
            return ValueTest(value, "language", part_language(function, text), negated)
        case LikeTest(value, pattern, escape, negated) if value.type == STRING:
            language: Language = like_language(pattern, escape)
            return ValueTest(value, "language", language, negated)
        case _ if isinstance(predicate, ast.Not):
            return ValueTest(predicate.operand, "holds", negated=True)
        case _:
            return ValueTest(predicate, "holds")


def _pair_test(op: str, left: Node, right: Node) -> ValueTest | bool:
    if not ast.varies(left):
        op, left, right = _MIRRORED[op], right, left
    if not ast.varies(right):
        constant = compile_value(right, _NO_ATTRIBUTES)(())
        return False if constant is None else ValueTest(_bare(left), op, constant)
    since = _since_now(op, left, right)
    if since is not None:
        return since
    if hash(left) > hash(right):  # either order would do, if it is always the same
        op, left, right = _MIRRORED[op], right, left
    return ValueTest(Pair(left, right), op)


def _since_now(op: str, left: Node, right: Node) -> ValueTest | None:
    """A comparison with the present as a test of how far a moment is from it.

    ``at > now() - INTERVAL 1 DAY`` -> ``at - now() > INTERVAL -1 DAY``
    """
    if left.type != TIMESTAMP or right.type != TIMESTAMP:
        return None
    (moment, later), (other, earlier) = _shifted(left), _shifted(right)
    if moment == _NOW:
        op, moment, other, later, earlier = _MIRRORED[op], other, moment, earlier, later
    if other != _NOW or ast.has_clock(moment) or max(abs(later), abs(earlier)) > FARTHEST:
        return None
    return ValueTest(ast.Call("-", (moment, _NOW), DURATION), op, earlier - later)


def _shifted(moment: Node) -> tuple[Node, int]:
    """A moment without the intervals that are added to it, and their sum."""
    total = 0
    while isinstance(moment, ast.Call) and moment.name in {"+", "-"}:
        first, second = moment.arguments
        if moment.name == "+" and isinstance(first, ast.Literal):
            first, second = second, first
        if first.type != TIMESTAMP or second.type not in {DAYS, DURATION}:
            break
        if not isinstance(second, ast.Literal) or not isinstance(second.value, int):
            break
        total += second.value if moment.name == "+" else -second.value
        moment = first
    return moment, total


def _bare(value: Node) -> Node:
    """A value without conversions that do not change it: every wider type can hold 32 bits."""
    while isinstance(value, ast.Cast) and value.operand.type in {INT32, value.type}:
        value = value.operand
    return value
