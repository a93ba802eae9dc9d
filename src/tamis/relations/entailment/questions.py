"""Canonical predicates as questions about a *subject*.

A subject is something that has one value, or none, for each event, and about which several
predicates ask: an attribute, a computed value that is compared with constants, two values that are
compared with each other, or a single test that nothing else is related to.
"""

import functools
from typing import Any, NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.relations.entailment.string_languages import (
    Language,
    like_language,
    part_language,
    text_language,
)
from tamis.schema import Schema
from tamis.types import INT32, STRING

_NO_ATTRIBUTES = Schema({})
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
LONGEST_PART = 2_000  # characters of a text whose parts are a language


class Pair(NamedTuple):
    """Two values that are compared with each other."""

    left: Node
    right: Node


class Question(NamedTuple):
    """What a predicate asks.

    `ask` is an operator of comparison, beside a constant or for a pair; ``in``, beside a list of
    constants; ``language``, ``null``, or ``holds`` for a subject that is a test itself.
    """

    subject: Node | Pair
    ask: str
    constant: Any = None
    negated: bool = False


@functools.lru_cache(maxsize=50_000)
def question(predicate: Node) -> Question | bool:
    """What a predicate asks; a truth value if it does not depend on the event."""
    if isinstance(predicate, ast.Not):
        inner = question(predicate.operand)
        if isinstance(inner, bool):  # which may have been unknown
            return compile_value(predicate, _NO_ATTRIBUTES)(()) is True
        return inner._replace(negated=True)
    if not _varies(predicate):
        return compile_value(predicate, _NO_ATTRIBUTES)(()) is True
    match predicate:
        case ast.IsNull(operand):
            return Question(_bare(operand), "null")
        case ast.Compare(op, left, right):
            return _comparison(op, left, right)
        case ast.In(operand, items) if all(_is_known(item) for item in items):
            return Question(_bare(operand), "in", tuple(_constant(item) for item in items))
        case _:
            return _test(predicate)


def _comparison(op: str, left: Node, right: Node) -> Question | bool:
    if not _varies(left):
        op, left, right = _MIRRORED[op], right, left
    if not _varies(right):
        constant = _constant(right)
        return False if constant is None else Question(_bare(left), op, constant)
    if hash(left) > hash(right):  # either order would do, if it is always the same
        op, left, right = _MIRRORED[op], right, left
    return Question(Pair(left, right), op)


def _test(predicate: Node) -> Question:
    language: Language | None = None
    operand: Node = predicate
    match predicate:
        case ast.Like(operand, pattern, escape):
            language = like_language(pattern, escape)
        case ast.Call("startswith" | "endswith" | "contains" as name, (left, right), _):
            if isinstance(right, ast.Literal):
                operand, language = left, text_language(name, str(right.value))
            elif isinstance(left, ast.Literal) and len(str(left.value)) <= LONGEST_PART:
                operand, language = right, part_language(name, str(left.value))
    if language is None or operand.type != STRING:
        return Question(predicate, "holds")
    return Question(operand, "language", language)


def _bare(operand: Node) -> Node:
    """Without conversions that change no value: every wider type can hold 32 bits exactly."""
    while isinstance(operand, ast.Cast) and operand.operand.type in {INT32, operand.type}:
        operand = operand.operand
    return operand


def _varies(node: Node) -> bool:
    return any(isinstance(part, ast.Attribute) for part in ast.walk(node))


def _constant(node: Node) -> Any:
    if isinstance(node, ast.Literal):
        return node.value
    return compile_value(node, _NO_ATTRIBUTES)(())


def _is_known(node: Node) -> bool:
    return isinstance(node, ast.Literal) and node.value is not None
