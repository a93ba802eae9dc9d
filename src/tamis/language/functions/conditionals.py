"""Functions that choose among values: ``CASE``, ``if``, ``coalesce``, ``nullif``, extremes."""

from collections.abc import Callable, Sequence
from typing import Any

from tamis.language import ast
from tamis.language.arithmetic import order_key
from tamis.language.ast import Node
from tamis.language.conversions import conversion
from tamis.language.functions.function import (
    Function,
    Kernel,
    Meaning,
    Nulls,
    RefusedArguments,
    Typed,
    always,
)
from tamis.language.functions.signatures import MANY, as_common, common_type, compared_types, count
from tamis.types import BOOL, DOUBLE, NULL, Kind, Type

CASE = "CASE"  # its arguments are condition, value, condition, value, ..., and the ELSE
CASE_OF = "CASE OF"  # subject, value to compare with, result, ..., and the ELSE


def _joined(arguments: Sequence[Node], first: int = 0) -> tuple[tuple[Node, ...], Type]:
    """Values in their common type, and the type."""
    common = common_type([argument.type for argument in arguments], first)
    common = BOOL if common == NULL else common  # of nothing but NULL; any type would do
    return tuple(as_common(argument, common) for argument in arguments), common


def _condition(argument: Node, place: int) -> Node:
    if argument.type in {BOOL, NULL}:
        return ast.converted(argument, BOOL)
    raise RefusedArguments(
        f"needs a condition here, but this is a value of type {argument.type}", place,
        "compare it with something",
    )  # fmt: skip


def _case(arguments: Sequence[Node]) -> Typed:
    conditions = [_condition(a, 2 * n) for n, a in enumerate(arguments[:-1:2])]
    values, result = _joined([*arguments[1::2], arguments[-1]])
    merged: list[Node] = []
    for condition, value in zip(conditions, values, strict=False):
        merged += [condition, value]
    return Typed((*merged, values[-1]), result)


def _case_of(arguments: Sequence[Node]) -> Typed:
    """The subject is kept once: as many comparisons, nested ones would grow at every level."""
    subject, *rest = arguments
    wanted: list[Node] = []
    for place, value in enumerate(rest[:-1:2]):
        common = common_type(compared_types(subject, value), 2 * place)
        wanted.append(as_common(value, BOOL if common == NULL else common))
    if subject.type == NULL:
        subject = ast.converted(subject, wanted[0].type)
    results, result = _joined([*rest[1::2], rest[-1]])
    merged: list[Node] = []
    for value, outcome in zip(wanted, results, strict=False):
        merged += [value, outcome]
    return Typed((subject, *merged, results[-1]), result)


def _chosen_by(call: ast.Call) -> Meaning:
    subject, *rest = call.arguments
    equal = [_equality(subject.type, value.type) for value in rest[:-1:2]]

    def chosen(value: Any, *others: Any) -> Any:
        if value is not None:
            for place, is_equal in enumerate(equal):
                other = others[2 * place]
                if other is not None and is_equal(value, other):
                    return others[2 * place + 1]
        return others[-1]

    return chosen


def _equality(left: Type, right: Type) -> Callable[[Any, Any], bool]:
    """Whether a value equals one of a type that it is converted to first."""
    convert = conversion(left, right)
    if right == DOUBLE:
        return lambda value, other: order_key(convert(value)) == order_key(other)
    return lambda value, other: bool(convert(value) == other)


def _if(arguments: Sequence[Node]) -> Typed:
    count(arguments, 3)
    return _case(arguments)


def _chosen(*arguments: Any) -> Any:
    for place in range(0, len(arguments) - 1, 2):
        if arguments[place] is True:
            return arguments[place + 1]
    return arguments[-1]


def _values(least: int, most: int = MANY) -> Callable[[Sequence[Node]], Typed]:
    def typed(arguments: Sequence[Node]) -> Typed:
        count(arguments, least, most)
        return Typed(*_joined(arguments))

    return typed


