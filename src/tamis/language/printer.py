"""Tree to text. Reading the text gives the same tree.

Parentheses stand where they must, and around a comparison inside a comparison or test, where the
grammar could do without them and readers cannot.
"""

import math
from decimal import Decimal

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.literals import string_text
from tamis.language.parser import AND, COMPARISON, NOT, OR, PRODUCT, SUM, TEST, UNARY
from tamis.names import path_text
from tamis.timestamps import timestamp_text
from tamis.types import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Kind

_PRIMARY = UNARY + 1


def print_tree(node: Node) -> str:
    """The text of a tree."""
    return _print(node)[0]


def _print(node: Node) -> tuple[str, int]:
    """The text of a node and how tightly its outermost operator binds."""
    match node:
        case ast.Cast(operand, _):
            return _print(operand)
        case ast.Literal():
            return literal_text(node), _PRIMARY
        case ast.Attribute(path, _):
            return path_text(path), _PRIMARY
        case ast.Call(name, arguments, _):
            return f"{name}({', '.join(map(print_tree, arguments))})", _PRIMARY
        case ast.Negative(operand, _):
            inner = f"({print_tree(operand)})" if _is_number(operand) else _at(operand, _PRIMARY)
            return f"-{inner}", UNARY
        case ast.Arithmetic(op, left, right, _):
            power = SUM if op in {"+", "-"} else PRODUCT
            return f"{_at(left, power)} {op} {_at(right, power + 1)}", power
        case ast.Compare(op, left, right):
            return f"{_at(left, SUM)} {op} {_at(right, SUM)}", COMPARISON
        case ast.And(items):
            return " AND ".join(_at(item, NOT) for item in items), AND
        case ast.Or(items):
            return " OR ".join(_at(item, AND) for item in items), OR
        case ast.Not(operand):
            if isinstance(operand, ast.Between | ast.In | ast.Like | ast.RLike):
                return _test(operand, "NOT "), TEST
            if isinstance(operand, ast.IsNull | ast.IsTruth):
                return _test(operand, "NOT "), TEST
            return f"NOT {_at(operand, NOT)}", NOT
        case ast.Slot(index):
            return f"?{index}", _PRIMARY
        case _:
            return _test(node, ""), TEST


def _test(node: Node, negation: str) -> str:
    match node:
        case ast.Between(low, high):
            bounds = f"{_at(low.right, SUM)} AND {_at(high.right, SUM)}"
            return f"{_at(low.left, SUM)} {negation}BETWEEN {bounds}"
        case ast.In(operand, items):
            listed = ", ".join(map(print_tree, items))
            return f"{_at(operand, SUM)} {negation}IN ({listed})"
        case ast.Like(operand, pattern, escape):
            suffix = "" if escape == "\\" else f" ESCAPE {string_text(escape)}"
            return f"{_at(operand, SUM)} {negation}LIKE {string_text(pattern)}{suffix}"
        case ast.RLike(operand, pattern):
            return f"{_at(operand, SUM)} {negation}RLIKE {string_text(pattern)}"
        case ast.IsNull(operand):
            return f"{_at(operand, SUM)} IS {negation}NULL"
        case ast.IsTruth(operand, truth):
            return f"{_at(operand, SUM)} IS {negation}{str(truth).upper()}"
        case _:  # pragma: no cover - `_print` names all other nodes
            raise AssertionError(node)


def _at(node: Node, power: int) -> str:
    """The text of a node where only operators of at least this power may stand bare."""
    text, binds = _print(node)
    return text if binds >= power else f"({text})"


def _is_number(node: Node) -> bool:
    return isinstance(node, ast.Literal) and node.type.is_number


def literal_text(literal: ast.Literal) -> str:
    """A constant as a filter writes it."""
    value = literal.value
    match literal.type.kind:
        case _ if value is None:
            return "NULL"
        case Kind.BOOL:
            return str(value).upper()
        case Kind.STRING:
            return string_text(str(value))
        case Kind.TIMESTAMP if isinstance(value, int):
            return f"TIMESTAMP '{timestamp_text(value)}'"
        case Kind.INT if isinstance(value, int) and INT32_MIN <= value <= INT32_MAX:
            return f"{value}L"
        case Kind.DOUBLE:
            text = repr(value)
            return text if "e" in text or not math.isfinite(float(text)) else f"{text}D"
        case Kind.DECIMAL if isinstance(value, Decimal):
            text = format(value, "f")
            reads_as_whole = "." not in text and INT64_MIN <= value <= INT64_MAX
            return f"{text}BD" if reads_as_whole else text
        case _:
            return str(value)
