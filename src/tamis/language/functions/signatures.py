"""Typing rules that many functions share."""

from collections.abc import Callable, Sequence
from decimal import Decimal

from tamis.language import ast
from tamis.language.arithmetic import as_decimal, loses_digits, wider
from tamis.language.ast import Node
from tamis.language.functions.function import RefusedArguments, Typed
from tamis.language.limits import MAX_ARGUMENTS
from tamis.language.literals import decimal_size
from tamis.types import DOUBLE, INT32, NULL, STRING, Kind, Type, decimal_type, wider_time

TypingRule = Callable[[Sequence[Node]], Typed]


def count(arguments: Sequence[Node], least: int, most: int | None = None) -> None:
    """Refuse too few or too many arguments."""
    most = least if most is None else most
    if least <= len(arguments) <= most:
        return
    if least == most:
        wanted = "one argument" if least == 1 else f"{least} arguments"
    elif most == MANY:
        wanted = f"at least {least} arguments"
    else:
        wanted = f"{least} to {most} arguments"
    raise RefusedArguments(f"takes {wanted}, not {len(arguments)}")


MANY = MAX_ARGUMENTS  # of a function that takes any number


def fixed(wanted: Sequence[Type], result: Type, *, optional: int = 0) -> TypingRule:
    """A rule for arguments of these types; the last `optional` ones may be left out."""

    def typed(arguments: Sequence[Node]) -> Typed:
        count(arguments, len(wanted) - optional, len(wanted))
        taken = wanted[: len(arguments)]
        return Typed(
            tuple(of_type(a, n, t) for n, (a, t) in enumerate(zip(arguments, taken, strict=True))),
            result,
        )

    return typed


def of_type(argument: Node, place: int, wanted: Type) -> Node:
    """An argument that must have a type; whole numbers become shorter where 32 bits are wanted."""
    if argument.type in {wanted, NULL}:
        return ast.converted(argument, wanted)
    if wanted == DOUBLE and argument.type.is_number:
        return ast.converted(argument, DOUBLE)
    if wanted == INT32 and argument.type.is_integer:
        return ast.converted(argument, INT32)
    hint = None
    if argument.type.is_nested:
        hint = "array_contains, exists and size take arrays, map_contains_key and size maps"
    elif wanted == STRING:
        hint = "write CAST(... AS STRING) to make a string of it"
    raise RefusedArguments(
        f"takes a value of type {wanted} here, but this is of type {argument.type}", place, hint
    )


def number(argument: Node, place: int, untyped: Type = DOUBLE) -> Node:
    """An argument that must be a number; NULL becomes one."""
    if argument.type == NULL:
        return ast.converted(argument, untyped)
    if argument.type.is_number:
        return argument
    raise RefusedArguments(f"needs a number, but this is of type {argument.type}", place)


def one_number(arguments: Sequence[Node]) -> Typed:
    """The rule of a function of one number, whose result has its type."""
    count(arguments, 1)
    argument = number(arguments[0], 0)
    return Typed((argument,), argument.type)


def common_type(types: Sequence[Type], first: int = 0) -> Type:
    """The type to which several values are converted; `first` is the place of the first one."""
    common = NULL
    for place, kind in enumerate(types):
        if kind.is_nested:
            raise RefusedArguments(
                f"takes no {kind}", first + place, "choose among values, not arrays"
            )
        if kind in {common, NULL}:
            continue
        if common == NULL:
            common = kind
            continue
        is_number = common.is_number and kind.is_number
        joined = wider(common, kind) if is_number else wider_time(common, kind)
        if joined is None:
            raise RefusedArguments(
                f"cannot join {common} and {kind} in one type", first + place,
                "write CAST(... AS ...) to convert one of them",
            )  # fmt: skip
        common = joined
    return common


def compared_types(left: Node, right: Node) -> tuple[Type, Type]:
    """The types of two values that are compared.

    A whole constant beside a decimal is one with only the digits it needs.
    """
    a, b = left.type, right.type
    if b.kind is Kind.DECIMAL and a.is_integer:
        return decimal_operand(left), b
    if a.kind is Kind.DECIMAL and b.is_integer:
        return a, decimal_operand(right)
    return a, b


def as_common(node: Node, common: Type) -> Node:
    """A value in the type that it has in common with others.

    ``d = 0.125`` for d of the type decimal(38, 2) compares decimals with two digits after the
    point, as there is no room for more: what is lost is said by a CAST, like one that is written.
    """
    source = decimal_operand(node) if node.type.is_integer else node.type
    if loses_digits(source, common):
        return ast.Call("cast", (node,), common)
    return ast.converted(node, common)


def decimal_operand(node: Node) -> Type:
    """The decimal type of an operand; a whole constant takes only the digits it needs."""
    if isinstance(node, ast.Literal) and isinstance(node.value, int):
        return decimal_type(*decimal_size(Decimal(node.value)))
    return as_decimal(node.type)
