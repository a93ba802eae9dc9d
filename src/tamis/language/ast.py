"""The tree of a filter: typed, frozen, compared by structure.

Every node has a `type`. Trees are made by `typing_rules`, which checks types and inserts the
conversions that Spark SQL would make (`Cast`); nothing else should build trees from the text of
users. Conversions are never printed: parsing the printed text makes them again.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from operator import attrgetter, is_
from typing import Any, TypeVar, dataclass_transform

from tamis.names import Path
from tamis.types import BOOL, FUNCTION, Type

SHALLOW = 12  # levels of a tree that is not deep

C = TypeVar("C", bound="Base")

NOW, TODAY = "now", "current_date"  # calls whose values depend on when an event arrives

NODE_BYTES = 80  # of a node by itself

# An int may also be a timestamp: microseconds since 1970 in UTC. A tuple is an array.
Value = int | float | Decimal | str | bool | None | tuple[Any, ...]


class Base:
    """What all nodes have in common: a place to keep their hash and their size."""

    __slots__ = ("_bytes", "_hash")
    _bytes: int
    _hash: int

    @property
    def nbytes(self) -> int:
        """About how much memory the node and all nodes below it take."""
        try:
            return self._bytes
        except AttributeError:
            parts: Any = walk(self)  # type: ignore[arg-type]  # every node is one of `Node`
            found = sum(map(_own_bytes, parts))
            object.__setattr__(self, "_bytes", found)
            return found


@dataclass_transform(frozen_default=True)
def node(made: type[C]) -> type[C]:
    """A frozen dataclass that computes its hash once, because nodes are looked up often.

    The hash is not a field, so it is neither compared nor pickled; hashes differ between processes.
    """
    finished = dataclass(frozen=True, slots=True)(made)
    compute = finished.__hash__

    def remembered(self: C) -> int:
        try:
            return self._hash
        except AttributeError:
            found = compute(self)
            object.__setattr__(self, "_hash", found)
            return found

    # A type checker wants methods to stay as they were written.
    finished.__hash__ = remembered  # type: ignore[assignment,method-assign]
    return finished


@node
class Literal(Base):
    """A constant."""

    value: Value
    type: Type

    def __eq__(self, other: object) -> bool:
        # repr tells 0.0 from -0.0 and finds nan equal to itself, which == does not.
        return (
            isinstance(other, Literal)
            and self.type == other.type
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((repr(self.value), self.type))


@node
class Attribute(Base):
    """The value of an attribute of the event."""

    path: Path
    type: Type


@node
class Cast(Base):
    """A conversion of a value to the type that is needed."""

    operand: "Node"
    type: Type


@node
class Call(Base):
    """A function or operator of the table (`functions.table`), by its name there."""

    name: str
    arguments: tuple["Node", ...]
    type: Type


@node
class Variable(Base):
    """The element in the condition of exists or forall."""

    name: str
    type: Type


class _Function(Base):
    __slots__ = ()

    @property
    def type(self) -> Type:
        return FUNCTION


@node
class Lambda(_Function):
    """``name -> body``: the condition that exists and forall test each element with."""

    name: str
    body: "Node"


@node
class Elements(Base):
    """The elements of an array, as a value of which an event may have several.

    No filter has it: it is the term (`predicates.computed_values`) of tests for elements.
    """

    operand: "Node"
    type: Type


class Condition(Base):
    """A node that is true, false or unknown, as are calls and attributes of type bool."""

    __slots__ = ()

    @property
    def type(self) -> Type:
        return BOOL


@node
class Compare(Condition):
    """``x op y`` for one of ``= <> < <= > >= <=>``; both sides have one type."""

    op: str
    left: "Node"
    right: "Node"


@node
class Between(Condition):
    """``x BETWEEN low AND high``: two comparisons, and x may be converted differently for each.

    It holds x once: as two comparisons, nested ones would double in size at every level.
    """

    operand: "Node"
    low: "Node"
    high: "Node"
    low_type: Type
    high_type: Type


@node
class In(Condition):
    """``x IN (a, b, ...)``; all have one type."""

    operand: "Node"
    items: tuple["Node", ...]


@node
class Like(Condition):
    """``x LIKE pattern ESCAPE escape``."""

    operand: "Node"
    pattern: str
    escape: str = "\\"


@node
class RLike(Condition):
    """``x RLIKE pattern``: the regular expression is found somewhere in x."""

    operand: "Node"
    pattern: str


@node
class IsNull(Condition):
    """``x IS NULL``; never null itself."""

    operand: "Node"


@node
class IsTruth(Condition):
    """``x IS TRUE`` or ``x IS FALSE``; never null itself."""

    operand: "Node"
    truth: bool


@node
class Not(Condition):
    """``NOT x``."""

    operand: "Node"


@node
class And(Condition):
    """``x AND y AND ...``."""

    items: tuple["Node", ...]


@node
class Or(Condition):
    """``x OR y OR ...``."""

    items: tuple["Node", ...]


@node
class Slot(Condition):
    """The place of an atom in the boolean structure of a filter; see `shape_cache`."""

    index: int


Node = (
    Literal | Attribute | Cast | Call | Variable | Lambda | Elements
    | Compare | Between | In | Like | RLike | IsNull | IsTruth
    | Not | And | Or | Slot
)  # fmt: skip

CONNECTIVES = (And, Or, Not)

TRUE = Literal(True, BOOL)
FALSE = Literal(False, BOOL)
UNKNOWN = Literal(None, BOOL)


def converted(node: Node, wanted: Type) -> Node:
    """The node, in a `Cast` if it has another type."""
    return node if node.type == wanted else Cast(node, wanted)


def without_cast(node: Node) -> Node:
    """The node, or what is inside it if it is a `Cast`."""
    return node.operand if isinstance(node, Cast) else node


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node, from left to right."""
    return _CHILDREN[type(node)](node)