def _first_present(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


# --- nullif


def _nullif(arguments: Sequence[Node]) -> Typed:
    count(arguments, 2)
    left, right = arguments
    common = common_type(compared_types(left, right))
    if left.type == NULL:
        left = ast.converted(left, common if common != NULL else BOOL)
    return Typed((left, as_common(right, common if common != NULL else BOOL)), left.type)


def _unless_equal(call: ast.Call) -> Meaning:
    left, right = call.arguments
    is_equal = _equality(left.type, right.type)

    def unless_equal(value: Any, other: Any) -> Any:
        if value is None or other is None:
            return value
        return None if is_equal(value, other) else value

    return unless_equal


# --- greatest and least


def _extreme(choose: Callable[..., Any]) -> Callable[[ast.Call], Meaning]:
    def meaning(call: ast.Call) -> Meaning:
        key = order_key if call.type == DOUBLE else None

        def extreme(*values: Any) -> Any:
            known = [value for value in values if value is not None]
            return choose(known, key=key) if known else None

        return extreme

    return meaning


# --- kernels, which are given pairs of values and where they are present


def _has_kernel(call: ast.Call) -> bool:
    return call.type.kind is not Kind.STRING


def _choice_kernel(call: ast.Call) -> Kernel | None:
    if not _has_kernel(call):
        return None
    import numpy as np

    def choice(*arguments: tuple[Any, Any]) -> tuple[Any, Any]:
        found, present = arguments[-1]
        for place in range(len(arguments) - 3, -1, -2):
            (truth, known), (value, there) = arguments[place], arguments[place + 1]
            taken = truth & known
            found, present = np.where(taken, value, found), np.where(taken, there, present)
        return found, present

    return choice


def _coalesce_kernel(call: ast.Call) -> Kernel | None:
    if not _has_kernel(call):
        return None
    import numpy as np

    def coalesce(*arguments: tuple[Any, Any]) -> tuple[Any, Any]:
        found, present = arguments[-1]
        for value, there in arguments[-2::-1]:
            found, present = np.where(there, value, found), present | there
        return found, present

    return coalesce


def _extreme_kernel(*, is_most: bool) -> Callable[[ast.Call], Kernel | None]:
    def kernel(call: ast.Call) -> Kernel | None:
        if not _has_kernel(call):
            return None
        import numpy as np

        def is_greater(one: Any, other: Any) -> Any:
            if call.type != DOUBLE:
                return one > other
            return (one > other) | (np.isnan(one) & ~np.isnan(other))  # NaN is above all others

        def extreme(*arguments: tuple[Any, Any]) -> tuple[Any, Any]:
            found, present = arguments[0]
            for value, there in arguments[1:]:
                beyond = is_greater(value, found) if is_most else is_greater(found, value)
                better = there & (~present | beyond)
                found, present = np.where(better, value, found), present | there
            return found, present

        return extreme

    return kernel


# --- operations of programs


def _extreme_operations(call: ast.Call) -> tuple[str, ...]:
    return (f"{'double' if call.type == DOUBLE else 'whole'} {call.name}",)


_OWN = always(Nulls.OWN)

CONDITIONALS = (
    Function(
        CASE, _case, lambda _: _chosen, nulls=_OWN, kernel=_choice_kernel,
        operations=lambda _: ("choice",),
    ),
    Function(CASE_OF, _case_of, _chosen_by, nulls=_OWN),
    Function(
        "if", _if, lambda _: _chosen, nulls=_OWN, kernel=_choice_kernel,
        operations=lambda _: ("choice",),
    ),
    Function(
        "coalesce", _values(1), lambda _: _first_present, (), _OWN, _coalesce_kernel,
        operations=lambda _: ("first present",),
    ),
    Function(
        "ifnull", _values(2, 2), lambda _: _first_present, ("nvl",), _OWN, _coalesce_kernel,
        operations=lambda _: ("first present",),
    ),
    Function("nullif", _nullif, _unless_equal, nulls=_OWN),
    Function(
        "greatest", _values(2), _extreme(max), nulls=_OWN, kernel=_extreme_kernel(is_most=True),
        operations=_extreme_operations,
    ),
    Function(
        "least", _values(2), _extreme(min), nulls=_OWN, kernel=_extreme_kernel(is_most=False),
        operations=_extreme_operations,
    ),
)  # fmt: skip
