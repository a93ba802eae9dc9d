"""Boxes that are being merged, and those among them that differ in one attribute.

Conditions have small numbers here, so that what two boxes share is one tuple of numbers to look up:
no pair of boxes is ever compared to find out whether it could be merged.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tamis.errors import OptionError, choose, unknown_attribute
from tamis.language import ast
from tamis.language.ast import Node
from tamis.relations.boxes import Box, Condition
from tamis.relations.event_space import World
from tamis.relations.merging.condition_mergers import bare, join
from tamis.relations.merging.merge_rules import Ground, Rules

CANDIDATES = ("any", "mbd")

K = TypeVar("K", bound=Hashable)
Ids = tuple[int, ...]  # conditions of a box by their numbers, in the order of the schema
Group = tuple[int, Ids]  # an attribute, and the conditions of all others


@dataclass(slots=True)
class Entry(Generic[K]):
    """A box, and what was merged into it."""

    ids: Ids
    parts: list[K]
    extra: float = 0.0  # at most this share of all events is in the box and in no part
    perfect: bool = True
    alive: bool = True


class Pool(Generic[K]):
    """Boxes under numbers that grow; merging takes some of them away and adds one."""

    def __init__(
        self,
        world: World,
        rules: Rules,
        candidates: str = "any",
        order: Sequence[str] | None = None,
    ) -> None:
        self.world = world
        self.rules = rules
        self.by_top = choose("choice of candidates", candidates, CANDIDATES) == "mbd"
        self._ranks = ranks(world, order)
        self.entries: list[Entry[K]] = []
        self._conditions: list[Condition] = []
        self._positions: list[int] = []  # of their attributes
        self._numbers: dict[Condition, int] = {}
        self._same: dict[Ids, int] = {}
        self._grounds: dict[int, Ground] = {}

    # --- boxes and their conditions

    def ids_of(self, box: Box) -> Ids:
        """The conditions of a box by their numbers."""
        return tuple(self.number(Condition(p, bare(node))) for p, node in box.conditions)

    def number(self, condition: Condition) -> int:
        """The number of a condition."""
        found = self._numbers.setdefault(condition, len(self._conditions))
        if found == len(self._conditions):
            self._conditions.append(condition)
            self._positions.append(condition.position)
        return found

    def condition(self, number: int) -> Condition:
        """The condition of a number."""
        return self._conditions[number]

    def box(self, ids: Ids) -> Box:
        """The box of some conditions."""
        return Box(tuple(self._conditions[n] for n in ids))

    def replaced(self, rest: Ids, position: int, node: Node) -> Ids:
        """Conditions with one more, of an attribute that none of them asks."""
        if node == ast.TRUE:
            return rest
        number = self.number(Condition(position, node))
        place = sum(self._positions[n] < position for n in rest)
        return (*rest[:place], number, *rest[place:])

    def ground(self, position: int) -> Ground:
        """The attribute at a position, for rules."""
        found = self._grounds.get(position)
        if found is None:
            attribute = self.world.schema.attributes[position]
            found = Ground(attribute, self.world.may_miss(position))
            self._grounds[position] = found
        return found

    # --- entries

    @property
    def alive(self) -> Iterator[tuple[int, Entry[K]]]:
        """What there is now, in the order of coming."""
        return ((n, entry) for n, entry in enumerate(self.entries) if entry.alive)

    def add(self, entry: Entry[K]) -> int:
        """Take in a box; one that is there already becomes part of it."""
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
        """Replace entries by one."""
        entries = [self.entries[n] for n in numbers]
        for entry in entries:
            entry.alive = False
        return self.add(
            Entry(
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
        """The groups of boxes that differ from a box in one attribute, which it asks, too."""
        places = list(self.places(ids))[: 1 if self.by_top else None]
        return [(self._positions[ids[n]], ids[:n] + ids[n + 1 :]) for n in places]

    def asked(self, ids: Ids, position: int) -> int:
        """The condition of one attribute, by its number."""
        for number in ids:
            if self._positions[number] == position:
                return number
        raise KeyError(position)


def ranks(world: World, order: Sequence[str] | None) -> list[int]:
    """How far down an attribute stands in a diagram; by its place in the schema if nobody says."""
    schema = world.schema
    if order is None:
        return list(range(len(schema)))
    for name in order:
        if name not in schema:
            raise OptionError(f"order: {unknown_attribute(name, schema)}")
    places = {schema[name].path: place for place, name in enumerate(order)}
    return [places.get(attribute.path, len(places)) for attribute in schema.attributes]


def below_top(box: Box, places: Sequence[int]) -> tuple[Condition, ...]:
    """The conditions of a box but for that of its top attribute: boxes of one MBD have the same."""
    if not box.conditions:
        return ()
    top = min(box.conditions, key=lambda condition: places[condition.position])
    return tuple(condition for condition in box.conditions if condition is not top)


def join_perfectly(pool: Pool[K], limit: float = 1.0) -> None:
    """Merge boxes that differ in one attribute as long as rules say how, all of a group at once.

    Groups of many come first, then those of the first boxes. What boxes have added already adds up,
    and `limit` is the most of it.
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


def _joined(pool: Pool[K], group: Group, numbers: list[int], limit: float) -> list[int]:
    position, rest = group
    numbers[:] = [n for n in numbers if pool.entries[n].alive]
    if len(numbers) < 2:
        return []
    asked = [pool.condition(pool.asked(pool.entries[n].ids, position)).node for n in numbers]
    found = []
    for node, members in join(asked, pool.ground(position), pool.rules):
        parts = [numbers[m] for m in members]
        extra = sum(pool.entries[n].extra for n in parts)
        if extra <= limit:
            ids = pool.replaced(rest, position, node)
            found.append(pool.merged(parts, ids, extra, perfect=True))
    return found
