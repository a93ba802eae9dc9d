"""What canonical predicates are to the matching tree: kinds of tests, their order and extent.

The fixed total order of tests (TREE, section 3) is by attribute, kind, and a key that depends on
nothing but the predicate. Weaker tests come first, so that implied edges can lead from one to those
after it: larger upper bounds before smaller ones, wide ranges before the narrow ones in them.
"""

import hashlib
import struct
from typing import Any, NamedTuple

from tamis.kernels import growing_tree as t
from tamis.language import ast
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.classification import (
    Comparison,
    LikeTest,
    Membership,
    Presence,
    RegexTest,
    StringTest,
    classify,
)
from tamis.predicates.keys import decimal_key
from tamis.types import INT64_MAX, INT64_MIN, STRING, Kind, Type

NUMBERS = frozenset({Kind.INT, Kind.DOUBLE, Kind.TIMESTAMP, Kind.BOOL})
_KINDS = {
    "=": t.K_EXAMINE, "<>": t.K_DIFFERS, "<": t.K_UPPER, "<=": t.K_UPPER, ">": t.K_LOWER,
    ">=": t.K_LOWER,
}  # fmt: skip


class Description(NamedTuple):
    """What a predicate is, in terms of the tree."""

    kind: int
    path: Path | None = None  # None for a predicate of several attributes
    op: str = ""
    type: Type | None = None
    constant: Any = None


def describe(predicate: Node) -> Description:
    """What a canonical predicate is."""
    match classify(predicate):
        case Comparison(ast.Attribute(path, kind), op, value) if (
            value == value  # noqa: PLR0124 - not NaN, which is not equal to itself
        ):
            return Description(_KINDS[op], path, op, kind, value)
        case Membership(ast.Attribute(path, kind), values, negated):
            return Description(t.K_ABSENT if negated else t.K_MEMBER, path, "", kind, values)
        case Presence(ast.Attribute(path, kind), present):
            return Description(t.K_PRESENT if present else t.K_NULL, path, "", kind)
        case (
            StringTest(ast.Attribute(path, _))
            | LikeTest(ast.Attribute(path, _))
            | RegexTest(ast.Attribute(path, _))
        ):
            return Description(t.K_TEXT, path, "", STRING)
        case _:
            return Description(t.K_OTHER)


def ordinal(value: Any) -> int:
    """A 64-bit whole number for a number, in the order of numbers; -0.0 and 0.0 have the same."""
    if not isinstance(value, float):
        return int(value)
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else INT64_MIN - bits


def _digest(*predicates: Node) -> int:
    """A number that depends on nothing but the text of predicates."""
    text = "\n".join(map(repr, predicates)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def _rank(constant: Any, kind: Type | None) -> int:
    """A 64-bit whole number in the order of constants; equal for texts with the same beginning."""
    if kind is None or kind.kind in NUMBERS:
        return ordinal(constant)
    if kind.kind is Kind.DECIMAL:
        return decimal_key(constant, kind)
    head = str(constant).encode("utf-8", "surrogatepass")[:8].ljust(8, b"\0")
    return int.from_bytes(head, "big") + INT64_MIN


def tightest(
    bounds: list[tuple[int, Description]],
) -> tuple[tuple[int, ...], Description] | None:
    """One test that is equivalent to several bounds of an attribute; None if nothing passes."""
    lower: tuple[int, Description] | None = None
    upper: tuple[int, Description] | None = None
    for bound in bounds:
        if bound[1].kind == t.K_LOWER:
            if lower is None or _is_tighter(bound[1], lower[1]):
                lower = bound
        elif upper is None or _is_tighter(bound[1], upper[1]):
            upper = bound
    if lower is None or upper is None:
        only = lower or upper
        return None if only is None else ((only[0],), only[1])
    low, high = lower[1], upper[1]
    open_ended = low.op == ">" or high.op == "<"
    if low.constant > high.constant or (low.constant == high.constant and open_ended):
        return None
    both = Description(t.K_RANGE, low.path, "", low.type, (low, high))
    return (lower[0], upper[0]), both


def _is_tighter(one: Description, other: Description) -> bool:
    if one.constant == other.constant:
        return one.op in {"<", ">"}
    return bool(one.constant > other.constant) == (one.kind == t.K_LOWER)


def keys(nodes: list[Node], known: Description) -> tuple[int, int]:
    """The place of a test within its kind, weaker tests first."""
    match known.kind:
        case t.K_PRESENT | t.K_NULL | t.K_EXAMINE:
            return 0, 0
        case t.K_UPPER | t.K_LOWER | t.K_RANGE:
            low, high, _ = extent(known)
            if known.type is not None and known.type.kind in NUMBERS:
                return (low, ~high) if known.kind != t.K_UPPER else (~high, low)
            first = known.constant[0].constant if known.kind == t.K_RANGE else known.constant
            rank = _rank(first, known.type)
            return (~rank if known.kind == t.K_UPPER else rank), _digest(*nodes)
        case t.K_DIFFERS:
            numeric = known.type is not None and known.type.kind in NUMBERS
            return _rank(known.constant, known.type), 0 if numeric else _digest(*nodes)
        case t.K_MEMBER:
            return -len(known.constant), _digest(*nodes)
        case t.K_ABSENT:
            return len(known.constant), _digest(*nodes)
        case _:
            return len(repr(nodes)), _digest(*nodes)


def extent(known: Description) -> tuple[int, int, int]:
    """LOW, HIGH, FORM: between which numbers a test is true, and how it follows from others."""
    numeric = known.type is not None and known.type.kind in NUMBERS
    everything = (INT64_MIN, INT64_MAX)
    match known.kind:
        case t.K_PRESENT:
            return *everything, t.F_INTERVAL
        case t.K_EXAMINE if numeric:
            return ordinal(known.constant), ordinal(known.constant), t.F_NEVER
        case t.K_DIFFERS if numeric:
            return *everything, t.F_POINT
        case t.K_UPPER | t.K_LOWER if numeric:
            low, high = _bound(known)
            return low, high, t.F_INTERVAL
        case t.K_RANGE if numeric:
            return _bound(known.constant[0])[0], _bound(known.constant[1])[1], t.F_INTERVAL
        case t.K_MEMBER if numeric:
            places = [ordinal(value) for value in known.constant]
            return min(places), max(places), t.F_ASK
        case t.K_NULL:
            return *everything, t.F_NULL
        case t.K_OTHER | t.K_EXAMINE:
            return *everything, t.F_NEVER
        case _:
            return *everything, t.F_ASK


def _bound(known: Description) -> tuple[int, int]:
    """The interval of a bound. NaN, above every number, satisfies lower bounds only."""
    place = ordinal(known.constant)
    if known.op in {"<", "<="}:
        low, high = INT64_MIN, place - (known.op == "<")
    else:
        low, high = place + (known.op == ">"), INT64_MAX
    # Nothing is below the least number; an empty interval lies within every other.
    return (low, high) if low <= high else (INT64_MAX, INT64_MIN)
