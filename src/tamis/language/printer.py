"""The printer: from tree to text. Parsing the text gives the same tree.

Parentheses are printed where they are needed, and around a comparison inside a comparison or test,
where the grammar does not need them but readers do.
"""

import math
from collections.abc import Sequence
from decimal import Decimal

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.functions.casts import type_text
from tamis.language.interval_literals import interval_text
from tamis.language.literals import string_text
from tamis.language.parser import AND, COMPARISON, NOT, OR, PRODUCT, SUM, TEST, UNARY
from tamis.names import path_text
from tamis.timestamps import date_text, timestamp_text
from tamis.types import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Kind

_PRIMARY = UNARY + 1
_INFIX = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "DIV": PRODUCT}


def print_tree(node: Node, *, suffixes: bool = True) -> str:
    """The text of a tree.

    Without `suffixes` a number is printed as people write it, ``10.0`` for ``10.0D``; it means the
    same when compared with an attribute, but may not inside arithmetic.
    """
    return _Printer(suffixes=suffixes).text(node)


class _Printer:
    def __init__(self, *, suffixes: bool) -> None:
        self.suffixes = suffixes

    def text(self, node: Node) -> str:
        return self.text_and_power(node)[0]

    def text_and_power(self, node: Node) -> tuple[str, int]:
        """The text of a node and how tightly its outermost operator binds."""
        match node:
            case ast.Cast(operand, _):
                return self.text_and_power(operand)
            case ast.Literal():
                return literal_text(node, suffixes=self.suffixes), _PRIMARY
            case ast.Attribute(path, _):
                return path_text(path), _PRIMARY
            case ast.Call():
                return self.call(node)
            case ast.Compare(op, left, right):
                return f"{self.at(left, SUM)} {op} {self.at(right, SUM)}", COMPARISON
            case ast.And(items):
                return " AND ".join(self.at(item, NOT) for item in items), AND
            case ast.Or(items):
                return " OR ".join(self.at(item, AND) for item in items), OR
            case ast.Not(ast.Between() | ast.In() | ast.Like() | ast.RLike() as operand):
                return self.test(operand, "NOT "), TEST
            case ast.Not(ast.IsNull() | ast.IsTruth() as operand):
                return self.test(operand, "NOT "), TEST
            case ast.Not(operand):
                return f"NOT {self.at(operand, NOT)}", NOT
            case ast.Variable(name, _):
                return path_text((name,)), _PRIMARY
            case ast.Lambda(name, body):
                return f"{path_text((name,))} -> {self.text(body)}", 0
            case ast.Elements(operand, _):
                return f"elements of {self.text(operand)}", 0
            case ast.Slot(index):
                return f"?{index}", _PRIMARY
            case _:
                return self.test(node, ""), TEST

    def call(self, node: ast.Call) -> tuple[str, int]:
        match node:
            case ast.Call("negative", (operand,), _):
                bare = f"({self.text(operand)})" if _is_number(operand) else None
                return f"-{bare or self.at(operand, _PRIMARY)}", UNARY
            case ast.Call(op, (left, right), _) if op in _INFIX:
                power = _INFIX[op]
                return f"{self.at(left, power)} {op} {self.at(right, power + 1)}", power
            case ast.Call("[]", (holder, place), _):
                return f"{self.at(holder, _PRIMARY)}[{self.text(place)}]", _PRIMARY
            case ast.Call("CASE", arguments, _):
                return self.case("CASE", arguments), _PRIMARY
            case ast.Call("CASE OF", (subject, *rest), _):
                return self.case(f"CASE {self.text(subject)}", rest), _PRIMARY
            case ast.Call("cast" | "try_cast" as name, (operand,), wanted):
                inner = self.text(operand)
                return f"{name.upper()}({inner} AS {type_text(wanted)})", _PRIMARY
            case _:
                return f"{node.name}({self.listed(node.arguments)})", _PRIMARY

    def case(self, start: str, arguments: Sequence[Node]) -> str:
        texts = [self.text(argument) for argument in arguments]
        pairs = zip(texts[:-1:2], texts[1::2], strict=True)
        whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        return f"{start} {whens} ELSE {texts[-1]} END"

    def test(self, node: Node, negation: str) -> str:
        match node:
            case ast.Between(operand, low, high, _, _):
                bounds = f"{self.at(low, SUM)} AND {self.at(high, SUM)}"
                return f"{self.at(operand, SUM)} {negation}BETWEEN {bounds}"
            case ast.In(operand, items):
                return f"{self.at(operand, SUM)} {negation}IN ({self.listed(items)})"
            case ast.Like(operand, pattern, escape):
                suffix = "" if escape == "\\" else f" ESCAPE {string_text(escape)}"
                return f"{self.at(operand, SUM)} {negation}LIKE {string_text(pattern)}{suffix}"
            case ast.RLike(operand, pattern):
                return f"{self.at(operand, SUM)} {negation}RLIKE {string_text(pattern)}"
            case ast.IsNull(operand):
                return f"{self.at(operand, SUM)} IS {negation}NULL"
            case ast.IsTruth(operand, truth):
                return f"{self.at(operand, SUM)} IS {negation}{str(truth).upper()}"
            case _:  # pragma: no cover - `printed` names all other nodes
                raise AssertionError(node)

    def at(self, node: Node, power: int) -> str:
        """The text of a node, in parentheses if its operator binds less tightly than `power`."""
        text, binds = self.text_and_power(node)
        return text if binds >= power else f"({text})"

    def listed(self, nodes: tuple[Node, ...]) -> str:
        return ", ".join(map(self.text, nodes))


def _is_number(node: Node) -> bool:
    return isinstance(node, ast.Literal) and node.type.is_number


def literal_text(literal: ast.Literal, *, suffixes: bool = True) -> str:
    """A constant as a filter writes it."""
    value = literal.value
    if not suffixes and literal.type.is_number and value is not None:
        return format(value, "f") if isinstance(value, Decimal) else repr(value)
    match literal.type.kind:
        case Kind.ARRAY if isinstance(value, tuple) and literal.type.element is not None:
            items = [ast.Literal(item, literal.type.element) for item in value]
            return f"array({', '.join(literal_text(item) for item in items)})"
        case _ if value is None:
            return "NULL"
        case Kind.BOOL:
            return str(value).upper()
        case Kind.STRING:
            return string_text(str(value))
        case Kind.TIMESTAMP if isinstance(value, int):
            return f"TIMESTAMP '{timestamp_text(value)}'"
        case Kind.MONTHS | Kind.DAYS | Kind.DURATION:
            return interval_text(literal)
        case Kind.DATE if isinstance(value, int):
            return f"DATE '{date_text(value)}'"
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
