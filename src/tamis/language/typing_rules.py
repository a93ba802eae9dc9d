"""The typing rules: which operands an operator takes, and which conversions Spark SQL makes.

The parser calls one method per construct, with the operands it has read and their places in the
text. The method returns a node, or raises a `TypeMismatch` that says what was expected. tamis
refuses the conversions between numbers, strings and booleans that Spark makes silently: they are
where filters go wrong.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import NamedTuple

from tamis.calendar import moment_of
from tamis.errors import LimitError, ParseError, TypeMismatch, did_you_mean
from tamis.language import ast
from tamis.language.arithmetic import loses_digits, wider
from tamis.language.ast import Node
from tamis.language.functions.abbreviations import (
    ABBREVIATIONS,
    FUNCTION_NAMES,
    OTHER_FUNCTIONS,
)
from tamis.language.functions.arrays import ELEMENT
from tamis.language.functions.casts import cast
from tamis.language.functions.clock import BARE_CLOCKS
from tamis.language.functions.conditionals import CASE
from tamis.language.functions.date_texts import day_of_text, moment_of_text
from tamis.language.functions.function import Function, RefusedArguments, TooLarge
from tamis.language.functions.signatures import as_common, compared_types
from tamis.language.functions.table import BY_SPELLING, FUNCTIONS
from tamis.language.like_patterns import BadPattern, compile_like
from tamis.language.limits import MAX_PATTERN
from tamis.language.literals import number_literal
from tamis.language.regular_expressions import compile_regex
from tamis.language.token_reader import ARRAY_WORDS, MAP_WORDS, OPERATOR_WORDS
from tamis.language.tokens import Token, TokenKind
from tamis.names import Path, path_text
from tamis.schema import Attribute, Schema
from tamis.timestamps import timestamp_from_text, timestamp_text
from tamis.types import BOOL, DATE, DOUBLE, NULL, STRING, TIMESTAMP, Kind, Type, wider_time

_OPERATORS = {"||": "concat"}  # operators that are functions of another name
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WORD = re.compile(r"\s+(\w{1,20})")
# What is before a name that stands where a constant is expected.
_COMPARED = re.compile(r"(?:=|<>|\bIN\s*\([^()]*)\s*$", re.IGNORECASE)
# How a constant that is not whole is rounded where whole numbers are on the left.
_ROUNDED = {"<": ROUND_CEILING, "<=": ROUND_FLOOR, ">": ROUND_FLOOR, ">=": ROUND_CEILING}
_MIRROR = str.maketrans("<>", "><")
_NO_CLOCK = "give events an attribute with the time, and name that"
_WORDS_AFTER = {Kind.ARRAY: ARRAY_WORDS, Kind.MAP: MAP_WORDS}
_NESTED_HINTS = {
    Kind.ARRAY: "write array_contains(a, 'x'), arrays_overlap(a, array('x', 'y')) or a[0]",
    Kind.MAP: "write m['key'] for one of its values",
}


class LocatedNode(NamedTuple):
    """A node, its place in the text, and its height: the number of levels of its tree."""

    node: Node
    start: int
    end: int
    height: int = 1


class TypingRules:
    """The typing rules for one filter over one schema."""

    def __init__(self, schema: Schema, text: str) -> None:
        self.schema = schema
        self.text = text
        self.variable: ast.Variable | None = None  # the element, inside exists and forall

    def mismatch(self, problem: str, start: int, end: int, hint: str | None = None) -> TypeMismatch:
        return TypeMismatch(problem, self.text, start, end, hint)

    # --- values

    def attribute(self, path: Path, start: int, end: int) -> Node:
        if self.variable is not None and path == (self.variable.name,):
            return self.variable
        found = self.schema.find(path)
        if found is not None:
            return ast.Attribute(path, found.type)
        name = path_text(path)
        below = [other for other in self.schema.positions if other[: len(path)] == path]
        if below:
            raise self.mismatch(
                f"{name} is a record, not a value",
                start,
                end,
                f"name one of its fields, such as {path_text(below[0])}",
            )
        hint = self._map_hint(path) or did_you_mean(name, self.schema)
        if name.lower() in BARE_CLOCKS:
            return self.call(name, (), start, end)
        if name.upper() == "SELECT":
            hint = "a filter has no subqueries"
        elif len(path) == 1 and _COMPARED.search(self.text[max(0, start - 200) : start]):
            quoted = f"write '{name}' in quotes if it is a string"
            hint = f"{quoted}; {hint}" if hint and hint.startswith("did you mean") else quoted
        raise self.mismatch(f"unknown attribute {name!r}", start, end, hint)

    def _map_hint(self, path: Path) -> str | None:
        """What to write for a key of a map that is written like a field of a record."""
        found = self.schema.find(path[:-1])
        if found is None or found.type.kind is not Kind.MAP:
            return None
        key = path[-1].replace("\\", r"\\").replace("'", r"\'")
        return f"{found.name} is a map; write {found.name}['{key}']"

    def timestamp(self, value: str, start: int, end: int) -> Node:
        moment = timestamp_from_text(value)
        moment = moment_of_text(value) if moment is None else moment
        if moment is None:
            raise self.mismatch(
                f"{value!r} is not a timestamp", start, end, "expected '2024-01-31 12:30:00'"
            )
        return ast.Literal(moment, TIMESTAMP)

    def date(self, value: str, start: int, end: int) -> Node:
        day = day_of_text(value)
        if day is None:
            raise self.mismatch(f"{value!r} is not a date", start, end, "expected '2024-01-31'")
        return ast.Literal(day, DATE)

    def check_function(self, name: Token) -> None:
        """Refuse a name that no function has, before its arguments are read."""
        word = name.text.lower()
        if word not in FUNCTION_NAMES:
            hint = OTHER_FUNCTIONS.get(word) or did_you_mean(word, FUNCTION_NAMES, listed=False)
            hint = hint or "docs/language.md lists all functions"
            raise self.mismatch(f"unknown function {name.text!r}", name.start, name.end, hint)

    def call(self, name: str, arguments: Sequence[LocatedNode], start: int, end: int) -> Node:
        """A call of a function by one of its spellings, whose name `check_function` has taken."""
        if replacement := ABBREVIATIONS.get(name.lower()):
            try:
                return replacement([argument.node for argument in arguments])
            except RefusedArguments as refusal:
                raise self._refused(refusal, name.lower(), arguments, start, end) from None
        entry = BY_SPELLING[name.lower()]
        if entry.name in {ast.NOW, ast.TODAY} and not self.schema.has_clock:
            said = f"filters cannot use the clock {self.schema.clockless}: {name}"
            raise self.mismatch(said, start, end, _NO_CLOCK)
        if entry.name == "element_at" and arguments and arguments[0].node.type.kind is Kind.MAP:
            entry = FUNCTIONS[ELEMENT]  # it is map[key]
        if self.variable is not None and entry.name in {"array_contains", "arrays_overlap"}:
            self._check_search(arguments)
        return self.apply(entry, name.lower(), arguments, start, end)

    def _check_search(self, arguments: Sequence[LocatedNode]) -> None:
        """Refuse to search an array of the event for each element of another."""
        for argument in arguments:
            if argument.node.type.is_nested and ast.attributes(argument.node):
                raise self.mismatch(
                    "an array of the event is not searched for each element of another",
                    argument.start, argument.end,
                    "arrays_overlap(a, b) tests whether two arrays have an element in common",
                )  # fmt: skip

    def operator(self, op: str, arguments: Sequence[LocatedNode]) -> Node:
        """An operator, or the sign before a number."""
        name = "negative" if op == "-" and len(arguments) == 1 else _OPERATORS.get(op, op)
        start, end = arguments[0].start, arguments[-1].end
        if op == "||" and BOOL in {argument.node.type for argument in arguments}:
            raise self.mismatch("|| joins strings, not conditions", start, end, "write OR")
        return self.apply(FUNCTIONS[name], op, arguments, start, end)

    def element(self, holder: LocatedNode, place: LocatedNode, end: int) -> Node:
        """``holder[place]``."""
        return self.apply(FUNCTIONS[ELEMENT], "[ ]", (holder, place), holder.start, end)

    @contextmanager
    def element_named(
        self, name: str, of: str, array: LocatedNode, start: int, end: int
    ) -> Iterator[None]:
        """Read a condition in which a name stands for the element of an array."""
        if self.variable is not None:
            raise self.mismatch(
                "exists and forall cannot be inside each other", start, end,
                "arrays_overlap(a, b) tests whether two arrays have an element in common",
            )  # fmt: skip
        element = array.node.type.element
        if element is None or array.node.type.kind is not Kind.ARRAY:
            raise self.mismatch(
                f"{of} takes an array, but this is of type {array.node.type}",
                array.start, array.end,
            )  # fmt: skip
        for path in self.schema.positions:
            if path[0] != name and path[0].casefold() == name.casefold():
                raise self.mismatch(
                    f"the element {name!r} has the name of the attribute {path_text(path)}, but in "
                    "another case", start, end, "choose another name for the element",
                )  # fmt: skip
        self.variable = ast.Variable(name, element)
        try:
            yield
        finally:
            self.variable = None

    def positive(self, operand: LocatedNode) -> Node:
        self._number(operand, "+")
        return operand.node

    def apply(
        self, entry: Function, spelling: str, arguments: Sequence[LocatedNode], start: int, end: int
    ) -> Node:
        """The node of a call; errors name the function as it was written."""
        try:
            typed = entry.typed([argument.node for argument in arguments])
        except RefusedArguments as refusal:
            raise self._refused(refusal, spelling, arguments, start, end) from None
        return ast.Call(entry.name, *typed)

    def case(self, name: str, arguments: Sequence[LocatedNode], start: int, end: int) -> Node:
        """One of the two forms of CASE, as a list of what it is made of."""
        return self.apply(FUNCTIONS[name], CASE, arguments, start, end)

    def cast(self, name: str, operand: LocatedNode, wanted: Type, start: int, end: int) -> Node:
        """``CAST(operand AS type)`` or TRY_CAST."""
        try:
            return cast(name, operand.node, wanted)
        except RefusedArguments as refusal:
            raise self.mismatch(str(refusal), start, end, refusal.hint) from None

    def _refused(
        self, refusal: RefusedArguments, name: str, arguments: Sequence[LocatedNode],
        start: int, end: int,
    ) -> TypeMismatch | LimitError:  # fmt: skip
        if refusal.argument is not None:
            start, end = arguments[refusal.argument].start, arguments[refusal.argument].end
        if isinstance(refusal, TooLarge):
            return LimitError(f"{name} {refusal}", self.text, start, end)
        return self.mismatch(f"{name} {refusal}", start, end, refusal.hint)

    # --- tests

    def compare(self, op: str, left: LocatedNode, right: LocatedNode) -> ast.Compare:
        return self._compared(op, left, right, _with_whole_bound(op, left, right))

    def _compared(
        self, op: str, left: LocatedNode, right: LocatedNode,
        sides: tuple[LocatedNode, LocatedNode],
    ) -> ast.Compare:  # fmt: skip
        """A comparison of what two operands are taken for."""
        a, b = self._same_type(*sides, op)
        self._check_domain(left, b, right)
        self._check_domain(right, a, left)
        return ast.Compare(op, a, b)

    def between(self, operand: LocatedNode, low: LocatedNode, high: LocatedNode) -> Node:
        """Two comparisons of one operand, each with its own conversions."""
        first, second = low.node.type, high.node.type
        if operand.node.type == STRING and {first, second} & {DATE, TIMESTAMP}:
            if first != second:
                place = high if first in {DATE, TIMESTAMP} else low
                raise self.mismatch(
                    f"BETWEEN has a {first} and a {second} as its bounds", place.start, place.end,
                    "write TIMESTAMP or DATE before the strings",
                )  # fmt: skip
            operand = operand._replace(node=self._as_time(operand, first))
        at_least, at_most = (
            # As in Spark, to which a constant between others is not one in the comparisons.
            self._compared(op, operand, bound, (operand, bound))
            if operand.node.type.kind is Kind.DECIMAL
            else self.compare(op, operand, bound)
            for op, bound in ((">=", low), ("<=", high))
        )
        if any(loses_digits(operand.node.type, side.left.type) for side in (at_least, at_most)):
            return ast.And((at_least, at_most))
        return ast.Between(
            operand.node, at_least.right, at_most.right, at_least.left.type, at_most.left.type
        )

    def member(self, operand: LocatedNode, items: Sequence[LocatedNode]) -> Node:
        common = operand.node.type
        for item in items:
            if operand.node.type in {DATE, TIMESTAMP} and item.node.type == STRING:
                raise self.mismatch(
                    f"IN cannot compare {operand.node.type} with string", item.start, item.end,
                    f"write {str(operand.node.type).upper()} before the string",
                )  # fmt: skip
            joined = self._common(common, item.node.type)
            if joined is None:
                raise self._incomparable(operand, item, "IN")
            common = joined
        for item in items:
            self._check_domain(operand, item.node, item)
        return ast.In(
            as_common(operand.node, common),
            tuple(_converted(item.node, common) for item in items),
        )

    def like(
        self, operand: LocatedNode, pattern: str, escape: str, start: int, end: int, *,
        folds: bool = False,
    ) -> Node:  # fmt: skip
        """LIKE, or with `folds` ILIKE, which is LIKE of both sides in lower case."""
        word = "ILIKE" if folds else "LIKE"
        node = self._of_type(operand, STRING, f"the left side of {word}")
        self._check_pattern(pattern, start, end)
        try:
            compile_like(pattern, escape)
            if folds:
                lower = FUNCTIONS["lower"]
                node = ast.Call("lower", *lower.typed([node]))
                pattern = lower.meaning(node)(pattern)
                compile_like(pattern, escape)
        except BadPattern as error:
            raise ParseError(str(error), self.text, start, end) from None
        return ast.Like(node, pattern, escape)

    def rlike(self, operand: LocatedNode, pattern: str, start: int, end: int) -> Node:
        node = self._of_type(operand, STRING, "the left side of RLIKE")
        self._check_pattern(pattern, start, end)
        try:
            compile_regex(pattern)
        except BadPattern as error:
            raise ParseError(str(error), self.text, start, end) from None
        return ast.RLike(node, pattern)

    def substring(self, part: LocatedNode, whole: LocatedNode) -> Node:
        return ast.Call(
            "contains",
            (
                self._of_type(whole, STRING, "the right side of SUBSTRING OF"),
                self._of_type(part, STRING, "the left side of SUBSTRING OF"),
            ),
            BOOL,
        )

    def boolean(self, operand: LocatedNode, where: str) -> Node:
        """The operand as a truth value, for AND, OR, NOT, IS TRUE and the whole filter."""
        if operand.node.type in {BOOL, NULL}:
            return ast.converted(operand.node, BOOL)
        hint = "compare it with something"
        if isinstance(operand.node, ast.Literal) and operand.node.value in {0, 1}:
            hint = "write TRUE or FALSE"
        if word := _WORD.match(self.text, operand.end):
            hint = self.other_words(operand).get(word[1].lower(), hint)
        raise self.mismatch(
            f"{where} needs a condition, but this is a value of type {operand.node.type}",
            operand.start, operand.end, hint,
        )  # fmt: skip

    @staticmethod
    def other_words(operand: LocatedNode) -> Mapping[str, str]:
        """What to write instead of words that other languages have after such a value."""
        return _WORDS_AFTER.get(operand.node.type.kind, OPERATOR_WORDS)

    def list_hint(self, token: Token) -> str:
        """What to write instead of something that follows IN and is not a list."""
        found = self.schema.get(token.text) if token.kind is TokenKind.NAME else None
        if found is not None and found.type.kind is Kind.ARRAY:
            return f"write array_contains({found.name}, ...)"
        return "expected a list in parentheses: IN (1, 2)"

    # --- checks and conversions

    def _check_pattern(self, pattern: str, start: int, end: int) -> None:
        if len(pattern) > MAX_PATTERN:
            raise LimitError(
                f"the pattern has {len(pattern):,} characters, the limit is {MAX_PATTERN:,}",
                self.text, start, end,
            )  # fmt: skip

    def _number(self, operand: LocatedNode, op: str) -> None:
        if not operand.node.type.is_number and operand.node.type != NULL:
            raise self.mismatch(
                f"{op} needs a number, but this is of type {operand.node.type}",
                operand.start, operand.end,
            )  # fmt: skip

    def _of_type(self, operand: LocatedNode, wanted: Type, where: str) -> Node:
        if operand.node.type in {wanted, NULL}:
            return ast.converted(operand.node, wanted)
        raise self.mismatch(
            f"{where} must be of type {wanted}, but this is of type {operand.node.type}",
            operand.start, operand.end,
        )  # fmt: skip

    def _same_type(self, left: LocatedNode, right: LocatedNode, op: str) -> tuple[Node, Node]:
        a = self._as_time(left, right.node.type)
        b = self._as_time(right, left.node.type)
        common = self._common(*compared_types(a, b))
        if common is None:
            raise self._incomparable(left, right, op)
        return _converted(a, common), _converted(b, common)

    def _as_time(self, operand: LocatedNode, other: Type) -> Node:
        """The node; a string constant that is compared with a date or timestamp becomes one."""
        node = operand.node
        if (
            other in {DATE, TIMESTAMP}
            and isinstance(node, ast.Literal)
            and isinstance(node.value, str)
        ):
            read = self.date if other == DATE else self.timestamp
            return read(node.value, operand.start, operand.end)
        return node

    @staticmethod
    def _common(a: Type, b: Type) -> Type | None:
        if a.is_nested or b.is_nested:
            return None
        if b in {a, NULL}:
            return a
        if a == NULL:
            return b
        return wider(a, b) if a.is_number and b.is_number else wider_time(a, b)

    def _incomparable(self, left: LocatedNode, right: LocatedNode, op: str) -> TypeMismatch:
        a, b = left.node.type, right.node.type
        hint = None
        if a.is_nested or b.is_nested:
            hint = _NESTED_HINTS.get((a if a.is_nested else b).kind)
        elif Kind.STRING in {a.kind, b.kind}:
            text = left if a == STRING else right
            if isinstance(text.node, ast.Literal) and _NUMBER.fullmatch(str(text.node.value)):
                hint = f"write {str(text.node.value)[:40]} without quotes"
            other = b if a == STRING else a
            if other == BOOL:
                hint = "write TRUE or FALSE without quotes"
            elif other in {DATE, TIMESTAMP}:
                hint = f"write CAST(... AS {str(other).upper()}) to convert the string"
            elif other == DOUBLE and hint is None:
                hint = "write isnan(x) for NaN, CAST(... AS DOUBLE) for other numbers"
        elif BOOL in {a, b}:
            hint = "write TRUE or FALSE"
        return self.mismatch(f"{op} cannot compare {a} with {b}", right.start, right.end, hint)

    def _check_domain(self, operand: LocatedNode, value: Node, place: LocatedNode) -> None:
        """Raise an error for a constant outside the domain of the attribute it is compared with."""
        if not isinstance(operand.node, ast.Attribute) or not isinstance(place.node, ast.Literal):
            return
        attribute = self.schema.find(operand.node.path)
        constant = place.node.value
        if attribute is None or attribute.domain is None or constant is None:
            return
        if isinstance(constant, float | Decimal):
            whole = int(constant)
            inside = whole == constant and whole in attribute.domain
        else:
            inside = constant in attribute.domain
        if not inside:
            raise self.mismatch(
                f"{literal_for_message(place.node)} lies outside the domain {attribute} of "
                f"{attribute.name}",
                place.start, place.end, _domain_hint(attribute, value),
            )  # fmt: skip


def _converted(node: Node, wanted: Type) -> Node:
    """The node in another type; a constant date that becomes a timestamp is written as one."""
    match node:
        case ast.Literal(int(day), of) if of == DATE and wanted == TIMESTAMP:
            return ast.Literal(moment_of(day), TIMESTAMP)
    return as_common(node, wanted)


def _with_whole_bound(
    op: str, left: LocatedNode, right: LocatedNode
) -> tuple[LocatedNode, LocatedNode]:
    """``i >= 1.0000000000000000001`` becomes ``i >= 2``, as in Spark.

    Both sides as decimals of one type would have too many digits, and the constant would lose some.
    """
    if left.node.type.is_integer and op in _ROUNDED:
        return left, right._replace(node=_whole_bound(right.node, left.node.type, _ROUNDED[op]))
    if right.node.type.is_integer and op in _ROUNDED:
        rounding = _ROUNDED[op.translate(_MIRROR)]
        return left._replace(node=_whole_bound(left.node, right.node.type, rounding)), right
    return left, right


def _whole_bound(bound: Node, whole: Type, rounding: str) -> Node:
    if not isinstance(bound, ast.Literal) or not isinstance(bound.value, Decimal):
        return bound
    if not loses_digits(bound.type, wider(whole, bound.type)):
        return bound
    number = int(bound.value.to_integral_value(rounding))
    return number_literal(str(abs(number)), negative=number < 0)


def literal_for_message(literal: ast.Literal) -> str:
    """A constant, as error messages show it."""
    if literal.type == TIMESTAMP and isinstance(literal.value, int):
        return timestamp_text(literal.value)
    return repr(literal.value) if isinstance(literal.value, str) else str(literal.value)


def _domain_hint(attribute: Attribute, value: Node) -> str | None:
    if attribute.type == STRING and isinstance(value, ast.Literal):
        return did_you_mean(str(value.value), getattr(attribute.domain, "values", ()))
    return None
