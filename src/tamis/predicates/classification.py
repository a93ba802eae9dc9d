"""Which kind of test a canonical predicate is, and of what.

This is the one place that looks at the nodes of a predicate. Indexes, engines, value sets and the
decision of covering match on its result::

    match classify(predicate):
        case Comparison(ast.Attribute(path, _), op, constant): ...
        case Membership(ast.Attribute(path, _), constants, negated): ...

A test has a *value* (or two): mostly an `ast.Attribute`, else something that is computed from
attributes, such as ``length(s)`` or ``i + j``. The result holds for every predicate of a normal
form (`tamis.language.normal_form`):

================ ====================================================== =========================
kind             predicate                                              example
================ ====================================================== =========================
`Comparison`     value op constant of the same type, ``= <> < <= > >=`` ``i <= 4``, ``b = TRUE``
`Membership`     value IN (constants), or NOT IN                        ``i IN (1, 2)``
`ElementTest`    an array has one of some constants among its elements  ``array_contains(a, 1)``
`Presence`       value IS NULL, or IS NOT NULL                          ``s IS NULL``
`StringTest`     value starts with, ends with or contains a text        ``s LIKE 'ab%'``
`PartTest`       value is a prefix, a suffix or any part of a text      ``s SUBSTRING OF 'ab'``
`LikeTest`       value LIKE a pattern that is none of the above         ``s LIKE 'a_c'``
`RegexTest`      value RLIKE a pattern                                  ``s RLIKE 'a+'``
`PairComparison` value op value                                         ``i < j``
`Constant`       TRUE or FALSE                                          ``TRUE``
`OtherTest`      anything else                                          ``contains(s, t)``
================ ====================================================== =========================

A comparison with infinity or NaN, which cannot be written as constants, is a `PairComparison` one
side of which has no attributes. A negated test is true of the values that fail the plain one; of a
missing value neither is true, and neither is a test for elements that the null elements of an array
leave open.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

from tamis.bounded_caches import remembered
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.nulls import needed_attributes
from tamis.names import Path
from tamis.types import STRING, Kind, array_of


class Comparison(NamedTuple):
    """``value op constant``, where both have one type."""

    value: Node
    op: str
    constant: Any


class Membership(NamedTuple):
    """``value IN (constants)``, or NOT IN; constants of the value's type, ascending."""

    value: Node
    constants: tuple[Any, ...]
    negated: bool = False


class ElementTest(NamedTuple):
    """An array has one of the constants among its elements; or none of them, and no null.

    It is ``array_contains``, ``arrays_overlap`` with constants, or ``map_contains_key``; constants
    of the type of the elements, ascending.
    """

    value: Node  # the array
    constants: tuple[Any, ...]
    negated: bool = False


class Presence(NamedTuple):
    """``value IS NOT NULL`` if `present`, else ``value IS NULL``."""

    value: Node
    present: bool


class StringTest(NamedTuple):
    """``function(value, text)`` for one of ``startswith endswith contains``."""

    value: Node
    function: str
    text: str
    negated: bool = False


class PartTest(NamedTuple):
    """``function(text, value)``: the value is a prefix, a suffix or any part of the text."""

    value: Node
    function: str
    text: str
    negated: bool = False


class LikeTest(NamedTuple):
    """``value LIKE pattern ESCAPE escape``."""

    value: Node
    pattern: str
    escape: str
    negated: bool = False


class RegexTest(NamedTuple):
    """``value RLIKE pattern``."""

    value: Node
    pattern: str
    negated: bool = False


class PairComparison(NamedTuple):
    """``left op right``, both computed or attributes."""

    left: Node
    op: str
    right: Node


class Constant(NamedTuple):
    """A predicate that has the same truth for every event."""

    truth: bool


class OtherTest(NamedTuple):
    """A predicate that is none of the above; `predicate` is without its negation."""

    predicate: Node
    negated: bool = False


Test = (
    Comparison | Membership | ElementTest | Presence | StringTest | PartTest | LikeTest | RegexTest
    | PairComparison | Constant | OtherTest
)  # fmt: skip

_ALONE = (Comparison, Membership, Presence, StringTest, PartTest, LikeTest, RegexTest)


def classify(predicate: Node) -> Test:
    """Which kind of test a canonical predicate is, and of what."""
    if type(predicate) is ast.Not:
        bare, negated = predicate.operand, True
    else:
        bare, negated = predicate, False
    find = _BY_NODE.get(type(bare))
    return OtherTest(bare, negated) if find is None else find(bare, negated)


