"""Boxes that are being merged, and which of them differ in one attribute only.

Conditions have small numbers here, so that what two boxes share is one tuple of numbers to look up:
boxes are never compared pair by pair to find out whether they could be merged.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tamis.errors import OptionError, choose, unknown_attribute
from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.boxes import AttributeCondition, Box
from tamis.predicates.event_space import EventSpace
from tamis.relations.merging.condition_mergers import bare, join
from tamis.relations.merging.merge_rules import MergedAttribute, RuleSet

CANDIDATES = ("any", "mbd")

K = TypeVar("K", bound=Hashable)
Ids = tuple[int, ...]  # conditions of a box by their numbers, in the order of the schema
Group = tuple[int, Ids]  # an attribute, and the conditions of all others


@dataclass(slots=True)
class PooledBox(Generic[K]):
    """A box, and the keys of the filters that were merged into it."""

    ids: Ids
    parts: list[K]
    extra: float = 0.0  # at most this share of all events matches the box and none of its parts
    perfect: bool = True
    alive: bool = True


class BoxPool(Generic[K]):
    """Boxes under growing numbers; merging removes some of them and adds one."""

    def __init__(
        self,
        space: EventSpace,
        rules: RuleSet,
        candidates: str = "any",
        order: Sequence[str] | None = None,
    ) -> None:
        self.space = space
        self.rules = rules
        self.by_top = choose("choice of candidates", candidates, CANDIDATES) == "mbd"
        self._ranks = ranks(space, order)
        self.entries: list[PooledBox[K]] = []
        self._conditions: list[AttributeCondition] = []
        self._positions: list[int] = []  # of their attributes
        self._numbers: dict[AttributeCondition, int] = {}
        self._same: dict[Ids, int] = {}
        self._attributes: dict[int, MergedAttribute] = {}

    # --- boxes and their conditions

    def ids_of(self, box: Box) -> Ids:
        """The conditions of a box by their numbers."""
        return tuple(
            self.number(condition._replace(node=bare(condition.node)))
            for condition in box.conditions
        )

    def number(self, condition: AttributeCondition) -> int:
        """The number of a condition."""
        found = self._numbers.setdefault(condition, len(self._conditions))
        if found == len(self._conditions):
            self._conditions.append(condition)
            self._positions.append(condition.position)
        return found

    def condition(self, number: int) -> AttributeCondition:
        """The condition of a number."""
        return self._conditions[number]

    def box(self, ids: Ids) -> Box:
        """The box of some conditions."""
        return Box(tuple(self._conditions[n] for n in ids))

    def replaced(self, rest: Ids, position: int, node: Node) -> Ids:
        """Conditions with one more, on an attribute that none of them tests."""
        if node == ast.TRUE:
            return rest
        number = self.number(
            AttributeCondition(position, node, self.attribute(position).values(node))
        )
        place = sum(self._positions[n] < position for n in rest)
        return (*rest[:place], number, *rest[place:])

    def attribute(self, position: int) -> MergedAttribute:
        """The attribute at a position, for rules."""
        found = self._attributes.get(position)
        if found is None:
            attribute = self.space.schema.attributes[position]
            found = MergedAttribute(attribute, self.space.may_miss(position))
            self._attributes[position] = found
        return found

    # --- entries

    @property
    def alive(self) -> Iterator[tuple[int, PooledBox[K]]]:
        """The boxes that are left, in the order in which they came."""
        return ((n, entry) for n, entry in enumerate(self.entries) if entry.alive)

    def add(self, entry: PooledBox[K]) -> int:
        """Add a box; an equal one that is there already becomes part of it."""
        number = len(self.entries)
        other = self._same.get(entry.ids)
        if other is not None and self.entries[other].alive:
            twin = self.entries[other]
            twin.alive = False
            entry.parts = [*twin.parts, *entry.parts]
            entry.extra = min(entry.extra, twin.extra)
            entry.perfect = entry.perfect or twin.perfect
        self._same[entry.ids] = number
        self.entries.append(entry)
        return number

    def merged(self, numbers: Sequence[int], ids: Ids, extra: float, *, perfect: bool) -> int:
        """Replace some boxes by one."""
        entries = [self.entries[n] for n in numbers]
        for entry in entries:
            entry.alive = False
        return self.add(
            PooledBox(
                ids,
                [part for entry in entries for part in entry.parts],
                extra,
                perfect and all(entry.perfect for entry in entries),
            )
        )

    # --- groups

    def places(self, ids: Ids) -> Iterable[int]:
        """The conditions in which a box may differ from those that it is merged with.

        Output nodes of an MBD with the same children differ in their top attribute only.
        """
        if not self.by_top:
            return range(len(ids))
        return sorted(range(len(ids)), key=lambda n: self._ranks[self._positions[ids[n]]])

    def groups(self, ids: Ids) -> list[Group]:
        """The groups of boxes that differ from a box in one attribute that it tests, too."""
        places = list(self.places(ids))[: 1 if self.by_top else None]
        return [(self._positions[ids[n]], ids[:n] + ids[n + 1 :]) for n in places]

    def on(self, ids: Ids, position: int) -> int:
        """The number of the condition on one attribute."""
        for number in ids:
            if self._positions[number] == position:
                return number
        raise KeyError(position)


def ranks(space: EventSpace, order: Sequence[str] | None) -> list[int]:
    """How far down each attribute is in a diagram; without an order, by its place in the schema."""
    schema = space.schema
    if order is None:
        return list(range(len(schema)))
    for name in order:
        if name not in schema:
            raise OptionError(f"order: {unknown_attribute(name, schema)}")
    places = {schema[name].path: place for place, name in enumerate(order)}
    return [places.get(attribute.path, len(places)) for attribute in schema.attributes]


def below_top(box: Box, places: Sequence[int]) -> tuple[AttributeCondition, ...]:
    """The conditions of a box except the one on its top attribute; boxes of one MBD share them."""
    if not box.conditions:
        return ()
    top = min(box.conditions, key=lambda condition: places[condition.position])
    return tuple(condition for condition in box.conditions if condition is not top)


def join_perfectly(pool: BoxPool[K], limit: float = 1.0) -> None:
    """Merge boxes that differ in one attribute as long as a rule applies, all of a group at once.

    Large groups come first, then those of the first boxes. The shares that imperfect mergers have
    added already are summed up, and must not exceed `limit`.
    """
    groups: dict[Group, list[int]] = {}
    for number, entry in pool.alive:
        for group in pool.groups(entry.ids):
            groups.setdefault(group, []).append(number)
    queue = deque(sorted((g for g in groups if len(groups[g]) > 1), key=lambda g: -len(groups[g])))
    while queue:
        group = queue.popleft()
        for number in _joined(pool, group, groups[group], limit):
            for other in pool.groups(pool.entries[number].ids):
                groups.setdefault(other, []).append(number)
                if len(groups[other]) > 1:
                    queue.append(other)


def _joined(pool: BoxPool[K], group: Group, numbers: list[int], limit: float) -> list[int]:
    position, rest = group
    numbers[:] = [n for n in numbers if pool.entries[n].alive]
    if len(numbers) < 2:
        return []
    nodes = [pool.condition(pool.on(pool.entries[n].ids, position)).node for n in numbers]
    found = []
    for node, members in join(nodes, pool.attribute(position), pool.rules):
        parts = [numbers[m] for m in members]
        extra = sum(pool.entries[n].extra for n in parts)
        if extra <= limit:
            ids = pool.replaced(rest, position, node)
            found.append(pool.merged(parts, ids, extra, perfect=True))
    return found