def _no_children(_node: Any) -> tuple[Node, ...]:
    return ()


def _operand(node: Any) -> tuple[Node, ...]:
    return (node.operand,)


_CHILDREN: dict[type[Any], Callable[[Any], tuple[Node, ...]]] = {
    Literal: _no_children, Attribute: _no_children, Variable: _no_children, Slot: _no_children,
    Lambda: lambda node: (node.body,),
    And: attrgetter("items"), Or: attrgetter("items"),
    Compare: attrgetter("left", "right"),
    Between: attrgetter("operand", "low", "high"),
    In: lambda node: (node.operand, *node.items),
    Call: attrgetter("arguments"),
    Cast: _operand, Elements: _operand, Like: _operand, RLike: _operand, IsNull: _operand,
    IsTruth: _operand, Not: _operand,
}  # fmt: skip


def rebuild(node: Node, parts: tuple[Node, ...]) -> Node:
    """The node with other nodes below it, in the order of `children`."""
    match node:
        case Literal() | Attribute() | Variable() | Slot():
            return node
        case Lambda(name):
            return Lambda(name, parts[0])
        case And():
            return And(parts)
        case Or():
            return Or(parts)
        case Compare(op):
            return Compare(op, *parts)
        case Between():
            return replace(node, operand=parts[0], low=parts[1], high=parts[2])
        case In():
            return In(parts[0], parts[1:])
        case Call(name, _, result):
            return Call(name, parts, result)
        case _:
            return replace(node, operand=parts[0])


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it, parents first."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def is_deep(node: Node) -> bool:
    """Whether going through a tree takes more nested calls than almost any caller has left."""
    level = [node]
    for _ in range(SHALLOW):
        level = [part for one in level for part in children(one)]
        if not level:
            return False
    return True


def _own_bytes(node: Node) -> int:
    match node:
        case Literal(value):
            return NODE_BYTES + sys.getsizeof(value)
        case Like(_, pattern) | RLike(_, pattern):
            return NODE_BYTES + sys.getsizeof(pattern)
        case And(items) | Or(items) | In(_, items):
            return NODE_BYTES + sys.getsizeof(items)
        case _:
            return NODE_BYTES


def attributes(node: Node) -> frozenset[Path]:
    """The attributes that occur in the text, whether the answer depends on them or not."""
    found: set[Path] = set()
    seen: set[int] = set()  # a part that is there several times, as in `bottom_up`, is visited once
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, Attribute):
            found.add(part.path)
        elif id(part) not in seen:
            seen.add(id(part))
            stack.extend(children(part))
    return frozenset(found)


def has_clock(node: Node) -> bool:
    """Whether a value depends on when an event arrives."""
    return any(isinstance(part, Call) and part.name in {NOW, TODAY} for part in walk(node))


def varies(node: Node) -> bool:
    """Whether a value may differ from event to event."""
    return bool(attributes(node)) or has_clock(node)


def node_count(node: Node) -> int:
    """The number of nodes of a tree; a part that is there several times counts each time."""
    known: dict[int, int] = {}

    def count(part: Node) -> int:
        found = known.get(id(part))
        if found is None:
            found = known[id(part)] = 1 + sum(map(count, children(part)))
        return found

    return count(node)


def bottom_up(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with every node changed, children before their parents.

    Comparisons of conditions use their operands several times, so the tree is a graph that may have
    exponentially many paths; each node object is changed once and stays shared.
    """
    done: dict[int, Node] = {}

    def visit(part: Node) -> Node:
        result = done.get(id(part))
        if result is None:
            parts = children(part)
            changed = tuple([visit(below) for below in parts])
            same = all(map(is_, changed, parts))
            result = done[id(part)] = change(part if same else rebuild(part, changed))
        return result

    return visit(node)