def is_presence(node: Node) -> bool:
    """Whether a condition is ``IS NOT NULL``."""
    test = classify(node)
    return isinstance(test, Presence) and test.present


def plain_attribute(predicate: Node) -> ast.Attribute | None:
    """The attribute that a predicate tests as it is; None for computed values and pairs."""
    test = classify(predicate)
    if isinstance(test, _ALONE) and isinstance(test.value, ast.Attribute):
        return test.value
    return None


def deciding_attribute(predicate: Node) -> Path | None:
    """The attribute whose value alone decides a predicate, None if there is no such attribute.

    A missing value makes the predicate untrue, unless it is IS NULL of the attribute itself. So
    ``i % j IS NULL`` and even ``1 / i IS NULL`` have none, nor has ``coalesce(i, 1) = 1``.
    """
    bare = predicate.operand if isinstance(predicate, ast.Not) else predicate
    if isinstance(bare, ast.IsNull):
        return bare.operand.path if isinstance(bare.operand, ast.Attribute) else None
    paths = ast.attributes(bare)
    return next(iter(paths)) if len(paths) == 1 and needed_attributes(bare) == paths else None


def _fits(item: Node, value: Node) -> TypeGuard[ast.Literal]:
    """Whether something is a constant that a value of its type can be equal to."""
    return isinstance(item, ast.Literal) and item.value is not None and item.type == value.type


def _comparison(node: ast.Compare, negated: bool) -> Test:
    op, left, right = node.op, node.left, node.right
    if negated or op == "<=>":  # in a normal form neither occurs
        return OtherTest(node, negated)
    if _fits(right, left):
        if type(left) is ast.Call and left.name in _OF_ELEMENTS and op == "=":
            found = _elements(left)
            if found is not None:
                return ElementTest(*found, negated=right.value is False)
        return Comparison(left, op, right.value)
    return PairComparison(left, op, right)


_OF_ELEMENTS = frozenset({"array_contains", "arrays_overlap", "map_contains_key"})
# Elements of these kinds are looked up by their value.
_ELEMENT_KINDS = frozenset({Kind.INT, Kind.DOUBLE, Kind.STRING, Kind.BOOL, Kind.TIMESTAMP})


def _elements(call: ast.Call) -> tuple[Node, tuple[Any, ...]] | None:
    """The array that a call looks into, and the constants that it looks for."""
    holder, wanted = call.arguments
    if call.name == "arrays_overlap" and isinstance(holder, ast.Literal):
        holder, wanted = wanted, holder
    if isinstance(holder, ast.Literal) or not isinstance(wanted, ast.Literal):
        return None
    if call.name == "map_contains_key":
        return ast.Call("map_keys", (holder,), array_of(STRING)), (wanted.value,)
    element = holder.type.element
    if element is None or element.kind not in _ELEMENT_KINDS:
        return None
    if call.name == "array_contains":
        value = wanted.value
        # -0.0 equals 0.0.
        return holder, (value + 0.0 if isinstance(value, float) else value,)
    found = _distinct(wanted)
    return None if found is None else (holder, found)


@remembered()
def _distinct(array: ast.Literal) -> tuple[Any, ...] | None:
    """The elements of a constant array, ascending; None if there are none, or nulls."""
    found = array.value
    if not isinstance(found, tuple) or not found or None in found:
        return None
    return tuple(sorted({one + 0.0 if isinstance(one, float) else one for one in found}))


@remembered()
def _membership(node: ast.In, negated: bool) -> Test:
    """Remembered, because a list may be long and is looked at in every comparison with another."""
    constants = tuple([item.value for item in node.items if _fits(item, node.operand)])
    if len(constants) < len(node.items):
        return OtherTest(node, negated)
    return Membership(node.operand, constants, negated)


def _string_test(node: ast.Call, negated: bool) -> Test:
    if node.name in {"startswith", "endswith", "contains"}:
        value, text = node.arguments
        if isinstance(text, ast.Literal):
            return StringTest(value, node.name, str(text.value), negated)
        if isinstance(value, ast.Literal):
            return PartTest(text, node.name, str(value.value), negated)
    return OtherTest(node, negated)


_BY_NODE: dict[type[Any], Callable[[Any, bool], Test]] = {
    ast.Compare: _comparison,
    ast.In: _membership,
    ast.IsNull: lambda node, negated: Presence(node.operand, negated),
    ast.Call: _string_test,
    ast.Like: lambda node, negated: LikeTest(node.operand, node.pattern, node.escape, negated),
    ast.RLike: lambda node, negated: RegexTest(node.operand, node.pattern, negated),
    ast.Literal: lambda node, negated: Constant((node.value is True) != negated),
}
