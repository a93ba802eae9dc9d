"""Atoms of filters, and their shapes: atoms without constants.

An atom is a comparison or other predicate, such as ``price <= 10``. Its shape, ``price <= ?``, is
parsed once; other atoms of the shape are made from the texts of their constants, without a parser.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.like_patterns import BACKSLASH, form_of_pattern
from tamis.language.limits import MAX_PATTERN
from tamis.language.literals import number_literal
from tamis.schema import Attribute, IntRange, Schema
from tamis.types import (
    DOUBLE,
    INT,
    INT32,
    MAX_DECIMAL_DIGITS,
    SHORT_DECIMAL_DIGITS,
    STRING,
    Kind,
    Type,
)

Maker = Callable[[Sequence[ast.Literal]], Node]  # makes an atom from its constants
# From the text or pattern of a string test to its form and the text in it: the normal forms of
# tests of one form differ only in this text. None for texts that may decide their test, as ''.
FormOfText = Callable[[str], tuple[str, str] | None]


class OutsideDomain(Exception):
    """A constant outside the domain of its attribute."""


class AnotherShape(Exception):
    """A constant that changes the types of its atom, or decides it."""


class AtomShape:
    """An atom without its constants, and how to make it from them. Equal only to itself."""

    __slots__ = ("classes", "converters", "decimal", "domain", "form_of_text", "make", "negative")

    def __init__(
        self,
        make: Maker,
        negative: tuple[bool, ...],
        classes: tuple[str, ...],
        attribute: Attribute,
        form_of_text: FormOfText | None = None,
    ) -> None:
        self.make = make
        self.negative = negative  # whether a minus precedes each constant
        self.classes = classes  # of the constants; see `constant_class`
        of = attribute.type.element or attribute.type
        self.converters = tuple([constant_converter(of, minus) for minus in negative])
        self.domain = attribute.domain  # that the constants must be in
        self.decimal = of if of.kind is Kind.DECIMAL else None  # which they must fit in
        self.form_of_text = form_of_text  # for string tests

    def with_constants(self, constants: tuple[str, ...]) -> "Atom":
        """The atom with these constants.

        Raises `OutsideDomain` if one is outside the domain, and `AnotherShape` if one has more
        digits than the decimals that it is compared with.
        """
        if self.decimal is not None:
            for text in constants:
                if not _is_inside(text, self.decimal):
                    raise AnotherShape
        domain = self.domain
        if domain is not None:
            for text, convert in zip(constants, self.converters):  # noqa: B905 - strict is slow
                if isinstance(domain, IntRange):
                    inside = domain.low <= convert(text) <= domain.high
                else:
                    inside = convert(text) in domain
                if not inside:
                    raise OutsideDomain
        return Atom(self, constants)


class Atom:
    """A comparison or other predicate; all filters that contain it share it and its node.

    It has a shape and constants, and makes its node when first needed; or it has only the node.
    """

    __slots__ = ("_node", "constants", "shape")

    def __init__(
        self, shape: AtomShape | None, constants: tuple[str, ...] = (), node: Node | None = None
    ) -> None:
        self.shape = shape
        self.constants = constants
        self._node = node

    @property
    def node(self) -> Node:
        if self._node is None:
            assert self.shape is not None  # noqa: S101 - an atom without a shape has its node
            self._node = self.shape.make(
                [
                    constant_literal(text, negative=negative)
                    for text, negative in zip(self.constants, self.shape.negative, strict=True)
                ]
            )
        return self._node


def constant_literal(text: str, *, negative: bool) -> ast.Literal:
    """The literal of a constant that has a class."""
    if text[0] in "'\"":
        return ast.Literal(text[1:-1], STRING)
    return number_literal(text, negative=negative)


def constant_class(constant: str) -> str:
    """The class of a constant; constants of one class can replace each other without a type change.

    Empty for a constant without a class, and for what is not a constant. A whole number has 32 bits
    or is wide; 2147483648 has no class, because it is wide by itself and has 32 bits after a minus.
    """
    if not constant.isascii():
        try:
            constant.encode()
        except UnicodeEncodeError:
            return ""
    elif constant.isdecimal():
        size = len(constant)
        if size < 10 or (size == 10 and constant <= "2147483647"):
            return "whole"
        is_wide = size < 19 and constant[0] != "0" and constant != "2147483648"
        return "wide" if is_wide else ""
    else:
        whole, _, fraction = constant.partition(".")
        if whole.isdecimal() and fraction.isdecimal():
            is_short = len(whole) < 10 and len(fraction) <= MAX_DECIMAL_DIGITS - 10
            return "decimal" if is_short else ""
    quote = constant[:1]
    if quote not in {"'", '"'} or constant[-1] != quote or constant.count(quote) != 2:
        return ""
    return "" if "\\" in constant or len(constant) > MAX_PATTERN else "string"


def constant_converter(wanted: Type, minus: bool) -> Callable[[str], Any]:
    """A function from the text of a constant to its value, converted to the attribute's type.

    It is what the literal becomes in a normal form. 0.0 - 0.0 is 0.0, and so are all zeros of a
    filter.
    """
    if wanted == INT:
        return _negative_whole if minus else int
    if wanted == DOUBLE:
        return _negative_double if minus else float
    if wanted.kind is Kind.DECIMAL:
        return _decimal_converter(wanted.scale, minus)
    return _unquoted


def _negative_whole(text: str) -> int:
    return -int(text)


def _negative_double(text: str) -> float:
    return 0.0 - float(text)


_unquoted = operator.itemgetter(slice(1, -1))


@functools.cache
def _decimal_converter(scale: int, minus: bool) -> Callable[[str], Decimal]:
    """The converter for decimals of a scale, the same function each time."""
    unit, zero = Decimal((0, (1,), -scale)), Decimal(0)
    if minus:
        return lambda text: zero - Decimal(text).quantize(unit)
    return lambda text: Decimal(text).quantize(unit)


def _is_inside(text: str, of: Type) -> bool:
    """Whether a constant fits in a decimal type, and is not at its ends.

    ``d < 0.125`` compares decimals with three digits after the point, whatever d has. At the ends a
    comparison may be true of all decimals or of none.
    """
    whole, _, fraction = text.partition(".")
    if len(fraction) > of.scale:
        return False
    end: int = 10**of.digits - 1
    return int(whole + fraction.ljust(of.scale, "0")) < end


def atom_shape(node: Node, key: tuple[str, ...], schema: Schema) -> AtomShape | None:
    """The shape of an atom: how to make atoms like it from other constants of the same classes.

    `key` is the text of the atom, with the class in place of each constant. None if the constants
    need more than a conversion, as regular expressions and timestamps do.
    """
    negative = tuple(piece.rstrip().endswith("-") for piece in key[:-1:2])
    classes = key[1::2]
    test = _string_test(node, schema) if classes == ("string",) else None
    make, form_of_text = test or (_maker(node, schema), None)
    if make is None or not negative:
        return None
    if sum(isinstance(part, ast.Literal) for part in ast.walk(node)) > len(negative):
        return None  # some constants, such as NULL, have no class
    (path,) = ast.attributes(node)
    attribute = schema.attributes[schema.positions[path]]
    if "decimal" in classes and (attribute.type.element or attribute.type) == INT:
        return None  # the constant was perhaps rounded, which depends on its digits
    return AtomShape(make, negative, classes, attribute, form_of_text)


def _maker(node: Node, schema: Schema) -> Maker | None:
    match node:
        case ast.Not(operand):
            inner = _maker(operand, schema)
            return None if inner is None else lambda literals: ast.Not(inner(literals))
        case ast.Compare(op, left, right) if _replaceable(left, right, schema):
            convert = _cast_as(right)
            return lambda literals: ast.Compare(op, left, convert(literals[0]))
        case ast.Compare(op, left, right) if _replaceable(right, left, schema):
            convert = _cast_as(left)
            return lambda literals: ast.Compare(op, convert(literals[0]), right)
        case ast.Between(operand, low, high, low_type, high_type) if _replaceable(
            operand, low, schema
        ) and _replaceable(operand, high, schema):
            at_low, at_high = _cast_as(low), _cast_as(high)
            return lambda literals: ast.Between(
                operand, at_low(literals[0]), at_high(literals[1]), low_type, high_type
            )
        case ast.In(operand, items) if all(_replaceable(operand, i, schema) for i in items):
            converters = [_cast_as(item) for item in items]
            return lambda literals: ast.In(
                operand, tuple(c(v) for c, v in zip(converters, literals, strict=True))
            )
        case ast.Call("array_contains", (ast.Attribute() as array, value), of) if _is_element(
            array, value
        ):
            convert = _cast_as(value)
            return lambda literals: ast.Call("array_contains", (array, convert(literals[0])), of)
        case _:
            return None


_STRING_TESTS = frozenset(("startswith", "endswith", "contains"))


def _string_test(node: Node, schema: Schema) -> tuple[Maker, FormOfText] | None:
    """How to make a string test with other texts, and the form of a text; None for other nodes."""
    match node:
        case ast.Not(operand):
            plain = _string_test(operand, schema)
            if plain is None:
                return None
            make, form = plain
            return (lambda literals: ast.Not(make(literals))), form
        case ast.Like(ast.Attribute() as tested, _, escape) if escape == BACKSLASH and _is_open(
            tested, schema
        ):
            return (
                lambda literals: ast.Like(tested, str(literals[0].value), escape),
                form_of_pattern,
            )
        case ast.Call(name, (ast.Attribute() as tested, ast.Literal()), of) if (
            name in _STRING_TESTS and _is_open(tested, schema)
        ):
            return (lambda literals: ast.Call(name, (tested, literals[0]), of)), _form_of_part
        case ast.Call(name, (ast.Literal(), ast.Attribute() as tested), of) if (
            name in _STRING_TESTS and _is_open(tested, schema)
        ):
            return (lambda literals: ast.Call(name, (literals[0], tested), of)), _form_of_part
        case _:
            return None


def _is_open(tested: ast.Attribute, schema: Schema) -> bool:
    """Whether the attribute may have any string; a test may be true of all values of a domain."""
    attribute = schema.find(tested.path)
    return attribute is not None and attribute.domain is None


def _form_of_part(text: str) -> tuple[str, str] | None:
    return ("part", text) if text else None


def _is_element(array: ast.Attribute, value: Node) -> bool:
    """As `_replaceable`, for a constant that is looked for in an array."""
    constant, element = ast.without_cast(value), array.type.element
    if not isinstance(constant, ast.Literal):
        return False
    if element == INT:
        return constant.type in {INT32, INT}
    return element == DOUBLE or (element == STRING == constant.type)


def _replaceable(left: Node, right: Node, schema: Schema) -> bool:
    """Whether `right` can be replaced by any constant of its class without changing types."""
    constant = ast.without_cast(right)
    if not isinstance(left, ast.Attribute) or not isinstance(constant, ast.Literal):
        return False
    attribute = schema.find(left.path)
    if attribute is None:
        return False
    if attribute.domain is not None:
        # Not decimals, which a domain may round.
        return constant.type in {INT32, INT, STRING}
    if left.type in {DOUBLE, INT}:
        return constant.type in {INT32, INT} or left.type == DOUBLE
    if left.type.kind is Kind.DECIMAL:
        # Not long ones: some of their constants have no key.
        return right.type == left.type and left.type.digits <= SHORT_DECIMAL_DIGITS
    return left.type == STRING == constant.type


def _cast_as(node: Node) -> Callable[[ast.Literal], Node]:
    if isinstance(node, ast.Cast) or node.type.kind is Kind.DECIMAL:
        wanted = node.type
        return lambda literal: ast.converted(literal, wanted)
    return lambda literal: literal
