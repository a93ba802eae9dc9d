"""Imperfect mergers of boxes, those first that add least.

A heap holds pairs of boxes under the IMT of their merger. Pairs differ in one attribute or in two;
within a group boxes are in the order of their values, and only neighbours become pairs.

The IMT of a merger of mergers is bounded by what each step added. The true one may be less, where
what one step added another one asked for.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, product
from typing import Any, Generic, TypeVar

from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.regions import BOTTOM
from tamis.relations.merging.box_pool import Entry, Ids, Pool
from tamis.relations.merging.condition_mergers import widen
from tamis.relations.merging.event_sets import Cell, Space

NEIGHBOURS = 2  # on each side of a box in its group
TRIED = 2  # rules of an attribute, if two attributes differ
_NOTHING = 1e-12  # sums of floats that should be 0 are less

K = TypeVar("K", bound=Hashable)
Shared = tuple[tuple[int, ...], Ids]  # the attributes that differ, and all other conditions


class Widening(Generic[K]):
    """Merges pairs of a pool while their IMT is at most a limit.

    With `in_all` the limit is for all mergers together.
    """

    def __init__(
        self, pool: Pool[K], space: Space, announced: Sequence[Cell] | None, limit: float, *,
        in_all: bool = False,
    ) -> None:  # fmt: skip
        self._pool = pool
        self._space = space
        self._announced = announced  # cells that have nothing in common
        self._limit = limit
        self._left = limit if in_all else None
        self._arriving = 1.0 if announced is None else sum(map(space.rough, announced))
        self._cells: dict[Ids, Cell | None] = {}
        self._weights: dict[Ids, float] = {}
        self._groups: dict[Shared, list[tuple[Any, int]]] = {}
        self._heap: list[tuple[float, int, int, Ids, Shared]] = []
        self._seen: set[tuple[int, int]] = set()
        self._lows: dict[int, Any] = {}
        self._widened: dict[tuple[int, Node, Node], list[Node]] = {}

    def run(self) -> None:
        """Merge what may be merged."""
        for number, entry in self._pool.alive:
            for shared in self._shared(entry):
                self._groups.setdefault(shared, []).append((self._key(entry, shared), number))
        for shared, group in self._groups.items():
            group.sort()
            for _, number in group if len(group) > 1 else ():
                self._pair(number, shared)
        while self._heap:
            imt, one, other, ids, shared = heapq.heappop(self._heap)
            alive = [n for n in (one, other) if self._pool.entries[n].alive]
            if len(alive) == 2 and self._may(imt, alive):
                number = self._pool.merged(alive, ids, imt, perfect=False)
                self._enter(number)
            elif len(alive) == 1:  # its neighbour went, so it has another one
                self._pair(alive[0], shared)

    def _may(self, imt: float, numbers: list[int]) -> bool:
        if self._left is None:
            return True
        added = imt - sum(self._pool.entries[n].extra for n in numbers)
        if added > self._left + _NOTHING:
            return False
        self._left -= added
        return True

    # --- groups

    def _shared(self, entry: Entry[K]) -> Iterator[Shared]:
        """The groups of boxes that differ from one in one attribute or in two."""
        pool, ids = self._pool, entry.ids
        if self._cell(ids) is None:
            return
        places = list(pool.places(ids))
        most = 1 if pool.by_top else len(places)
        for place in places[:most]:
            yield (pool.condition(ids[place]).position,), ids[:place] + ids[place + 1 :]
        pairs = combinations(places[:2] if pool.by_top else places, 2)
        for a, b in pairs:
            first, second = min(a, b), max(a, b)
            positions = pool.condition(ids[first]).position, pool.condition(ids[second]).position
            yield positions, ids[:first] + ids[first + 1 : second] + ids[second + 1 :]
        if pool.rules.takes_tests and not pool.by_top:
            for place in places:  # what is asked of different attributes can only be dropped
                yield (), ids[:place] + ids[place + 1 :]

    def _key(self, entry: Entry[K], shared: Shared) -> Any:
        """Where an entry stands in a group."""
        positions, rest = shared
        if not positions:
            (asked,) = set(entry.ids).difference(rest)
            return -self._weight((asked,))
        return tuple(self._low(self._pool.asked(entry.ids, position)) for position in positions)

    def _low(self, number: int) -> Any:
        """Where the values of a condition begin."""
        found = self._lows.get(number)
        if found is None:
            found = self._lows[number] = self._begin(*self._pool.condition(number))
        return found

    def _begin(self, position: int, node: Node) -> Any:
        match node:
            case ast.Call("startswith", (_, ast.Literal(text, _)), _):
                return 1, text, 0
        found = self._pool.ground(position).extent(node)
        return found.values[0][0] if found is not None and found.values else BOTTOM

    def _asked(self, ids: Ids, position: int) -> Node:
        return self._pool.condition(self._pool.asked(ids, position)).node

    def _enter(self, number: int) -> None:
        entry = self._pool.entries[number]
        for shared in self._shared(entry):
            insort(self._groups.setdefault(shared, []), (self._key(entry, shared), number))
            self._pair(number, shared)

    # --- pairs

    def _pair(self, number: int, shared: Shared) -> None:
        """Put a box and its neighbours of a group on the heap."""
        group = self._groups[shared]
        entries = self._pool.entries
        place = bisect_left(group, (self._key(entries[number], shared), number))
        for steps in (range(place - 1, -1, -1), range(place + 1, len(group))):
            found = 0
            for step in steps:
                other = group[step][1]
                if entries[other].alive:
                    self._consider(min(number, other), max(number, other), shared)
                    found += 1
                    if found == NEIGHBOURS:
                        break

    def _consider(self, one: int, other: int, shared: Shared) -> None:
        if (one, other) in self._seen:
            return
        a, b = self._pool.entries[one], self._pool.entries[other]
        choices = [(self._weight(ids), ids) for ids in self._mergers(a.ids, b.ids, shared)]
        if not choices:
            return
        self._seen.add((one, other))
        weight, ids = min(choices, key=lambda choice: choice[0])
        both = self._space.common(self._cell(a.ids), self._cell(b.ids))
        union = self._weight(a.ids) + self._weight(b.ids) - self._rough(both)
        added = weight - union
        imt = (added if added > _NOTHING else 0.0) + a.extra + b.extra
        if imt <= self._limit + _NOTHING:
            heapq.heappush(self._heap, (imt, one, other, ids, shared))

    def _mergers(self, a: Ids, b: Ids, shared: Shared) -> Iterator[Ids]:
        """Boxes that hold two of a group."""
        positions, rest = shared
        asked = [(self._asked(a, p), self._asked(b, p)) for p in positions]
        if len(positions) == 2 and any(one == other for one, other in asked):
            return  # they differ in one attribute, and are in a group of their own
        if not positions:
            yield rest
            return
        widened = [
            self._widen(position, *pair) for position, pair in zip(positions, asked, strict=True)
        ]
        if len(widened) == 2:
            widened = [nodes[:TRIED] for nodes in widened]
        for nodes in product(*widened):
            ids = rest
            for position, node in zip(positions, nodes, strict=True):
                ids = self._pool.replaced(ids, position, node)
            if self._cell(ids) is not None:
                yield ids

    def _widen(self, position: int, a: Node, b: Node) -> list[Node]:
        key = position, a, b
        found = self._widened.get(key)
        if found is None:
            found = widen(a, b, self._pool.ground(position), self._pool.rules)
            self._widened[key] = found
        return found

    # --- weights

    def _cell(self, ids: Ids) -> Cell | None:
        if ids not in self._cells:
            self._cells[ids] = self._space.cell(self._pool.box(ids).conditions)
        return self._cells[ids]

    def _weight(self, ids: Ids) -> float:
        found = self._weights.get(ids)
        if found is None:
            found = self._weights[ids] = self._rough(self._cell(ids))
        return found

    def _rough(self, cell: Cell | None) -> float:
        """The share of events in a cell, among those that come."""
        if cell is None:
            return 0.0
        if self._announced is None:
            return self._space.rough(cell)
        common = (self._space.common(cell, each) for each in self._announced)
        weight = sum(self._space.rough(each) for each in common if each is not None)
        return weight / self._arriving if self._arriving else 0.0
