"""Functions of arrays and maps.

An array is a tuple, in which None is a null element; a map is a dict from strings. Equality of
elements is that of ``=``: nan equals itself, -0.0 equals 0.0. A test that finds nothing is null if
a null element could have been it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tamis.language import ast
from tamis.language.arithmetic import loses_digits, order_key
from tamis.language.ast import Node
from tamis.language.functions.function import (
    Function,
    Meaning,
    Nulls,
    RefusedArguments,
    Typed,
    always,
)
from tamis.language.functions.signatures import MANY, common_type, count, of_type
from tamis.types import BOOL, DOUBLE, FUNCTION, INT, INT32, NULL, STRING, Kind, Type, array_of

ELEMENT = "[]"  # array[index] and map[key]
QUANTIFIERS = frozenset({"exists", "forall"})  # whose second argument is `t -> condition`

Array = tuple[Any, ...]
Test = Callable[[Any], bool | None]


def _element_type(argument: Node, place: int, kind: Kind = Kind.ARRAY) -> Type:
    """The type of the elements of an argument that must be an array, or of the values of a map."""
    found = argument.type.element
    if found is not None and argument.type.kind is kind:
        return found
    what = "an array" if kind is Kind.ARRAY else "a map"
    hint = None
    if argument.type.kind is Kind.MAP:
        hint = "write map_keys(...) or map_values(...) to make an array of it"
    elif argument.type == STRING:
        hint = "write contains(s, 'part') for a string"
    raise RefusedArguments(f"takes {what} here, but this is of type {argument.type}", place, hint)


def _known(argument: Node, place: int) -> Node:
    """An argument that must have a type of its own."""
    if argument.type == NULL:
        raise RefusedArguments("takes no NULL", place, "IS NULL tests whether an array is missing")
    return argument


def _key(of: Type) -> Callable[[Any], Any]:
    """What equal elements have in common."""
    return order_key if of == DOUBLE else _itself


def _itself(value: Any) -> Any:
    return value


# --- array_contains and arrays_overlap


def _contains_typed(arguments: Sequence[Node]) -> Typed:
    count(arguments, 2)
    array, value = arguments[0], _known(arguments[1], 1)
    common = common_type([_element_type(array, 0), value.type])
    return Typed((ast.converted(array, array_of(common)), ast.converted(value, common)), BOOL)


def _contains(call: ast.Call) -> Meaning:
    key = _key(call.arguments[1].type)

    def contains(array: Array, value: Any) -> bool | None:
        wanted, may_be = key(value), False
        for element in array:
            if element is None:
                may_be = True
            elif key(element) == wanted:
                return True
        return None if may_be else False

    return contains


def _overlap_typed(arguments: Sequence[Node]) -> Typed:
    count(arguments, 2)
    left, right = (_element_type(argument, place) for place, argument in enumerate(arguments))
    common = common_type([left, right])
    if not _are_joined(left, right):
        is_double = Kind.DOUBLE in {left.kind, right.kind}
        hint = "write 1.5D or 1.5e0 for a double"
        hint = hint if is_double else "write CAST(... AS DECIMAL(p, s))"
        raise RefusedArguments(f"takes elements of one type, not {left} and {right}", 1, hint)
    common = BOOL if common == NULL else common  # of array() and array(); any type would do
    return Typed(tuple(ast.converted(a, array_of(common)) for a in arguments), BOOL)


def _are_joined(left: Type, right: Type) -> bool:
    """Whether Spark joins elements of two types; decimals only with what loses no digit in them."""
    if Kind.DECIMAL not in {left.kind, right.kind} or NULL in {left, right} or left == right:
        return True
    if left.is_integer or right.is_integer:
        whole, exact = (left, right) if left.is_integer else (right, left)
        return not loses_digits(whole, exact)
    return False


def _overlap(call: ast.Call) -> Meaning:
    element = call.arguments[0].type.element
    key = _key(element if element is not None else NULL)

    def overlap(one: Array, other: Array) -> bool | None:
        # By hash: two long arrays of one event must not take the product of their lengths.
        known = {key(value) for value in one if value is not None}
        if any(value is not None and key(value) in known for value in other):
            return True
        may_be = one and other and (None in one or None in other)
        return None if may_be else False

    return overlap


# --- sizes


def _size_typed(arguments: Sequence[Node]) -> Typed:
    count(arguments, 1)
    if not arguments[0].type.is_nested:
        hint = "write length(s) for a string" if arguments[0].type == STRING else None
        problem = f"takes an array or a map, but this is of type {arguments[0].type}"
        raise RefusedArguments(problem, 0, hint)
    return Typed((arguments[0],), INT32)


def _array_size_typed(arguments: Sequence[Node]) -> Typed:
    count(arguments, 1)
    _element_type(arguments[0], 0)
    return Typed((arguments[0],), INT32)


def _size(array: Any) -> int:
    """The number of elements, -1 of null."""
    return -1 if array is None else len(array)


# --- elements


def _element_typed(arguments: Sequence[Node]) -> Typed:
    """``array[index]``, which counts from 0, or ``map[key]``."""
    count(arguments, 2)
    holder, place = arguments
    if holder.type.element is None:
        raise RefusedArguments(
            f"takes elements of arrays and maps, and this is of type {holder.type}", 0
        )
    wanted = STRING if holder.type.kind is Kind.MAP else INT32
    return Typed((holder, of_type(place, 1, wanted)), holder.type.element)


def _element(call: ast.Call) -> Meaning:
    if call.arguments[0].type.kind is Kind.MAP:
        return lambda mapping, key: mapping.get(key)
    return lambda array, place: array[place] if 0 <= place < len(array) else None


def _element_at_typed(arguments: Sequence[Node]) -> Typed:
    """``element_at(array, place)``, which counts from 1, or from the end with a minus."""
    count(arguments, 2)
    element = _element_type(arguments[0], 0)
    place = ast.without_cast(arguments[1])
    if isinstance(place, ast.Literal) and place.value == 0:
        raise RefusedArguments(
            "counts from 1; there is no element 0", 1, "write array[0] for the first one"
        )
    return Typed((arguments[0], of_type(arguments[1], 1, INT32)), element)


def _at(array: Array, place: int) -> Any:
    return array[place - (place > 0)] if place and abs(place) <= len(array) else None


def _extreme_typed(arguments: Sequence[Node]) -> Typed:
    count(arguments, 1)
    return Typed((arguments[0],), _element_type(arguments[0], 0))


def _extreme(choose: Callable[..., Any]) -> Callable[[ast.Call], Meaning]:
    """The largest or smallest element, without the nulls; null if there is none."""

    def meaning(call: ast.Call) -> Meaning:
        key = _key(call.type)

        def extreme(array: Array) -> Any:
            known = [element for element in array if element is not None]
            return choose(known, key=key) if known else None

        return extreme

    return meaning


def _position(call: ast.Call) -> Meaning:
    """The place of an element, counted from 1; 0 if it is not there."""
    key = _key(call.arguments[1].type)

    def position(array: Array, value: Any) -> int:
        wanted = key(value)
        for place, element in enumerate(array, 1):
            if element is not None and key(element) == wanted:
                return place
        return 0

    return position


def _position_typed(arguments: Sequence[Node]) -> Typed:
    return Typed(_contains_typed(arguments).arguments, INT)


# --- maps


def _map_part_typed(part: Callable[[Type], Type]) -> Callable[[Sequence[Node]], Typed]:
    def typed(arguments: Sequence[Node]) -> Typed:
        count(arguments, 1)
        return Typed((arguments[0],), array_of(part(_element_type(arguments[0], 0, Kind.MAP))))

    return typed


def _contains_key_typed(arguments: Sequence[Node]) -> Typed:
    count(arguments, 2)
    _element_type(arguments[0], 0, Kind.MAP)
    return Typed((arguments[0], of_type(_known(arguments[1], 1), 1, STRING)), BOOL)


def _contains_key(mapping: Mapping[str, Any], key: str) -> bool:
    return key in mapping


# --- exists and forall


def _quantified_typed(arguments: Sequence[Node]) -> Typed:
    count(arguments, 2)
    _element_type(arguments[0], 0)
    if arguments[1].type != FUNCTION:
        raise RefusedArguments(
            "takes a condition on each element", 1, "write exists(tags, t -> t = 'x')"
        )
    return Typed(tuple(arguments), BOOL)


def _quantified(decisive: bool) -> Meaning:
    """Whether some element passes, or all do; one may decide it, and nulls leave it open."""

    def quantified(array: Array, test: Test) -> bool | None:
        answer: bool | None = not decisive
        for element in array:
            truth = test(element)
            if truth is decisive:
                return decisive
            if truth is None:
                answer = None
        return answer

    return quantified


# --- array


def _array_typed(arguments: Sequence[Node]) -> Typed:
    count(arguments, 0, MANY)
    common = common_type([argument.type for argument in arguments])
    return Typed(tuple(ast.converted(a, common) for a in arguments), array_of(common))


_NEVER, _PROPAGATED = always(Nulls.NEVER), always(Nulls.PROPAGATED)

ARRAYS = (
    Function("array_contains", _contains_typed, _contains, nulls=_PROPAGATED),
    Function("arrays_overlap", _overlap_typed, _overlap, nulls=_PROPAGATED),
    Function("size", _size_typed, lambda _: _size, ("cardinality",), nulls=_NEVER),
    Function("array_size", _array_size_typed, lambda _: len),
    Function(ELEMENT, _element_typed, _element, ("get",), nulls=_PROPAGATED),
    Function(
        "element_at", _element_at_typed, lambda _: _at, ("try_element_at",), nulls=_PROPAGATED
    ),
    Function("array_max", _extreme_typed, _extreme(max), nulls=_PROPAGATED),
    Function("array_min", _extreme_typed, _extreme(min), nulls=_PROPAGATED),
    Function("array_position", _position_typed, _position),
    Function("map_keys", _map_part_typed(lambda _: STRING), lambda _: tuple),
    Function(
        "map_values", _map_part_typed(lambda of: of), lambda _: lambda mapping: (*mapping.values(),)
    ),
    Function("map_contains_key", _contains_key_typed, lambda _: _contains_key),
    Function("exists", _quantified_typed, lambda _: _quantified(decisive=True), nulls=_PROPAGATED),
    Function("forall", _quantified_typed, lambda _: _quantified(decisive=False), nulls=_PROPAGATED),
    Function("array", _array_typed, lambda _: lambda *values: values, nulls=_NEVER),
)
