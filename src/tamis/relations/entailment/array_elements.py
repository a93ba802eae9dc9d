"""Elements of arrays as operands: each constant that tests look for is in an array, or is not.

The constants of tests for elements (`ElementTest`) are independent of each other: an array may have
any of them, and a null besides. So ``array_contains(a, 1)`` is true where the operand "1 is in a"
is, and its negation where that is false and so is the operand "a null is in a". What else is
computed from arrays and maps (their sizes, an element by its place) is related to these only by the
arrays that are tried.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tamis.events.values import MapValue
from tamis.language import ast
from tamis.language.arithmetic import order_key
from tamis.language.ast import Node
from tamis.language.evaluation import Evaluator, compile_value
from tamis.schema import Schema
from tamis.types import DOUBLE, STRING, Kind, Type

FALSE, TRUE = 0b01, 0b10  # the cells of such an operand
MOST_ARRAYS = 200  # that are tried
LONGEST = 8  # elements of an array that is tried for its size

_FILLERS: dict[Kind, Any] = {
    Kind.STRING: "x", Kind.INT: 7, Kind.DOUBLE: 0.5, Kind.BOOL: True, Kind.TIMESTAMP: 0,
}  # fmt: skip


class Member(NamedTuple):
    """Whether a constant, or a null, is among the elements of an array."""

    array: Node
    constant: Any  # None for a null


def membership(member: Member, schema: Schema) -> Evaluator:
    """A function from a row to the value of such an operand, None if there is no array."""
    compute = compile_value(member.array, schema)
    key = order_key if member.array.type.element == DOUBLE else _itself
    wanted = None if member.constant is None else key(member.constant)

    def is_member(row: Any) -> bool | None:
        array = compute(row)
        if array is None:
            return None
        if wanted is None:
            return None in array
        return any(one is not None and key(one) == wanted for one in array)

    return is_member


def _itself(value: Any) -> Any:
    return value


class ArrayCells:
    """The one cell of all arrays or maps; what is tested of them are operands of their own."""

    count = 1

    def __init__(self, of: Type) -> None:
        self.of = of

    def mask(self, test: Any) -> int:  # noqa: ARG002 - it is tested for being there at all
        return 1

    def cell(self, value: Any) -> int:  # noqa: ARG002 - there is one
        return 0

    def values(self, cell: int) -> Sequence[Any] | None:  # noqa: ARG002 - it has many
        return None

    def examples(self, cell: int) -> Sequence[Any]:  # noqa: ARG002 - as above
        return ((),) if self.of.kind is Kind.ARRAY else (MapValue(),)


class WantedArray(NamedTuple):
    """What is wanted of an array or map: which elements, and which values at which places."""

    inside: list[Any]
    outside: list[Any]
    free: list[Any]  # elements that may be there or not
    places: dict[Any, Any]  # by index or key
    absent: set[Any]  # indexes and keys without a value


def arrays_for(wish: WantedArray, of: Type) -> list[Any]:
    """Arrays or maps to try."""
    if of.element is None:
        return []
    found = _maps(wish, of.element) if of.kind is Kind.MAP else _arrays(wish, of.element)
    distinct: dict[str, Any] = {}
    for one in found:
        distinct.setdefault(repr(one), one)
        if len(distinct) >= MOST_ARRAYS:
            break
    return list(distinct.values())


def _arrays(wish: WantedArray, element: Type) -> Iterator[tuple[Any, ...]]:
    filler = _filler(wish, element)
    last = max((place for place in wish.places if isinstance(place, int)), default=-1)
    placed = [wish.places.get(n, filler) for n in range(last + 1)]
    rest = [one for one in wish.inside if one not in placed]
    base = (*placed, *rest)
    yield base
    yield (*base, filler)
    for one in wish.free:
        yield (*base, one)
    yield (*base, *wish.free)
    for size in range(1, LONGEST + 1):
        yield (*base, *[filler] * (size - len(base)))
        if base:
            yield (*base, *[base[-1]] * (size - len(base)))
    yield tuple(reversed(base))


def _maps(wish: WantedArray, value: Type) -> Iterator[MapValue]:
    filler = _filler(wish, value)
    keys = dict.fromkeys([*wish.inside, *wish.places])
    base = {k: wish.places.get(k, filler) for k in keys if k not in wish.absent and k is not None}
    yield MapValue(base)
    for one in wish.free:
        if one is not None:
            yield MapValue(base | {one: filler})
    for size in range(1, LONGEST + 1):
        more = {f"x{n}": filler for n in range(size - len(base))}
        yield MapValue(base | more)


def _filler(wish: WantedArray, of: Type) -> Any:
    """An element that nobody asks for."""
    taken = {*wish.inside, *wish.outside, *wish.free}
    filler = _FILLERS[of.kind]
    while filler in taken and of.kind is not Kind.BOOL:
        filler = filler + ("x" if of == STRING else 1)
    if of.kind is Kind.BOOL and filler in wish.outside:
        filler = False
    return filler


def constant_place(node: Node, of: ast.Attribute) -> Any:
    """The index, from 0, or the key of an element of an attribute; None if it is not a constant."""
    match node:
        case ast.Call("[]", (holder, ast.Literal(place)), _) if holder == of:
            return place
        case ast.Call("element_at", (holder, ast.Literal(int(place))), _) if holder == of:
            return place - 1 if place > 0 else None
        case _:
            return None
