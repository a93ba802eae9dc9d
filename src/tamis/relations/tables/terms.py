"""Conditions of boxes, ready to be compared: one object for each set of values.

Most conditions are one stretch of values, and whether one implies another is then two comparisons
of cuts. The rest is compared by extents, and what has none by `entailment`.

Cuts lie before a value here: no double is between neighbours, and no string between one and the
same with a zero character behind. So ``s <= ''`` and ``s = ''`` are one term.
"""

import functools
import math
from typing import Any
from weakref import WeakValueDictionary

from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.regions import AFTER, BEFORE, BOTTOM, TOP, Cut, Region, whole
from tamis.relations.boxes import Box, Condition
from tamis.relations.entailment.decision import Answer, entails, satisfiable
from tamis.relations.event_space import World
from tamis.relations.extents import Extent, extent
from tamis.schema import Attribute
from tamis.types import BOOL, DOUBLE, STRING, Type


class Term:
    """A condition that can be true of some event and false of another. Compared by identity."""

    __slots__ = (
        "__weakref__", "bit", "extent", "high", "low", "members", "node", "position", "whole"
    )  # fmt: skip

    def __init__(self, position: int, node: Node, found: Extent | None, kind: Type) -> None:
        self.position = position
        self.bit = 1 << position
        self.node = node
        self.extent = found
        # `whole`: the values are one stretch, from `low` to `high`, without the missing one.
        self.whole = found is not None and len(found.values) == 1 and not found.missing
        self.low: Any = None
        self.high: Any = None
        # The cuts before all values, if these are single and the missing one is not among them.
        self.members: tuple[Cut, ...] | None = None
        if found is None or found.missing:
            return
        if self.whole:
            ((self.low, self.high),) = found.values
        if all(high == _next(low, kind) for low, high in found.values):
            self.members = tuple(low for low, _ in found.values)

    def __repr__(self) -> str:
        return f"Term({self.position}, {self.node})"


Terms = tuple[Term, ...]  # of one box, in the order of the schema


class TermPool:
    """The terms of one world that somebody holds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._terms: WeakValueDictionary[Condition, Term] = WeakValueDictionary()
        self._by_extent: WeakValueDictionary[tuple[int, Extent], Term] = WeakValueDictionary()
        # Answers about conditions without an extent, which take long.
        self._entails = functools.lru_cache(maxsize=100_000)(self._ask)
        self._constant = functools.lru_cache(maxsize=100_000)(self._ask_constant)

    def terms(self, box: Box) -> Terms | None:
        """The terms of a box, None if it is never true; those that are always true are left out."""
        found = []
        for condition in box.conditions:
            term = self._terms.get(condition) or self._made(condition)
            if term is False:
                return None
            if term is not True:
                found.append(term)
        return tuple(found)

    def point(self, position: int, value: Any) -> Term:
        """A term that is true of one value, or of the missing one; nobody else has it."""
        attribute = self.world.schema.attributes[position]
        subject = ast.Attribute(attribute.path, attribute.type)
        if value is None:
            return Term(position, ast.IsNull(subject), Extent((), missing=True), attribute.type)
        equal = ast.Compare("=", subject, ast.Literal(value, attribute.type))
        low = 1, int(value) if attribute.type == BOOL else value, BEFORE
        found = Extent(((low, _next(low, attribute.type)),))
        return Term(position, equal, found, attribute.type)

    def implies(self, strong: Term, weak: Term) -> bool:
        """Whether every event that makes one term true makes another of its attribute true."""
        if strong is weak:
            return True
        if strong.whole and weak.whole:
            return bool(weak.low <= strong.low and strong.high <= weak.high)
        if strong.extent is not None and weak.extent is not None:
            return strong.extent.within(weak.extent)
        return self._entails(strong.node, weak.node)

    def _made(self, condition: Condition) -> Term | bool:
        """A new term, or whether the condition is always true or never."""
        position, node = condition
        attribute = self.world.schema.attributes[position]
        found = extent(node, attribute)
        if found is None:
            constant = self._constant(node)
            if constant is not None:
                return constant
            term = Term(position, node, None, attribute.type)
        else:
            found = Extent(before_values(found.values, attribute.type), found.missing)
            if not found:
                return False
            if self._is_always(found, position, attribute):
                return True
            known = self._by_extent.get((position, found))
            term = known or Term(position, node, found, attribute.type)
            self._by_extent[position, found] = term
        self._terms[condition] = term
        return term

    def _is_always(self, found: Extent, position: int, attribute: Attribute) -> bool:
        everything = before_values(whole(attribute.type, attribute.domain), attribute.type)
        return found.values == everything and (found.missing or not self.world.may_miss(position))

    def _ask(self, strong: Node, weak: Node) -> bool:
        return entails(strong, weak, self.world) is Answer.YES

    def _ask_constant(self, node: Node) -> bool | None:
        """Whether a condition is never true (False), always (True), or neither for all we know."""
        if satisfiable(node, self.world) is Answer.NO:
            return False
        return True if entails(ast.TRUE, node, self.world) is Answer.YES else None


def before_values(stretches: Region, kind: Type) -> Region:
    """A region whose cuts lie before values, or at the top, so that equal ones are the same."""
    if kind not in {STRING, DOUBLE}:
        return stretches
    found: list[tuple[Cut, Cut]] = []
    for low, high in stretches:
        first, last = _before(low, kind), _before(high, kind)
        if found and found[-1][1] == first:
            found[-1] = found[-1][0], last
        elif first < last:
            found.append((first, last))
    return tuple(found)


def _before(cut: Cut, kind: Type) -> Cut:
    if cut == BOTTOM:
        return 1, "" if kind == STRING else -math.inf, BEFORE
    return _next((1, cut[1], BEFORE), kind) if cut != TOP and cut[2] == AFTER else cut


def _next(low: Cut, kind: Type) -> Cut:
    """The cut behind the value that one lies before."""
    if low == BOTTOM:
        return low
    value = low[1]
    if kind == STRING:
        return 1, value + "\x00", BEFORE
    if kind == DOUBLE:
        if value == math.inf:  # only NaN is above
            return 1, value, AFTER
        return 1, math.nextafter(value, math.inf), BEFORE
    return 1, value + 1, BEFORE
